"""Credentials of sources in SQL: administrators alone make, drop and see them, at every door, whatever else somebody may do."""

import pytest

from world import DOORS, Refused, create_users, world

VALUE = "kept-s3cret-of-the-tests"
SETUP = [
    *create_users("ada", "bob"),
    "CREATE USER carl PASSWORD 'carl''s own' ADMIN", "GRANT ALL ON CATALOG bowshot TO ada", "CREATE ROLE chief",
    "GRANT chief TO bob", f"CREATE SECRET lake (TYPE s3, SCOPE 's3://lake', KEY_ID 'AKIA', SECRET '{VALUE}')"]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    with world(folder, SETUP) as people:
        yield people
    for path in folder.rglob("*"):
        assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path


def refused(connection, sql):
    with pytest.raises(Refused) as raised:
        print(connection.rows(sql))
    told = str(raised.value)
    assert VALUE not in told, told
    return told


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("user", ["ada", "bob"])
def test_nobody_else_says_anything_about_them(people, user, door):
    connection = people.at(user, door)
    for sql in (f"CREATE SECRET mine (TYPE s3, KEY_ID 'AKIA', SECRET '{VALUE}')",
                f"CREATE OR REPLACE SECRET lake (TYPE s3, KEY_ID 'AKIA', SECRET '{VALUE}')",
                "CREATE SECRET IF NOT EXISTS lake (TYPE nothing)", "DROP SECRET lake", "DROP SECRET IF EXISTS lake",
                "DROP SECRET nothing"):
        assert "may not make or drop secrets" in refused(connection, sql), sql
    assert "not found" in refused(connection, "SELECT * FROM system.secrets").replace("doesn't exist", "not found")
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'system' AND table_name = 'secrets'"
    assert connection.rows(listed) == []


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("user", ["root", "carl"])
def test_administrators_do_at_every_door(people, user, door):
    connection = people.at(user, door)
    seen = "SELECT name, type, scope, owner, state FROM system.secrets ORDER BY name"
    assert connection.rows(seen) == [("lake", "s3", "s3://lake", "root", "ready")]
    name = f"of_{user}_{door}"
    connection.rows(f"CREATE SECRET {name} (TYPE http, SCOPE 'https://example.org', BEARER_TOKEN '{VALUE}')")
    assert (name, "http", "https://example.org", user, "ready") in connection.rows(seen)
    assert "already exists" in refused(connection, f"CREATE SECRET {name} (TYPE http, SCOPE 'https://example.org', BEARER_TOKEN '{VALUE}')")
    connection.rows(f"DROP SECRET {name}")
    assert "not found" in refused(connection, f"DROP SECRET {name}")
    assert VALUE not in str(connection.rows("SELECT * FROM system.queries"))
    assert VALUE not in str(connection.rows("SELECT * FROM system.access_log"))


def test_a_right_is_no_way_to_them(people):
    root, ada = people.at("root"), people.at("ada")
    for sql in ("GRANT SELECT ON system.secrets TO ada", "GRANT ALL ON SCHEMA system TO ada"):
        try:
            root.rows(sql)
        except Refused:
            pass
    assert "not found" in refused(ada, "SELECT * FROM system.secrets")
    assert "may not make or drop secrets" in refused(ada, "DROP SECRET lake")
    # Views ask for who reads them.
    try:
        root.rows("CREATE VIEW about AS SELECT name FROM system.secrets")
    except Refused:
        pass
    refused(ada, "SELECT * FROM about")


def test_an_administrator_who_is_none_any_more_has_none(people):
    root, carl = people.at("root"), people.at("carl", "postgres")
    root.rows("ALTER USER carl NOADMIN")
    try:
        assert "may not make or drop secrets" in refused(carl, "DROP SECRET lake")
        assert "not found" in refused(carl, "SELECT * FROM system.secrets")
    finally:
        root.rows("ALTER USER carl ADMIN")
