"""Answers with kept results are those without: random queries over tables that are changed meanwhile. And: what is given
again, what makes it be computed anew, and what is never kept."""

import datetime
import os
import random
import time

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

from durable import Database
from join_cases import Table, cases
from server import Server, wait_until
from test_join_cache import MAX_ROWS, Writer, rows_of

CASES = int(os.environ.get("BOWSHOT_RESULT_CASES", "100"))
SEED = int(os.environ.get("BOWSHOT_RESULT_SEED", "1"))
ROWS = 300_000
# Takes longer than what is not worth the room.
SLOW = "SELECT word, count(*) AS n, sum(x) AS s FROM t GROUP BY word ORDER BY word"


@pytest.fixture(params=["memory", "durable"])
def server(request, tmp_path):
    with Server(data="memory" if request.param == "memory" else tmp_path / "data") as server:
        yield server


@pytest.fixture
def db(server):
    with Database(server) as db:
        db.run(
            f"CREATE TABLE t AS SELECT value AS x, 'word ' || CAST(value % 97 AS VARCHAR) AS word "
            f"FROM generate_series(1, {ROWS}) AS s(value)"
        )
        yield db


def hits(db):
    return db.one("SELECT coalesce(sum(hits), 0) FROM bowshot.system.result_cache")


def is_given(db, sql):
    """Whether the answer comes from the cache when it is asked for twice; both must be the same."""
    answer, before = db.rows(sql), hits(db)
    assert db.rows(sql) == answer
    return hits(db) > before


def test_the_same_query_is_answered_from_memory(server, db):
    assert "ResultCache: miss" in str(db.rows("EXPLAIN " + SLOW))
    answer = db.arrow(SLOW)
    assert answer.num_rows == 97
    assert "ResultCache: hit" in str(db.rows("EXPLAIN " + SLOW))
    with Database(server) as other:
        again = other.arrow("select word, COUNT(*) AS n, sum(x) AS s\nFROM t GROUP BY word ORDER BY word -- once more")
    assert again == answer and again.schema.equals(answer.schema, check_metadata=True)
    ((tables, rows, found),) = db.rows("SELECT tables, row_count, hits FROM bowshot.system.result_cache")
    assert (tables, rows, found) == ("t", 97, 1)
    assert server.metrics()["bowshot_result_cache_hits_total"] == 1
    db.run("CALL result_cache_clear()")
    assert db.rows("SELECT * FROM bowshot.system.result_cache") == []
    assert db.arrow(SLOW) == answer


@pytest.mark.parametrize("change", [
    "INSERT INTO t VALUES (1, 'word 1')",
    "DELETE FROM t WHERE x = 17",
    "UPDATE t SET x = x + 1 WHERE x = 17",
    "MERGE INTO t USING (SELECT 17 AS k) s ON t.x = s.k WHEN MATCHED THEN UPDATE SET word = 'word 1'",
    "ALTER TABLE t ADD COLUMN y BIGINT",
    "TRUNCATE TABLE t",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS x, 'a' AS word",
])
def test_a_change_makes_it_be_computed_anew(db, change):
    before = db.rows(SLOW)
    db.run(change)
    assert "ResultCache: miss" in str(db.rows("EXPLAIN " + SLOW))
    after = db.rows(SLOW)
    assert (after == before) == ("ALTER" in change)
    db.run("SET result_cache = 'off'")
    assert db.rows(SLOW) == after


def test_a_transaction_sees_its_own_rows_and_others_do_not(server, db):
    before = db.rows(SLOW)
    with Database(server) as other:
        db.run("BEGIN", "DELETE FROM t WHERE x <= 1000")
        inside = db.rows(SLOW)
        assert inside != before and other.rows(SLOW) == before
        assert "not in its newest committed state" in str(db.rows("EXPLAIN " + SLOW))
        db.run("ROLLBACK")
        assert db.rows(SLOW) == before
        other.run("BEGIN")
        assert other.rows(SLOW) == before
        db.run("DELETE FROM t WHERE x <= 1000")
        assert db.rows(SLOW) == inside and other.rows(SLOW) == before and db.rows(SLOW) == inside
        other.run("ROLLBACK")
        assert other.rows(SLOW) == inside


def test_what_may_differ_the_next_time_is_never_kept(db):
    for sql, reason in [
        ("SELECT x, random() AS r FROM t WHERE x < 1000", "function"),
        ("SELECT count(*), now() AS moment FROM t GROUP BY word", "function"),
        ("SELECT count(*) FROM t WHERE x > 5 OR random() < 0.5", "function"),
        ("SELECT (SELECT max(random()) FROM t) AS r, count(*) FROM t", "may differ the next time"),
        ("SELECT count(*) FROM t, bowshot.system.tables", "not known"),
        ("SELECT 1", "no table"),
    ]:
        assert reason in str(db.rows("EXPLAIN " + sql)), sql
        db.rows(sql)
    db.run("CREATE TEMPORARY TABLE own AS SELECT * FROM t")
    db.rows("SELECT count(DISTINCT word) FROM own")
    db.rows("EXPLAIN ANALYZE " + SLOW)
    assert db.rows("SELECT * FROM bowshot.system.result_cache") == []


def test_settings_and_layouts_have_results_of_their_own(server, db):
    sql = "SELECT word, max(to_timestamp(x)) AS at, max(CAST('2020-01-01 00:00:00' AS TIMESTAMPTZ)) AS z FROM t GROUP BY word"
    db.run("SET time_zone = 'UTC'")
    utc = db.arrow(sql)
    db.run("SET time_zone = 'Asia/Tokyo'")
    tokyo = db.arrow(sql)
    assert tokyo.column("z")[0].as_py() != utc.column("z")[0].as_py()
    db.run("SET time_zone = 'UTC'", "SET views = 'true'")
    views = db.arrow(sql)
    db.run("SET views = 'false'")
    assert db.arrow(sql).schema == utc.schema
    db.run("SET result_cache = 'off'")
    assert "set result_cache off" in str(db.rows("EXPLAIN " + sql))
    db.run("SET views = 'true'")
    assert db.arrow(sql).schema == views.schema


def test_parameters_are_part_of_the_query(db):
    sql = "SELECT word, count(*) AS n, CAST(? AS VARCHAR) AS p FROM t WHERE x > ? GROUP BY word ORDER BY word"
    with db.connection.cursor() as cursor:
        def ask(*values):
            cursor.execute(sql, values)
            return cursor.fetchall()

        first, second = ask("a", 10), ask("a", 200_000)
        assert first != second and ask("b", 10)[0][2] == "b"
        before = hits(db)
        assert ask("a", 10) == first and ask("a", 200_000) == second
        assert hits(db) == before + 2


def test_parameters_that_differ_in_their_time_zone_alone(db):
    sql = "SELECT word, max(CAST(? AS VARCHAR)) AS moment FROM t GROUP BY word ORDER BY word"
    moments = [pa.scalar(datetime.datetime(2020, 1, 1), pa.timestamp("us", zone)) for zone in ("UTC", "Asia/Tokyo", "UTC")]
    answers = []
    for moment in moments:
        with db.connection.cursor() as cursor:
            rows = pa.table({"1": pa.array([moment.as_py()], moment.type)})
            cursor.execute(sql, rows)
            answers.append(cursor.fetchall()[0][1])
    assert answers[0] == answers[2] != answers[1]


def test_files_that_change(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    file = folder / "t.parquet"

    def write(factor):
        begun = folder / ".begun"
        words = pa.array([f"word {n % 97}" for n in range(ROWS)])
        pq.write_table(pa.table({"x": pa.array([n * factor for n in range(ROWS)]), "word": words}), begun)
        begun.rename(file)

    write(1)
    with Server(folder, environment={"BOWSHOT_STORAGE_REFRESH": "100ms"}) as server, Database(server) as db:
        wait_until(lambda: "ResultCache: miss" in str(db.rows("EXPLAIN " + SLOW)), "a file that has settled")
        assert is_given(db, SLOW)
        before = db.rows(SLOW)
        write(2)
        wait_until(lambda: db.rows(SLOW) != before, "the new file")
        assert sum(s for _, _, s in db.rows(SLOW)) == 2 * sum(s for _, _, s in before)
        wait_until(lambda: is_given(db, SLOW), "the new file has settled")


def test_a_result_that_is_not_read_to_its_end_is_not_kept(server, db):
    client = flight.connect(server.grpc_tcp)
    reader = client.do_get(flight.Ticket(b"SELECT a.x, b.x AS y FROM t a, (SELECT x FROM t WHERE x <= 5) b"))
    reader.read_chunk()
    reader.cancel()
    wait_until(lambda: db.one("SELECT count(*) FROM bowshot.system.queries WHERE outcome = 'running'") <= 1, "the end of it")
    assert db.rows("SELECT * FROM bowshot.system.result_cache") == []
    with pytest.raises(Exception, match="(?i)divi"):
        db.rows("SELECT word, sum(1 / (x - 299999)) FROM t GROUP BY word")
    assert db.rows("SELECT * FROM bowshot.system.result_cache") == []


def test_memory_is_bounded(tmp_path):
    with Server(data="memory", environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "1MiB"}) as server, Database(server) as db:
        db.run(f"CREATE TABLE t AS SELECT value AS x, value % 7 AS y FROM generate_series(1, {ROWS}) AS s(value)")
        whole = "SELECT x, y FROM t"
        assert len(db.rows(whole)) == ROWS
        assert db.rows("SELECT * FROM bowshot.system.result_cache") == [], "a result of 4.8 MB"
        for bound in range(200):
            db.rows(f"SELECT x FROM t WHERE y = 3 ORDER BY x DESC LIMIT {3000 + bound}")
        bytes_ = db.one("SELECT sum(bytes) FROM bowshot.system.result_cache")
        assert 500_000 < bytes_ <= 1 << 20
        assert server.metrics()["bowshot_result_cache_bytes"] == bytes_
        assert server.metrics()["bowshot_result_cache_evictions_total"] > 50
    with Server(data="memory", environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0"}) as server, Database(server) as db:
        db.run(f"CREATE TABLE t AS SELECT value AS x, 'a' AS word FROM generate_series(1, {ROWS}) AS s(value)")
        assert not is_given(db, SLOW) and "ResultCache" not in str(db.rows("EXPLAIN " + SLOW))
        with pytest.raises(Exception, match="result_cache.memory_bytes"):
            db.run("CALL result_cache_clear()")


def test_the_question_of_the_next_day_is_answered_before_it_is_asked(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()

    def write(day):
        for name, columns in [
            ("sales", {"store": [n % 10 for n in range(ROWS)], "amount": [n % day for n in range(ROWS)]}),
            ("stores", {"id": list(range(10)), "name": [f"store {n}" for n in range(10)]}),
        ]:
            begun = folder / f".{name}"
            pq.write_table(pa.table(columns), begun)
            begun.rename(folder / f"{name}{day}.parquet")

    def question(day):
        return (
            f"SELECT t.name, sum(s.amount), 'it''s' AS x FROM sales{day} s "
            f'JOIN "stores{day}" t ON s.store = t.id GROUP BY t.name ORDER BY t.name'
        )

    def explained(db, day):
        # A new file is a table when the folder is looked at the next time.
        there = db.one(f"SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '%{day}'") == 2
        return str(db.rows("EXPLAIN " + question(day))) if there else ""

    environment = {"BOWSHOT_JOIN_CACHE_ENABLED": "true", "BOWSHOT_STORAGE_REFRESH": "200ms"}
    write(20210803)
    write(20210804)
    with Server(folder, environment=environment) as server, Database(server) as db:
        for day in (20210803, 20210804):
            wait_until(lambda: "ResultCache: miss" in explained(db, day), "files that have settled")
            assert len(db.rows(question(day))) == 10
        write(20210805)
        wait_until(lambda: "ResultCache: hit" in explained(db, 20210805), "the answer of the third day", 60)
        before = hits(db)
        answer = db.rows(question(20210805))
        assert hits(db) == before + 1
        db.run("SET result_cache = 'off'")
        assert db.rows(question(20210805)) == answer and len(answer) == 10


def test_a_mapped_file_that_is_overwritten_in_place_does_not_change_what_is_kept(tmp_path):
    file = tmp_path / "t.arrow"

    def write(factor):
        numbers = pa.table({"x": pa.array([n * factor for n in range(ROWS)], pa.int64())})
        with open(file, "r+b" if file.exists() else "wb") as sink, pa.ipc.new_file(sink, numbers.schema) as writer:
            writer.write_table(numbers, ROWS)

    write(1)
    # Old enough to count as one that stays.
    time.sleep(0.2)
    with Server(file, environment={"BOWSHOT_STORAGE_REFRESH": "1h"}) as server, Database(server) as db:
        sql = "SELECT x FROM t"
        # On a fast machine it may take several until one took long enough to be kept.
        wait_until(lambda: db.arrow(sql).num_rows == ROWS and hits(db) > 0, "a result that is kept")
        before = hits(db)
        # Nobody looks at the file any more for an hour: what is given is what was read then.
        write(2)
        given = db.arrow(sql)
        assert sorted(given.column("x").to_pylist()) == list(range(ROWS))
        assert hits(db) == before + 1


def test_an_answer_promises_the_same_each_time(server, db):
    client = flight.connect(server.grpc_tcp)
    promises = set()
    sql = b"SELECT x FROM t WHERE word LIKE '%7%' OR word LIKE '%9%'"
    for _ in range(3):
        info = client.get_flight_info(flight.FlightDescriptor.for_command(sql))
        promises.add((info.total_records, len(info.endpoints), info.schema))
        for endpoint in info.endpoints:
            client.do_get(endpoint.ticket).read_all()
    assert len(promises) == 1 and hits(db) == 2


def test_a_key_that_is_too_large_displaces_nothing(tmp_path):
    with Server(data="memory", environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "1MiB"}) as server, Database(server) as db:
        db.run(f"CREATE TABLE t AS SELECT value AS x, 'a' AS word FROM generate_series(1, {ROWS}) AS s(value)")
        assert is_given(db, SLOW)
        db.rows(f"SELECT count(*) FROM t WHERE word <> '{'x' * 500_000}'")
        assert db.one("SELECT count(*) FROM bowshot.system.result_cache") == 1


def test_many_readers_that_stop_do_not_keep_others_from_being_recorded(server, db):
    client = flight.connect(server.grpc_tcp)
    large = flight.Ticket(b"SELECT a.x, b.x AS y FROM t a, (SELECT x FROM t WHERE x <= 20) b")
    readers = [client.do_get(large) for _ in range(6)]
    for reader in readers:
        reader.read_chunk()
    assert is_given(db, SLOW)
    for reader in readers:
        reader.cancel()
    wait_until(lambda: server.metrics()["bowshot_result_cache_begun_bytes"] == 0, "room that is given back")


def test_each_number_of_endpoints_has_its_own_result(server, db):
    sql = "SELECT x, word FROM t WHERE x % 5 = 0"
    for _ in range(2):
        for streams in (1, 2, 4):
            db.run(f"SET endpoints = '{streams}'")
            with db.connection.cursor() as cursor:
                partitions, _ = cursor.adbc_execute_partitions(sql)
                rows = []
                for partition in partitions:
                    cursor.adbc_read_partition(partition)
                    rows += cursor.fetch_arrow_table().column("x").to_pylist()
                assert sorted(rows) == list(range(5, ROWS + 1, 5))
                assert len(partitions) <= max(streams, 1)


def wrong(db, sql):
    """The answers of one snapshot, asked for three times with the cache and once without, if they differ."""
    db.run("BEGIN")
    try:
        there = [rows_of(db, sql) for _ in range(3)]
        db.run("SET result_cache = 'off'")
        computed = rows_of(db, sql)
        return None if all(rows == computed for rows in there) else (sql, there, computed)
    finally:
        db.run("SET result_cache = 'on'", "ROLLBACK")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pause", [pytest.param(pause, marks=pytest.mark.long) for pause in (None, 0.1)] + [0.005])
def test_random_queries_give_what_they_give_without_the_cache(pause, tmp_path):
    with Server(data=tmp_path / "data") as server, Database(server) as db:
        for round_, seed in enumerate(range(SEED, SEED + max(1, CASES // 200))):
            dice = random.Random(seed)
            tables = [Table(f"r{round_}_{name}", dice) for name in "abcd"]
            for table in tables:
                db.run(table.create(dice), table.insert(dice, dice.randint(1, MAX_ROWS)))
            writer = Writer(server, tables, seed, pause) if pause else None
            if writer:
                writer.start()
            try:
                found = [difference for sql in cases(seed, tables, min(CASES, 200)) if (difference := wrong(db, sql))]
            finally:
                if writer:
                    writer.stop()
            assert not found, f"{len(found)} wrong, seed {seed}, the first: {found[0]}"
        given = server.metrics()["bowshot_result_cache_hits_total"]
        # Of 800 without a writer; two thirds beside one that changes tables two hundred times a second.
        assert given > CASES / 2, f"{given} answers were given from the cache"
