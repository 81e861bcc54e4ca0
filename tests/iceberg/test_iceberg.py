"""Iceberg tables that others wrote, served by path: what we answer is what DuckDB and their writer read."""

import datetime
import decimal
import json
import shutil

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StringType, StructType

import duckdb_extensions
import tables
from durable import Database
from server import Server, wait_until

DAY = datetime.date(2024, 2, 29)
PLAIN = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "word", StringType()), NestedField(3, "number", IntegerType()),
    NestedField(4, "day", DateType()),
)
ROWS = pa.table({
    "id": pa.array(range(1000), pa.int64()),
    "word": pa.array([None if n % 10 == 0 else f"größe {n % 7}" for n in range(1000)]),
    "number": pa.array([None if n % 9 == 0 else n % 4 for n in range(1000)], pa.int32()),
    "day": pa.array([DAY + datetime.timedelta(n % 3) for n in range(1000)]),
})


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "warehouse"


def made(folder, schema=PLAIN, rows=(ROWS,), spec=None, name="t"):
    more = {"partition_spec": spec} if spec else {}
    table = tables.catalog(folder).create_table(f"db.{name}", schema, **more)
    for part in rows:
        table.append(part)
    return table


def by_duckdb(folder):
    with duckdb.connect() as connection:
        duckdb_extensions.load(connection, "avro", "iceberg")
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute("SELECT * FROM iceberg_scan(?)", [str(tables.newest(folder))]).to_arrow_table()


def sorted_rows(table):
    return sorted(map(repr, table.to_pylist()))


def served(folder, check, name="t"):
    with Server(f"{name}={folder}") as server, Database(server) as database:
        return check(database)


def same_as_duckdb(folder):
    wanted = by_duckdb(folder)
    got = served(folder, lambda database: database.arrow("SELECT * FROM t"))
    assert got.schema.names == wanted.schema.names
    assert sorted_rows(got) == sorted_rows(wanted)
    return got


def test_rows_and_conditions(folder):
    place = tables.place(made(folder, rows=(ROWS.slice(0, 400), ROWS.slice(400))))
    same_as_duckdb(place)

    def conditions(database):
        with duckdb.connect() as connection:
            connection.register("t", ROWS)
            for where in ("id > 395 AND id < 405", "word = 'größe 3'", "number IS NULL", "day = '2024-03-01'", "id < 0", "true"):
                sql = f"SELECT count(*), sum(id), min(word), max(day), count(number) FROM t WHERE {where}"
                assert database.rows(sql) == connection.execute(sql).fetchall(), where
            assert database.one("SELECT count(*) FROM t") == 1000
            assert len(database.rows("SELECT id FROM t LIMIT 7")) == 7

    served(place, conditions)


def test_every_type(folder):
    schema, rows = tables.every_type(datetime.date(1, 1, 1), 9999)
    place = tables.place(made(folder, schema, rows=[rows]))
    wanted = tables.static(place).scan().to_arrow()
    got = served(place, lambda database: database.arrow("SELECT * FROM t"))
    assert got.schema.names == wanted.schema.names
    assert got.schema.field("n").type == pa.uuid(), got.schema
    plain = [name for name in got.schema.names if name != "n"]
    assert sorted_rows(got.select(plain)) == sorted_rows(wanted.select(plain))
    assert got.schema.field("j").type == pa.timestamp("us", "UTC") and got.schema.field("f").type == pa.decimal128(38, 10)


@pytest.mark.parametrize("transform, column", [
    (IdentityTransform(), 3), (IdentityTransform(), 4), (BucketTransform(8), 1), (DayTransform(), 4), (TruncateTransform(4), 2),
])
def test_partitions(folder, transform, column):
    spec = PartitionSpec(PartitionField(column, 1000, transform, "part"))
    same_as_duckdb(tables.place(made(folder, spec=spec)))


def test_a_schema_that_has_changed(folder):
    schema = Schema(
        NestedField(1, "a", IntegerType()), NestedField(2, "b", FloatType()), NestedField(3, "c", DecimalType(5, 2)),
        NestedField(4, "d", StringType()), NestedField(5, "s", StructType(NestedField(6, "x", LongType()))),
    )
    table = made(folder, schema, rows=[pa.table(
        {"a": [1, 2], "b": [0.5, None], "c": [decimal.Decimal("1.25"), None], "d": ["old", "older"], "s": [{"x": 1}, None]},
        schema.as_arrow(),
    )])
    with table.update_schema() as change:
        change.rename_column("a", "z").update_column("a", LongType()).update_column("b", DoubleType())
        change.update_column("c", DecimalType(20, 2)).delete_column("d").add_column("new", LongType())
        change.add_column(("s", "y"), StringType())
    with table.update_schema() as change:
        change.add_column("d", StringType()).add_column("a", StringType())
    more = table.schema().as_arrow()
    table.append(pa.table({
        "z": [2**40], "b": [1e300], "c": [decimal.Decimal("123456789012.34")], "s": [{"x": 3, "y": "why"}], "new": [7], "d": ["new"],
        "a": ["other"],
    }, more))
    got = same_as_duckdb(tables.place(table)).to_pylist()
    assert [row["d"] for row in got if row["z"] in (1, 2)] == [None, None], "a new column of an old name has no old values"
    assert {row["z"] for row in got} == {1, 2, 2**40}


def test_changes_by_its_writer(folder):
    table = made(folder)
    table.delete(EqualTo("number", 2))
    table.overwrite(ROWS.slice(0, 10), overwrite_filter="id < 100")
    same_as_duckdb(tables.place(table))


def test_rows_deleted_by_their_places(folder):
    place = tables.place(made(folder, rows=(ROWS.slice(0, 600), ROWS.slice(600))))
    files = tables.data_files(place)
    tables.delete_places(place, [(files[0], n) for n in (0, 1, 5)] + [(files[1], 3)])
    tables.delete_places(place, [(files[0], 5), (files[0], 6)])
    got = same_as_duckdb(place)
    assert got.num_rows < 1000

    def conditions(database):
        assert database.one("SELECT count(*) FROM t") == got.num_rows
        assert database.one("SELECT count(id) FROM t WHERE id >= 0") == got.num_rows
        assert database.one("SELECT count(*) FROM t WHERE id = 0 OR id = 600") == sum(n in (0, 600) for n in got["id"].to_pylist())

    served(place, conditions)


# DuckDB 1.5 takes rows that have NULL in a column of deleted values for deleted ones, and deleted values for those of all
# partitions; the specification decides ("Equality Delete Files", "Scan Planning").
def test_rows_deleted_by_their_values(folder):
    place = tables.place(made(folder, rows=(ROWS.slice(0, 600),)))
    tables.delete_values(place, pa.table({"number": pa.array([1, None], pa.int32())}), [3])
    tables.delete_values(place, pa.table({"id": pa.array([2, 3, 6], pa.int64()), "word": ["größe 2", "größe 9", "größe 6"]}), [1, 2])
    kept = [n for n in range(600) if n % 9 != 0 and n % 4 != 1 and n not in (2, 6)]

    def rows(database):
        assert sorted(id for (id,) in database.rows("SELECT id FROM t")) == kept
        assert sorted_rows(database.arrow("SELECT * FROM t")) == sorted_rows(ROWS.take(kept))
        assert database.one("SELECT count(*) FROM t") == len(kept)
        assert database.one("SELECT count(day) FROM t WHERE id < 300") == len([n for n in kept if n < 300])
        assert len(database.rows("SELECT day FROM t LIMIT 5")) == 5

    served(place, rows)


def test_later_rows_of_the_same_values_are_there(folder):
    table = made(folder, rows=(ROWS.slice(0, 100),))
    place = tables.place(table)
    tables.delete_values(place, pa.table({"id": pa.array(range(50), pa.int64())}), [1])
    tables.append_file(place, ROWS.slice(0, 10))
    kept = sorted([*range(50, 100), *range(10)])
    served(place, lambda database: [
        sorted(id for (id,) in database.rows("SELECT id FROM t")) == kept or pytest.fail("later rows were deleted too")
    ])


def test_values_are_deleted_in_their_partition_alone(folder):
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "part"))
    place = tables.place(made(folder, spec=spec))
    days = (DAY - datetime.date(1970, 1, 1)).days
    tables.delete_values(place, pa.table({"number": pa.array([1], pa.int32())}), [3], partition=Record(days))
    wanted = [row for row in ROWS.to_pylist() if row["day"] != DAY or row["number"] != 1]
    got = served(place, lambda database: database.arrow("SELECT * FROM t"))
    assert sorted_rows(got) == sorted(map(repr, wanted))


def test_a_later_state_is_seen(folder):
    table = made(folder)
    with Server(f"t={tables.place(table)}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t") == 1000
        table.append(ROWS.slice(0, 7))
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 1007, "the state that was committed")
        table.delete("id < 7")
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 993, "the rows that are gone")


def test_a_folder_of_tables_and_a_table_that_was_moved(folder, tmp_path):
    made(folder)
    made(folder, name="empty", rows=())
    shutil.move(folder / "db", tmp_path / "elsewhere")
    with Server(tmp_path / "elsewhere") as server, Database(server) as database:
        assert database.rows("SELECT count(*), sum(id) FROM t") == [(1000, 499500)]
        assert database.rows("SELECT * FROM empty") == []
        assert database.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1") == [("empty",), ("t",)]


def changed(place, change):
    newest = tables.newest(place)
    text = json.loads(newest.read_text())
    change(text)
    newest.write_text(json.dumps(text))


@pytest.mark.parametrize("change, says", [
    (lambda text: text.update({"format-version": 4}), "version 4"),
    (lambda text: text.update({"current-snapshot-id": 1}), "snapshot 1"),
    (lambda text: text["snapshots"][-1].update({"manifest-list": "/etc/passwd"}), "not in the folder"),
    (lambda text: text["snapshots"][-1].update({"manifest-list": text["location"] + "/../../x.avro"}), "not in the folder"),
    (lambda text: text["schemas"][-1]["fields"][0].update({"type": "variant"}), "variant"),
    (lambda text: text.update({"location": "s3://bucket/other"}), "not in the folder"),
])
def test_what_is_not_read_is_refused(folder, tmp_path, change, says):
    place = tables.place(made(folder))
    if says == "not in the folder" and "s3" in repr(change.__code__.co_consts):
        shutil.move(place, tmp_path / "moved")
        place = tmp_path / "moved"
    changed(place, change)

    def refused(database):
        with pytest.raises(Exception) as error:
            database.rows("SELECT * FROM t")
        assert says in str(error.value) and "INTERNAL" not in str(error.value), error.value

    served(place, refused)


def test_damaged_files_are_told(folder):
    place = tables.place(made(folder))
    (data,) = place.glob("data/*.parquet")
    manifests = [*place.glob("metadata/*.avro")]
    for victim in (data, *manifests, tables.newest(place)):
        whole = victim.read_bytes()
        for cut in (b"", whole[: len(whole) // 2], b"\0" * len(whole)):
            victim.write_bytes(cut)

            def refused(database):
                with pytest.raises(Exception) as error:
                    database.rows("SELECT * FROM t")
                assert "INTERNAL" not in str(error.value), error.value
                assert database.one("SELECT 1") == 1

            served(place, refused)
        victim.write_bytes(whole)
    same_as_duckdb(place)
