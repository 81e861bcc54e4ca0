"""Rules as they are made, changed, taken away and kept: roles, rights, owners, users, transactions, restarts."""

import contextlib
import hashlib
import itertools
import sqlite3

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pytest

from server import Server
from world import PASSWORDS, Flight, Postgres, Refused, create_users, psycopg_connect, refused, users_file, wait_for_end

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    *create_users("ada", "bob", "carl"),
    "ALTER USER ada SET region = 'EU'",
]

numbers = itertools.count()


@pytest.fixture
def role(made):
    """A role of Ada's that no other test has."""
    name = f"r{next(numbers)}"
    root = made.at("root")
    root.rows(f"CREATE ROLE {name}")
    root.rows(f"GRANT {name} TO ada")
    yield name
    root.rows(f"DROP ROLE {name}")


def test_rights_come_and_go_at_once(made, role):
    root, ada = made.at("root"), made.at("ada")
    refused(ada, "SELECT * FROM t", "not found")
    for place in ("t", "TABLE bowshot.main.t", "SCHEMA main", "CATALOG bowshot", "ALL TABLES IN SCHEMA main"):
        root.rows(f"GRANT SELECT ON {place} TO {role}")
        assert len(ada.rows("SELECT * FROM t")) == 2, place
        root.rows(f"REVOKE SELECT ON {place} FROM {role}")
        refused(ada, "SELECT * FROM t", "not found")


def test_roles_of_roles(made, role):
    root, ada = made.at("root"), made.at("ada")
    for inner in ("inner_one", "inner_two"):
        root.rows(f"CREATE ROLE {inner}")
    root.rows(f"GRANT inner_one TO {role}")
    root.rows("GRANT inner_two TO inner_one")
    root.rows("GRANT SELECT ON t TO inner_two")
    assert len(ada.rows("SELECT * FROM t")) == 2
    refused(root, f"GRANT {role} TO inner_two", "cannot be granted")
    refused(root, "GRANT inner_one TO inner_one", "cannot be granted")
    root.rows("REVOKE inner_two FROM inner_one")
    refused(ada, "SELECT * FROM t", "not found")
    for inner in ("inner_one", "inner_two"):
        root.rows(f"DROP ROLE {inner}")


def test_rights_of_dropped_roles_are_gone(made):
    root, ada = made.at("root"), made.at("ada")
    for _ in range(2):
        root.rows("CREATE ROLE again")
        refused(ada, "SELECT * FROM t", "not found")
        root.rows("GRANT again TO ada")
        refused(ada, "SELECT * FROM t", "not found")
        root.rows("GRANT SELECT ON t TO again")
        assert len(ada.rows("SELECT * FROM t")) == 2
        root.rows("DROP ROLE again")
        refused(ada, "SELECT * FROM t", "not found")


def test_columns(made, role):
    root, ada = made.at("root"), made.at("ada")
    root.rows(f"GRANT SELECT (id) ON t TO {role}")
    assert sorted(ada.rows("SELECT * FROM t")) == [("1",), ("2",)]
    refused(ada, "SELECT region FROM t", "does not exist")
    root.rows(f"GRANT SELECT (region) ON t TO {role}")
    assert len(ada.rows("SELECT region, id FROM t")) == 2
    root.rows(f"REVOKE SELECT (id) ON t FROM {role}")
    assert sorted(ada.rows("SELECT * FROM t")) == [("EU",), ("US",)]
    root.rows(f"REVOKE SELECT ON t FROM {role}")
    refused(ada, "SELECT * FROM t", "not found")


def test_everybody_has_what_public_has(made):
    root = made.at("root")
    root.rows("GRANT SELECT ON t TO public")
    assert len(made.at("carl").rows("SELECT * FROM t")) == 2
    root.rows("REVOKE ALL ON t FROM public")
    refused(made.at("carl"), "SELECT * FROM t", "not found")


def test_who_makes_a_table_owns_it(made, role):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    root.rows(f"GRANT CREATE ON SCHEMA main TO {role}")
    ada.rows("CREATE TABLE ada_own AS SELECT 1 AS id, 'x' AS text")
    assert ada.rows("SELECT * FROM ada_own") == [("1", "x")]
    refused(bob, "SELECT * FROM ada_own", "not found")
    ada.rows("GRANT SELECT ON ada_own TO bob")
    ada.rows("CREATE MASK m ON ada_own (text) FOR bob USING (hash)")
    ada.rows("CREATE ROW POLICY p ON ada_own USING (id = 1)")
    ((number, masked),) = bob.rows("SELECT * FROM ada_own")
    assert number == "1" and len(masked) == 64
    assert ada.rows("SELECT text FROM ada_own") == [("x",)], "policies are for others"
    refused(bob, "GRANT SELECT ON ada_own TO carl", "may not")
    refused(bob, "DROP TABLE ada_own", "may not")
    ada.rows("ALTER TABLE ada_own RENAME TO ada_renamed")
    assert bob.rows("SELECT * FROM ada_renamed") == [(number, masked)], "rules go along with a new name"
    assert [row[0] for row in ada.rows("SELECT policy_name FROM system.policies ORDER BY 1")] == ["m", "p"]
    ada.rows("DROP TABLE ada_renamed")
    root.rows("CREATE TABLE ada_renamed (id INTEGER)")
    for user in (ada, bob):
        refused(user, "SELECT * FROM ada_renamed", "not found")
    assert root.rows("SELECT count(*) FROM system.grants WHERE table_name = 'ada_renamed' AND NOT is_owner") == [("0",)]
    root.rows("DROP TABLE ada_renamed")
    # A right to make things is none to see others.
    refused(ada, "SELECT * FROM t", "not found")
    refused(ada, "CREATE TABLE t (id INTEGER)", "already exists")
    refused(ada, "CREATE OR REPLACE TABLE t (id INTEGER)", "name is taken")


def test_policies_of_several_roles_add_up(made, role):
    root, ada = made.at("root"), made.at("ada")
    root.rows(f"GRANT SELECT ON t TO {role}")
    root.rows("CREATE ROLE nobody")
    root.rows("CREATE ROW POLICY p0 ON t FOR nobody USING (TRUE)")
    assert ada.rows("SELECT * FROM t") == [], "a table with policies, none of them hers"
    root.rows(f"CREATE ROW POLICY p1 ON t FOR {role} USING (region = user_attribute('region'))")
    assert ada.rows("SELECT id FROM t") == [("1",)]
    root.rows(f"CREATE ROW POLICY p2 ON t FOR {role} USING (id = 2 AND current_user() = 'ada')")
    assert len(ada.rows("SELECT id FROM t")) == 2
    root.rows(f"CREATE MASK m1 ON t (region) FOR {role} USING (redact)")
    assert {row[0] for row in ada.rows("SELECT region FROM t")} == {"[redacted]"}
    root.rows(f"CREATE MASK m2 ON t (region) FOR {role} USING (region)")
    assert {row[0] for row in ada.rows("SELECT region FROM t")} == {None}, "nobody knows which of two masks hides more"
    refused(root, f"DROP ROLE {role}", "named by a policy")
    for sql in ("DROP ROW POLICY p0 ON t", "DROP ROW POLICY p1 ON t", "DROP ROW POLICY p2 ON t", "DROP MASK m1 ON t", "DROP MASK m2 ON t", "DROP ROLE nobody"):
        root.rows(sql)


@pytest.mark.parametrize(("using", "words"), [
    ("nowhere = 1", "does not exist"),
    ("id", "boolean condition"),
    ("id IN (SELECT 1)", "one row"),
    ("random() > 0.5", "one row"),
    ("count(*) > 1", "one row"),
    ("id = $1", "one row"),
    ("id = (SELECT max(id) FROM t)", "not found"),
])
def test_policies_that_are_none(made, using, words):
    refused(made.at("root"), f"CREATE ROW POLICY bad ON t USING ({using})", words)


def test_a_policy_that_does_not_fit_any_more_shows_nothing(made, role):
    root, ada = made.at("root"), made.at("ada")
    root.rows("CREATE TABLE fits (id INTEGER, secret VARCHAR, other VARCHAR)")
    root.rows("INSERT INTO fits VALUES (1, 'hidden', 'hidden too')")
    root.rows(f"GRANT SELECT ON fits TO {role}")
    root.rows(f"CREATE MASK m ON fits (secret) FOR {role} USING (redact)")
    assert ada.rows("SELECT * FROM fits") == [("1", "[redacted]", "hidden too")]
    root.rows("ALTER TABLE fits DROP COLUMN secret")
    refused(ada, "SELECT * FROM fits", "cannot be read")
    refused(ada, "SELECT * FROM fits VERSION AS OF 1", "")
    root.rows("DROP MASK m ON fits")
    root.rows(f"CREATE ROW POLICY p ON fits FOR {role} USING (CAST(other AS INTEGER) > 0)")
    assert "hidden" not in refused(ada, "SELECT * FROM fits", "policy")
    root.rows("DROP TABLE fits")


def test_rights_in_transactions(made, role):
    root, ada = made.at("root"), made.at("ada")
    root.rows(f"GRANT SELECT ON t TO {role}")
    with psycopg_connect(made.server, "ada") as open_one:
        assert len(open_one.execute("SELECT * FROM t").fetchall()) == 2
        root.rows(f"REVOKE SELECT ON t FROM {role}")
        with pytest.raises(psycopg.Error, match="not found"):
            open_one.execute("SELECT * FROM t")
        open_one.rollback()
    with psycopg_connect(made.server, "root") as open_one:
        open_one.execute("CREATE TABLE later (id INTEGER)")
        open_one.execute(f"GRANT SELECT ON later TO {role}")
        refused(ada, "SELECT * FROM later", "not found")
        open_one.rollback()
        refused(ada, "SELECT * FROM later", "not found")
        open_one.execute("CREATE TABLE later (id INTEGER)")
        open_one.execute(f"GRANT SELECT ON later TO {role}")
        open_one.commit()
        assert ada.rows("SELECT * FROM later") == []
    root.rows("DROP TABLE later")


def test_prepared_statements_lose_their_rights(made, role):
    root = made.at("root")
    root.rows(f"GRANT SELECT ON t TO {role}")
    with Postgres(made.server, "ada") as ada:
        ask = lambda: ada.connection.execute("SELECT id FROM t WHERE id > %s ORDER BY id", [0], prepare=True).fetchall()  # noqa: E731
        assert ask() == [(1,), (2,)]
        root.rows(f"CREATE ROW POLICY p ON t FOR {role} USING (id = 2)")
        assert ask() == [(2,)]
        root.rows("DROP ROW POLICY p ON t")
        root.rows(f"REVOKE SELECT ON t FROM {role}")
        with pytest.raises(psycopg.Error, match="not found"):
            ask()


def test_users_come_and_go(made):
    root = made.at("root")
    root.rows("CREATE USER dora PASSWORD 'first'")
    root.rows("GRANT SELECT ON t TO dora")
    PASSWORDS["dora"] = "first"
    dora = Flight(made.server, "dora")
    assert len(dora.rows("SELECT * FROM t")) == 2
    # What comes behind it, on the same connection, still shows the first one.
    with contextlib.suppress(Refused):
        dora.rows("ALTER USER dora PASSWORD 'second'")
    with contextlib.suppress(Refused):
        dora.close()
    with pytest.raises((Refused, adbc.Error)):
        Flight(made.server, "dora").rows("SELECT 1")
    PASSWORDS["dora"] = "second"
    with Postgres(made.server, "dora") as dora:
        assert len(dora.rows("SELECT * FROM t")) == 2
        root.rows("DROP USER dora")
        with pytest.raises(Refused):
            dora.rows("SELECT * FROM t")
        wait_for_end(dora)
    with pytest.raises(psycopg.Error):
        Postgres(made.server, "dora")
    refused(root, "CREATE USER root PASSWORD 'x'", "already")
    refused(root, "ALTER USER root PASSWORD 'x'", "configuration")
    # Who has no password comes in by other ways alone.
    root.rows("CREATE USER eve")
    for PASSWORDS["eve"] in ("", "x"):
        with pytest.raises(psycopg.Error):
            Postgres(made.server, "eve")
    root.rows("DROP USER eve")


def test_passwords_are_nowhere(made, tmp_path):
    root = made.at("root")
    root.rows("CREATE USER nowhere PASSWORD 'hunter2-unique'")
    root.rows("ALTER USER nowhere PASSWORD 'hunter3-unique'")
    refused(root, "CREATE USER nowhere PASSWORD 'hunter4-unique' NONSENSE", "not known")
    told = str(root.rows("SELECT * FROM system.queries")) + str(root.rows("SELECT * FROM system.roles"))
    assert "hunter" not in told and "hunter" not in made.server.log()
    root.rows("DROP USER nowhere")


def test_show_grants(made, role):
    root, ada = made.at("root"), made.at("ada")
    root.rows(f"GRANT SELECT (id) ON t TO {role}")
    lines = [line for (line,) in ada.rows("SHOW GRANTS")]
    assert f"GRANT SELECT (id) ON TABLE bowshot.main.t TO {role}" in lines and f"GRANT {role} TO ada" in lines
    assert [line for (line,) in root.rows("SHOW GRANTS FOR ada")]
    assert root.rows("SHOW GRANTS FOR 'ada'@'%'") == root.rows("SHOW GRANTS FOR ada")
    assert ada.rows("SHOW GRANTS FOR CURRENT_USER()") == ada.rows("SHOW GRANTS")
    assert ada.rows("SHOW GRANTS FOR bob") == []
    rights = ada.rows("SELECT grantee, privilege, columns FROM system.grants WHERE table_name = 't'")
    assert rights == [(role, "SELECT", "id")]


def serving(folder, file, *arguments, data=None):
    return Server(data=data or folder / "data", arguments=["--users-file", str(file), "--pg", "127.0.0.1:0", *arguments])


def test_rules_survive_a_restart_and_need_users(tmp_path):
    file = users_file(tmp_path)
    with serving(tmp_path, file) as server, Flight(server, "root") as root:
        for sql in ("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1), (2)", "CREATE USER ada PASSWORD 'ada''s own'", "GRANT SELECT ON t TO ada", "CREATE ROW POLICY p ON t USING (id = 1)"):
            root.rows(sql)
    with serving(tmp_path, file) as server, Flight(server, "ada") as ada:
        assert ada.rows("SELECT * FROM t") == [("1",)]
    with contextlib.closing(sqlite3.connect(next((tmp_path / "data").rglob("catalog.sqlite")))) as catalog:
        assert catalog.execute("PRAGMA user_version").fetchone() == (2,), "earlier versions must not serve these tables"
    # Somebody starts it without users: what had rules stays closed.
    with Server(data=tmp_path / "data") as server, adbc.connect(server.grpc_tcp, autocommit=True) as connection:
        with pytest.raises(adbc.Error, match="not found"), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM t")
        with pytest.raises(adbc.Error, match="not found"), connection.cursor() as cursor:
            cursor.execute("DROP ROW POLICY p ON t")
        with pytest.raises(adbc.Error), connection.cursor() as cursor:
            cursor.execute("CREATE TABLE u (id INTEGER)")
    # A rule that cannot be read takes all rights away.
    with contextlib.closing(sqlite3.connect(next((tmp_path / "data").rglob("catalog.sqlite")))) as catalog:
        catalog.execute("""INSERT INTO notes VALUES ('["unheard of"]', 'true')""")
        catalog.commit()
    with serving(tmp_path, file) as server:
        with Postgres(server, "root") as root:
            assert len(root.rows("SELECT * FROM t")) == 2, "configured admins can still look"
        with pytest.raises(psycopg.Error):
            Postgres(server, "ada")


def test_without_rules_everything_is_as_easy_as_before(tmp_path):
    with Server(data=tmp_path / "data") as server, adbc.connect(server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        for sql in ("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)", "CREATE SCHEMA s", "CREATE TABLE s.u AS SELECT * FROM t", "DROP SCHEMA s CASCADE"):
            cursor.execute(sql)
        cursor.execute("SHOW GRANTS")
        assert cursor.fetchall() == [("GRANT ALL PRIVILEGES ON *.* TO 'anonymous'",)]
        for sql in ("CREATE ROLE r", "GRANT SELECT ON t TO r", "CREATE USER u PASSWORD 'p'"):
            with pytest.raises(adbc.Error, match="may not change access rules"):
                cursor.execute(sql)


def token(user):
    return f'[[tokens]]\nuser = "{user}"\nsha256 = "{hashlib.sha256(user.encode()).hexdigest()}"\n'


@contextlib.contextmanager
def with_token(server, user):
    header = {"adbc.flight.sql.authorization_header": f"Bearer {user}"}
    with adbc.connect(server.grpc_tcp, db_kwargs=header, autocommit=True) as connection, connection.cursor() as cursor:
        yield cursor


def test_users_of_the_configuration_alone(tmp_path):
    file = tmp_path / "users.toml"
    file.write_text(token("ada") + token("bob") + 'roles = ["reader"]\n' + token("root") + "admin = true\n")
    with serving(tmp_path, file) as server, with_token(server, "ada") as ada, with_token(server, "bob") as bob, with_token(server, "root") as root:
        ada.execute("CREATE TABLE t AS SELECT 1 AS id")
        bob.execute("SELECT * FROM t")
        with pytest.raises(adbc.Error, match="may not change access rules"):
            ada.execute("CREATE ROLE r")
        root.execute("GRANT SELECT ON t TO reader")
        bob.execute("SELECT * FROM t")
        assert bob.fetchall() == [(1,)], "a role that the configuration gives"
        with pytest.raises(adbc.Error, match="not found"):
            ada.execute("SELECT * FROM t")
        with pytest.raises(adbc.Error, match="no role and no user"):
            root.execute("GRANT SELECT ON t TO unheard_of")


def test_enforced_from_the_start(tmp_path):
    file = tmp_path / "users.toml"
    file.write_text(token("ada") + token("root") + "admin = true\n")
    environment = {"BOWSHOT_ACCESS_ENFORCED": "true"}
    with Server(data=tmp_path / "data", arguments=["--users-file", str(file)], environment=environment) as server:
        with with_token(server, "ada") as ada, with_token(server, "root") as root:
            root.execute("CREATE TABLE t AS SELECT 1 AS id")
            with pytest.raises(adbc.Error, match="not found"):
                ada.execute("SELECT * FROM t")
            with pytest.raises(adbc.Error, match="may not create"):
                ada.execute("CREATE TABLE u (id INTEGER)")


def test_rules_need_a_data_folder(tmp_path):
    file = tmp_path / "users.toml"
    file.write_text(token("root") + "admin = true\n")
    with serving(tmp_path, file, data="memory") as server, with_token(server, "root") as root:
        with pytest.raises(adbc.Error, match="data folder"):
            root.execute("CREATE ROLE r")
