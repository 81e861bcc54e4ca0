"""Tables of other databases: rights, secrets, ATTACH and DETACH."""


import adbc_driver_flightsql.dbapi as dbapi
import pytest

from databases import PASSWORD, Reader, Source, driver
from durable import Database
from server import hash_password


USERS = """
[[access.users]]
name = "root"
password_hash = "{}"
admin = true
"""


def secret_file(folder):
    path = folder / "password"
    path.write_text(PASSWORD + "\n")
    path.chmod(0o600)
    return path


def test_credentials_are_never_shown(folder, postgres):
    quoted = PASSWORD.replace("'", "''")
    postgres.run("DROP ROLE IF EXISTS guest", f"CREATE ROLE guest LOGIN PASSWORD '{quoted}'", "GRANT SELECT ON things TO guest")
    entry = {"uri": f'"{postgres.uri}?sslmode=disable"', "user": '"guest"'}
    good = Source("good", "postgres", "public", {**entry, "password_file": f'"{secret_file(folder)}"'}, None, [])
    env = Source("env", "postgres", "public", {**entry, "password_env": '"THE_PASSWORD"'}, None, [])
    wrong = Source("wrong", "postgres", "public", {**entry, "user": '"owner2"', "password_env": '"THE_PASSWORD"'}, None, [])
    down = Source("down", "postgres", "public", {"uri": '"postgres://127.0.0.1:1/d"', "user": '"guest"', "password_env": '"THE_PASSWORD"'}, None, [])
    config = "\n".join(source.config() for source in (good, env, wrong, down))
    with Reader(folder, config, environment={"THE_PASSWORD": PASSWORD, "RUST_LOG": "trace"},
                arguments=["--set", "log=warn,bowshot=trace,bowshot_databases=trace,bowshot_engine=debug,bowshot_session=debug"]) as server:
        for name in ("good", "env"):
            assert server.rows(f"SELECT count(*) FROM {name}.public.things") == [(602,)]
            assert PASSWORD not in server.explained(f"SELECT * FROM {name}.public.things WHERE i = 1")
        assert "refused the login" in server.refused("SELECT * FROM wrong.public.things")
        server.refused("SELECT * FROM down.public.things")
        server.refused("SELECT nothing FROM good.public.things")
        for (table,) in server.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'"):
            assert PASSWORD not in str(server.rows(f"SELECT * FROM system.{table}")), table
        assert PASSWORD not in server.get("/metrics")[2]


@pytest.fixture(scope="module")
def guarded(folder, postgres, sources):
    """A server with users, over a database, with a place that may be attached."""
    hashed = hash_password("the root of it")
    postgres.run("DROP TABLE IF EXISTS people", "CREATE TABLE people (id int, region text, ssn text, code text)",
                 "DROP TABLE IF EXISTS staff", "CREATE TABLE staff (id int, region text, ssn text)", "INSERT INTO staff VALUES (1, 'EU', '111')",
                 "INSERT INTO people VALUES (1, 'EU', '111', '1'), (2, 'US', '222', 'boom'), (3, 'EU', '333', '3')")
    extra = (f'\n[attach]\nplaces = ["postgres://127.0.0.1:{postgres.port}/", "sqlite://{folder}/open"]\n'
             f'[drivers]\npostgres = "{driver("postgres")}"\nsqlite = "{driver("sqlite")}"\n')
    source = Source("pg", "postgres", "public", {"uri": f'"{postgres.uri}"', "user": '"owner"', "read_only": "false"}, None, [])
    data = folder / "guarded-data"
    with GuardedReader(folder, source.config() + USERS.format(hashed) + extra, data=data) as server:
        server.of("root", "the root of it").run(*(f"CREATE USER {name} PASSWORD '{name} comes in'" for name in ("ada", "bob", "eve")))
        yield server


class GuardedReader(Reader):
    def __init__(self, *arguments, **options):
        self.sessions = {}
        super().__init__(*arguments, secrets=(PASSWORD, "the root of it"), **options)

    def of(self, user, password=None):
        if user not in self.sessions:
            login = {"username": user, "password": password or f"{user} comes in"}
            database = Database.__new__(Database)
            database.connection = dbapi.connect(self.grpc_tcp, db_kwargs=login, autocommit=True)
            self.sessions[user] = database
        return self.sessions[user]

    def stop(self):
        for session in self.sessions.values():
            session.close()
        self.sessions = {}
        super().stop()


def test_rights_hold_for_tables_of_databases(guarded):
    root = guarded.of("root", "the root of it")
    root.run("GRANT SELECT ON pg.public.people TO ada", "GRANT SELECT (id, region) ON pg.public.staff TO bob",
             "CREATE ROW POLICY eu ON pg.public.people FOR ada USING (region = 'EU')")
    ada, bob, eve = guarded.of("ada"), guarded.of("bob"), guarded.of("eve")
    assert sorted(ada.rows("SELECT id FROM pg.public.people")) == [(1,), (3,)]
    # What fails on a hidden row is not computed there, and the hidden rows are not in the text that is shown.
    assert sorted(ada.rows("SELECT CAST(code AS INT) FROM pg.public.people")) == [(1,), (3,)]
    assert "sql=" not in "".join(map(str, ada.rows("EXPLAIN SELECT * FROM pg.public.people")))
    assert "GuardedScan" in "".join(map(str, ada.rows("EXPLAIN SELECT * FROM pg.public.people")))
    guarded.refused("SELECT ssn FROM pg.public.staff", bob)
    assert bob.rows("SELECT * FROM pg.public.staff") == [(1, "EU")]
    columns = "SELECT column_name FROM information_schema.columns WHERE table_catalog = 'pg' AND table_name = 'staff'"
    assert bob.rows(columns) == [("id",), ("region",)] and ada.rows(columns) == []
    for table in ("pg.public.people", "pg.public.things"):
        assert "not found" in guarded.refused(f"SELECT * FROM {table}", eve)
    assert "not found" in guarded.refused("SELECT * FROM pg.public.things", ada)
    listed = "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'pg' AND table_schema = 'public'"
    assert ada.rows(listed) == [("people",)] and eve.rows(listed) == []
    assert "pg" not in [row[0] for row in eve.rows("SHOW DATABASES")]
    guarded.refused("SELECT * FROM system.databases", eve)
    for user in (ada, bob, eve):
        guarded.refused("INSERT INTO pg.public.staff (id) VALUES (9)", user)
    root.run("GRANT INSERT ON pg.public.people TO ada", "GRANT INSERT ON pg.public.staff TO bob")
    assert "row policies" in guarded.refused("INSERT INTO pg.public.people (id) VALUES (9)", ada)
    bob.run("INSERT INTO pg.public.staff (id) VALUES (9)")
    assert root.rows("SELECT count(*) FROM pg.public.staff WHERE id = 9") == [(1,)]
    root.run("REVOKE SELECT ON pg.public.people FROM ada", "REVOKE INSERT ON pg.public.people FROM ada")
    guarded.refused("SELECT id FROM pg.public.people", ada)
    root.run("GRANT SELECT ON SCHEMA pg.public TO eve")
    assert eve.rows("SELECT count(*) FROM pg.public.things") == [(602,)]


def test_attach_and_detach(guarded, folder, postgres):
    import sqlite3

    root, eve = guarded.of("root", "the root of it"), guarded.of("eve")
    (folder / "open").mkdir(exist_ok=True)
    for path in (folder / "open" / "x.db", folder / "closed.db"):
        sqlite3.connect(path).execute("CREATE TABLE IF NOT EXISTS t (a INTEGER)").connection.close()
    uri = postgres.uri
    quoted = PASSWORD.replace("'", "''")
    postgres.run("DROP ROLE IF EXISTS visitor", f"CREATE ROLE visitor LOGIN PASSWORD '{quoted}'", "GRANT SELECT ON things TO visitor")
    attach = f"ATTACH '{uri}' AS more (TYPE postgres, USER 'visitor', PASSWORD '{quoted}')"
    assert "may not open" in guarded.refused(attach, eve)
    root.run(attach)
    assert root.rows("SELECT count(*) FROM more.public.things") == [(602,)]
    assert "already exists" in guarded.refused(attach, root)
    root.run(attach.replace("ATTACH", "ATTACH IF NOT EXISTS"))
    assert "not found" in guarded.refused("SELECT * FROM more.public.things", guarded.of("bob"))
    assert PASSWORD not in str(root.rows("SELECT * FROM system.queries"))
    assert ("more", True, True) in root.rows("SELECT name, attached, read_only FROM system.databases")
    assert "may not" in guarded.refused("DETACH more", eve)
    root.run("DETACH more", "DETACH IF EXISTS more")
    assert "not found" in guarded.refused("SELECT * FROM more.public.things", root)
    assert "configuration" in guarded.refused("DETACH pg", root)
    root.run(f"ATTACH 'sqlite://{folder}/open/x.db' AS lite")
    assert root.rows("SELECT * FROM lite.main.t") == []
    for place in (f"sqlite://{folder}/closed.db", f"sqlite://{folder}/open/../closed.db", "postgres://127.0.0.1:1/x", "postgres://other/x",
                  f"grpc://127.0.0.1:{postgres.port}", f"postgres://127.0.0.1:{postgres.port}.evil.com/x",
                  f"postgres://127.0.0.1:{postgres.port}/x?host=other", f"postgres://u:{PASSWORD.split()[0]}@127.0.0.1:{postgres.port}/x",
                  "/etc/passwd", ""):
        words = guarded.refused(f"ATTACH '{place}' AS bad", root)
        assert any(part in words for part in ("cannot attach a database", "cannot be used")), (place, words)
    assert "refused the login" in guarded.refused(f"ATTACH '{uri}' AS bad (USER 'visitor', PASSWORD 'no')", root)
    for name in ("bowshot", "system", "temp", "pg", "information_schema"):
        guarded.refused(f"ATTACH '{uri}' AS {name} (USER 'owner')", root)
    assert "syntax" in guarded.refused(f"ATTACH '{uri}' AS", root)


def test_what_is_attached_has_the_credentials_of_a_secret(guarded, postgres):
    root, eve = guarded.of("root", "the root of it"), guarded.of("eve")
    quoted, uri = PASSWORD.replace("'", "''"), postgres.uri
    postgres.run("DROP ROLE IF EXISTS keeper", f"CREATE ROLE keeper LOGIN PASSWORD '{quoted}'", "GRANT SELECT ON things TO keeper")
    count = "SELECT count(*) FROM kept.public.things"
    make = f"SECRET shop (TYPE postgres, SCOPE '{uri}', USER 'keeper', PASSWORD '{quoted}')"
    assert "may not make" in guarded.refused(f"CREATE {make}", eve)
    assert "not found" in guarded.refused(f"ATTACH '{uri}' AS kept (SECRET shop)", root)
    root.run(f"CREATE {make}")
    guarded.refused(f"ATTACH '{uri}' AS kept (SECRET shop)", eve)
    guarded.refused(f"ATTACH '{uri}' AS kept (SECRET shop, USER 'keeper')", root)
    # No place is opened by it.
    root.run(f"CREATE SECRET elsewhere (TYPE postgres, USER 'keeper', PASSWORD '{quoted}')")
    assert "cannot attach a database" in guarded.refused("ATTACH 'postgres://127.0.0.1:1/d' AS kept (SECRET elsewhere)", root)
    # Of two that are about it, the more exact one counts; one of another kind, or about another place, is none.
    wider = uri.rsplit("/", 1)[0]
    root.run(f"CREATE SECRET host (TYPE postgres, SCOPE '{wider}', USER 'keeper', PASSWORD 'no')",
             "CREATE SECRET flight (TYPE flightsql, USER 'keeper', PASSWORD 'no')",
             "CREATE SECRET far (TYPE postgres, SCOPE 'postgres://other', USER 'keeper', PASSWORD 'no')")
    for name in ("flight", "far"):
        assert "cannot be used for the database" in guarded.refused(f"ATTACH '{uri}' AS kept (SECRET {name})", root)
    for attach in (f"ATTACH '{uri}' AS kept (SECRET Shop)", f"ATTACH '{uri}' AS kept", f"ATTACH '{uri}' AS kept (SECRET elsewhere)"):
        root.run(attach)
        assert root.rows(count) == [(602,)]
        root.run("DETACH kept")
    root.run(f"ATTACH '{uri}' AS kept (SECRET shop)")
    assert root.rows(count) == [(602,)]
    root.run(f"CREATE OR REPLACE SECRET shop (TYPE postgres, SCOPE '{uri}', USER 'keeper', PASSWORD 'wrong')")
    assert "refused the login" in guarded.refused(count, root)
    root.run(f"CREATE OR REPLACE {make}")
    assert root.rows(count) == [(602,)]
    root.run(f"CREATE OR REPLACE SECRET shop (TYPE postgres, SCOPE 'postgres://other', USER 'keeper', PASSWORD '{quoted}')")
    assert "another location" in guarded.refused(count, root)
    root.run("DROP SECRET shop")
    assert "its secret `shop` was dropped" in guarded.refused(count, root)
    root.run(f"CREATE {make}")
    assert root.rows(count) == [(602,)]
    root.run("DETACH kept", *(f"DROP SECRET {name}" for name in ("shop", "elsewhere", "host", "flight", "far")))
    for table in ("queries", "secrets", "databases", "access_log"):
        assert PASSWORD not in str(root.rows(f"SELECT * FROM system.{table}"))
