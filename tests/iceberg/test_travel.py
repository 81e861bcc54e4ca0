"""Earlier states of tables that others write, by number and by time: what their writers read of them."""

import datetime
import os

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.types import LongType

import tables
from conftest import refused
from durable import Database
from server import Server
from test_iceberg import ROWS, changed, folder, made, sorted_rows  # noqa: F401


def moment(time_ms):
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.timezone.utc).isoformat(sep=" ", timespec="milliseconds")


def written(folder):  # noqa: F811
    table = made(folder, rows=(ROWS.slice(0, 300),))
    table.append(ROWS.slice(300, 200))
    table.delete("id < 100")
    with table.update_schema() as change:
        change.rename_column("word", "text").add_column("new", LongType())
    more = table.schema().as_arrow()
    table.append(pa.table({"id": [9000], "text": ["t"], "number": [1], "day": [None], "new": [3]}, more))
    return table


def test_states_of_an_iceberg_table(folder):  # noqa: F811
    table = written(folder)
    history = table.history()
    assert len(history) >= 4
    with Server(f"t={tables.place(table)}") as server, Database(server) as database:
        for place, state in enumerate(history):
            wanted = table.scan(snapshot_id=state.snapshot_id).to_arrow()
            got = database.arrow(f"SELECT * FROM t FOR VERSION AS OF {state.snapshot_id}")
            assert got.schema.names == wanted.schema.names
            assert sorted_rows(got) == sorted_rows(wanted), place
            short = f"SELECT count(*) FROM t VERSION AS OF {state.snapshot_id} x WHERE x.id >= 0"
            assert database.one(short) == wanted.num_rows
            last = place + 1 == len(history) or history[place + 1].timestamp_ms > state.timestamp_ms
            if last:
                got = database.arrow(f"SELECT * FROM t FOR TIMESTAMP AS OF '{moment(state.timestamp_ms)}'")
                assert sorted_rows(got) == sorted_rows(wanted), place
        assert database.one("SELECT count(*) FROM t TIMESTAMP AS OF '2999-01-01'") == database.one("SELECT count(*) FROM t")
        first = history[0].snapshot_id
        assert database.one(f"SELECT count(*) FROM t FOR VERSION AS OF {first} a LEFT JOIN t b ON a.id = b.id WHERE b.id IS NULL") == 100
        refused(database, "SELECT * FROM t FOR VERSION AS OF 7", "has no snapshot 7", str(history[-1].snapshot_id))
        refused(database, "SELECT * FROM t FOR TIMESTAMP AS OF '1999-01-01'", "no snapshot")
        refused(database, f"SELECT new FROM t FOR VERSION AS OF {first}", "new")
        # The state of now is none the worse for it.
        assert sorted_rows(database.arrow("SELECT * FROM t")) == sorted_rows(table.scan().to_arrow())


def test_a_state_that_has_expired(folder):  # noqa: F811
    table = written(folder)
    first = table.history()[0]

    def expire(text):
        text["snapshots"] = [state for state in text["snapshots"] if state["snapshot-id"] != first.snapshot_id]

    changed(tables.place(table), expire)
    with Server(f"t={tables.place(table)}") as server, Database(server) as database:
        refused(database, f"SELECT * FROM t FOR VERSION AS OF {first.snapshot_id}", "has no snapshot")
        refused(database, f"SELECT * FROM t FOR TIMESTAMP AS OF '{moment(first.timestamp_ms)}'", "no longer has the snapshot")
        assert database.one("SELECT count(*) FROM t") == 401


def test_deleted_rows_are_there_in_states_before(folder):  # noqa: F811
    place = tables.place(made(folder, rows=(ROWS.slice(0, 100),)))
    before = tables.static(place).current_snapshot().snapshot_id
    (file,) = tables.data_files(place)
    tables.delete_places(place, [(file, 3)])
    tables.delete_values(place, pa.table({"id": pa.array([7], pa.int64())}), [1])
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t") == 98
        assert database.one(f"SELECT count(*) FROM t FOR VERSION AS OF {before}") == 100
        assert database.one("SELECT count(*) FROM t") == 98


def test_versions_of_a_delta_table(tmp_path):
    place = tmp_path / "t"
    write_deltalake(place, ROWS.slice(0, 300))
    write_deltalake(place, ROWS.slice(300, 200), mode="append")
    DeltaTable(place).delete("id < 100")
    more = ROWS.slice(500, 10).append_column("new", pa.array(range(10), pa.int64()))
    write_deltalake(place, more, mode="append", schema_mode="merge")
    base = 1_700_000_000
    for number in range(4):
        entry = place / "_delta_log" / f"{number:020}.json"
        os.utime(entry, (base + number * 100, base + number * 100))
    with Server(f"t={place}") as server, Database(server) as database:
        for number in range(4):
            wanted = pa.table(DeltaTable(place, version=number).to_pyarrow_table())
            got = database.arrow(f"SELECT * FROM t FOR VERSION AS OF {number}")
            assert got.schema.names == wanted.schema.names
            assert sorted_rows(got) == sorted_rows(wanted), number
            for later in (0, 99):
                time = datetime.datetime.fromtimestamp(base + number * 100 + later, datetime.timezone.utc)
                table = DeltaTable(place)
                table.load_as_version(time)
                assert table.version() == number
                got = database.arrow(f"SELECT * FROM t FOR TIMESTAMP AS OF '{time.isoformat()}'")
                assert sorted_rows(got) == sorted_rows(wanted), number
        refused(database, "SELECT * FROM t FOR VERSION AS OF 4", "has no version 4", "0 to 3")
        refused(database, "SELECT * FROM t FOR TIMESTAMP AS OF '1999-01-01'", "has no version of")
        assert database.one("SELECT count(*) FROM t") == 410


def test_versions_of_a_log_whose_beginning_is_gone(tmp_path):
    place = tmp_path / "t"
    for number in range(5):
        write_deltalake(place, ROWS.slice(number * 10, 10), mode="append")
        if number == 2:
            DeltaTable(place).create_checkpoint()
    for number in (0, 1):
        os.remove(place / "_delta_log" / f"{number:020}.json")
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 2") == 30
        assert database.one("SELECT count(*) FROM t FOR VERSION AS OF 3") == 40
        refused(database, "SELECT * FROM t FOR VERSION AS OF 1", "has no version 1", "2 to 4")


@pytest.mark.parametrize("sql", ["FOR VERSION AS OF 0", "FOR TIMESTAMP AS OF '2024-01-01'"])
def test_files_that_are_no_such_table_have_no_states(tmp_path, sql):
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "plain.parquet")
    with Server(tmp_path / "plain.parquet") as server, Database(server) as database:
        refused(database, f"SELECT * FROM plain {sql}", "no earlier versions")
        refused(database, f"SELECT * FROM nobody {sql}", "nobody")
        database.run("CREATE VIEW v AS SELECT * FROM plain")
        refused(database, f"SELECT * FROM v {sql}", "with earlier versions")
