"""What sessions are told of rights, while others change them: lists of tables, `has_table_privilege` and its like, GRANT on columns."""

import itertools
import signal

import pytest

from server import wait_until
from world import DOORS, PASSWORDS, create_users, hash_password, refused, users_file, world

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "CREATE TABLE other (id INTEGER)",
    "CREATE VIEW v AS SELECT id FROM t",
    *create_users("ada", "bob"),
    "CREATE ROLE reader",
    "GRANT SELECT ON t TO reader",
]

numbers = itertools.count()
LISTS = ("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'", "SELECT relname FROM pg_catalog.pg_class")


def listed(connection):
    return [{name for (name,) in connection.rows(sql)} >= {"t"} for sql in LISTS]


@pytest.mark.parametrize("door", DOORS)
def test_an_open_session_lists_what_its_roles_give_now(made, door):
    root, ada = made.at("root"), made.at("ada", door)
    for _ in range(3):
        assert listed(ada) == [False, False]
        root.rows("GRANT reader TO ada")
        assert listed(ada) == [True, True]
        root.rows("REVOKE reader FROM ada")
    assert listed(ada) == [False, False]


def test_roles_of_the_file_of_users_count_in_open_sessions(tmp_path):
    ada_hash = hash_password(PASSWORDS["ada"])

    def users(roles):
        return f'[[users]]\nname = "ada"\npassword_hash = "{ada_hash}"\nroles = [{roles}]\n'

    setup = ["CREATE TABLE t (id INTEGER)", "CREATE ROLE reader", "GRANT SELECT ON t TO reader"]
    with world(tmp_path, setup, more=users("")) as made:
        ada = made.at("ada")
        for roles, seen in (('"reader"', True), ("", False), ('"reader"', True)):
            users_file(tmp_path, users(roles))
            made.server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: listed(ada) == [seen, seen], f"{roles}: {listed(ada)}")


def asked(connection, *arguments, function="has_table_privilege"):
    texts = ", ".join(f"'{argument}'" for argument in arguments)
    return connection.rows(f"SELECT {function}({texts})")[0][0] in ("True", "true", "t", "1")


def test_privileges_are_those_of_the_rights(made):
    root, bob = made.at("root"), made.at("bob")
    role = f"p{next(numbers)}"
    for sql in (f"CREATE ROLE {role}", f"GRANT {role} TO bob", f"GRANT SELECT (id), INSERT ON t TO {role}", f"GRANT USAGE ON SCHEMA main TO {role}"):
        root.rows(sql)
    assert asked(root, "t", "select") and asked(root, "bob", "t", "insert") and not asked(root, "bob", "t", "delete")
    assert not asked(bob, "t", "select"), "only a column of it"
    assert asked(bob, "t", "delete, insert") and not asked(bob, "t", "update") and not asked(bob, "t", "insert with grant option")
    column = {"function": "has_column_privilege"}
    assert asked(bob, "t", "id", "select", **column) and not asked(bob, "t", "region", "select", **column)
    assert asked(bob, "t", "select", function="has_any_column_privilege")
    assert not asked(bob, "t", "update", function="has_any_column_privilege")
    assert asked(bob, "main", "usage", function="has_schema_privilege")
    assert not asked(bob, "main", "create", function="has_schema_privilege")
    assert asked(bob, role, "member", function="pg_has_role") and not asked(bob, "reader", "member", function="pg_has_role")
    assert asked(bob, "information_schema.tables", "select") and not asked(bob, "information_schema.tables", "insert")
    refused(bob, "SELECT has_table_privilege('other', 'select')", "not found")
    refused(bob, "SELECT has_table_privilege('ada', 't', 'select')", "may not ask for the rights of others")
    root.rows(f"GRANT SELECT, UPDATE ON t TO {role} WITH GRANT OPTION")
    assert asked(bob, "t", "select") and asked(bob, "t", "update with grant option")
    root.rows(f"REVOKE SELECT, UPDATE, INSERT ON t FROM {role}")
    refused(bob, "SELECT has_table_privilege('t', 'select')", "not found")
    root.rows(f"DROP ROLE {role}")


@pytest.mark.parametrize("door", DOORS)
def test_rights_are_given_on_columns_that_are_there(made, door):
    root = made.at("root", door)
    for table in ("t", "v"):
        for what in ("SELECT (nothing)", "SELECT (id, nothing)", "INSERT (id), UPDATE (nothing)"):
            refused(root, f"GRANT {what} ON {table} TO reader", "column `nothing` of")
    root.rows("GRANT SELECT (id) ON t TO reader")


def test_mysqls_tables_of_users_tell_everybody_what_concerns_them(made):
    root, ada, bob = (made.at(user, "mysql") for user in ("root", "ada", "bob"))
    root.rows("GRANT SELECT ON t TO ada")
    for connection in (root, ada, bob):
        connection.rows("SET dialect = 'mysql'")
    try:
        users = "SELECT user, select_priv, authentication_string FROM mysql.user WHERE is_role = 'N' ORDER BY user"
        assert {row[0] for row in root.rows(users)} >= {"root", "ada", "bob"}
        assert {row[2] for row in root.rows(users)} == {""}
        assert ada.rows(users) == [("ada", "N", "")]
        rights = "SELECT user, db, table_name, table_priv FROM mysql.tables_priv WHERE user IN ('ada', 'bob')"
        assert root.rows(rights) == ada.rows(rights) == [("ada", "main", "t", "Select")]
        assert bob.rows(rights) == []
        assert ada.rows("SELECT * FROM mysql.db") == ada.rows("SELECT * FROM mysql.columns_priv") == []
    finally:
        for connection in (root, ada, bob):
            connection.rows("SET dialect = 'ansi'")
        root.rows("REVOKE SELECT ON t FROM ada")


def test_types_are_known_to_who_may_use_their_schema(made):
    root, ada = made.at("root"), made.at("ada")
    for sql in ("CREATE SCHEMA kinds", "CREATE TYPE kinds.mood AS ENUM ('sad', 'happy')", "CREATE TABLE kinds.m (m kinds.mood)"):
        root.rows(sql)
    known = "SELECT count(*) FROM pg_catalog.pg_type WHERE typname = 'mood'"
    assert ada.rows(known) == [("0",)]
    refused(ada, "SELECT 'sad'::kinds.mood", "mood")
    for sql in ("DROP TYPE kinds.mood", "ALTER TYPE kinds.mood ADD VALUE 'x'"):
        refused(ada, sql, "does not exist")
    refused(ada, "CREATE TYPE kinds.other AS ENUM ('a')", "may not create anything")
    root.rows("GRANT SELECT ON SCHEMA kinds TO ada")
    assert ada.rows(known) == [("1",)]
    assert ada.rows("SELECT CASE WHEN 'sad'::kinds.mood < 'happy' THEN 'less' END") == [("less",)]
    refused(ada, "ALTER TYPE kinds.mood ADD VALUE 'x'", "may not change type")
    root.rows("DROP SCHEMA kinds CASCADE")
    assert root.rows(known) == [("0",)]
