"""Ways round the rules that were open once: by other letters, by time, by names that change, by others' rights."""

import contextlib

import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from server import wait_until

from world import DOORS, Refused, create_users, do, psycopg_connect, refused, world

USERS = create_users("ada", "bob", "carl")


@pytest.fixture
def made(tmp_path):
    with world(tmp_path, [*USERS, "ALTER USER ada SET region = 'EU'"]) as made:
        yield made


@contextlib.contextmanager
def transaction(made, user):
    with psycopg_connect(made.server, user) as connection, connection.cursor() as cursor:
        yield connection, lambda sql: cursor.execute(sql).fetchall() if sql.startswith("SELECT") else cursor.execute(sql)


@pytest.mark.parametrize("door", DOORS)
def test_other_letters(made, door):
    do(
        made.at("root"),
        "GRANT SELECT ON SCHEMA main TO carl",
        "CREATE ROW POLICY pp ON \"ORDERS\" FOR carl USING (region = 'EU')",
        "CREATE MASK mm ON orders (note) FOR carl USING (redact)",
    )
    rows = made.at("carl", door).rows('SELECT region, note FROM "ORDERS"')
    assert set(rows) == {("EU", "[redacted]")}, rows
    if door == "http":
        assert "US" not in made.at("carl", door).ask("GET", "/v1/tables/ORDERS/rows")


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("how", ["DROP TABLE pay", "ALTER TABLE pay RENAME TO pay_full", "CREATE OR REPLACE TABLE pay AS SELECT 0 AS id, 'none' AS region"])
def test_tables_that_are_no_more(made, how, level):
    do(
        made.at("root"),
        "CREATE TABLE pay AS SELECT * FROM (VALUES (1, 'EU'), (2, 'US')) AS v(id, region)",
        "GRANT SELECT ON SCHEMA main TO carl",
        "CREATE ROW POLICY pp ON pay FOR carl USING (region = 'EU')",
    )
    with transaction(made, "carl") as (_, ask):
        ask(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert ask("SELECT id FROM pay") == [(1,)]
        do(made.at("root"), how)
        if how.startswith("CREATE") and level == "READ COMMITTED":
            # The new table, whose rows are hidden as everybody else would find them.
            assert ask("SELECT id FROM pay") == [tuple(map(int, row)) for row in made.at("carl").rows("SELECT id FROM pay")]
            return
        with pytest.raises(psycopg.Error, match="not found|may not|does not exist"):
            ask("SELECT id FROM pay")


def test_own_tables_of_a_transaction_are_there(made):
    do(made.at("root"), "CREATE SCHEMA ws", "GRANT CREATE ON SCHEMA ws TO ada")
    with transaction(made, "ada") as (connection, ask):
        ask("CREATE TABLE ws.mine AS SELECT 7 AS seven")
        do(made.at("root"), "CREATE TABLE other (a INTEGER)")
        assert ask("SELECT seven FROM ws.mine") == [(7,)]
        connection.commit()
    assert made.at("ada").rows("SELECT seven FROM ws.mine") == [("7",)]


def test_refreshed_with_the_rights_of_its_owner(made):
    root, ada = made.at("root"), made.at("ada")
    do(
        root,
        "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU'), (2, 'US')) AS v(id, region)",
        "CREATE SCHEMA ws",
        "GRANT CREATE ON SCHEMA ws TO ada",
        "GRANT SELECT ON people TO ada",
        "CREATE ROW POLICY pp ON people FOR ada USING (region = user_attribute('region'))",
    )
    do(ada, "CREATE MATERIALIZED VIEW ws.mv AS SELECT * FROM main.people")
    refused(root, "REFRESH MATERIALIZED VIEW ws.mv", "only its owner `ada`")
    do(ada, "REFRESH MATERIALIZED VIEW ws.mv")
    assert ada.rows("SELECT id FROM ws.mv") == [("1",)]


@pytest.mark.parametrize("door", ["flight", "http"])
def test_another_user_of_the_same_name(made, door):
    root = made.at("root")
    do(root, "CREATE TABLE secrets AS SELECT 'topsecret' AS text", "GRANT SELECT ON secrets TO carl")
    carl = made.at("carl", door)
    assert carl.rows("SELECT text FROM secrets") == [("topsecret",)]
    do(root, "DROP USER carl", "CREATE USER carl PASSWORD 'new'", "GRANT SELECT ON secrets TO carl")
    refused(carl, "SELECT text FROM secrets", "wrong", "expired", "session", "nauthenticated")


def test_another_password(made):
    root, bob = made.at("root"), made.at("bob", "http")
    assert bob.rows("SELECT 1 AS a") == [("1",)]
    do(root, "ALTER USER bob PASSWORD 'new'")
    refused(bob, "SELECT 1 AS a", "wrong")


def test_rights_that_went_before_the_commit(made):
    root = made.at("root")
    do(root, "ALTER USER bob ADMIN", "CREATE TABLE secrets AS SELECT 1 AS a", "CREATE TABLE k (a INTEGER)", "GRANT INSERT, SELECT ON k TO ada")
    with transaction(made, "bob") as (connection, ask):
        ask("GRANT ALL ON CATALOG bowshot TO bob")
        do(root, "ALTER USER bob NOADMIN")
        with pytest.raises(psycopg.Error, match="access rules have changed"):
            connection.commit()
    refused(made.at("bob"), "SELECT * FROM secrets", "not found")
    with transaction(made, "ada") as (connection, ask):
        ask("INSERT INTO k VALUES (1)")
        do(root, "REVOKE INSERT ON k FROM ada")
        with pytest.raises(psycopg.Error, match="access rules have changed"):
            connection.commit()
    assert root.rows("SELECT count(*) AS n FROM k") == [("0",)]


def test_locks_of_who_may_not_change_rows(made):
    """Others would wait for somebody who only reads."""
    root = made.at("root")
    do(root, "CREATE TABLE pay (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO pay VALUES (1, 0)", "GRANT SELECT ON pay TO carl")
    for locking in ("FOR UPDATE", "FOR KEY SHARE", "FOR UPDATE SKIP LOCKED"):
        for rows in ("id = 1", "id IN (1, 2)"):
            refused(made.at("carl", "postgres"), f"SELECT n FROM pay WHERE {rows} {locking}", "may not update rows")
    do(root, "GRANT UPDATE (n) ON pay TO carl")
    assert made.at("carl", "postgres").rows("SELECT n FROM pay WHERE id = 1 FOR UPDATE") == [("0",)]


def test_hidden_rows_are_not_waited_for(made):
    do(
        made.at("root"),
        "CREATE TABLE pay (id INTEGER PRIMARY KEY, region VARCHAR)",
        "INSERT INTO pay VALUES (1, 'EU'), (2, 'US')",
        "GRANT SELECT, UPDATE ON pay TO carl",
        "CREATE ROW POLICY pp ON pay FOR carl USING (region = 'EU')",
    )
    with transaction(made, "root") as (_, ask):
        ask("UPDATE pay SET region = 'UK' WHERE id = 2")
        carl = made.at("carl", "postgres")
        for id in (2, 3):
            assert carl.rows(f"SELECT region FROM pay WHERE id = {id} FOR UPDATE NOWAIT") == []
            assert carl.rows(f"UPDATE pay SET region = 'EU' WHERE id = {id}") == []
    # Rows behind a policy are watched, since they are not locked.
    with transaction(made, "carl") as (connection, ask):
        assert ask("SELECT region FROM pay WHERE id = 1 FOR UPDATE") == [("EU",)]
        do(made.at("root"), "UPDATE pay SET region = 'EU' WHERE id = 1")
        ask("UPDATE pay SET region = 'EU' WHERE id = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            connection.commit()


def test_columns_that_change_their_names(made):
    root = made.at("root")
    do(
        root,
        "CREATE TABLE people (id INTEGER, ssn VARCHAR)",
        "GRANT SELECT ON people TO ada",
        "CREATE MASK ssn ON people (ssn) FOR ada USING (redact)",
        "CREATE TABLE parts (id INTEGER, text VARCHAR)",
        "GRANT SELECT (id) ON parts TO ada",
        "CREATE TABLE free (id INTEGER)",
    )
    for sql in ("ALTER TABLE people RENAME COLUMN ssn TO ssn2", "ALTER TABLE people RENAME COLUMN id TO number", "ALTER TABLE parts RENAME COLUMN id TO number"):
        refused(root, sql, "cannot rename")
    do(root, "DROP MASK ssn ON people", "ALTER TABLE people RENAME COLUMN ssn TO ssn2", "ALTER TABLE free RENAME COLUMN id TO number")


def test_rows_of_who_may_only_write(made):
    do(
        made.at("root"),
        "CREATE TABLE desk (id INTEGER, region VARCHAR)",
        "GRANT INSERT ON desk TO carl, ada",
        "CREATE ROW POLICY own ON desk USING (region = user_attribute('region'))",
    )
    refused(made.at("carl"), "INSERT INTO desk VALUES (50, 'US')", "may not see")
    refused(made.at("ada"), "INSERT INTO desk VALUES (50, 'US')", "may not see")
    do(made.at("ada"), "INSERT INTO desk VALUES (51, 'EU')")


def test_a_policy_compares_uuids_as_values_for_rows_that_are_written(made):
    hidden = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    do(
        made.at("root"),
        "CREATE TABLE tenants (id INTEGER, tenant UUID)",
        f"INSERT INTO tenants VALUES (1, '{hidden}')",
        "GRANT SELECT, INSERT ON tenants TO ada",
        f"CREATE ROW POLICY others ON tenants USING (tenant <> '{hidden.upper()}')",
    )
    ada = made.at("ada")
    assert ada.rows("SELECT id FROM tenants") == []
    for written in (hidden, hidden.upper(), f"{{{hidden}}}"):
        refused(ada, f"INSERT INTO tenants VALUES (2, '{written}')", "may not see")
    do(ada, f"INSERT INTO tenants VALUES (3, '{hidden.replace('a0', 'b0')}')")
    assert ada.rows("SELECT id FROM tenants") == [("3",)]


def test_a_policy_that_fails_tells_nothing_of_hidden_rows(made):
    do(
        made.at("root"),
        "CREATE TABLE pol AS SELECT * FROM (VALUES (1, 1), (2, 0)) AS v(id, n)",
        "GRANT SELECT ON pol TO ada",
        "CREATE ROW POLICY d ON pol USING (10 / n = 10)",
    )
    told = set()
    for id in (1, 2, 3):
        with pytest.raises(Refused) as raised:
            made.at("ada").rows(f"SELECT id FROM pol WHERE id = {id}")
        told.add(str(raised.value).split(" (")[0])
    assert len(told) == 1, told


def test_hidden_tables_of_a_search_path(made):
    do(
        made.at("root"),
        "CREATE SCHEMA path_a",
        "CREATE SCHEMA path_b",
        "CREATE SCHEMA path_c",
        "CREATE TABLE path_a.twice AS SELECT 'hidden' AS x",
        "CREATE TABLE path_b.twice AS SELECT 'open' AS x",
        "CREATE TABLE path_a.once AS SELECT 'hidden' AS x",
        "CREATE TABLE path_b.seen AS SELECT 'seen' AS x",
        "CREATE TABLE path_a.near AS SELECT 'near' AS x",
        "GRANT SELECT ON path_b.twice TO carl",
        "GRANT SELECT ON path_a.near TO carl",
        "SET search_path = path_c, path_a, path_b",
    )
    carl = made.at("carl")
    do(carl, "SET search_path = path_c, path_a, path_b")
    # What is hidden is not there, so that looking goes on and nothing is learnt of it.
    assert carl.rows("SELECT x FROM twice") == [("open",)]
    assert carl.rows("SELECT x FROM near") == [("near",)]
    assert made.at("root").rows("SELECT x FROM twice") == [("hidden",)]
    for table in ("once", "seen", "path_a.twice"):
        refused(carl, f"SELECT x FROM {table}", "not found")
    refused(carl, "INSERT INTO twice VALUES ('x')", "may not")
    refused(carl, "DROP TABLE once", "not found")
    assert "path_c" not in carl.rows("SELECT array_to_string(current_schemas(false), ',')")[0][0]


def test_functions_in_a_transaction_tell_of_what_is_seen(made):
    do(made.at("root"), "CREATE TABLE kept_back (x INT PRIMARY KEY)")
    carl = made.at("carl", "postgres")
    carl.rows("BEGIN")
    carl.rows("CREATE TEMPORARY TABLE carls (y INT)")
    told = "SELECT CASE WHEN to_regclass('{}') IS NULL THEN 'hidden' ELSE 'seen' END"
    assert carl.rows(told.format("kept_back")) == [("hidden",)]
    assert carl.rows(told.format("kept_back_pkey")) == [("hidden",)]
    assert carl.rows(told.format("carls")) == [("seen",)]
    refused(carl, "SELECT has_table_privilege('kept_back', 'SELECT')", "not found")
    carl.rows("ROLLBACK")


@pytest.mark.parametrize("door", DOORS)
def test_rows_by_keys_after_changes_of_rights(made, door):
    """The plan of an earlier text with another key gives no rights but those of now."""
    root, carl = made.at("root"), made.at("carl", door)
    if door == "postgres":
        # A mask changes the type of its column, and a prepared statement has to be prepared again then.
        carl.connection.prepare_threshold = 1_000
    do(
        root,
        "CREATE TABLE pay (id INTEGER PRIMARY KEY, region VARCHAR, amount INTEGER)",
        "INSERT INTO pay VALUES (1, 'EU', 10), (2, 'US', 20), (3, 'EU', 30)",
    )

    def look(connection):
        return [connection.rows(f"SELECT id, region FROM pay WHERE id = {key}") for key in (1, 2, 3, 1, 2, 3)][3:]

    def prepared(key):
        return carl.connection.execute("SELECT id FROM pay WHERE id = %s", (key,), prepare=True).fetchall()

    one, two, three = [("1", "EU")], [("2", "US")], [("3", "EU")]
    for change, expected in [
        ("GRANT SELECT ON pay TO carl", [one, two, three]),
        ("CREATE ROW POLICY pp ON pay FOR carl USING (region = 'EU')", [one, [], three]),
        ("CREATE MASK mm ON pay (region) FOR carl USING (redact)", [[("1", "[redacted]")], [], [("3", "[redacted]")]]),
        ("DROP ROW POLICY pp ON pay", [[(key, "[redacted]")] for key in "123"]),
        ("DROP MASK mm ON pay", [one, two, three]),
        ("REVOKE SELECT ON pay FROM carl", None),
        ("GRANT SELECT (id, region) ON pay TO carl", [one, two, three]),
        ("REVOKE SELECT (region) ON pay FROM carl", None),
        ("GRANT SELECT ON pay TO carl", [one, two, three]),
    ]:
        do(root, change)
        if expected is None:
            for key in (1, 2, 4):
                refused(carl, f"SELECT id, region FROM pay WHERE id = {key}", "not found", "may not", "region")
                if door == "postgres" and change == "REVOKE SELECT ON pay FROM carl":
                    with pytest.raises(psycopg.Error, match="not found|may not"):
                        prepared(key)
        else:
            assert look(carl) == expected, change
            if door == "postgres":
                assert [prepared(key) for key in (1, 2, 3)] == [[(int(key),) for key, _ in rows] for rows in expected], change
        assert look(made.at("root", door)) == [one, two, three], change


@pytest.mark.parametrize("dialect", ["ansi", "postgres", "mysql"])
def test_the_dialect_of_the_reader_changes_no_policy(made, dialect):
    # In MySQL log() is the natural logarithm.
    do(
        made.at("root"),
        "CREATE TABLE sizes AS SELECT * FROM (VALUES (1, 1000.0), (2, 10.0)) AS v(id, size)",
        "GRANT SELECT, INSERT ON sizes TO ada",
        "CREATE ROW POLICY large ON sizes FOR ada USING (log(size) >= 2)",
    )
    ada = made.at("ada")
    do(ada, f"SET dialect = '{dialect}'")
    assert ada.rows("SELECT id FROM sizes") == [("1",)]
    refused(ada, "INSERT INTO sizes VALUES (3, 10.0)", "may not see")
    do(ada, "INSERT INTO sizes VALUES (4, 100.0)")


def test_new_files_that_spell_a_column_otherwise(tmp_path):
    """The first file says how a column is spelled, and one that has both spellings makes two columns of it."""
    (tmp_path / "cards").mkdir()

    def write(name, **row):
        parquet.write_table(pa.table({column: [value] for column, value in row.items()}), tmp_path / name)
        (tmp_path / name).rename(tmp_path / "cards" / name)

    write("b.parquet", id=1, region="EU", ssn="one")
    write("c.parquet", id=2, region="EU", SSN="two")
    rules = [
        "GRANT SELECT ON cards TO ada, carl",
        "GRANT SELECT (ssn) ON cards TO bob",
        "CREATE MASK ssn ON cards (ssn) FOR ada USING (redact)",
        "CREATE ROW POLICY everybody ON cards FOR ada, bob USING (id > 0)",
        "CREATE ROW POLICY other ON cards FOR carl USING (coalesce(region, '') <> 'US')",
    ]
    with world(tmp_path, [*USERS, *rules], arguments=[f"cards={tmp_path / 'cards'}"]) as made:
        root, ada, bob, carl = (made.at(user) for user in ("root", "ada", "bob", "carl"))
        assert ada.rows("SELECT ssn FROM cards") == [("[redacted]",)] * 2
        write("a.parquet", id=3, region="EU", SSN="three")
        wait_until(lambda: root.rows("SELECT count(*) FROM cards") == [("3",)], "the file is seen")
        assert ada.rows('SELECT "SSN" FROM cards') == [("[redacted]",)] * 3
        assert sorted(bob.rows("SELECT * FROM cards")) == [("one",), ("three",), ("two",)]
        write("d.parquet", id=4, region="EU", REGION="US", ssn="four", SSN="five")
        wait_until(lambda: root.rows("SELECT count(*) FROM cards") == [("4",)], "the file is seen")
        for reader in (ada, bob, carl):
            refused(reader, "SELECT * FROM cards", "in case alone")
        do(root, "DROP MASK ssn ON cards", "GRANT SELECT ON cards TO bob")
        for reader in (ada, bob):
            assert sorted(reader.rows("SELECT id FROM cards")) == [("1",), ("2",), ("3",), ("4",)]
