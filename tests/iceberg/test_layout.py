"""How rows are partitioned from now on, and names of states: what others read of a table that was changed so."""

import datetime

import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform

import tables
from conftest import refused, serving_real
from durable import Database
from server import Server
from test_iceberg import ROWS, by_duckdb, folder, made, sorted_rows  # noqa: F401
from test_writing import lake  # noqa: F401

FIRST, SECOND = ROWS.slice(0, 400), ROWS.slice(400)


def spec(table):
    read = tables.static(table.folder)
    return [(field.name, field.transform) for field in read.spec().fields]


def test_rows_are_partitioned_otherwise_from_now_on(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST,))
    alter = "ALTER TABLE lake.db.t"
    table.database.run(f"{alter} ADD PARTITION FIELD day", f"{alter} ADD PARTITION FIELD bucket(4, id) AS shard")
    assert spec(table) == [("day", IdentityTransform()), ("shard", BucketTransform(4))]
    table.add("rows WHERE id >= 400")
    table.check(ROWS)
    read = tables.static(table.folder)
    assert len({task.file.spec_id for task in read.scan().plan_files()}) == 2, "files of before stay as they are"
    # Rows of files of all specifications are changed, and go where rows go now.
    table.database.run("UPDATE lake.db.t SET number = 5 WHERE id % 100 = 7", f"{alter} DROP PARTITION FIELD bucket(4, id)")
    assert spec(table) == [("day", IdentityTransform())]
    table.database.run("DELETE FROM lake.db.t WHERE id % 100 = 8", "OPTIMIZE lake.db.t")
    wanted = [{**row, "number": 5 if row["id"] % 100 == 7 else row["number"]} for row in ROWS.to_pylist() if row["id"] % 100 != 8]
    table.check(type(ROWS).from_pylist(wanted, ROWS.schema))
    # One that was there before is the same one, and a specification, too.
    specs = len(tables.static(table.folder).metadata.partition_specs)
    table.database.run(f"{alter} DROP PARTITION FIELD day", f"{alter} ADD PARTITION FIELD day")
    assert len(tables.static(table.folder).metadata.partition_specs) == specs
    table.database.run(f"{alter} ADD PARTITION FIELD day(day)", f"{alter} DROP PARTITION FIELD day_day")
    assert spec(table) == [("day", IdentityTransform())]
    assert DayTransform() not in [transform for _, transform in spec(table)]


@pytest.mark.parametrize("change", [
    "ADD PARTITION FIELD nothing", "ADD PARTITION FIELD day(id)", "ADD PARTITION FIELD id + 1", "DROP PARTITION FIELD id",
    "ADD PARTITION FIELD day", "ADD PARTITION FIELD bucket(4, id) AS word", "CREATE TAG main", "CREATE BRANCH v1 AS OF VERSION 7",
    "DROP TAG nothing", "CREATE TAG v1 AS OF VERSION 'x'",
])
def test_what_a_table_does_not_become(lake, change):  # noqa: F811
    table = lake(ROWS, before=(FIRST,))
    table.database.run("ALTER TABLE lake.db.t ADD PARTITION FIELD day")
    before = sorted(path.name for path in (table.folder / "metadata").glob("*.metadata.json"))
    refused(table.database, f"ALTER TABLE lake.db.t {change}")
    assert sorted(path.name for path in (table.folder / "metadata").glob("*.metadata.json")) == before
    table.database.run("CREATE TABLE own (id INT)", "ALTER TABLE IF EXISTS lake.db.nothing CREATE TAG v1")
    refused(table.database, "ALTER TABLE own CREATE TAG v1", "Iceberg")


def test_states_have_names(lake):  # noqa: F811
    table = lake(ROWS, before=(FIRST,))
    first = tables.static(table.folder).metadata.current_snapshot_id
    table.database.run("ALTER TABLE lake.db.t CREATE TAG v1", "INSERT INTO lake.db.t SELECT * FROM rows WHERE id >= 400",
                       "ALTER TABLE lake.db.t CREATE BRANCH dev", f"ALTER TABLE lake.db.t CREATE TAG again AS OF VERSION {first}",
                       "ALTER TABLE lake.db.t CREATE TAG IF NOT EXISTS v1")
    refs = {name: (ref.snapshot_id, ref.snapshot_ref_type.value) for name, ref in tables.static(table.folder).metadata.refs.items()}
    last = tables.static(table.folder).metadata.current_snapshot_id
    assert refs == {"main": (last, "branch"), "v1": (first, "tag"), "dev": (last, "branch"), "again": (first, "tag")}
    for name, count in (("v1", 400), ("again", 400), ("dev", 1000), ("main", 1000), (str(first), 400)):
        assert table.database.one(f"SELECT count(*) FROM lake.db.t FOR VERSION AS OF '{name}'") == count
    table.database.run("DELETE FROM lake.db.t WHERE id < 500", "VACUUM lake.db.t RETAIN 0 HOURS")
    assert table.database.one("SELECT count(*) FROM lake.db.t FOR VERSION AS OF 'v1'") == 400
    refused(table.database, "ALTER TABLE lake.db.t CREATE TAG v1", "already has")
    refused(table.database, "ALTER TABLE lake.db.t DROP BRANCH v1", "no branch")
    table.database.run("ALTER TABLE lake.db.t DROP TAG v1", "ALTER TABLE lake.db.t DROP TAG again", "ALTER TABLE lake.db.t DROP BRANCH IF EXISTS v1",
                       "VACUUM lake.db.t RETAIN 0 HOURS")
    refused(table.database, "SELECT * FROM lake.db.t FOR VERSION AS OF 'v1'", "no branch or tag `v1`")
    refused(table.database, f"SELECT * FROM lake.db.t FOR VERSION AS OF {first}", "has no snapshot")


def test_names_of_a_table_in_a_folder(folder):  # noqa: F811
    table = made(folder, rows=(FIRST,))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    table.append(SECOND)
    with Server(f"t={tables.place(table)}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 'v1'") == 400
        assert sorted_rows(database.arrow("SELECT * FROM t VERSION AS OF 'v1' AS x WHERE x.id >= 0")) == sorted_rows(FIRST)
        refused(database, "SELECT * FROM t FOR VERSION AS OF 'none'", "no branch or tag `none`")
        database.run("CREATE TABLE own (id INT)")
        refused(database, "SELECT * FROM own FOR VERSION AS OF 'v1'", "no branch or tag")


@pytest.mark.parametrize("status, is_made, said", [(409, True, "already"), (503, True, None), (503, False, None)])
def test_a_layout_is_changed_once(lake, status, is_made, said):  # noqa: F811
    """Of two equal changes at once the second one fails; one whose answer was lost does not."""
    table = lake(ROWS, before=(FIRST,), timeout="2s")
    for change in ("ADD PARTITION FIELD day", "CREATE TAG v1"):
        def fault(handler, commit):
            table.catalog.commit_fault = None
            assert not is_made or commit() == 200
            return status

        table.catalog.commit_fault = fault
        if said:
            refused(table.database, f"ALTER TABLE lake.db.t {change}", said)
        else:
            table.database.run(f"ALTER TABLE lake.db.t {change}")
    assert spec(table) == [("day", IdentityTransform())] and "v1" in tables.static(table.folder).metadata.refs


def test_a_real_catalog(s3_tables, tmp_path):
    """What SeaweedFS's catalog takes of it, pyiceberg reads."""
    writer, *_ = s3_tables
    writer.create_namespace("laid")
    table = writer.create_table("laid.t", schema=pa.schema([("id", pa.int64()), ("at", pa.date32())]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "at": [datetime.date(2024, 2, 29)] * 2}))
    with serving_real(s3_tables, tmp_path) as database:
        database.run("ALTER TABLE lake.laid.t ADD PARTITION FIELD day(at)", "ALTER TABLE lake.laid.t CREATE TAG v1",
                     "INSERT INTO lake.laid.t VALUES (3, DATE '2024-03-01')")
        table.refresh()
        assert [(field.name, field.transform) for field in table.spec().fields] == [("at_day", DayTransform())]
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert database.one("SELECT count(*) FROM lake.laid.t FOR VERSION AS OF 'v1'") == 2
        database.run("ALTER TABLE lake.laid.t DROP TAG v1", "ALTER TABLE lake.laid.t DROP PARTITION FIELD at_day")
        table.refresh()
        assert not table.spec().fields and "v1" not in table.metadata.refs
