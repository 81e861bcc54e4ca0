"""Files that somebody cuts or overwrites while a query holds rows of them: those of the join cache, which are mapped, and
Arrow files that are tables. No answer may have what was never in the file, and nothing of such an answer may be kept."""

import os
import threading
import time

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

from durable import Database
from server import Server, computing, wait_until
from test_join_cache import EAGER

ROWS = 12_000
TEXT = "what was written " * 30
# Rows that are held while an endless other side passes by: the client decides when the first of them were all sent.
HELD = [
    "SELECT held.t FROM ({held}) AS held CROSS JOIN generate_series(1, 40) AS g(n)",
    "SELECT held.t FROM ({held}) AS held JOIN generate_series(0, 480000) AS g(n) ON held.k = g.n % 12000",
]
JOINED = "SELECT a.k AS k, a.t AS t FROM a JOIN b ON a.k = b.k"


def held_while(server, sql, spoil):
    """The texts of a query, or its error; `spoil` is called after the first batch."""
    with Database(server) as db, db.connection.cursor() as cursor:
        cursor.execute(sql)
        found = set()
        try:
            reader = cursor.fetch_record_batch()
            found.update(reader.read_next_batch().column(0).unique().to_pylist())
            # What the server has sent ahead is in the sockets now.
            time.sleep(0.5)
            spoil()
            for batch in reader:
                found.update(batch.column(0).unique().to_pylist())
        except Exception as error:
            return str(error)
        return found


def cut(file):
    os.truncate(file, 4096)


def overwrite(file):
    """The second half of the texts: lengths that lead out of a map would be the end of whoever reads it."""
    with open(file, "r+b") as opened:
        size = os.path.getsize(file)
        opened.seek(size // 2)
        opened.write(b"x" * (size // 2 - 8192))


def is_right(answer):
    """All rows, or an error; whoever asks again gets the rows."""
    assert answer == {TEXT} or (isinstance(answer, str) and "run the query again" in answer), str(answer)[:500]
    return isinstance(answer, set)


@pytest.fixture
def cached(tmp_path):
    """A server that has just been started, with a join that is on disk."""
    data = tmp_path / "data"
    with Server(data=data, environment=EAGER) as server, Database(server) as db:
        numbers = pa.array(range(ROWS))
        db.ingest("a", pa.table({"k": numbers, "t": [TEXT] * ROWS}))
        db.ingest("b", pa.table({"k": numbers, "y": numbers}))
        db.run("SET result_cache = 'off'")
        assert len(db.rows(JOINED)) == ROWS
        wait_until(lambda: db.one("SELECT count(*) FROM bowshot.system.join_cache WHERE disk_bytes > 0"), "a file")
    (file,) = (data / "join_cache").glob("*.arrow")
    with Server(data=data, environment={"BOWSHOT_JOIN_CACHE_ENABLED": "true"}) as server:
        yield server, file


@pytest.mark.parametrize("spoil", [cut, overwrite], ids=["cut", "overwritten"])
@pytest.mark.parametrize("held", HELD, ids=["cross", "build"])
def test_a_query_that_holds_rows_of_a_cached_join(cached, held, spoil):
    server, file = cached
    sql = held.format(held=JOINED)
    answer = held_while(server, sql, lambda: spoil(file))
    assert not is_right(answer), "the file was changed before the end, and somebody should have said so"
    assert str(file) in server.log(), "the log says which file"
    with Database(server) as db:
        assert set(db.arrow(sql).column(0).unique().to_pylist()) == {TEXT}
        assert db.one("SELECT count(*) FROM bowshot.system.join_cache WHERE hits > 0") == 0, "it is forgotten"


@pytest.mark.parametrize("spoil", [cut, overwrite], ids=["cut", "overwritten"])
@pytest.mark.parametrize("sql", [
    "SELECT max(t) AS t FROM (SELECT t FROM ({joined}) ORDER BY t, k LIMIT 3000) AS s "
    "CROSS JOIN generate_series(1, 3000) AS g(n)",
    "SELECT DISTINCT first_value(t) OVER (ORDER BY k % 7, n) AS t FROM ({joined}) AS j "
    "CROSS JOIN generate_series(1, 25) AS g(n)",
], ids=["limit", "window"])
def test_a_query_that_computes_while_a_file_of_the_cache_changes(cached, sql, spoil):
    """Somewhere between planning and the last row; what comes is right, whenever it was. The statement is asked again by
    the server itself as long as nobody has seen a row."""
    server, file = cached
    sql = sql.format(joined=JOINED)
    with Database(server) as db:
        assert "CachedFileExec" in str(db.rows("EXPLAIN " + sql)), "it reads the file"
        db.run("SET join_cache = 'off'", "SET result_cache = 'off'")
        began = time.monotonic()
        right = db.rows(sql)
        takes = time.monotonic() - began
    spoiler = threading.Timer(takes / 2, spoil, [file])
    with Database(server) as db, db.connection.cursor() as cursor:
        spoiler.start()
        try:
            cursor.execute(sql)
            assert cursor.fetchall() == right
        except AssertionError:
            raise
        except Exception as error:
            assert "run the query again" in str(error), error
        finally:
            spoiler.join()
    with Database(server) as db:
        assert db.rows(sql) == right, "nothing of it is kept"
        assert db.rows(sql) == right


def write_arrow(file, texts):
    """One batch, written beside and renamed."""
    rows = pa.record_batch({"k": pa.array(range(len(texts))), "t": texts})
    beside = file.with_suffix(".tmp")
    with pa.OSFile(str(beside), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)
    beside.rename(file)


@pytest.mark.parametrize("spoil", [cut, overwrite], ids=["cut", "overwritten"])
@pytest.mark.parametrize("held", HELD, ids=["cross", "build"])
def test_a_query_that_holds_rows_of_an_arrow_file(tmp_path, held, spoil):
    file = tmp_path / "rows.arrow"
    write_arrow(file, [TEXT] * ROWS)
    sql = held.format(held="SELECT k, t FROM rows")
    with Server(file) as server:
        answer = held_while(server, sql, lambda: spoil(file))
        assert not is_right(answer) and str(file) in answer, answer
        write_arrow(file, [TEXT] * ROWS)
        with Database(server) as db:
            wait_until(lambda: db.one("SELECT count(*) FROM rows WHERE t <> ''") == ROWS, "the new file")
            assert set(db.arrow(sql).column(0).unique().to_pylist()) == {TEXT}


@pytest.mark.parametrize("spoil", [cut, overwrite], ids=["cut", "overwritten"])
def test_a_result_that_waits_for_its_client(tmp_path, cached, spoil):
    """All of it is there before the client comes, and the engine has long ended."""
    server, file = cached
    rows = tmp_path / "rows.arrow"
    write_arrow(rows, [TEXT] * ROWS)
    with Server(rows) as other:
        for asked, of, sql in ((server, file, JOINED), (other, rows, "SELECT k, t FROM rows")):
            with flight.connect(asked.grpc_tcp) as client:
                info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
                wait_until(lambda asked=asked: asked.held().get("bowshot_running_queries", 0) == 0, "an end")
                time.sleep(0.3)
                spoil(of)
                with pytest.raises((flight.FlightError, pa.ArrowException), match="run the query again"):
                    for endpoint in info.endpoints:
                        client.do_get(endpoint.ticket).read_all()


WRITTEN = {
    "table": ("CREATE OR REPLACE TABLE copied AS SELECT * FROM rows", "SELECT DISTINCT t FROM copied"),
    "large table": (f"CREATE OR REPLACE TABLE copied AS {HELD[0].format(held='SELECT k, t FROM rows')}", "SELECT DISTINCT t FROM copied"),
    "memory": ("CREATE OR REPLACE TEMPORARY TABLE copied AS SELECT * FROM rows", "SELECT DISTINCT t FROM copied"),
    "copy out": ("COPY (SELECT * FROM rows) TO 'out.parquet' WITH (OVERWRITE true)", None),
    "copy in": ("COPY copied FROM 'rows.arrow'", "SELECT DISTINCT t FROM copied"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_rows_of_an_arrow_file_that_is_cut_are_not_written(tmp_path, how):
    """Whenever it happens: the statement fails, or has written what was there."""
    sql, check = WRITTEN[how]
    file, exchange = tmp_path / "rows.arrow", tmp_path / "exchange"
    exchange.mkdir()
    if how == "copy in":
        file = exchange / "rows.arrow"
    write_arrow(file, [TEXT] * ROWS)
    sources = [] if how == "copy in" else [file]
    environment = {"BOWSHOT_STORAGE_EXCHANGE_FOLDER": str(exchange), "BOWSHOT_STORAGE_REFRESH": "0s"}
    out = exchange / "out.parquet"
    with computing(*sources, data=tmp_path / "data", environment=environment) as server, Database(server) as db:
        failed = 0
        for n in range(20):
            delay = (0.02 if how == "large table" else 0.002) * n
            if how == "copy in":
                db.run("CREATE OR REPLACE TABLE copied (k BIGINT, t VARCHAR)")
            else:
                assert db.one("SELECT count(*) FROM rows WHERE t <> ''") == ROWS
            out.unlink(missing_ok=True)
            spoiler = threading.Timer(delay, cut, [file])
            spoiler.start()
            try:
                db.run(sql)
            except Exception as error:
                failed += 1
                spoiler.join()
                assert "rows.arrow" in str(error), error
                written = "nothing"
            else:
                spoiler.join()
                written = "all"
            write_arrow(file, [TEXT] * ROWS)
            if how == "copy out":
                assert out.exists() == (written == "all")
                assert written == "nothing" or pq.read_table(out).column("t").unique().to_pylist() == [TEXT], delay
                assert {entry.name for entry in exchange.iterdir()} <= {"out.parquet"}, "nothing is left behind"
            elif how == "copy in":
                assert db.rows(check) == ([(TEXT,)] if written == "all" else []), delay
            elif written == "all":
                assert db.rows(check) == [(TEXT,)], delay
        assert failed, "it never came in time to hurt"


def count_of(db, table):
    """`None` for the second after one of its files has gone."""
    try:
        return db.one(f"SELECT count(*) FROM {table}")
    except Exception:
        return None


def test_files_that_no_query_has_read_do_not_matter(tmp_path):
    """More files than maps that are kept, one of which goes while others are read."""
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(300):
        write_arrow(folder / f"part-{n:04}.arrow", [TEXT] * 40)
    with Server(f"many={folder}") as server:
        sql = HELD[0].format(held="SELECT k, t FROM many")
        last = folder / "part-0299.arrow"
        assert held_while(server, sql, lambda: write_arrow(last, [TEXT])) == {TEXT}
        assert held_while(server, sql, last.unlink) == {TEXT}
        with Database(server) as db:
            wait_until(lambda: count_of(db, "many") == 299 * 40, "one file less")
        rest = list(folder.iterdir())
        assert not is_right(held_while(server, sql, lambda: [cut(file) for file in rest]))


def test_an_arrow_file_that_is_replaced_is_read_to_its_end(tmp_path):
    file = tmp_path / "rows.arrow"
    write_arrow(file, [TEXT] * ROWS)
    with Server(file) as server:
        answer = held_while(server, HELD[0].format(held="SELECT k, t FROM rows"), lambda: write_arrow(file, ["new"]))
        assert answer == {TEXT}
