"""Rights on tables to come, and the log of decisions."""

import pytest

import world
from server import wait_until
from world import Refused, refused

SETUP = [
    "CREATE SCHEMA lab",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "CREATE USER bob PASSWORD 'bob''s own'",
    "CREATE USER carl PASSWORD 'carl''s own'",
    "CREATE ROLE readers",
    "GRANT readers TO bob",
    "GRANT CREATE ON SCHEMA main TO ada, carl",
    "GRANT CREATE ON SCHEMA lab TO ada, carl",
    "CREATE TABLE secrets (text VARCHAR)",
]


@pytest.fixture
def made(tmp_path):
    with world.world(tmp_path, SETUP) as made:
        yield made


def reads(made, user, table):
    try:
        made.at(user).rows(f"SELECT * FROM {table}")
        return True
    except Refused:
        return False


def test_tables_to_come(made):
    ada, carl, root = made.at("ada"), made.at("carl"), made.at("root")
    ada.rows("CREATE TABLE earlier (a INTEGER)")
    ada.rows("ALTER DEFAULT PRIVILEGES IN SCHEMA lab GRANT SELECT ON TABLES TO readers")
    root.rows("ALTER DEFAULT PRIVILEGES FOR USER ada GRANT INSERT ON TABLES TO carl")
    for user, name in ((ada, "lab.one"), (ada, "two"), (carl, "lab.three")):
        user.rows(f"CREATE TABLE {name} (a INTEGER)")
    assert [reads(made, "bob", table) for table in ("earlier", "lab.one", "two", "lab.three")] == [False, True, False, False]
    for table in ("lab.one", "two"):
        carl.rows(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(Refused):
        carl.rows("INSERT INTO earlier VALUES (1)")
    assert sorted(root.rows("SELECT * FROM system.default_privileges"), key=str) == [
        ("ada", "bowshot", "lab", "readers", "SELECT"),
        ("ada", None, None, "carl", "INSERT"),
    ]
    assert made.at("bob").rows("SELECT grantee FROM system.default_privileges") == [("readers",)]
    # What has been given stays, what comes later has it no more.
    ada.rows("ALTER DEFAULT PRIVILEGES IN SCHEMA lab REVOKE ALL ON TABLES FROM readers")
    ada.rows("CREATE TABLE lab.four (a INTEGER)")
    assert [reads(made, "bob", table) for table in ("lab.one", "lab.four")] == [True, False]


def test_they_go_with_their_users_roles_and_schemas(made):
    ada, root = made.at("ada"), made.at("root")
    ada.rows("ALTER DEFAULT PRIVILEGES IN SCHEMA lab GRANT SELECT ON TABLES TO readers, bob")
    root.rows("DROP ROLE readers")
    assert root.rows("SELECT grantee FROM system.default_privileges") == [("bob",)]
    root.rows("DROP SCHEMA lab")
    root.rows("CREATE SCHEMA lab")
    assert root.rows("SELECT grantee FROM system.default_privileges") == []
    ada.rows("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO bob")
    root.rows("DROP USER ada")
    root.rows("CREATE USER ada PASSWORD 'ada''s own'")
    assert root.rows("SELECT grantee FROM system.default_privileges") == []


def test_in_a_transaction_that_is_rolled_back(made):
    ada = made.at("ada", "postgres")
    ada.rows("BEGIN")
    ada.rows("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO bob")
    ada.rows("CREATE TABLE gone (a INTEGER)")
    ada.rows("ROLLBACK")
    ada.rows("CREATE TABLE there (a INTEGER)")
    assert not reads(made, "bob", "there")


def test_nobody_gives_what_others_will_make(made):
    for sql in (
        "ALTER DEFAULT PRIVILEGES FOR USER carl GRANT SELECT ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES FOR USER bob, carl GRANT SELECT ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES FOR root GRANT SELECT ON TABLES TO bob",
    ):
        refused(made.at("bob"), sql, "may not change access rules")
    for sql in (
        "ALTER DEFAULT PRIVILEGES FOR ROLE readers GRANT SELECT ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES FOR nobody GRANT SELECT ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO nobody",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA nowhere GRANT SELECT ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO bob",
        "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO bob",
    ):
        with pytest.raises(Refused):
            made.at("root").rows(sql)
    assert made.at("root").rows("SELECT * FROM system.default_privileges") == []


def test_the_access_log_is_for_admins(made):
    with pytest.raises(Refused):
        made.at("bob").rows("SELECT text FROM secrets")
    made.at("root").rows("SELECT text FROM secrets")
    log = "SELECT user_name, decision, outcome FROM system.access_log WHERE statement = 'SELECT text FROM secrets'"
    expected = {("bob", "not_found", "failed"), ("root", "allowed", "finished")}
    for door in world.DOORS:
        root, bob = made.at("root", door), made.at("bob", door)
        wait_until(lambda root=root: set(root.rows(log)) == expected, "both are there")
        for sql in (
            "SELECT * FROM system.access_log",
            "SELECT count(*) FROM system.access_log",
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM system.access_log)",
            "CREATE VIEW main.v AS SELECT * FROM system.access_log",
        ):
            with pytest.raises(Refused):
                bob.rows(sql)
        assert ("access_log",) not in bob.rows("SELECT table_name FROM information_schema.tables")
    tables = "SELECT tables FROM system.access_log WHERE user_name = 'root' AND statement = 'SELECT text FROM secrets'"
    assert "secrets" in str(made.at("root").rows(tables))


def test_the_access_log_holds_no_password(made):
    root = made.at("root")
    root.rows("CREATE USER dora PASSWORD 'hunter2'")
    with pytest.raises(Refused):
        made.at("bob").rows("ALTER USER dora PASSWORD 'hunter3'")
    text = str(root.rows("SELECT statement, error FROM system.access_log WHERE statement NOT LIKE '%access_log%'"))
    assert "hunter" not in text and "PASSWORD" in text
