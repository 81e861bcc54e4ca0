"""Rows that are added to tables of a catalog: what other readers find there, whoever else writes, whatever becomes of the answers."""

import collections
import contextlib
import datetime
import decimal
import functools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, IsNull, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform, VoidTransform, YearTransform,
)
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, TimestampType

import tables
from catalogs import Catalog
from conftest import refused, serving_real
from durable import Database
from server import Server, together, wait_until
from test_catalog import asking
from test_iceberg import PLAIN, ROWS, by_duckdb, made, sorted_rows


class Lake:
    """A table of a catalog, and a server that may write it and reads `rows` of a file."""

    def __init__(self, catalog, folder, database):
        self.catalog, self.folder, self.database = catalog, folder, database

    def add(self, rows="rows"):
        self.database.run(f"INSERT INTO lake.db.t SELECT * FROM {rows}")

    def by_writer(self):
        return tables.static(self.folder).scan().to_arrow()

    def files(self):
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file() and not path.name.endswith(".metadata.json"))

    def check(self, wanted):
        """All readers find these rows."""
        for got in (self.by_writer(), by_duckdb(self.folder), self.database.arrow("SELECT * FROM lake.db.t")):
            assert got.schema.names == wanted.schema.names
            assert sorted_rows(got) == sorted_rows(wanted.cast(got.schema))


@pytest.fixture
def lake(tmp_path, s3):
    """Makes the table and serves it; ends with the test."""
    with contextlib.ExitStack() as stack:
        def make(rows, schema=PLAIN, spec=None, before=(), **entry):
            pq.write_table(rows, tmp_path / "rows.parquet")
            folder = tables.place(made(tmp_path / "warehouse", schema, before, spec))
            catalog = stack.enter_context(Catalog())
            catalog.put("db", "t", tables.static(folder))
            text = catalog.entry(places=[str(tmp_path / "warehouse")], **{"read_only": False, **entry})
            database = stack.enter_context(asking(s3, tmp_path, text, sources=(f"rows={tmp_path / 'rows.parquet'}",)))
            return Lake(catalog, folder, database)

        yield make


def test_rows_of_a_file(lake):
    table = lake(ROWS)
    table.add()
    table.check(ROWS)
    table.add()
    table.check(pa.concat_tables([ROWS, ROWS]))
    snapshots = tables.static(table.folder).metadata.snapshots
    assert [snapshot.sequence_number for snapshot in snapshots] == [1, 2]
    last = snapshots[-1].summary
    assert last.operation.value == "append" and last["added-records"] == "1000" and last["total-records"] == "2000"
    assert last["total-data-files"] == "2" and last["total-delete-files"] == "0"
    table.database.run("INSERT INTO lake.db.t (word, id) VALUES ('new', 7000), ('newer', 7001)")
    assert table.database.rows("SELECT * FROM lake.db.t WHERE id >= 7000 ORDER BY id") == [
        (7000, "new", None, None), (7001, "newer", None, None)]
    table.database.run("INSERT INTO lake.db.t SELECT * FROM lake.db.t WHERE id < 0")
    assert len(tables.static(table.folder).metadata.snapshots) == 3, "no rows are no snapshot"
    assert tables.static(table.folder).scan().to_arrow().num_rows == 2002


def ingest(database, rows, mode="append"):
    with database.connection.cursor() as cursor:
        return cursor.adbc_ingest("t", rows, mode=mode, catalog_name="lake", db_schema_name="db")


def test_rows_that_a_client_sends(lake):
    table = lake(ROWS)
    assert ingest(table.database, ROWS) in (1000, -1)
    table.check(ROWS)
    ingest(table.database, ROWS.select(["id", "word"]).slice(0, 10))
    assert table.database.one("SELECT count(*) FROM lake.db.t WHERE number IS NULL AND id < 10") == 12
    before = table.files()
    for odd, mode in ((pa.table({"id": [1.5]}), "append"), (pa.table({"other": [1]}), "append"), (ROWS, "replace"), (ROWS, "create")):
        with pytest.raises(Exception):
            ingest(table.database, odd, mode)
    assert table.files() == before


def test_rows_of_a_file_that_is_copied(tmp_path):
    (tmp_path / "exchange").mkdir()
    pq.write_table(ROWS.select(["word", "id"]), tmp_path / "exchange" / "some.parquet")
    (tmp_path / "exchange" / "all.csv").write_text("id,word,number,day\n7000,x,,2024-02-29\n7001,,8,\n")
    (tmp_path / "exchange" / "odd.csv").write_text("id,word,number,day\nseven,x,,\n")
    folder = tables.place(made(tmp_path / "warehouse", rows=()))
    with Catalog() as catalog:
        catalog.put("db", "t", tables.static(folder))
        config = tmp_path / "bowshot.toml"
        config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], read_only=False))
        arguments = ["--config", config, "--set", f"storage.exchange_folder={tmp_path / 'exchange'}"]
        with Server(arguments=arguments) as server, Database(server) as database:
            database.run("COPY lake.db.t (id, word) FROM 'some.parquet'", "COPY lake.db.t FROM 'all.csv'")
            assert database.rows("SELECT id, word, number FROM lake.db.t WHERE id >= 7000 ORDER BY id") == [(7000, "x", None), (7001, None, 8)]
            refused(database, "COPY lake.db.t FROM 'odd.csv'")
            refused(database, "COPY lake.db.nothing FROM 'all.csv'", "nothing")
        read = tables.static(folder)
        assert read.scan().to_arrow().num_rows == 1002 and len(read.metadata.snapshots) == 2


def test_beside_what_others_have_written(lake):
    table = lake(ROWS.slice(0, 10), before=(ROWS.slice(0, 500), ROWS.slice(500)))
    tables.delete_places(table.folder, [(tables.data_files(table.folder)[0], 3)])
    table.catalog.put("db", "t", tables.static(table.folder))
    table.add()
    assert table.by_writer().num_rows == 1009
    assert table.database.one("SELECT count(*) FROM lake.db.t") == 1009


def test_every_type(lake):
    schema, rows = tables.every_type(datetime.date(1969, 1, 1), 2999)
    # One table is read by our server, and its rows are added to another one.
    table = lake(ROWS, schema, before=[rows])
    table.add("lake.db.t")
    plain = [name for name in rows.schema.names if name != "n"]
    got, wanted = table.by_writer(), pa.concat_tables([rows, rows]).select(plain)
    assert sorted_rows(got.select(plain)) == sorted_rows(wanted.cast(got.select(plain).schema))
    assert set(collections.Counter(map(str, got["n"].to_pylist())).values()) == {2}


@pytest.mark.parametrize("transform, column", [
    (IdentityTransform(), "word"), (IdentityTransform(), "day"), (IdentityTransform(), "price"), (BucketTransform(4), "id"),
    (BucketTransform(3), "word"), (BucketTransform(5), "day"), (BucketTransform(5), "price"), (BucketTransform(5), "at"),
    (TruncateTransform(7), "id"), (TruncateTransform(2), "word"), (TruncateTransform(100), "price"), (YearTransform(), "at"),
    (MonthTransform(), "day"), (DayTransform(), "at"), (HourTransform(), "at"), (VoidTransform(), "id"),
], ids=str)
def test_partitions(lake, transform, column):
    """The files have the partitions that pyiceberg gives to the same rows, and are left out as its own are."""
    schema = Schema(*PLAIN.fields, NestedField(5, "price", DecimalType(9, 2)), NestedField(6, "at", TimestampType()))
    start = datetime.datetime(1969, 12, 25, 7)
    rows = pa.table({
        **{name: ROWS[name].slice(0, 60) for name in ROWS.schema.names},
        "price": pa.array([None if n % 11 == 0 else decimal.Decimal(n - 20) / 4 for n in range(60)], pa.decimal128(9, 2)),
        "at": pa.array([start + datetime.timedelta(hours=7 * n) for n in range(60)], pa.timestamp("us")),
    })
    source = schema.find_field(column).field_id
    spec = PartitionSpec(PartitionField(source_id=source, field_id=1000, transform=transform, name="odd part"))
    table = lake(rows, schema, spec)
    table.add()
    table.check(rows)
    of_value = transform.transform(schema.find_field(column).field_type)
    for task in tables.static(table.folder).scan().plan_files():
        values = pq.read_table(task.file.file_path.removeprefix("file://"))[column].to_pylist()
        wanted = {of_value(transform_input(value)) for value in values}
        assert wanted == {transform_input(task.file.partition[0])}, "one partition a file, and the right one"


def transform_input(value):
    """A value as pyiceberg's transforms take it: days and microseconds are numbers there."""
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return value


def test_what_the_metadata_say_of_columns(lake):
    table = lake(ROWS)
    for first in range(0, 1000, 250):
        table.add(f"rows WHERE id >= {first} AND id < {first + 250}")
    read = tables.static(table.folder)
    for condition, files, rows in (
        (LessThan("id", 100), 1, 100), (GreaterThan("id", 600), 2, 399), (EqualTo("word", "zzz"), 0, 0), (EqualTo("id", 5000), 0, 0),
        (IsNull("id"), 0, 0), (IsNull("word"), 4, 100),
    ):
        scan = read.scan(row_filter=condition)
        assert (len(list(scan.plan_files())), scan.to_arrow().num_rows) == (files, rows), condition
    file = next(iter(read.scan(row_filter=LessThan("id", 10)).plan_files())).file
    assert file.record_count == 250 and file.value_counts[1] == 250 and file.null_value_counts[2] == 25
    assert file.lower_bounds[1] == (0).to_bytes(8, "little") and file.upper_bounds[1] == (249).to_bytes(8, "little")
    assert file.file_size_in_bytes == len(open(file.file_path.removeprefix("file://"), "rb").read())


def test_what_is_refused(lake):
    required = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "word", StringType()))
    table = lake(ROWS.select(["id", "word"]), required)
    before = table.files()
    refused(table.database, "INSERT INTO lake.db.t (word) VALUES ('x')", "id", "must not be NULL")
    refused(table.database, "INSERT INTO lake.db.t VALUES (1, 'x'), (NULL, 'y')", "id", "must not be NULL")
    refused(table.database, "INSERT INTO lake.db.t SELECT 1 / (id - 3), word FROM rows")
    refused(table.database, "INSERT INTO lake.db.nothing VALUES (1)", "nothing")
    assert table.files() == before, "files of a statement that fails are removed"
    table.catalog.tables[("db",), "t"][1]["format-version"] = 1
    refused(table.database, "INSERT INTO lake.db.t VALUES (1, 'x')", "version 1 of the Iceberg format")


def test_nobody_writes_unless_the_operator_says_so(lake):
    table = lake(ROWS, read_only=True)
    refused(table.database, "INSERT INTO lake.db.t SELECT * FROM rows", "read-only")
    assert table.database.one("SELECT read_only FROM system.databases") is True


def test_commits_that_others_were_faster_than(lake):
    table = lake(ROWS)
    lost = iter([True, True, False])

    def fault(handler, commit):
        if next(lost):
            tables.append_file(table.folder, ROWS.slice(0, 10))
            table.catalog.put("db", "t", tables.static(table.folder))
            return 409
        return commit()

    table.add("rows WHERE id < 5")
    table.catalog.commit_fault = fault
    table.add()
    assert table.by_writer().num_rows == 1025
    assert table.database.one("SELECT count(*) FROM lake.db.t") == 1025


def test_a_table_that_was_made_anew_meanwhile(lake, tmp_path):
    """Rows for one table do not come into another one that has its name by then."""
    table = lake(ROWS, before=(ROWS.slice(0, 10),))
    other = tables.place(made(tmp_path / "warehouse", rows=(ROWS.slice(0, 3),), name="other"))
    before = table.files()

    def fault(handler, commit):
        table.catalog.put("db", "t", tables.static(other))
        return commit()

    table.catalog.commit_fault = fault
    refused(table.database, "INSERT INTO lake.db.t SELECT * FROM rows", "was replaced by another table")
    assert table.files() == before
    assert tables.static(other).scan().to_arrow().num_rows == 3
    assert table.database.one("SELECT count(*) FROM lake.db.t") == 3


@pytest.mark.parametrize("times", [1, 8])
@pytest.mark.parametrize("status", [500, 503, None], ids=str)
def test_answers_that_are_lost(lake, status, times):
    """The rows are there once, whether the commit was made before the answers were lost or not."""
    table = lake(ROWS, timeout="2s")
    for is_made in (True, False):
        answers = iter([is_made] + [False] * (times - 1))

        def fault(handler, commit):
            is_first = next(answers, None)
            if is_first is None:
                return commit()
            if is_first:
                assert commit() == 200
            handler.close_connection |= status is None
            return status

        table.catalog.commit_fault = fault
        table.add()
    table.check(pa.concat_tables([ROWS, ROWS]))
    lists = [path.name for path in (table.folder / "metadata").glob("snap-*.avro")]
    assert len(lists) == 2, "lists of attempts that came to nothing are removed"


def test_a_commit_that_is_refused_leaves_nothing(lake):
    table = lake(ROWS)
    before = table.files()
    for status in (400, 403, 422):
        table.catalog.commit_fault = lambda handler, commit: status
        refused(table.database, "INSERT INTO lake.db.t SELECT * FROM rows", str(status))
        assert table.files() == before
    table.catalog.commit_fault = lambda handler, commit: 409
    refused(table.database, "INSERT INTO lake.db.t SELECT * FROM rows", "conflicted with other writers")
    assert table.files() == before
    table.catalog.commit_fault = None
    table.add()
    table.check(ROWS)


@contextlib.contextmanager
def server_of(catalog, tmp_path):
    config = tmp_path / "bowshot.toml"
    config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], read_only=False))
    with Server(f"rows={tmp_path / 'rows.parquet'}", arguments=["--config", config]) as server:
        yield server


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    folder = tables.place(made(tmp_path / "warehouse", rows=()))
    with Catalog() as catalog:
        catalog.put("db", "t", tables.static(folder))
        with server_of(catalog, tmp_path) as server, server_of(catalog, tmp_path) as other:
            def several(number):
                with Database(server if number % 2 else other) as database:
                    for part in range(3):
                        database.run(f"INSERT INTO lake.db.t SELECT * FROM rows WHERE id % 12 = {3 * number + part}")

            together(*(functools.partial(several, number) for number in range(4)))
    read = tables.static(folder)
    assert sorted_rows(read.scan().to_arrow()) == sorted_rows(ROWS.cast(read.scan().to_arrow().schema))
    assert len(read.metadata.snapshots) == 12


def test_a_server_that_is_killed_before_its_commit(tmp_path):
    """What it has written is in no snapshot, and the table is as it was."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    folder = tables.place(made(tmp_path / "warehouse", rows=(ROWS,)))
    with Catalog() as catalog:
        catalog.put("db", "t", tables.static(folder))
        with server_of(catalog, tmp_path) as server, Database(server) as database:
            def fault(handler, commit):
                server.kill()
                handler.close_connection = True

            catalog.commit_fault = fault
            with pytest.raises(Exception):
                database.run("INSERT INTO lake.db.t SELECT * FROM rows")
        rows = tables.static(folder).scan().to_arrow()
        assert sorted_rows(rows) == sorted_rows(ROWS.cast(rows.schema))
        assert by_duckdb(folder).num_rows == 1000
        catalog.commit_fault = None
        with server_of(catalog, tmp_path) as server, Database(server) as database:
            database.run("INSERT INTO lake.db.t SELECT * FROM rows")
            assert database.one("SELECT count(*) FROM lake.db.t") == 2000


def test_a_real_catalog(s3_tables, tmp_path):
    """SeaweedFS as the catalog and the store; pyiceberg writes at the same time."""
    writer, *_ = s3_tables
    writer.create_namespace("written")
    schema = pa.schema([("id", pa.int64()), ("word", pa.string())])
    table = writer.create_table("written.t", schema=schema)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "word": [f"w{n % 7}" for n in range(100)]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    with serving_real(s3_tables, tmp_path, f"rows={tmp_path / 'rows.parquet'}") as database:
        database.run("INSERT INTO lake.written.t SELECT * FROM rows")
        table.refresh()
        assert sorted_rows(table.scan().to_arrow()) == sorted_rows(rows.cast(table.scan().to_arrow().schema))
        table.append(rows.slice(0, 5))
        database.run("INSERT INTO lake.written.t VALUES (1000, 'last')")
        assert database.one("SELECT count(*) FROM lake.written.t") == 106
        table.refresh()
        assert table.scan(row_filter=GreaterThan("id", 500)).to_arrow().to_pylist() == [{"id": 1000, "word": "last"}]
        wait_until(lambda: table.scan().to_arrow().num_rows == 106, "all rows by the other reader")
