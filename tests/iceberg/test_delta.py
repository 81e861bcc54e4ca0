"""Delta tables in an object store: what their writer reads of them."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import proxy as faults
import stores
from conftest import refused, serving
from server import wait_until
from test_iceberg import ROWS, sorted_rows
from test_stores import works


def options(s3):
    return {"AWS_ACCESS_KEY_ID": stores.KEY, "AWS_SECRET_ACCESS_KEY": stores.SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": s3.endpoint, "AWS_ALLOW_HTTP": "true", "conditional_put": "etag"}


@pytest.fixture
def address(tmp_path):
    return f"s3://lake/delta/{tmp_path.name}/t"


def written(s3, address, rows=ROWS, **more):
    write_deltalake(address, rows, storage_options=options(s3), **more)
    return DeltaTable(address, storage_options=options(s3))


def same(database, table, sql="SELECT * FROM t"):
    wanted = pa.table(table.to_pyarrow_table())
    got = database.arrow(sql)
    assert got.schema.names == wanted.schema.names
    assert sorted_rows(got) == sorted_rows(wanted)


@pytest.mark.parametrize("source", ["{}", "t={}/t"])
def test_rows_and_later_states(s3, address, source):
    table = written(s3, address)
    with serving(source.format(address.removesuffix("/t")), s3=s3) as database:
        same(database, table)
        for where in ("id > 395 AND id < 405", "word = 'größe 3'", "number IS NULL", "day = '2024-03-01'", "id < 0"):
            assert database.one(f"SELECT count(*) FROM t WHERE {where}") == len(filtered(where)), where
        table = written(s3, address, ROWS.slice(0, 7), mode="append")
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 1007, "the rows that were added")
        table.delete("id < 7")
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 993, "the rows that are gone")
        table.update(updates={"word": "'x'"}, predicate="number = 3")
        wait_until(lambda: database.one("SELECT count(*) FROM t WHERE word = 'x'") > 0, "the rows that were changed")
        table.update_incremental()
        same(database, table)
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 0") == 1000
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 1") == 1007
        refused(database, "SELECT * FROM t FOR VERSION AS OF 9", "has no version 9", "0 to 3")
        table.create_checkpoint()
        table = written(s3, address, ROWS.slice(0, 1), mode="append")
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 994, "what comes after a checkpoint")
        same(database, table)


def filtered(where):
    import duckdb

    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        return connection.execute(f"SELECT id FROM t WHERE {where}").fetchall()


def test_partitions_with_odd_names(s3, address):
    odd = ["a b", "ä/€", "100%", "x=y", "2020-01-01 00:00:00", "#1?", None, "a+b", "%20"]
    rows = pa.table({"n": pa.array(range(len(odd)), pa.int64()), "part": pa.array(odd)})
    table = written(s3, address, rows, partition_by=["part"])
    with serving(f"t={address}", s3=s3) as database:
        same(database, table)
        for n, value in enumerate(odd):
            where = "part IS NULL" if value is None else f"part = '{value}'"
            assert database.rows(f"SELECT n FROM t WHERE {where}") == [(n,)], value


def test_two_tables_whose_files_have_the_same_names(s3, tmp_path):
    """What is kept of files must not be taken for those of the other one."""
    sources = []
    for name, first in (("one", 0), ("two", 500)):
        address = f"s3://lake/delta/{tmp_path.name}/{name}"
        rows = pa.table({"id": pa.array(range(first, first + 100), pa.int64())})
        written(s3, address, rows)
        (data,) = [path for path in s3.names(address.removeprefix("s3://")) if path.endswith(".parquet")]
        (entry,) = [path for path in s3.names(address.removeprefix("s3://")) if path.endswith(".json")]
        with s3.files.open_input_file(data) as stream:
            s3.write(f"{address.removeprefix('s3://')}/same.parquet", stream.read())
        with s3.files.open_input_file(entry) as stream:
            lines = [json.loads(line) for line in stream.read().decode().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"] |= {"path": "same.parquet", "modificationTime": 1700000000000}
        s3.write(entry, "\n".join(map(json.dumps, lines)).encode())
        sources.append(f"{name}={address}")
    with serving(*sources, s3=s3) as database:
        for _ in range(2):
            assert database.rows("SELECT min(id), sum(id) FROM one") == [(0, 4950)]
            assert database.rows("SELECT min(id), sum(id) FROM two") == [(500, 54950)]
        assert database.one("SELECT count(*) FROM one JOIN two USING (id)") == 0


@pytest.mark.parametrize("path", [
    "../other/x.parquet", "s3://lake/delta/other/x.parquet", "file:///etc/passwd", "/etc/passwd", "%2e%2e/x.parquet",
    "http://169.254.169.254/x", "bowshot-delta://0/0/x.parquet", "s3://other/x.parquet?X-Amz-Signature=a",
])
def test_a_log_that_names_other_places_is_refused(s3, address, path):
    written(s3, address)
    (entry,) = [name for name in s3.names(address.removeprefix("s3://")) if name.endswith(".json")]
    with s3.files.open_input_file(entry) as stream:
        lines = [json.loads(line) for line in stream.read().decode().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path
    s3.write(entry, "\n".join(map(json.dumps, lines)).encode())
    with serving(f"t={address}", s3=s3) as database:
        refused(database, "SELECT * FROM t", "not in the folder")


def test_a_damaged_log_is_told(s3, address):
    written(s3, address)
    (entry,) = [name for name in s3.names(address.removeprefix("s3://")) if name.endswith(".json")]
    with s3.files.open_input_file(entry) as stream:
        whole = stream.read()
    for cut in (b"", whole[: len(whole) // 2], b"\0" * len(whole)):
        s3.write(entry, cut)
        with serving(f"t={address}", s3=s3) as database:
            refused(database, "SELECT * FROM t")
            assert database.one("SELECT 1") == 1
            s3.write(entry, whole)
            wait_until(lambda: works(database, "SELECT count(*) FROM t"), "a table that was repaired")


def test_a_store_that_is_down(s3, address):
    written(s3, address)
    settings = ("object_store.refresh=200ms", "object_store.timeout=2s", "object_store.request_timeout=1s",
                "result_cache.memory_bytes=0", "storage.column_cache_bytes=0", "object_store.cache_bytes=0")
    with faults.Proxy(s3.port) as proxy:
        with serving(f"t={address}", s3=s3, endpoint=proxy.endpoint, settings=settings) as database:
            assert database.one("SELECT count(*) FROM t") == 1000
            proxy.fault = faults.status(503)
            wait_until(lambda: not works(database, "SELECT sum(id) FROM t"), "a store that is down", 20)
            refused(database, "SELECT sum(id) FROM t", address, "503")
            proxy.fault = None
            wait_until(lambda: works(database, "SELECT sum(id) FROM t"), "a store that is up again", 20)
