"""Changes and earlier states of Delta tables that others write obey the rules for the tables as they are now: each row of a change is
one of the table."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decisions import ALLOW, Decisions, deny, objects
from decisions import serving as deciding
from server import wait_until
from world import DOORS, ORDERS, SETUP, Refused, refused, world

FEED = {"delta.enableChangeDataFeed": "true"}
MORE = [
    "GRANT SELECT ON events TO clerk",
    "GRANT SELECT ON shaped TO clerk",
    "GRANT SELECT (id, region) ON part TO clerk",
    "CREATE ROW POLICY own_region ON events FOR clerk USING (region = user_attribute('region'))",
    "CREATE MASK note ON events (note) FOR clerk USING (null)",
    "CREATE ROW POLICY own_region ON shaped FOR clerk USING (region = user_attribute('region'))",
    "GRANT SELECT ON moved TO clerk",
    "CREATE MASK secret ON moved (secret) FOR clerk USING (null)",
    "GRANT SELECT (id) ON lost TO clerk",
    "CREATE VIEW changed AS SELECT id, amount, note, _change_type FROM table_changes('events', 1)",
    "GRANT SELECT ON changed TO clerk, carl",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    rows = pa.table(ORDERS)
    for name in ("events", "shaped", "part", "closed"):
        write_deltalake(folder / name, rows, configuration=FEED)
        # A row leaves one region for another.
        DeltaTable(folder / name).update(updates={"region": "'US'"}, predicate="id = 3")
        DeltaTable(folder / name).delete("id = 1")
    write_deltalake(folder / "shaped", rows.append_column("new", pa.array([1, 2, 3, 4])), mode="append", schema_mode="merge")
    # Rows of another definition go with the commit that makes this one.
    write_deltalake(folder / "moved", pa.table({"id": [1], "label": ["hidden then"]}), configuration=FEED)
    moved = pa.table({"id": [1], "label": ["x"], "secret": ["hidden now"]})
    write_deltalake(folder / "moved", moved, mode="overwrite", schema_mode="overwrite")
    # Files whose places tell values, one of which is gone.
    write_deltalake(folder / "lost", pa.table({"id": [1, 2], "grade": ["low", "topsecret"]}), configuration=FEED, partition_by=["grade"])
    DeltaTable(folder / "lost").delete("grade = 'topsecret'")
    for path in (folder / "lost").rglob("*grade=topsecret*/*.parquet"):
        path.unlink()
    sources = [f"{name}={folder / name}" for name in ("events", "shaped", "part", "closed", "moved", "lost")]
    with world(tmp_path_factory.mktemp("world"), setup=SETUP + MORE, arguments=sources) as all_connections:
        yield all_connections


def changes(connection, columns, arguments):
    return sorted(connection.rows(f"SELECT _change_type, {columns} FROM table_changes({arguments})"))


@pytest.mark.parametrize("door", DOORS)
def test_who_reads_which_changes(made, door):
    ada, bob, carl, root = (made.at(user, door) for user in ("ada", "bob", "carl", "root"))
    assert len(changes(root, "id", "'events', 0")) == 7
    assert changes(root, "id, region, note", "'events', 1, 1") == [
        ("update_postimage", "3", "US", "n3"), ("update_preimage", "3", "EU", "n3")]
    # Who sees a region sees how rows come into it and leave it, and of hidden values nothing.
    assert changes(ada, "id, region, note", "'events', 1") == [("delete", "1", "EU", None), ("update_preimage", "3", "EU", None)]
    assert changes(bob, "id, region, note", "'events', 1") == [("update_postimage", "3", "US", None)]
    assert ada.rows("SELECT count(*) FROM table_changes('events', 0) WHERE note IS NOT NULL") == [("0",)]
    assert ada.rows("SELECT count(*) FROM table_changes('events', 0) WHERE region = 'US'") == [("0",)]
    assert len(changes(ada, "id, region", "'part', 0")) == 7
    assert sorted(row[:3] for row in ada.rows("SELECT * FROM table_changes('part', 2)")) == [("1", "EU", "delete")]
    refused(ada, "SELECT amount FROM table_changes('part', 0)", "amount")
    # A view gives nobody more than they have.
    assert sorted(ada.rows("SELECT id, note, _change_type FROM changed")) == [("1", None, "delete"), ("3", None, "update_preimage")]
    refused(carl, "SELECT * FROM changed", "cannot be read by", "that records changes", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_who_reads_none(made, door):
    ada, carl = made.at("ada", door), made.at("carl", door)
    for name in ("events", "shaped", "part", "closed"):
        refused(carl, f"SELECT * FROM table_changes('{name}', 0)", "that records changes", "not found")
        # Nothing tells which versions there are.
        refused(carl, f"SELECT * FROM table_changes('{name}', 77)", "that records changes", "not found")
    refused(ada, "SELECT * FROM table_changes('closed', 0)", "that records changes", "not found")
    refused(carl, "SELECT * FROM table_changes('people', 0)", "that records changes", "not found")
    refused(carl, "EXPLAIN SELECT * FROM table_changes('events', 0)", "that records changes", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_who_reads_which_earlier_state(made, door):
    ada, bob, carl, root = (made.at(user, door) for user in ("ada", "bob", "carl", "root"))
    first = "FOR VERSION AS OF 0"
    assert len(root.rows(f"SELECT * FROM events {first}")) == 4 and len(root.rows("SELECT * FROM events")) == 3
    assert ada.rows(f"SELECT id, amount, note FROM events {first} ORDER BY id") == [("1", "10", None), ("3", "30", None)]
    assert bob.rows(f"SELECT id FROM events {first}") == [("2",)]
    assert bob.rows("SELECT count(*) FROM events FOR TIMESTAMP AS OF '2999-01-01'") == [("2",)]
    assert len(ada.rows(f"SELECT id, region FROM part {first}")) == 4
    refused(ada, f"SELECT amount FROM part {first}", "amount")
    for name in ("events", "shaped", "part", "closed"):
        refused(carl, f"SELECT * FROM {name} {first}", "with earlier versions", "not found")
    refused(ada, f"SELECT * FROM closed {first}", "with earlier versions", "not found")
    # Nothing tells which states there are.
    refused(carl, "SELECT * FROM events FOR VERSION AS OF 77", "with earlier versions", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_other_columns_are_not_seen_by_going_back(made, door):
    ada, root = made.at("ada", door), made.at("root", door)
    refused(ada, "SELECT * FROM shaped FOR VERSION AS OF 0", "another definition")
    assert len(ada.rows("SELECT id FROM shaped FOR VERSION AS OF 3")) == 2
    assert len(root.rows("SELECT * FROM shaped FOR VERSION AS OF 0")) == 4
    refused(ada, "SELECT * FROM table_changes('shaped', 0)", "another definition")
    assert len(ada.rows("SELECT id FROM table_changes('shaped', 3)")) == 2
    assert len(root.rows("SELECT * FROM table_changes('shaped', 0)")) == 11
    refused(ada, "SELECT * FROM table_changes('moved', 1)", "another definition")
    refused(ada, "SELECT * FROM table_changes('moved', 0)", "another definition")
    assert len(root.rows("SELECT * FROM table_changes('moved', 1)")) == 2


@pytest.mark.parametrize("door", DOORS)
def test_errors_tell_nothing_that_is_hidden(made, door):
    ada, root = made.at("ada", door), made.at("root", door)
    with pytest.raises(Refused) as caught:
        ada.rows("SELECT id FROM table_changes('lost', 0)")
    assert "cannot be read" in str(caught.value) and "grade" not in str(caught.value) and "topsecret" not in str(caught.value)
    refused(root, "SELECT id FROM table_changes('lost', 0)", "topsecret")
    refused(ada, "SELECT id FROM table_changes('lost', 9)", "no version 9")


@pytest.mark.parametrize("door", DOORS)
def test_changes_of_a_durable_table(made, door):
    ada, carl, root = (made.at(user, door) for user in ("ada", "carl", "root"))
    everything = "SELECT id, _change_type FROM table_changes('people', 0)"
    assert len(root.rows(everything)) == 5
    assert sorted(ada.rows(everything)) == [("1", "insert"), ("2", "insert")]
    hidden = "SELECT count(*) FROM table_changes('people', 0) WHERE ssn LIKE '111%' OR salary IS NOT NULL OR region <> 'EU'"
    assert ada.rows(hidden) == [("0",)]
    refused(carl, everything, "that records changes", "not found")
    refused(carl, "SELECT * FROM table_changes('secrets', 77)", "that records changes", "not found")
    root.rows(f"CREATE TABLE renamed_{door} (id INTEGER, region VARCHAR, hidden VARCHAR)")
    root.rows(f"INSERT INTO renamed_{door} VALUES (1, 'EU', 'x')")
    root.rows(f"ALTER TABLE renamed_{door} RENAME COLUMN hidden TO shown")
    root.rows(f"GRANT SELECT (id, shown) ON renamed_{door} TO clerk")
    refused(ada, f"SELECT shown FROM table_changes('renamed_{door}', 0)", "another definition")


def test_who_follows_stops_when_rights_change(made):
    root, ada = made.at("root"), made.at("ada", "postgres")
    root.rows("CREATE TABLE watched (id INTEGER)")
    root.rows("INSERT INTO watched VALUES (1)")
    root.rows("GRANT SELECT ON watched TO clerk")
    ada.rows("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM table_changes('watched', 1, follow => true)")
    assert ada.rows("FETCH 1 FROM c") == [("1",)]
    root.rows("REVOKE SELECT ON watched FROM clerk")
    root.rows("INSERT INTO watched VALUES (2)")
    refused(ada, "FETCH 1 FROM c", "access rules have changed")


def test_every_spelling_is_the_name_that_the_table_has(tmp_path):
    """For a service that decides beside the rules, and in the audit trail."""
    for version in range(2):
        write_deltalake(tmp_path / "events", pa.table({"id": [version]}), configuration=FEED, mode="append")
    trail, service = tmp_path / "audit.jsonl", Decisions()
    arguments = [f"events={tmp_path / 'events'}"]
    with deciding(tmp_path / "world", service, {"BOWSHOT_AUDIT_FILE": str(trail)}, arguments) as made:
        made.at("root").rows("GRANT SELECT ON events TO staff")
        ada = made.at("ada")
        reads = [
            source for name in ("events", "EVENTS", "main.Events")
            for source in (f"table_changes('{quoted(name)}', 0)", f"{quoted(name)} FOR VERSION AS OF 0")
        ]
        for source in reads:
            ada.rows(f"SELECT id FROM {source}")
        told = wait_until(lambda: len(lines := of_trail(trail)) == len(reads) and lines, "it is in the trail")
        assert {name.rsplit(".")[-1].lower() for names in told for name in names} == {"events"}
        service.decide = lambda asked: deny("closed") if ("bowshot.main.events", "read") in objects(asked) else ALLOW
        for source in reads:
            refused(ada, f"SELECT id FROM {source}", "closed")
    service.close()


def quoted(name):
    return ".".join(f'"{part}"' for part in name.split("."))


def of_trail(trail):
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    return [line["tables"] + line["tables_in_part"] for line in lines if str(line["statement"]).startswith("SELECT id FROM")]
