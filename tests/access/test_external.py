"""External tables obey the rules: administrators name files, and rights on the table say who reads them."""

import pytest

import world
from world import DOORS, refused

# As `orders` in the file: id, region, amount, note.
SETUP = [
    *world.SETUP,
    "CREATE EXTERNAL TABLE outer_orders STORED AS PARQUET LOCATION 'orders.parquet'",
    "CREATE EXTERNAL TABLE outer_part STORED AS PARQUET LOCATION 'orders.parquet'",
    "CREATE EXTERNAL TABLE outer_closed STORED AS PARQUET LOCATION 'orders.parquet'",
    "CREATE VIEW v_outer AS SELECT id, region FROM outer_orders",
    "GRANT SELECT ON outer_orders TO clerk",
    "GRANT SELECT ON v_outer TO clerk",
    "GRANT SELECT (id, region) ON outer_part TO clerk",
    "GRANT CREATE ON SCHEMA main TO clerk",
    "CREATE ROW POLICY own_region ON outer_orders FOR clerk USING (region = user_attribute('region'))",
    "CREATE MASK note ON outer_orders (note) FOR clerk USING (null)",
]


@pytest.mark.parametrize("door", DOORS)
def test_who_reads_what(made, door):
    ada, bob, carl, root = (made.at(user, door) for user in ("ada", "bob", "carl", "root"))
    assert len(root.rows("SELECT * FROM outer_orders")) == 4
    assert ada.rows("SELECT id, amount, note FROM outer_orders ORDER BY id") == [("1", "10", None), ("3", "30", None)]
    assert bob.rows("SELECT id FROM outer_orders") == [("2",)]
    assert ada.rows("SELECT id FROM v_outer ORDER BY id") == [("1",), ("3",)]
    assert len(ada.rows("SELECT id, region FROM outer_part")) == 4
    refused(ada, "SELECT amount FROM outer_part", "amount")
    for name in ("outer_orders", "outer_closed", "v_outer"):
        refused(carl, f"SELECT * FROM {name}", "not found")
    refused(ada, "SELECT * FROM outer_closed", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_who_makes_and_drops_them(made, door):
    ada, root = made.at("ada", door), made.at("root", door)
    sql = "CREATE EXTERNAL TABLE ada_orders STORED AS PARQUET LOCATION 'orders.parquet'"
    refused(ada, sql, "only administrators may name files")
    refused(ada, sql.replace("CREATE", "CREATE OR REPLACE").replace("ada_orders", "outer_orders"), "only administrators")
    refused(ada, "SELECT * FROM 'orders.parquet'", "only administrators may name files")
    # Nothing tells whether a file is there.
    words = refused(ada, sql.replace("orders.parquet", "nothing.parquet"), "only administrators may name files")
    assert "nothing.parquet" not in words
    for change in ("DROP TABLE outer_orders", "DROP VIEW outer_orders", "ALTER TABLE outer_orders RENAME TO mine",
                   "COMMENT ON TABLE outer_orders IS 'x'"):
        refused(ada, change, "may not alter or drop")
    refused(made.at("carl", door), "DROP TABLE outer_orders", "not found", "may not")
    for change in ("INSERT INTO outer_orders SELECT * FROM outer_orders", "DELETE FROM outer_orders", "TRUNCATE TABLE outer_orders"):
        refused(root, change, "external table")
    assert len(root.rows("SELECT * FROM outer_orders")) == 4


@pytest.mark.parametrize("door", DOORS)
def test_no_place_outside_is_read(made, door):
    root = made.at("root", door)
    for place in ("/etc/passwd", "../users.toml", "orders.parquet/../../users.toml", "file:///etc/passwd", "s3://bucket/x.csv",
                  "http://127.0.0.1:1/x.csv", "/", "../", "data/", "nothing.csv"):
        refused(root, f"CREATE EXTERNAL TABLE outside STORED AS CSV LOCATION '{place}'", "no file", "location that statements may read", "names no files")
    refused(root, "SELECT * FROM outside", "not found")


@pytest.mark.parametrize("door", DOORS)
def test_where_the_files_are_its_owner_is_told(made, door):
    ada, root = made.at("ada", door), made.at("root", door)
    if door == "mysql":
        # MySQL's clients are told the columns alone, of whatever it is.
        assert "orders.parquet" not in root.rows("SHOW CREATE TABLE outer_orders")[0][1]
    else:
        assert "LOCATION 'orders.parquet'" in root.rows("SHOW CREATE TABLE outer_orders")[0][1]
        refused(ada, "SHOW CREATE TABLE outer_orders", "may not alter or drop")
    refused(made.at("carl", door), "SHOW CREATE TABLE outer_orders", "not found")
    told = ada.rows("SELECT sql FROM duckdb_tables() WHERE table_name = 'outer_orders'")
    assert "orders.parquet" not in str(told)
    refused(ada, "SELECT * FROM system.files", "not found")
    where = "SELECT storage, location FROM system.tables WHERE table_name = 'outer_orders'"
    assert root.rows(where) == [("external", "orders.parquet")]
    assert ada.rows(where) == [("external", None)]
    assert made.at("carl", door).rows(where) == []
    assert ada.rows("SELECT table_type FROM information_schema.tables WHERE table_name = 'outer_orders'") == [("BASE TABLE",)]
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'outer_part' ORDER BY ordinal_position"
    assert ada.rows(columns) == [("id",), ("region",)]


def test_rules_follow_their_table(made):
    ada, root = made.at("ada"), made.at("root")
    root.rows("CREATE EXTERNAL TABLE moving STORED AS PARQUET LOCATION 'orders.parquet'")
    root.rows("GRANT SELECT ON moving TO ada")
    root.rows("ALTER TABLE moving RENAME TO moved")
    assert len(ada.rows("SELECT * FROM moved")) == 4
    refused(ada, "SELECT * FROM moving", "not found")
    root.rows("GRANT OWN ON moved TO ada")
    assert "LOCATION 'orders.parquet'" in ada.rows("SHOW CREATE TABLE moved")[0][1]
    # Who owns it still names no files.
    refused(ada, "CREATE OR REPLACE EXTERNAL TABLE moved STORED AS PARQUET LOCATION 'orders.parquet'", "only administrators")
    ada.rows("DROP TABLE moved")
    root.rows("CREATE EXTERNAL TABLE moved STORED AS PARQUET LOCATION 'orders.parquet'")
    refused(ada, "SELECT * FROM moved", "not found")
    root.rows("DROP VIEW moved")
