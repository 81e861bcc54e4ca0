"""Delta tables in an object store: what their writer reads of them."""

import json
import uuid

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import proxy as faults
import stores
import tables
from conftest import refused, serving
from durable import Database
from server import Server, wait_until
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


def log_entry(s3, address):
    """Name and content of the only entry of a log."""
    (name,) = [name for name in s3.names(address.removeprefix("s3://")) if name.endswith(".json")]
    with s3.files.open_input_file(name) as stream:
        return name, stream.read()


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
        with s3.files.open_input_file(data) as stream:
            s3.write(f"{address.removeprefix('s3://')}/same.parquet", stream.read())
        entry, content = log_entry(s3, address)
        lines = [json.loads(line) for line in content.splitlines()]
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
    entry, content = log_entry(s3, address)
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path
    s3.write(entry, "\n".join(map(json.dumps, lines)).encode())
    with serving(f"t={address}", s3=s3) as database:
        refused(database, "SELECT * FROM t", "not in the folder")


def test_a_damaged_log_is_told(s3, address):
    written(s3, address)
    entry, whole = log_entry(s3, address)
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


def with_vector(folder, places, kind="log", rows=10, cut=0):
    """A table of ten rows, from whose only file a vector deletes some; where it is in a file, the path of that."""
    write_deltalake(folder, pa.table({"id": pa.array(range(10), pa.int64())}))
    framed, path = tables.vector(places), None
    content = framed[4 : len(framed) - 4 - cut]
    if kind == "log":
        descriptor = {"storageType": "i", "pathOrInlineDv": tables.base85(content)}
    else:
        number = uuid.uuid4()
        path = folder / f"deletion_vector_{number}.bin"
        path.write_bytes(b"\1" + framed)
        descriptor = {"storageType": "u", "pathOrInlineDv": tables.base85(number.bytes), "offset": 1}
        if kind == "address":
            descriptor |= {"storageType": "p", "pathOrInlineDv": path.resolve().as_uri()}
    entry = folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    features = ["deletionVectors"]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
        if "add" in line:
            line["add"]["stats"] = json.dumps({"numRecords": rows})
            line["add"]["deletionVector"] = descriptor | {"sizeInBytes": len(content), "cardinality": len(places)}
    entry.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.parametrize("kind", ["log", "file", "address"])
def test_vectors_delete_rows(tmp_path, kind):
    with_vector(tmp_path / "t", [0, 3, 9], kind)
    with Server(f"t={tmp_path / 't'}") as server, Database(server) as database:
        assert database.rows("SELECT id FROM t ORDER BY id") == [(n,) for n in (1, 2, 4, 5, 6, 7, 8)]
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 0") == 7


@pytest.mark.parametrize("kind", ["log", "file", "address"])
@pytest.mark.parametrize("places, rows, says", [
    ([1, 10], 10, "deletes row 10 "), ([1, 2**31], 10, "deletes row 2147483648 "), ([1, 2**62 + 5], 10, "deletes row 46116860184273879"),
    ([1, 2**62 + 5], 2**63 - 1, "compact"), ([1, 2**31], 2**40, "compact"),
])
def test_vectors_that_no_memory_has_room_for_are_refused(tmp_path, kind, places, rows, says):
    with_vector(tmp_path / "t", places, kind, rows)
    with Server(f"t={tmp_path / 't'}") as server, Database(server) as database:
        for sql in ("SELECT * FROM t", "SELECT count(*) FROM t", "SELECT * FROM t FOR VERSION AS OF 0"):
            refused(database, sql, says)
        assert database.one("SELECT 1") == 1


def test_damaged_vectors_are_refused(tmp_path):
    with_vector(tmp_path / "cut", [1, 2, 3], cut=4)
    path = with_vector(tmp_path / "t", [1, 2], "file")
    good = path.read_bytes()
    with Server(f"t={tmp_path / 't'}", f"cut={tmp_path / 'cut'}") as server, Database(server) as database:
        refused(database, "SELECT * FROM cut", "deletion vector is damaged")
        assert database.one("SELECT count(id) FROM t") == 8
        # Names are used once; where somebody does not keep to that, the vector is looked at again.
        path.write_bytes(b"\1" + tables.vector([1, 2**62 + 5]))
        refused(database, "SELECT id + 1 FROM t", "")
        path.write_bytes(good)
        wait_until(lambda: works(database, "SELECT sum(id) FROM t"), "a vector that was repaired")
        assert database.one("SELECT sum(id) FROM t") == 42


def test_which_states_can_be_meant(tmp_path):
    for _ in range(2):
        write_deltalake(tmp_path / "t", pa.table({"id": pa.array(range(10), pa.int64())}), mode="append")
    with Server(f"t={tmp_path / 't'}") as server, Database(server) as database:
        for time in ("TIMESTAMP '2999-01-01 00:00:00'", "DATE '2999-01-01'", "'2999-01-01T00:00:00+01:00'"):
            assert database.one(f"SELECT count(*) FROM t FOR TIMESTAMP AS OF {time}") == 20
        refused(database, "SELECT * FROM t FOR TIMESTAMP AS OF now()", "is not a literal timestamp")
        refused(database, "SELECT * FROM t FOR VERSION AS OF $1", "cannot be a parameter")
        refused(database, "DELETE FROM t FOR VERSION AS OF 1", "an earlier version of `t` cannot be changed")
        for state in ("VERSION AS OF 7", "TIMESTAMP AS OF '2999-01-01'"):
            for name in ("none", "nowhere.main.orders"):
                with pytest.raises(Exception) as error:
                    database.rows(f"SELECT * FROM {name} FOR {state}")
                assert "\2" not in str(error.value) and "7none" not in str(error.value) and "01orders" not in str(error.value), error.value
