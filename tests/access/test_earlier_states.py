"""Earlier states of tables that others write obey the rules for the tables as they are now."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from world import DOORS, ORDERS, SETUP, refused, world

MORE = [
    "GRANT SELECT ON events TO clerk",
    "GRANT SELECT ON shaped TO clerk",
    "GRANT SELECT (id, region) ON part TO clerk",
    "CREATE ROW POLICY own_region ON events FOR clerk USING (region = user_attribute('region'))",
    "CREATE MASK note ON events (note) FOR clerk USING (null)",
    "CREATE ROW POLICY own_region ON shaped FOR clerk USING (region = user_attribute('region'))",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    rows = pa.table(ORDERS)
    for name in ("events", "shaped", "part", "closed"):
        write_deltalake(folder / name, rows)
        write_deltalake(folder / name, rows, mode="append")
    write_deltalake(folder / "shaped", rows.append_column("new", pa.array([1, 2, 3, 4])), mode="append", schema_mode="merge")
    sources = [f"{name}={folder / name}" for name in ("events", "shaped", "part", "closed")]
    with world(tmp_path_factory.mktemp("world"), setup=SETUP + MORE, arguments=sources) as all_connections:
        yield all_connections


@pytest.mark.parametrize("door", DOORS)
def test_who_reads_what(made, door):
    ada, bob, carl, root = (made.at(user, door) for user in ("ada", "bob", "carl", "root"))
    first = "FOR VERSION AS OF 0"
    assert len(root.rows(f"SELECT * FROM events {first}")) == 4 and len(root.rows("SELECT * FROM events")) == 8
    assert ada.rows(f"SELECT id, amount, note FROM events {first} ORDER BY id") == [("1", "10", None), ("3", "30", None)]
    assert bob.rows(f"SELECT id FROM events {first}") == [("2",)]
    assert ada.rows("SELECT count(*) FROM events FOR TIMESTAMP AS OF '2999-01-01'") == [("4",)]
    assert len(ada.rows(f"SELECT id, region FROM part {first}")) == 4
    refused(ada, f"SELECT amount FROM part {first}", "amount")
    for name in ("events", "shaped", "part", "closed"):
        refused(carl, f"SELECT * FROM {name} {first}", "no table that keeps versions", "not found")
    refused(ada, f"SELECT * FROM closed {first}", "no table that keeps versions", "not found")
    # Nothing tells which states there are.
    refused(carl, "SELECT * FROM events FOR VERSION AS OF 77", "no table that keeps versions", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_other_columns_are_not_seen_by_going_back(made, door):
    ada, root = made.at("ada", door), made.at("root", door)
    refused(ada, "SELECT * FROM shaped FOR VERSION AS OF 0", "another definition")
    assert len(ada.rows("SELECT id FROM shaped FOR VERSION AS OF 2")) == 6
    assert len(root.rows("SELECT * FROM shaped FOR VERSION AS OF 0")) == 4
