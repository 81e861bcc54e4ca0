"""Rows of tables of a catalog that are changed: only files that have such rows are written again, and all readers find the others."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

import tables
from conftest import refused, serving_real
from test_iceberg import PLAIN, ROWS, by_duckdb
from test_writing import lake  # noqa: F401

FIRST, SECOND, THIRD = ROWS.slice(0, 400), ROWS.slice(400, 300), ROWS.slice(700)


def plain(table, sql):
    """What DuckDB makes of the same rows."""
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
        changed = connection.execute(sql.replace("lake.db.t", "t")).fetchone()[0]
        return changed, connection.execute("SELECT * FROM t").to_arrow_table()


def count(database, sql):
    """The number of rows that a statement has changed."""
    with database.connection.cursor() as cursor:
        cursor.adbc_statement.set_sql_query(sql)
        return cursor.adbc_statement.execute_update()


def paths(table):
    return {task.file.file_path for task in tables.static(table.folder).scan().plan_files()}


@pytest.mark.parametrize("sql, written_again", [
    ("DELETE FROM lake.db.t WHERE id = 5", 1),
    ("DELETE FROM lake.db.t WHERE id >= 300 AND id < 500", 2),
    ("DELETE FROM lake.db.t WHERE number IS NULL", 3),
    ("DELETE FROM lake.db.t WHERE number > 1", 3),
    ("DELETE FROM lake.db.t WHERE id < 400", 1),
    ("DELETE FROM lake.db.t WHERE id > 5000", 0),
    ("DELETE FROM lake.db.t", 3),
    ("DELETE FROM lake.db.t WHERE id IN (SELECT id FROM lake.db.t WHERE word = 'größe 3' AND id < 400)", 1),
    ("UPDATE lake.db.t SET word = 'new', number = number + 1 WHERE id % 100 = 7", 3),
    ("UPDATE lake.db.t SET number = 100 % (id - 399) WHERE id > 390 AND id < 399", 1),
    ("UPDATE lake.db.t SET word = NULL WHERE id = 401", 1),
    ("UPDATE lake.db.t SET number = id + 1", 3),
])
def test_changed_rows(lake, sql, written_again):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND, THIRD))
    before = paths(table)
    changed, wanted = plain(ROWS, sql)
    assert count(table.database, sql) == changed
    table.check(wanted.cast(ROWS.schema))
    assert len(before - paths(table)) == written_again
    snapshots = tables.static(table.folder).metadata.snapshots
    assert len(snapshots) == 3 + bool(changed), "nothing changed is no snapshot"
    if changed:
        summary = snapshots[-1].summary
        assert summary["total-records"] == str(wanted.num_rows) and summary["deleted-data-files"] == str(written_again)
        assert summary["total-data-files"] == str(len(paths(table)))


def test_rows_that_were_deleted_before_do_not_come_back(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND))
    files = tables.data_files(table.folder)
    tables.delete_places(table.folder, [(files[0], 3), (files[1], 4)])
    tables.delete_values(table.folder, pa.table({"id": pa.array([10, 420], pa.int64())}), [1])
    table.catalog.put("db", "t", tables.static(table.folder))
    before = {row[0] for row in table.database.rows("SELECT id FROM lake.db.t")}
    assert len(before) == 696
    table.database.run("UPDATE lake.db.t SET number = 9 WHERE id = 20")
    assert {row[0] for row in table.database.rows("SELECT id FROM lake.db.t")} == before
    assert table.database.one("SELECT number FROM lake.db.t WHERE id = 20") == 9
    assert set(by_duckdb(table.folder)["id"].to_pylist()) == before


def test_partitions_hold(lake):  # noqa: F811
    spec = PartitionSpec(PartitionField(source_id=4, field_id=1000, transform=IdentityTransform(), name="day"))
    table = lake(ROWS, PLAIN, spec, before=(ROWS,))
    table.database.run("UPDATE lake.db.t SET day = DATE '2024-02-29' WHERE id < 100", "DELETE FROM lake.db.t WHERE day = DATE '2024-03-02'")
    _, wanted = plain(ROWS, "UPDATE t SET day = DATE '2024-02-29' WHERE id < 100")
    _, wanted = plain(wanted, "DELETE FROM t WHERE day = DATE '2024-03-02'")
    table.check(wanted.cast(ROWS.schema))
    for task in tables.static(table.folder).scan().plan_files():
        assert len(set(pq.read_table(task.file.file_path.removeprefix("file://"))["day"].to_pylist())) == 1


def test_truncate(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND))
    table.database.run("TRUNCATE TABLE lake.db.t")
    table.check(ROWS.slice(0, 0))
    table.add()
    table.check(ROWS)


def test_somebody_was_faster(lake):  # noqa: F811
    """A change that was made of another state is not committed, and leaves nothing."""
    table = lake(ROWS, before=(FIRST,))

    def fault(handler, commit):
        table.catalog.commit_fault = None
        tables.append_file(table.folder, SECOND)
        table.catalog.put("db", "t", tables.static(table.folder))
        return 409

    table.catalog.commit_fault = fault
    refused(table.database, "DELETE FROM lake.db.t WHERE id = 5", "another writer changed the table")
    assert table.by_writer().num_rows == 700
    assert len(list((table.folder / "data").iterdir())) == 2, "files that came to nothing are removed"
    table.database.run("DELETE FROM lake.db.t WHERE id = 5")
    assert table.by_writer().num_rows == 699


SOURCE = "(SELECT id + 500 AS id, 'merged' AS word FROM rows WHERE id % 50 = 0) AS s"
TWICE = "USING (VALUES (5, 'a'), (5, 'b'), (401, 'c')) AS s (id, word) ON t.id = s.id WHEN MATCHED THEN UPDATE SET word = s.word"


@pytest.mark.parametrize("clauses, written_again", [
    ("WHEN MATCHED THEN UPDATE SET word = s.word", 2),
    ("WHEN MATCHED AND t.number IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET word = s.word, number = t.id", 2),
    ("WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, s.word)", 0),
    ("WHEN NOT MATCHED AND s.id > 1200 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", 0),
    ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (s.id, s.word, 7, DATE '2024-05-01')", 2),
    ("WHEN NOT MATCHED BY SOURCE AND t.id < 100 THEN DELETE WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", 1),
    ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET word = 'lonely' WHEN MATCHED THEN DELETE", 3),
    ("WHEN MATCHED THEN DO NOTHING", 0),
])
def test_merge(lake, clauses, written_again):  # noqa: F811
    """As into a table here."""
    table = lake(ROWS, before=(FIRST, SECOND, THIRD))
    before = paths(table)
    table.database.run("CREATE TABLE own AS SELECT * FROM lake.db.t")
    changed = count(table.database, f"MERGE INTO own AS t USING {SOURCE} ON t.id = s.id {clauses}")
    wanted = table.database.arrow("SELECT * FROM own")
    assert count(table.database, f"MERGE INTO lake.db.t AS t USING {SOURCE} ON t.id = s.id {clauses}") == changed
    table.check(wanted.cast(ROWS.schema))
    assert len(before - paths(table)) == written_again
    assert len(tables.static(table.folder).metadata.snapshots) == 3 + bool(changed)


def test_the_source_is_read_once(lake):  # noqa: F811
    """Rows that are changed and rows that are added are of one reading, whichever rows LIMIT takes."""
    table = lake(ROWS, before=(FIRST, SECOND, THIRD))
    merge = """MERGE INTO lake.db.t AS t USING (SELECT id + 500 AS id FROM rows WHERE id % 50 = 0 LIMIT 7) AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET word = 'met' WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, 'met')"""
    assert count(table.database, merge) == 7
    assert table.database.rows("SELECT count(*), count(DISTINCT id) FROM lake.db.t WHERE word = 'met'") == [(7, 7)]


def test_rows_that_meet_several(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND))
    before = table.files()
    refused(table.database, f"MERGE INTO lake.db.t AS t {TWICE}", "changed twice")
    assert table.files() == before
    once = TWICE.replace("MATCHED", "MATCHED AND s.word <> 'b'")
    assert count(table.database, f"MERGE INTO lake.db.t AS t {once}") == 2
    assert table.database.rows("SELECT id, word FROM lake.db.t WHERE word < 'd' ORDER BY id") == [(5, "a"), (401, "c")]
    assert table.by_writer().num_rows == 700


def test_merge_adds_what_the_table_that_it_has_read_lacks(lake):  # noqa: F811
    table = lake(ROWS, before=(SECOND,))
    merge = """WITH s AS (SELECT * FROM rows) MERGE INTO lake.db.t AS t USING s ON t.id = s.id
        WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.word, s.number, s.day)"""

    def fault(handler, commit):
        table.catalog.commit_fault = None
        tables.append_file(table.folder, FIRST)
        table.catalog.put("db", "t", tables.static(table.folder))
        return 409

    table.catalog.commit_fault = fault
    refused(table.database, merge, "another writer changed the table")
    assert [count(table.database, merge) for _ in range(2)] == [300, 0]
    table.check(ROWS)
    last = tables.static(table.folder).metadata.snapshots[-1].summary
    assert last.operation.value == "append" and last["added-records"] == "300"


def test_a_lost_answer(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST,), timeout="2s")

    def fault(handler, commit):
        table.catalog.commit_fault = None
        assert commit() == 200
        return 503

    table.catalog.commit_fault = fault
    table.database.run("UPDATE lake.db.t SET number = number + 1 WHERE id = 1")
    assert table.database.one("SELECT number FROM lake.db.t WHERE id = 1") == 2
    assert len(tables.static(table.folder).metadata.snapshots) == 2


@pytest.mark.parametrize("sql", [
    "DELETE FROM lake.db.t USING rows WHERE t.id = rows.id", "UPDATE lake.db.t SET number = 1 FROM rows WHERE t.id = rows.id",
    "DELETE FROM lake.db.t WHERE id = 1 RETURNING id", "UPDATE lake.db.t SET nothing = 1", "UPDATE lake.db.t SET number = 1, number = 2",
    "DELETE FROM lake.db.t WHERE random() < 0.5", "UPDATE lake.db.t SET number = 100000000000", "DELETE FROM lake.db.nothing",
    "MERGE INTO lake.db.t USING rows ON t.id = rows.id WHEN MATCHED THEN DELETE RETURNING t.id",
    "MERGE INTO lake.db.t USING rows ON t.id = rows.id WHEN MATCHED AND random() < 0.5 THEN DELETE",
    "MERGE INTO lake.db.t USING rows ON t.id = rows.id WHEN MATCHED THEN UPDATE SET nothing = 1",
])
def test_what_is_refused(lake, sql):  # noqa: F811
    table = lake(ROWS, before=(FIRST,))
    before = table.files()
    refused(table.database, sql)
    assert table.files() == before


def test_nobody_changes_rows_unless_the_operator_says_so(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST,), read_only=True)
    for sql in ("DELETE FROM lake.db.t", "UPDATE lake.db.t SET number = 1", "TRUNCATE TABLE lake.db.t", f"MERGE INTO lake.db.t AS t {TWICE}"):
        refused(table.database, sql, "read-only")


def test_optimize(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND, THIRD))
    tables.delete_places(table.folder, [(tables.data_files(table.folder)[0], 3)])
    table.catalog.put("db", "t", tables.static(table.folder))
    wanted = table.by_writer()
    assert wanted.num_rows == 999
    for sql in ("OPTIMIZE lake.db.t", "OPTIMIZE TABLE lake.db.t"):
        table.database.run(sql)
        table.check(wanted)
        assert len(paths(table)) == 1
        last = tables.static(table.folder).metadata.snapshots[-1]
        assert len(tables.static(table.folder).metadata.snapshots) == 5, "one file is as few as there can be"
        assert last.summary.operation.value == "replace" and last.summary["deleted-data-files"] == "3"
    table.database.run("DELETE FROM lake.db.t WHERE id < 500")
    assert table.by_writer().num_rows == len([n for n in wanted["id"].to_pylist() if n >= 500])


def test_optimize_keeps_partitions(lake):  # noqa: F811
    spec = PartitionSpec(PartitionField(source_id=4, field_id=1000, transform=IdentityTransform(), name="day"))
    table = lake(ROWS, PLAIN, spec, before=(FIRST, SECOND, THIRD))
    assert len(paths(table)) == 9
    table.database.run("OPTIMIZE lake.db.t")
    table.check(ROWS)
    assert len(paths(table)) == 3


def named(table):
    """The files that the snapshots of a table name."""
    read, found = tables.static(table.folder), set()
    for snapshot in read.metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(read.io):
            found |= {manifest.manifest_path, *(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(read.io))}
    return {name.rsplit("/", 1)[-1] for name in found}


def test_vacuum(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND))
    tables.delete_places(table.folder, [(tables.data_files(table.folder)[0], 3)])
    table.catalog.put("db", "t", tables.static(table.folder))
    table.database.run("OPTIMIZE lake.db.t", "DELETE FROM lake.db.t WHERE id < 10")
    wanted, before = table.by_writer(), table.files()
    table.database.run("VACUUM lake.db.t")
    assert table.files() == before and len(tables.static(table.folder).metadata.snapshots) == 5, "they are kept for a week"
    first = tables.static(table.folder).metadata.snapshots[0].snapshot_id
    table.catalog.tables[("db",), "t"][1]["refs"]["audit"] = {"snapshot-id": first, "type": "tag"}
    table.database.run("VACUUM lake.db.t RETAIN 0 HOURS")
    assert [snapshot.snapshot_id for snapshot in tables.static(table.folder).metadata.snapshots][0] == first
    assert len(tables.static(table.folder).metadata.snapshots) == 2
    table.check(wanted)
    assert table.database.one(f"SELECT count(*) FROM lake.db.t FOR VERSION AS OF {first}") == 400
    del table.catalog.tables[("db",), "t"][1]["refs"]["audit"]
    table.database.run("VACUUM lake.db.t RETAIN 0 HOURS")
    table.check(wanted)
    assert len(paths(table)) == 1 and {path.rsplit("/", 1)[-1] for path in paths(table)} < set(table.files())
    assert set(table.files()) <= named(table), "files that no snapshot names are gone"
    table.database.run("INSERT INTO lake.db.t (id) VALUES (7000)", "DELETE FROM lake.db.t WHERE id = 7000")
    table.check(wanted)


def test_statistics_go_with_their_snapshots(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST,))
    table.database.run("DELETE FROM lake.db.t WHERE id < 10")
    metadata = table.catalog.tables[("db",), "t"][1]
    for number, snapshot in enumerate(metadata["snapshots"]):
        path = table.folder / "metadata" / f"{number}.stats"
        path.write_bytes(b"PFA1")
        metadata.setdefault("statistics", []).append({
            "snapshot-id": snapshot["snapshot-id"], "statistics-path": f"file://{path}", "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 4, "blob-metadata": [],
        })
    table.database.run("VACUUM lake.db.t RETAIN 0 HOURS")
    assert [path.name for path in (table.folder / "metadata").glob("*.stats")] == ["1.stats"]
    assert len(table.catalog.tables[("db",), "t"][1]["statistics"]) == 1


@pytest.mark.parametrize("status, is_made", [(409, False), (503, True), (503, False)])
def test_files_go_when_the_catalog_has_forgotten_them(lake, status, is_made):  # noqa: F811
    table = lake(ROWS, before=(FIRST,), timeout="2s")
    table.database.run("UPDATE lake.db.t SET number = 1 WHERE id = 7")
    before = set(table.files())

    def fault(handler, commit):
        if status == 409:
            table.catalog.commit_fault = None
        return commit() and status if is_made else status

    table.catalog.commit_fault = fault
    if is_made or status == 409:
        table.database.run("VACUUM lake.db.t RETAIN 0 HOURS")
        assert set(table.files()) < before
    else:
        refused(table.database, "VACUUM lake.db.t RETAIN 0 HOURS")
        assert set(table.files()) == before
    assert table.by_writer().num_rows == 400


def test_a_table_that_keeps_its_files(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST, SECOND))
    table.catalog.tables[("db",), "t"][1]["properties"]["gc.enabled"] = "false"
    refused(table.database, "VACUUM lake.db.t RETAIN 0 HOURS", "gc.enabled")


def test_a_real_catalog(s3_tables, tmp_path):
    writer, *_ = s3_tables
    writer.create_namespace("changed")
    schema = pa.schema([("id", pa.int64()), ("word", pa.string())])
    table = writer.create_table("changed.t", schema=schema)
    for first in (0, 50):
        table.append(pa.table({"id": range(first, first + 50), "word": [f"w{n}" for n in range(50)]}, schema))
    with serving_real(s3_tables, tmp_path) as database:
        assert count(database, "DELETE FROM lake.changed.t WHERE id < 10") == 10
        assert count(database, "UPDATE lake.changed.t SET word = 'x' WHERE id = 70") == 1
        table.refresh()
        rows = {row["id"]: row["word"] for row in table.scan().to_arrow().to_pylist()}
        assert sorted(rows) == list(range(10, 100)) and rows[70] == "x" and rows[71] == "w21"
