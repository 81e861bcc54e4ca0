"""Rights that may be handed on, and what goes with them when they are taken away; things that get another owner."""

import itertools
import json

import psycopg
import pytest

import world
from world import Refused, create_users, psycopg_connect, refused

numbers = itertools.count()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handed_on")
    setup = [*create_users("ada", "bob", "carl"), "CREATE ROLE team", "CREATE ROLE others", "GRANT CREATE ON SCHEMA main TO ada"]
    with world.world(folder, setup, environment={"BOWSHOT_AUDIT_FILE": str(folder / "audit.jsonl")}) as made:
        yield made


@pytest.fixture
def table(made):
    """A table of root's that no other test has."""
    name = f"t{next(numbers)}"
    made.at("root").rows(f"CREATE TABLE {name} (id INTEGER, a INTEGER, b INTEGER)")
    made.at("root").rows(f"INSERT INTO {name} VALUES (1, 2, 3)")
    yield name
    made.at("root").rows(f"DROP TABLE IF EXISTS {name}")


def reads(made, user, table, columns="*"):
    try:
        return len(made.at(user).rows(f"SELECT {columns} FROM {table}")) == 1
    except Refused as error:
        assert any(words in str(error) for words in ("not found", "may not", "does not exist")), error
        return False


def test_who_holds_the_option_hands_on_just_that(made, table):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    refused(ada, f"GRANT SELECT ON {table} TO bob", "not found")
    root.rows(f"GRANT SELECT (id, a), INSERT ON {table} TO ada")
    refused(ada, f"GRANT SELECT (id) ON {table} TO bob", "may not change access rules")
    root.rows(f"GRANT SELECT (id, a) ON {table} TO ada WITH GRANT OPTION")
    ada.rows(f"GRANT SELECT (id) ON {table} TO bob")
    assert reads(made, "bob", table, "id") and not reads(made, "bob", table, "a")
    for sql in (
        f"GRANT SELECT ON {table} TO bob",
        f"GRANT SELECT (b) ON {table} TO bob",
        f"GRANT INSERT ON {table} TO bob",
        f"GRANT SELECT (id), INSERT ON {table} TO bob",
        f"GRANT OWN ON {table} TO bob",
        f"GRANT ALL ON {table} TO bob",
        "GRANT SELECT ON SCHEMA main TO bob",
        f"ALTER TABLE {table} OWNER TO ada",
        f"CREATE ROW POLICY p ON {table} USING (true)",
    ):
        refused(ada, sql, "may not change access rules")
    # What is handed on without the option goes no further.
    refused(bob, f"GRANT SELECT (id) ON {table} TO carl", "may not change access rules")
    ada.rows(f"GRANT SELECT (id) ON {table} TO bob WITH GRANT OPTION")
    bob.rows(f"GRANT SELECT (id) ON {table} TO carl")
    assert reads(made, "carl", table, "id")
    shown = root.rows(f"SELECT grantee, columns, is_grantable, grantor FROM system.grants WHERE table_name = '{table}' AND privilege = 'SELECT' ORDER BY 1")
    assert shown == [("ada", "a, id", "True", None), ("bob", "id", "True", "ada"), ("carl", "id", "False", "bob")]
    assert f"GRANT SELECT (id) ON TABLE bowshot.main.{table} TO bob WITH GRANT OPTION" in [line for (line,) in bob.rows("SHOW GRANTS")]
    grants = bob.rows(f"SELECT grantor, column_name, is_grantable FROM information_schema.column_privileges WHERE table_name = '{table}'")
    assert grants == [("ada", "id", "YES")]


def test_restrict_is_the_default_and_cascade_takes_all(made, table):
    root = made.at("root")
    root.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    made.at("ada").rows(f"GRANT SELECT ON {table} TO bob WITH GRANT OPTION")
    made.at("bob").rows(f"GRANT SELECT ON {table} TO carl")
    for sql in (f"REVOKE SELECT ON {table} FROM ada", f"REVOKE GRANT OPTION FOR SELECT ON {table} FROM ada RESTRICT"):
        refused(root, sql, "CASCADE")
    assert all(reads(made, user, table) for user in ("ada", "bob", "carl"))
    root.rows(f"REVOKE GRANT OPTION FOR SELECT ON {table} FROM ada CASCADE")
    assert [reads(made, user, table) for user in ("ada", "bob", "carl")] == [True, False, False]
    refused(made.at("ada"), f"GRANT SELECT ON {table} TO bob", "may not change access rules")
    # It does not come back by itself.
    root.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    assert [reads(made, user, table) for user in ("ada", "bob", "carl")] == [True, False, False]
    made.at("ada").rows(f"GRANT SELECT ON {table} TO bob")
    root.rows(f"REVOKE SELECT ON {table} FROM ada CASCADE")
    assert not any(reads(made, user, table) for user in ("ada", "bob"))


def test_who_takes_back_what(made, table):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    root.rows(f"GRANT SELECT ON {table} TO ada, bob WITH GRANT OPTION")
    ada.rows(f"GRANT SELECT ON {table} TO carl")
    bob.rows(f"GRANT SELECT ON {table} TO carl")
    # Each of them takes back what was given by them.
    ada.rows(f"REVOKE SELECT ON {table} FROM carl")
    assert reads(made, "carl", table)
    bob.rows(f"REVOKE SELECT ON {table} FROM carl")
    assert not reads(made, "carl", table)
    # Neither takes what the owner gave; the owner takes what anybody gave.
    ada.rows(f"REVOKE SELECT ON {table} FROM bob")
    assert reads(made, "bob", table)
    ada.rows(f"GRANT SELECT ON {table} TO carl")
    root.rows(f"REVOKE SELECT ON {table} FROM carl")
    assert not reads(made, "carl", table)
    # What two have given stays while one of them may give it.
    for giver in (ada, bob):
        giver.rows(f"GRANT SELECT ON {table} TO carl")
    root.rows(f"REVOKE SELECT ON {table} FROM ada CASCADE")
    assert reads(made, "carl", table)
    root.rows(f"REVOKE SELECT ON {table} FROM bob CASCADE")
    assert not reads(made, "carl", table)


def test_circles_hold_nobody_up(made, table):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    root.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    ada.rows(f"GRANT SELECT ON {table} TO bob WITH GRANT OPTION")
    bob.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    root.rows(f"REVOKE SELECT ON {table} FROM ada CASCADE")
    assert not reads(made, "ada", table) and not reads(made, "bob", table)
    refused(root, f"GRANT SELECT ON {table} TO public WITH GRANT OPTION", "everybody")


def test_roles_hold_options_and_go(made, table):
    root = made.at("root")
    root.rows("CREATE ROLE givers")
    root.rows("GRANT givers TO ada")
    root.rows(f"GRANT SELECT, UPDATE (a) ON {table} TO givers WITH GRANT OPTION")
    made.at("ada").rows(f"GRANT SELECT, UPDATE (a) ON {table} TO bob")
    made.at("bob").rows(f"UPDATE {table} SET a = 5")
    # It is the role's grant: who leaves the role leaves it behind.
    root.rows("REVOKE givers FROM ada")
    assert reads(made, "bob", table) and not reads(made, "ada", table)
    refused(made.at("ada"), f"GRANT SELECT ON {table} TO carl", "not found")
    root.rows("DROP ROLE givers")
    assert not reads(made, "bob", table)
    assert root.rows(f"SELECT count(*) FROM system.grants WHERE table_name = '{table}' AND NOT is_owner") == [("0",)]


def test_who_sees_a_part_hands_no_reading_on(made, table):
    root, ada = made.at("root"), made.at("ada")
    root.rows("CREATE ROLE masked")
    root.rows("GRANT masked TO ada")
    root.rows(f"GRANT SELECT, INSERT ON {table} TO ada WITH GRANT OPTION")
    for kind, column, using in (("MASK", "(b)", "null"), ("ROW POLICY", "", "a > 0")):
        root.rows(f"CREATE {kind} part ON {table} {column} FOR masked USING ({using})")
        for right in ("SELECT", "SELECT (b)", "INSERT, SELECT"):
            refused(ada, f"GRANT {right} ON {table} TO public", "may not grant")
        ada.rows(f"GRANT INSERT ON {table} TO carl")
        root.rows(f"DROP {kind} part ON {table}")
    assert not reads(made, "bob", table)
    ada.rows(f"GRANT SELECT ON {table} TO bob")
    assert reads(made, "bob", table)
    root.rows("DROP ROLE masked")


def test_grants_follow_a_table_and_end_with_it(made, table):
    root = made.at("root")
    root.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    made.at("ada").rows(f"GRANT SELECT ON {table} TO bob")
    root.rows(f"ALTER TABLE {table} RENAME TO {table}_new")
    assert reads(made, "bob", f"{table}_new")
    made.at("ada").rows(f"GRANT SELECT ON {table}_new TO carl")
    root.rows(f"ALTER TABLE {table}_new RENAME TO {table}")
    root.rows(f"DROP TABLE {table}")
    root.rows(f"CREATE TABLE {table} (id INTEGER)")
    assert not any(reads(made, user, table) for user in ("ada", "bob", "carl"))


def test_within_transactions(made, table):
    root = made.at("root")
    root.rows(f"GRANT SELECT ON {table} TO ada WITH GRANT OPTION")
    with psycopg_connect(made.server, "ada") as connection:
        connection.execute(f"GRANT SELECT ON {table} TO bob")
        assert not reads(made, "bob", table)
        connection.rollback()
        connection.execute(f"GRANT SELECT ON {table} TO bob")
        # What was granted with a right that goes meanwhile is granted with none.
        root.rows(f"REVOKE SELECT ON {table} FROM ada CASCADE")
        try:
            connection.commit()
        except psycopg.Error:
            connection.rollback()
    assert not reads(made, "bob", table)


def test_in_a_file_of_rules(made, table, tmp_path):
    from test_declarative import run

    made.folder, folder = tmp_path, made.folder
    try:
        text = f'[[grants]]\ntable = "{table}"\nrights = ["SELECT", "UPDATE"]\ncolumns = ["id", "a"]\ngrantable = true\nto = ["ada"]\n'
        text += f'[[grants]]\ntable = "{table}"\nrights = ["INSERT"]\ncolumns = ["b"]\nto = ["team"]\n[[grants]]\nschema = "main"\nrights = ["CREATE"]\nto = ["ada"]\n'
        more = f'[[grants]]\ntable = "{table}"\nrights = ["SELECT"]\ncolumns = ["id"]\nto = ["bob"]\n'
        found = run(made, "apply", text)
        assert found.returncode == 0 and "WITH GRANT OPTION" in found.stdout, found.stderr
        assert run(made, "apply", text).stdout == ""
        made.at("ada").rows(f"GRANT SELECT (id) ON {table} TO bob")
        # It is not in the file, so it goes; where it is, it stays whatever becomes of who gave it.
        assert f'REVOKE SELECT ON TABLE "bowshot"."main"."{table}" FROM "bob" CASCADE' in run(made, "diff", text).stdout
        assert run(made, "apply", text + more).returncode == 0 and run(made, "diff", text + more).stdout == ""
        without = text.replace("grantable = true\n", "") + more
        found = run(made, "apply", without)
        assert found.returncode == 0 and "REVOKE GRANT OPTION FOR SELECT" in found.stdout, found.stderr
        assert run(made, "diff", without).stdout == "" and reads(made, "bob", table, "id") and reads(made, "ada", table, "a")
        assert run(made, "apply", '[[grants]]\nschema = "main"\nrights = ["CREATE"]\nto = ["ada"]\n').returncode == 0
        assert not reads(made, "bob", table, "id")
    finally:
        made.folder = folder


def test_another_owner(made, table):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    root.rows("GRANT team TO ada, bob")
    mine = f"{table}_of_ada"
    ada.rows(f"CREATE TABLE {mine} AS SELECT 1 AS id")
    ada.rows(f"GRANT SELECT ON {mine} TO carl")
    refused(bob, f"ALTER TABLE {mine} OWNER TO bob", "not found")
    refused(made.at("carl"), f"ALTER TABLE {mine} OWNER TO carl", "may not change access rules")
    for other in ("bob", "others", "root"):
        refused(ada, f"ALTER TABLE {mine} OWNER TO {other}", "may not change access rules")
    refused(root, f"ALTER TABLE {mine} OWNER TO public", "everybody")
    refused(root, f"ALTER TABLE {mine} OWNER TO nobody_is_called_so", "no role and no user")
    refused(root, "ALTER TABLE nothing_here OWNER TO team", "not found")
    root.rows("ALTER TABLE IF EXISTS nothing_here OWNER TO team")
    ada.rows(f"ALTER TABLE {mine} OWNER TO team")
    assert root.rows(f"SELECT grantee FROM system.grants WHERE table_name = '{mine}' AND is_owner") == [("team",)]
    # Whoever is in the role owns it; rights stay.
    bob.rows(f"ALTER TABLE {mine} ADD COLUMN more INTEGER")
    assert reads(made, "carl", mine)
    root.rows("REVOKE team FROM ada")
    assert not reads(made, "ada", mine)
    bob.rows(f"ALTER TABLE IF EXISTS {mine} OWNER TO bob")
    root.rows("REVOKE team FROM bob")
    bob.rows(f"DROP TABLE {mine}")


@pytest.mark.parametrize(("kind", "make"), [
    ("VIEW", "CREATE VIEW {} AS SELECT id FROM {}"),
    ("MATERIALIZED VIEW", "CREATE MATERIALIZED VIEW {} AS SELECT id FROM {}"),
    ("SCHEMA", "CREATE SCHEMA {}"),
])
def test_owners_of_other_things(made, table, kind, make):
    root, carl = made.at("root"), made.at("carl")
    name = f"{table}_thing"
    root.rows(make.format(name, table))
    refused(carl, f"DROP {kind} {name}", "not")
    root.rows(f"ALTER {kind} {name} OWNER TO carl")
    carl.rows(f"DROP {kind} {name}")


def test_owners_change_with_their_transaction_and_in_the_trail(made, table):
    root = made.at("root", "postgres")
    for end, expected in (("ROLLBACK", "root"), ("COMMIT", "team")):
        root.rows("BEGIN")
        root.rows(f"ALTER TABLE {table} OWNER TO team")
        root.rows(end)
        assert root.rows(f"SELECT grantee FROM system.grants WHERE table_name = '{table}' AND is_owner") == [(expected,)]
    with pytest.raises(Refused):
        made.at("carl").rows(f"ALTER TABLE {table} OWNER TO carl")
    lines = [json.loads(line) for line in (made.folder / "audit.jsonl").read_text().splitlines()]
    told = [(line["user"], line["decision"]) for line in lines if f"ALTER TABLE {table} OWNER" in line.get("statement", "")]
    assert told == [("root", "allowed"), ("root", "allowed"), ("carl", "not_found")]


def test_without_rules_nobody_makes_any(tmp_path):
    from server import Server

    import adbc_driver_flightsql.dbapi as adbc

    with Server(data=tmp_path / "data") as server, adbc.connect(server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INTEGER)")
        with pytest.raises(adbc.Error, match="may not change access rules"):
            cursor.execute("ALTER TABLE t OWNER TO root")
        cursor.execute("ALTER TABLE IF EXISTS nothing_here OWNER TO root")
        cursor.execute("SELECT * FROM t")
        assert cursor.fetchall() == []
