"""Tables of format version 3: rows that are deleted by vectors, and that keep their numbers wherever they are moved."""

import datetime
import json

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.typedef import Record

import tables
from conftest import refused
from test_definitions import lake  # noqa: F401
from test_iceberg import ROWS, by_duckdb, sorted_rows

DELETED = 2


class Third:
    """A table of version 3 with these rows, in as many files as there are parts."""

    def __init__(self, lake, parts=((0, 1000),), more=""):  # noqa: F811
        self.catalog, self.database = lake()
        self.database.run("CREATE SCHEMA lake.db", f"CREATE TABLE lake.db.t WITH (format_version = 3) {more} AS SELECT * FROM rows WHERE FALSE")
        self.folder = self.catalog.warehouse / "db" / "t"
        for first, last in parts:
            self.database.run(f"INSERT INTO lake.db.t SELECT * FROM rows WHERE id >= {first} AND id < {last}")

    def metadata(self):
        return json.loads(tables.newest(self.folder).read_text())

    def check(self, wanted):
        """All readers find these rows."""
        newest = str(tables.newest(self.folder))
        for got in (
            tables.static(self.folder).scan().to_arrow(), by_duckdb(self.folder), polars.scan_iceberg(newest).collect().to_arrow(),
            self.database.arrow("SELECT * FROM lake.db.t"),
        ):
            assert got.schema.names == wanted.schema.names
            assert sorted_rows(got.cast(wanted.schema)) == sorted_rows(wanted)

    def manifests(self):
        """Those of the current snapshot, each with its entries that count, as the specification has them."""
        (snapshot,) = (one for one in self.metadata()["snapshots"] if one["snapshot-id"] == self.metadata()["current-snapshot-id"])
        for manifest in records(snapshot["manifest-list"], MANIFEST_LIST_FILE_SCHEMAS[3]):
            schema, next_row = MANIFEST_ENTRY_SCHEMAS[3], manifest["first_row_id"]
            entries = []
            for entry in records(manifest["manifest_path"], schema):
                file = named(entry["data_file"], schema.find_field("data_file").field_type)
                if entry["status"] == DELETED:
                    continue
                if manifest["content"] == 0 and file["first_row_id"] is None:
                    file["first_row_id"], next_row = next_row, next_row + file["record_count"]
                sequence = manifest["sequence_number"] if entry["sequence_number"] is None else entry["sequence_number"]
                entries.append({**file, "sequence": sequence})
            yield manifest, entries

    def vectors(self):
        """The deleted rows of each data file."""
        found = {}
        for manifest, entries in self.manifests():
            for entry in entries if manifest["content"] == 1 else []:
                assert entry["file_format"] == "PUFFIN" and entry["referenced_data_file"] not in found, "one vector a file"
                found[entry["referenced_data_file"]] = entry["record_count"]
        return found

    def lineage(self):
        """Number and last change by `id`, of all rows of the data files, deleted or not."""
        found = {}
        for manifest, entries in self.manifests():
            for entry in entries if manifest["content"] == 0 else []:
                rows = pq.read_table(entry["file_path"].removeprefix("file://"))
                own = [rows[name].to_pylist() if name in rows.schema.names else [None] * rows.num_rows
                       for name in ("_row_id", "_last_updated_sequence_number")]
                for place, (key, number, change) in enumerate(zip(rows["id"].to_pylist(), *own)):
                    number = entry["first_row_id"] + place if number is None else number
                    found.setdefault(key, []).append((number, entry["sequence"] if change is None else change))
        return found


def named(record, struct):
    return dict(zip([field.name for field in struct.fields], record._data))


def records(path, schema):
    with AvroFile[Record](PyArrowFileIO().new_input(path), schema) as reader:
        return [named(record, schema) for record in reader]


def ids(low, high):
    return ROWS.slice(low, high - low)


def test_rows_are_deleted_by_vectors(lake):  # noqa: F811
    table = Third(lake, parts=((0, 400), (400, 1000)))
    assert table.metadata()["format-version"] == 3 and table.metadata()["next-row-id"] == 1000
    before = set(tables.data_files(table.folder))
    table.database.run("DELETE FROM lake.db.t WHERE id >= 390 AND id < 410")
    assert set(tables.data_files(table.folder)) == before, "no file is written again"
    assert sorted(table.vectors().values()) == [10, 10]
    wanted = pa.concat_tables([ids(0, 390), ids(410, 1000)])
    table.check(wanted)
    # Another vector takes the place of the first one, with its rows.
    table.database.run("DELETE FROM lake.db.t WHERE id = 0 OR id = 395 OR id = 999")
    assert sorted(table.vectors().values()) == [11, 11]
    wanted = pa.concat_tables([ids(1, 390), ids(410, 999)])
    table.check(wanted)
    summary = table.metadata()["snapshots"][-1]["summary"]
    assert summary["operation"] == "delete" and summary["total-position-deletes"] == "22" and summary["total-delete-files"] == "2"
    # Many rows are no vector: the others are written again, and a file without rows goes with its vector.
    table.database.run("DELETE FROM lake.db.t WHERE id < 400")
    assert list(table.vectors().values()) == [11]
    table.check(ids(410, 999))
    table.database.run("OPTIMIZE lake.db.t")
    assert not table.vectors() and len(tables.data_files(table.folder)) == 1
    table.check(ids(410, 999))
    table.database.run("VACUUM lake.db.t RETAIN 0 HOURS")
    assert not list(table.folder.rglob("*.puffin"))
    table.check(ids(410, 999))


def test_rows_keep_their_numbers(lake):  # noqa: F811
    table = Third(lake, parts=((0, 400), (400, 1000)))
    assert table.lineage() == {n: [(n, 1 if n < 400 else 2)] for n in range(1000)}
    # By a vector and a new row of the same number; then as a whole file.
    for number, sql in enumerate((
        "UPDATE lake.db.t SET word = 'new' WHERE id = 5", "UPDATE lake.db.t SET word = 'more' WHERE id >= 400 AND id <> 999",
    )):
        table.database.run(sql)
        changed = {5: 3} if number == 0 else {5: 3, **dict.fromkeys(range(400, 999), 4)}
        live = {key: sorted(rows)[-1] for key, rows in table.lineage().items()}
        assert live == {n: (n, changed.get(n, 1 if n < 400 else 2)) for n in range(1000)}
    table.database.run("""MERGE INTO lake.db.t AS t USING (VALUES (6, 'met'), (2000, 'new')) AS s (id, word) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET word = s.word WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, s.word)""")
    assert table.database.rows("SELECT id FROM lake.db.t WHERE word IN ('met', 'new') ORDER BY id") == [(5,), (6,), (2000,)]
    numbers = [row[0] for rows in table.lineage().values() for row in sorted(rows)[-1:]]
    assert len(set(numbers)) == 1001 and table.lineage()[2000][0][0] >= 1000
    assert sorted(table.lineage()[6])[-1] == (6, 5)
    before = {key: sorted(rows)[-1] for key, rows in table.lineage().items()}
    table.database.run("OPTIMIZE lake.db.t")
    assert table.lineage() == {key: [row] for key, row in before.items()}, "to move a row does not change it"
    assert table.metadata()["next-row-id"] > max(numbers)


def test_partitions(lake):  # noqa: F811
    table = Third(lake, more="PARTITION BY (day)")
    table.database.run("DELETE FROM lake.db.t WHERE id % 100 = 0", "UPDATE lake.db.t SET day = DATE '2025-01-01' WHERE id % 100 = 1")
    days = [datetime.date(2025, 1, 1) if n % 100 == 1 else ROWS["day"][n].as_py() for n in range(1000)]
    wanted = ROWS.set_column(3, "day", pa.array(days)).filter(pa.array([n % 100 != 0 for n in range(1000)]))
    table.check(wanted)
    assert len(table.vectors()) == 3


def test_columns_that_are_not_named_have_their_default(lake):  # noqa: F811
    table = Third(lake)
    metadata = table.catalog.tables[("db",), "t"][1]
    field = next(field for field in metadata["schemas"][-1]["fields"] if field["name"] == "number")
    field["write-default"] = 7
    table.database.run("INSERT INTO lake.db.t (id) VALUES (5000)", "INSERT INTO lake.db.t (id, number) VALUES (5001, NULL)")
    assert table.database.rows("SELECT id, number FROM lake.db.t WHERE id >= 5000 ORDER BY id") == [(5000, 7), (5001, None)]


def test_nanoseconds(lake):  # noqa: F811
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t (id BIGINT, at TIMESTAMP(9)) WITH (format_version = 3) PARTITION BY (day(at))",
                 "INSERT INTO lake.db.t VALUES (1, TIMESTAMP '2024-02-29 12:00:00.123456789'), (2, TIMESTAMP '1969-12-31 23:59:59.999999999'), (3, NULL)")
    assert json.loads(tables.newest(catalog.warehouse / "db" / "t").read_text())["schemas"][0]["fields"][1]["type"] == "timestamp_ns"
    assert database.rows("SELECT id FROM lake.db.t WHERE at = TIMESTAMP '2024-02-29 12:00:00.123456789'") == [(1,)]
    assert by_duckdb(catalog.warehouse / "db" / "t").num_rows == 3


@pytest.mark.parametrize("sql", [
    'UPDATE lake.db.t SET "__bowshot_row_id" = 1', 'INSERT INTO lake.db.t ("__bowshot_row_id") VALUES (1)',
    'MERGE INTO lake.db.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "__bowshot_last_change" = 1',
    'SELECT "__bowshot_row_place" FROM lake.db.t',
])
def test_nobody_sees_or_sets_numbers(lake, sql):  # noqa: F811
    refused(Third(lake).database, sql)


@pytest.mark.parametrize("status", [409, 503])
def test_numbers_after_others_were_faster(lake, status):  # noqa: F811
    """Each attempt gives new rows other numbers, behind those of whoever has come first."""
    table = Third(lake)

    def fault(handler, commit):
        table.catalog.commit_fault = None
        if status == 503:
            assert commit() == 200
        else:
            # As by a commit on another branch.
            table.catalog.tables[("db",), "t"][1]["next-row-id"] += 10
        return status

    table.catalog.commit_fault = fault
    table.database.run("INSERT INTO lake.db.t SELECT id + 1000, word, number, day FROM rows WHERE id < 5")
    lineage = table.lineage()
    assert all(len(rows) == 1 for rows in lineage.values())
    first = 1010 if status == 409 else 1000
    assert sorted(rows[0][0] for rows in lineage.values()) == [*range(1000), *range(first, first + 5)]
    assert table.metadata()["next-row-id"] == first + 5
