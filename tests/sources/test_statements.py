"""Files in object stores that statements name: below the places that the operator has opened, and nowhere else."""

import threading
import time

import pytest

import lake as files
import proxy as faults
from conftest import Remote
from server import BUSY_FACTOR, wait_until


@pytest.fixture(scope="module")
def remote(s3):
    settings = ("object_store.read=s3://lake/data", "object_store.exchange=s3://lake/exchange",
                "object_store.refresh=200ms")
    with Remote("s3://lake/data/orders.parquet", environment=s3.environment(), settings=settings) as server:
        yield server


def test_files_are_read_by_address(remote):
    rows = remote.rows
    assert rows("SELECT count(*) FROM 's3://lake/data/orders.parquet'") == [(60_000,)]
    assert rows("SELECT count(*) FROM read_parquet('s3://lake/data/events/*/*.parquet')") == [(6_000,)]
    assert rows("SELECT count(*), min(year) FROM read_parquet('s3://lake/data/events/year=2024/**/*.parquet')") == [(3_000, 2024)]
    assert rows("SELECT count(*) FROM read_csv('s3://lake/data/lines.csv', all_varchar = true)") == [(5_000,)]
    assert rows("SELECT count(*) FROM read_json('s3://lake/data/objects.jsonl')") == [(2_000,)]
    both = "read_parquet(['s3://lake/data/events/year=2023/*.parquet', 's3://lake/data/events/year=2024/*.parquet'])"
    assert rows(f"SELECT count(*), count(DISTINCT year) FROM {both}") == [(6_000, 2)]
    # What has a pattern for its name is meant by it, and nothing else.
    for name in files.ODD_FOLDERS:
        assert rows(f"SELECT name FROM 's3://lake/data/odd folders/{name}/t.csv'") == [(name,)]
    assert sorted(rows("SELECT name FROM 's3://lake/data/odd folders/wha[t]?/t.csv'")) == [("what?",), ("whats",)]
    assert rows("SELECT count(*) FROM 's3://lake/data/odd folders/*/t.csv'") == [(len(files.ODD_FOLDERS),)]


def test_external_tables_lie_in_stores(s3, tmp_path):
    opened = ("object_store.read=s3://lake/data",)
    served, data = "s3://lake/data/orders.parquet", tmp_path / "data"
    with Remote(served, environment=s3.environment(), settings=opened, data=data) as server:
        server.database.run(
            "CREATE EXTERNAL TABLE outer_events STORED AS PARQUET LOCATION 's3://lake/data/events/'",
            "CREATE EXTERNAL TABLE outer_lines STORED AS CSV LOCATION 's3://lake/data/lines.csv' OPTIONS (all_varchar true)",
        )
        assert server.rows("SELECT count(*), count(DISTINCT year) FROM outer_events") == [(6_000, 2)]
        # A folder without `/`, and what other programs say of credentials.
        server.database.run("CREATE EXTERNAL TABLE outer_folder STORED AS PARQUET PARTITIONED BY (year) LOCATION 's3://lake/data/events'")
        assert server.rows("SELECT count(*), count(DISTINCT year) FROM outer_folder") == [(6_000, 2)]
        text = server.refused("CREATE EXTERNAL TABLE x LOCATION 's3://lake/data/events/' OPTIONS ('aws.secret_access_key' 'hidden')")
        assert "the operator sets locations" in text and "hidden" not in text
        for place in ("s3://lake/other.parquet", "s3://lake/", "s3://lake/data/../", "s3://other/data/", "gs://lake/data/"):
            text = server.refused(f"CREATE EXTERNAL TABLE outside STORED AS PARQUET LOCATION '{place}'")
            assert "not in a location that statements may read" in text or "names no files" in text, text
    with Remote(served, environment=s3.environment(), settings=opened, data=data) as server:
        assert server.rows("SELECT count(*) FROM outer_events WHERE year = 2024") == [(3_000,)]
        assert server.rows("SELECT count(*) FROM outer_lines") == [(5_000,)]
    with Remote(served, environment=s3.environment(), data=data) as server:
        assert "not in a location" in server.refused("SELECT * FROM outer_events")


@pytest.mark.parametrize("address", [
    "s3://lake/exchange/x.parquet", "s3://lake/other.parquet", "s3://lake/data/../other.parquet", "s3://lake/database.csv",
    "s3://lake/data/.hidden/x.csv", "s3://other/data/orders.parquet", "http://169.254.169.254/latest/meta-data/x.csv",
    "http://127.0.0.1:1/x.csv", "gs://lake/data/orders.parquet", "file:///etc/passwd", "s3://lake/data/%2e%2e/x.csv",
    "https://user:word@host/x.csv"])
def test_nothing_else_can_be_named(remote, address):
    for sql in (f"SELECT * FROM '{address}'", f"SELECT * FROM read_csv('{address}')", f"SELECT * FROM read_csv(['{address}'])"):
        text = remote.refused(sql)
        told = ("not in a location that statements may read", "names no files", "does not exist")
        # Of an address with a password nothing is repeated.
        assert "not repeated" in text if ":word@" in address else any(words in text for words in told), text


def test_what_is_served_is_not_readable_by_address(s3):
    with Remote("s3://lake/data/orders.parquet", environment=s3.environment()) as server:
        assert "not in a location" in server.refused("SELECT * FROM 's3://lake/data/orders.parquet'")
        server.refused("COPY orders TO 's3://lake/data/x.parquet'")
        assert "lake/data/x.parquet" not in s3.names("lake/data")


def test_rows_go_out_and_come_back(s3, remote):
    for ending in ("parquet", "csv", "json", "arrow"):
        path = f"s3://lake/exchange/small.{ending}"
        remote.database.run(f"COPY (SELECT id, customer, note FROM orders WHERE id < 500) TO '{path}' WITH (OVERWRITE true)")
        remote.database.run("DROP TABLE IF EXISTS back", "CREATE TABLE back (id BIGINT, customer INT, note VARCHAR)",
                            f"COPY back FROM '{path}'")
        sql = "SELECT count(*), sum(id), sum(customer) FROM"
        assert remote.rows(f"{sql} back") == remote.rows(f"{sql} orders WHERE id < 500")
        assert "already exists" in remote.refused(f"COPY (SELECT 1 AS a) TO '{path}'")
    # More than a part, so that it goes in several.
    wide = "SELECT o.*, e.id AS other FROM orders o CROSS JOIN (SELECT id FROM orders WHERE id < 8) e"
    remote.database.run(f"COPY ({wide}) TO 's3://lake/exchange/large.arrow'")
    info = s3.files.get_file_info("lake/exchange/large.arrow")
    assert info.size > 16 << 20
    remote.database.run("CREATE TABLE large (id BIGINT)", "COPY large (id) FROM 's3://lake/exchange/large.arrow'")
    assert remote.rows("SELECT count(*), sum(id) FROM large") == remote.rows("SELECT count(*) * 8, sum(id) * 8 FROM orders")
    assert s3.unfinished_uploads() == []


@pytest.mark.parametrize("address", ["s3://lake/data/new.parquet", "s3://lake/exchange", "s3://lake/exchange/",
                                     "s3://lake/exchange/../data/x.csv", "s3://lake/exchange/.x/y.csv", "gs://lake/exchange/x.csv",
                                     "http://127.0.0.1:1/x.csv", "s3://lake/exchange2/x.csv"])
def test_copy_stays_in_its_place(s3, remote, address):
    before = s3.names("lake")
    remote.refused(f"COPY (SELECT 1 AS a) TO '{address}' WITH (FORMAT csv)")
    remote.database.run("CREATE TABLE IF NOT EXISTS one (a BIGINT)")
    remote.refused(f"COPY one FROM '{address}' WITH (FORMAT csv)")
    assert s3.names("lake") == before


def test_nothing_is_visible_of_what_fails(s3, remote):
    wide = "SELECT o.*, e.id AS other FROM orders o CROSS JOIN (SELECT id FROM orders WHERE id < 10) e"
    text = remote.refused(f"COPY (SELECT *, 1 / (CASE WHEN id = 59999 AND other = 9 THEN 0 ELSE 1 END) AS x FROM ({wide}) w) "
                          "TO 's3://lake/exchange/failed.arrow'")
    assert "ivi" in text, text
    assert "lake/exchange/failed.arrow" not in s3.names("lake/exchange")
    assert s3.unfinished_uploads() == []


def test_a_cancelled_copy_takes_itself_back(s3, remote):
    from durable import Database

    wide = "SELECT o.*, e.id AS other FROM orders o CROSS JOIN (SELECT id FROM orders WHERE id < 3000) e"
    begun = lambda: s3.unfinished_uploads()  # noqa: E731
    other = Database(remote)
    outcome = []

    def copy():
        try:
            other.run(f"COPY ({wide}) TO 's3://lake/exchange/cancelled.arrow'")
            outcome.append("done")
        except Exception as error:
            outcome.append(str(error))

    thread = threading.Thread(target=copy)
    thread.start()
    wait_until(begun, "the upload has begun", 30)
    (number,) = remote.rows("SELECT query_id FROM system.queries WHERE statement LIKE 'COPY%cancelled.arrow%'")[0]
    remote.database.run(f"KILL QUERY '{number}'")
    thread.join()
    other.close()
    assert outcome and outcome[0] != "done"
    wait_until(lambda: s3.unfinished_uploads() == [], "taken back", 30)
    assert "lake/exchange/cancelled.arrow" not in s3.names("lake/exchange")


def test_uploads_through_faults(s3):
    settings = ("object_store.exchange=s3://lake/exchange", "object_store.timeout=20s", "object_store.request_timeout=10s")
    with faults.Proxy(s3.port) as proxy:
        with Remote("s3://lake/data/orders.parquet", environment=s3.environment(proxy.endpoint), settings=settings) as server:
            assert server.rows("SELECT count(*) FROM orders") == [(60_000,)]
            wide = "SELECT o.* FROM orders o CROSS JOIN (SELECT id FROM orders WHERE id < 8) e"
            for number, fault in enumerate((faults.status(503), faults.hang_up)):
                proxy.fault = faults.once_in(4, fault)
                path = f"lake/exchange/through-{number}.arrow"
                server.database.run(f"COPY ({wide}) TO 's3://{path}' WITH (OVERWRITE true)")
                with s3.files.open_input_file(path) as file:
                    import pyarrow as pa
                    assert pa.ipc.open_file(file).read_all().num_rows == 480_000
            # An answer that is lost says nothing of the file, which is there.
            proxy.fault = lambda handler, *rest: faults.hang_up(handler, *rest) if handler.command == "PUT" else rest
            server.database.run("COPY (SELECT 1 AS a) TO 's3://lake/exchange/lost.csv'")
            assert "lake/exchange/lost.csv" in s3.names("lake/exchange")
            proxy.fault = None
            proxy.refuses = lambda handler: handler.command in ("PUT", "POST")
            begun = time.monotonic()
            text = server.refused("COPY (SELECT 1 AS a) TO 's3://lake/exchange/never.csv'")
            assert "s3://lake/exchange/never.csv" in text and time.monotonic() - begun < 40 * BUSY_FACTOR
            assert "lake/exchange/never.csv" not in s3.names("lake/exchange")


def test_a_pipe_loads_objects_as_they_come(s3, tmp_path):
    settings, data = ("object_store.read=s3://lake/piped", "object_store.refresh=200ms"), tmp_path / "data"
    served, found = "s3://lake/data/orders.parquet", "SELECT id, name FROM piped ORDER BY id"
    with Remote(served, environment=s3.environment(), settings=settings, data=data) as server:
        server.database.run(
            "CREATE TABLE piped (id BIGINT, name VARCHAR)",
            "CREATE PIPE objects EVERY '1 second' AS COPY INTO piped FROM 's3://lake/piped/*.json'",
        )
        assert "not in a location" in server.refused("CREATE PIPE other AS COPY INTO piped FROM 's3://lake/data/*.json'")
        s3.write("lake/piped/a.json", b'{"id": 1, "name": "one"}\n')
        s3.write("lake/piped/b.json", b'{"id": 2,')
        wait_until(lambda: server.rows(found) == [(1, "one")], "the object is loaded", 30.0)
        wait_until(lambda: server.rows("SELECT file FROM bowshot.system.pipe_errors") == [("s3://lake/piped/b.json",)], "the error", 30.0)
    s3.write("lake/piped/b.json", b'{"id": 2, "name": "two"}\n')
    with Remote(served, environment=s3.environment(), settings=settings, data=data) as server:
        wait_until(lambda: server.rows(found) == [(1, "one"), (2, "two")], "the corrected object is loaded once", 30.0)
        wait_until(lambda: server.rows("SELECT count(*) FROM bowshot.system.pipe_errors") == [(0,)], "no error", 30.0)
