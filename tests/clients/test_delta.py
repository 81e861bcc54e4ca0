"""Tables of ours as others read them: deltalake, DuckDB and polars see in the folder what we answer."""

import datetime
import decimal

import deltalake
import pyarrow as pa
import pytest

from delta import READERS, assert_same, by_deltalake, rows
from durable import Database, rows_of
from server import Server, wait_until

UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789_012)
EARLY = datetime.datetime(1901, 1, 1)
D = decimal.Decimal

# One table for each, so that a reader that lacks one type shows which.
TYPES = {
    "bool": pa.array([True, None, False]),
    "int8": pa.array([1, None, -128], pa.int8()),
    "int16": pa.array([1, None, -32768], pa.int16()),
    "int32": pa.array([1, None, -(2**31)], pa.int32()),
    "int64": pa.array([1, None, -(2**63)], pa.int64()),
    "float32": pa.array([1.5, None, float("-inf")], pa.float32()),
    "float64": pa.array([1.5, None, float("nan")], pa.float64()),
    "decimal": pa.array([D("1.50"), None, D("-99999999.99")], pa.decimal128(10, 2)),
    "decimal_wide": pa.array([D("9999999999999999999999999999.0123456789"), None, D("-1")], pa.decimal128(38, 10)),
    "string": pa.array(["", None, "größe 🏹 \u0000 ' \" \\ \n"]),
    "binary": pa.array([b"", None, b"\x00\xff"]),
    "date": pa.array([MOMENT.date(), None, datetime.date(1582, 10, 15)]),
    "timestamp": pa.array([MOMENT, None, EARLY], pa.timestamp("us")),
    "timestamp_utc": pa.array([MOMENT.replace(tzinfo=UTC), None, EARLY.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
    "list_of_strings": pa.array([["a", None], None, []], pa.list_(pa.string())),
    "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
    "nested": pa.array([[{"a": [1, 2], "b": {"c": D("1.1")}}, None], None, []]),
}


@pytest.fixture(params=READERS)
def read(request):
    return READERS[request.param]


def check(db, read, table):
    """OPTIMIZE first: rows that are few wait in the catalog before they become files."""
    db.run(f"OPTIMIZE {table}")
    assert_same(db.arrow(f"SELECT * FROM {table}"), read(db.location(table)))


@pytest.mark.parametrize("name", TYPES)
def test_types(db, read, table, name):
    db.ingest(table, pa.table({name: TYPES[name]}))
    assert rows(db.arrow(f"SELECT * FROM {table}")) == rows(pa.table({name: TYPES[name]}))
    check(db, read, table)


def test_types_of_sql(db, read, table):
    db.run(
        f"CREATE TABLE {table} (i INT NOT NULL, b BIGINT, s SMALLINT, r REAL, d DOUBLE, n DECIMAL(20, 5), t VARCHAR, "
        "y BYTEA, f BOOLEAN, day DATE, at TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE)",
        f"INSERT INTO {table} VALUES (1, 2, 3, 0.5, 0.25, 1.23456, 'größe', X'00FF', true, DATE '2024-02-29', "
        "TIMESTAMP '2024-02-29 12:34:56.789012', TIMESTAMP '2024-02-29 12:34:56Z')",
        f"INSERT INTO {table} (i) VALUES (2)",
    )
    check(db, read, table)


@pytest.mark.parametrize("column", [
    pa.array([2**8 - 1, None], pa.uint8()),
    pa.array([2**32 - 1, None], pa.uint32()),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([1.5, None], pa.float16()),
    pa.array([b"ab", None], pa.binary(2)),
    pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
    pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array(["a", None]).dictionary_encode(),
    pa.array([D(10) ** 40, None], pa.decimal256(50, 0)),
    pa.array([datetime.time(1, 2, 3), None], pa.time64("us")),
    pa.array([MOMENT, None], pa.timestamp("ns")),
    pa.array([datetime.timedelta(1), None], pa.duration("us")),
    pa.array([None, None], pa.null()),
], ids=lambda column: str(column.type))
def test_types_that_delta_lacks_are_refused_or_kept(db, table, column):
    """Never taken and changed without a word."""
    given = pa.table({"id": [1, 2], "odd": column})
    try:
        db.ingest(table, given)
    except Exception as error:
        assert "`odd`" in str(error), error
        return
    assert db.arrow(f"SELECT * FROM {table} ORDER BY id").to_pylist() == given.to_pylist()
    db.run(f"OPTIMIZE {table}")
    assert by_deltalake(db.location(table)).num_rows == 2


def test_names(db, read, table):
    name = f'{table} "Größe" ;%20 /x'
    quoted = '"' + name.replace('"', '""') + '"'
    given = pa.table({"A b": [1, 2], "größe": ["x", None], "select": [True, False], "a.b": [1, 2]})
    db.ingest(name, given)
    db.run(f"OPTIMIZE {quoted}")
    folder = db.location(name)
    assert_same(db.arrow(f"SELECT * FROM {quoted}"), read(folder))


def test_a_table_without_rows(db, read, table):
    db.run(f"CREATE TABLE {table} (id BIGINT NOT NULL, name VARCHAR, price DECIMAL(10, 2))")
    check(db, read, table)
    assert read(db.location(table)).num_rows == 0


def test_not_null_is_known_to_others(db, table):
    db.run(f"CREATE TABLE {table} (id BIGINT NOT NULL, name VARCHAR)", f"OPTIMIZE {table}")
    fields = deltalake.DeltaTable(str(db.location(table))).schema().fields
    assert [(field.name, field.nullable) for field in fields] == [("id", False), ("name", True)]


MANY = pa.table({"id": pa.array(range(50_000), pa.int64()), "word": pa.array([f"word {n % 100}" for n in range(50_000)])})
STEPS = {
    "update": ["UPDATE {t} SET word = word || '!' WHERE id % 7 = 0"],
    "delete": ["DELETE FROM {t} WHERE id % 3 = 0", "DELETE FROM {t} WHERE id < 1000"],
    "delete all": ["DELETE FROM {t}"],
    "merge": [
        "MERGE INTO {t} AS t USING (SELECT value AS id FROM generate_series(49990, 50010) AS s(value)) AS s ON t.id = s.id "
        "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET word = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, 'new')"
    ],
    "insert": ["INSERT INTO {t} VALUES (-1, 'few')", "INSERT INTO {t} SELECT id + 100000, word FROM {t}"],
    "add column": ["ALTER TABLE {t} ADD COLUMN more BIGINT", "INSERT INTO {t} VALUES (-1, 'x', 5)"],
    "add column with default": ["ALTER TABLE {t} ADD COLUMN more BIGINT NOT NULL DEFAULT 7", "INSERT INTO {t} (id) VALUES (-1)"],
    "rename column": ["ALTER TABLE {t} RENAME COLUMN word TO other", "INSERT INTO {t} (id, other) VALUES (-1, 'x')"],
    "drop column": ["ALTER TABLE {t} DROP COLUMN word", "INSERT INTO {t} VALUES (-1)"],
    "drop and add column": ["ALTER TABLE {t} DROP COLUMN word", "ALTER TABLE {t} ADD COLUMN word BIGINT"],
    "type of column": ["ALTER TABLE {t} ALTER COLUMN id SET DATA TYPE VARCHAR", "INSERT INTO {t} VALUES ('x', 'y')"],
    "truncate": ["TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (-1, 'x')"],
    "optimize": ["INSERT INTO {t} VALUES (-1, 'a')", "OPTIMIZE {t}", "INSERT INTO {t} VALUES (-2, 'b')", "OPTIMIZE {t}"],
    "vacuum": ["UPDATE {t} SET word = 'x'", "OPTIMIZE {t}", "VACUUM {t} RETAIN 0 HOURS"],
    "replace": ["CREATE OR REPLACE TABLE {t} AS SELECT 1 AS one, 'a' AS letter"],
    "transaction": ["BEGIN", "DELETE FROM {t} WHERE id > 10", "INSERT INTO {t} SELECT id - 100, 'x' FROM {t}", "COMMIT"],
    "rollback": ["BEGIN", "DELETE FROM {t}", "ROLLBACK"],
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_after_changes(db, read, table, step):
    db.ingest(table, MANY)
    db.run(*(sql.format(t=table) for sql in STEPS[step]))
    check(db, read, table)


def test_after_a_new_name(db, read, table):
    db.ingest(table, MANY)
    db.run(f"ALTER TABLE {table} RENAME TO {table}_b", f"INSERT INTO {table}_b VALUES (-1, 'x')")
    check(db, read, f"{table}_b")


def test_few_rows_become_files_by_themselves(db, read, table):
    db.run(f"CREATE TABLE {table} (id BIGINT)", f"INSERT INTO {table} VALUES (1), (2)", f"DELETE FROM {table} WHERE id = 1")
    folder = db.location(table)
    wait_until(lambda: rows(read(folder)) == ["{'id': 2}"], "the row is seen by others", 30)


def test_beyond_a_checkpoint(db, read, table):
    db.run(f"CREATE TABLE {table} (id BIGINT, word VARCHAR)")
    for number in range(25):
        db.run(f"INSERT INTO {table} VALUES ({number}, 'a')", f"OPTIMIZE {table}")
        if number % 5 == 4:
            db.run(f"DELETE FROM {table} WHERE id = {number - 2}", f"UPDATE {table} SET word = 'b' WHERE id = {number}")
    folder = db.location(table)
    wait_until(lambda: list((folder / "_delta_log").glob("*.checkpoint*.parquet")), "a checkpoint", 20)
    check(db, read, table)
    assert db.one(f"SELECT count(*) FROM {table}") == 20


def test_every_file_is_in_use_after_vacuum(db, table):
    db.ingest(table, MANY)
    db.run(f"UPDATE {table} SET word = 'x' WHERE id < 25000", f"DELETE FROM {table} WHERE id >= 25000")
    db.run(f"OPTIMIZE {table}", f"VACUUM {table} RETAIN 0 HOURS")
    folder = db.location(table)
    used = {uri.rsplit("/", 1)[1] for uri in deltalake.DeltaTable(str(folder)).file_uris()}
    # A file goes with its last reader, which may still be ending.
    wait_until(lambda: {path.name for path in rows_of(folder)} == used, f"only {used} in the folder", 20)
    assert db.one(f"SELECT count(*) FROM {table}") == 25_000


def test_others_read_the_rows_of_an_earlier_version(db, table):
    db.ingest(table, MANY.slice(0, 20_000))
    folder = db.location(table)
    db.run(f"OPTIMIZE {table}")
    version = deltalake.DeltaTable(str(folder)).version()
    db.run(f"DELETE FROM {table} WHERE id < 5000", f"OPTIMIZE {table}")
    assert by_deltalake(folder, version).num_rows == 20_000
    assert by_deltalake(folder).num_rows == 15_000


def test_after_a_kill(tmp_path, read):
    data = tmp_path / "data"
    server = Server(data=data)
    with Database(server) as db:
        db.ingest("t", MANY)
        db.run("INSERT INTO t VALUES (-1, 'few')", "DELETE FROM t WHERE id = 7", "CREATE TABLE u AS SELECT * FROM t")
    server.kill()
    with Server(data=data) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 50_000
        for table in ("t", "u"):
            check(db, read, table)
