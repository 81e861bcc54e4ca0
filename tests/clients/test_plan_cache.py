"""A plan that is used again gives what a new one would give, whatever has changed since: rows, definitions, rights, settings."""

import psycopg
import pytest

from server import Server, users_file, wait_until

QUERIES = [
    ("SELECT count(*), sum(n) FROM planned", ()),
    ("SELECT n, word FROM planned WHERE n < %s ORDER BY n", (3,)),
    ("SELECT n, word FROM planned WHERE n < %s ORDER BY n", (5,)),
    ("SELECT word FROM planned WHERE word >= %s ORDER BY word", ("word 7",)),
    ("SELECT n FROM planned ORDER BY n LIMIT %s", (2,)),
    ("SELECT n FROM planned ORDER BY n LIMIT %s", (4,)),
    ("SELECT a.n FROM planned a JOIN planned b USING (n) WHERE a.n > %s ORDER BY 1", (6,)),
    ("SELECT word FROM planned WHERE n = 2", ()),
    ("SELECT word FROM planned WHERE n = 8", ()),
    ("SELECT * FROM planned WHERE n = 10", ()),
    ("SELECT * FROM planned WHERE n = %s", (1,)),
    ("SELECT count(*) FROM planned FOR VERSION AS OF 1", ()),
    ("SELECT (SELECT count(*) FROM planned), (SELECT count(*) FROM planned FOR VERSION AS OF 1)", ()),
    ("SELECT * FROM seen ORDER BY 1", ()),
    ("SELECT n FROM planned WHERE n IN (SELECT n FROM seen) ORDER BY 1", ()),
    ("SELECT CAST(TIMESTAMP WITH TIME ZONE '2020-01-01 00:00:00+00' AS TEXT)", ()),
    ("SELECT current_user, current_schema()", ()),
    ("SELECT 1 + 1, 'text'", ()),
    ("SELECT count(*) FROM planned FOR TIMESTAMP AS OF '2999-01-01 00:00:00'", ()),
]
# What the administrator does, and what each reader does in its own session.
CHANGES = [
    ("root", "SELECT 1"),
    ("root", "INSERT INTO planned VALUES (10, 'word 10')"),
    ("root", "UPDATE planned SET word = 'other' WHERE n = 2"),
    ("root", "DELETE FROM planned WHERE n = 1"),
    ("readers", "SET time_zone = '+02:00'"),
    ("readers", "CREATE TEMP TABLE planned AS SELECT 4 AS n, 'of the session' AS word"),
    ("readers", "DROP TABLE temp.main.planned"),
    ("root", "CREATE OR REPLACE VIEW seen AS SELECT n + 1 AS n FROM planned WHERE n > 5"),
    ("readers", "SET search_path = second, main"),
    ("root", "INSERT INTO second.planned VALUES (8, 'word 8')"),
    ("readers", "SET search_path = main"),
    ("root", "REVOKE SELECT ON planned FROM ada"),
    ("root", "GRANT SELECT ON planned TO ada"),
    ("root", "CREATE ROW POLICY few ON planned FOR ada USING (n < 8)"),
    ("root", "ALTER TABLE planned ADD COLUMN more INT"),
    ("root", "DROP TABLE planned"),
    ("root", "CREATE TABLE planned (word TEXT, n BIGINT)"),
    ("root", "GRANT SELECT ON planned TO ada"),
    ("root", "INSERT INTO planned VALUES ('new', 1)"),
]


@pytest.fixture
def server(tmp_path):
    file = users_file(tmp_path, {"root": "root"}, admins=["root"])
    with Server(arguments=["--pg", "127.0.0.1:0", "--users-file", file], data=tmp_path / "data") as server:
        with connect(server, "root") as root:
            for sql in (
                "CREATE USER ada PASSWORD 'ada'",
                "CREATE TABLE planned (n INT PRIMARY KEY, word TEXT)",
                "INSERT INTO planned SELECT n, 'word ' || n FROM generate_series(1, 9) AS s(n)",
                "CREATE VIEW seen AS SELECT n FROM planned WHERE n > 3",
                "CREATE SCHEMA second",
                "CREATE TABLE second.planned (n INT, word TEXT)",
                "GRANT SELECT ON planned TO ada",
                "GRANT SELECT ON seen TO ada",
                "GRANT SELECT ON second.planned TO ada",
            ):
                root.execute(sql)
        yield server


def connect(server, user):
    connection = psycopg.connect(**server.postgres(user=user, password=user, autocommit=True))
    connection.execute("SET result_cache = off")
    return connection


def answer(connection, sql, values):
    """Rows, or what is wrong."""
    try:
        with connection.cursor() as cursor:
            return cursor.execute(sql, values, prepare=True).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


@pytest.mark.parametrize("user", ["ada", "root"])
def test_answers_are_those_of_new_plans(server, user):
    with connect(server, "root") as root, connect(server, user) as cached, connect(server, user) as plain:
        plain.execute("SET plan_cache = off")
        for who, change in CHANGES:
            for connection in [root] if who == "root" else [cached, plain]:
                connection.execute(change)
            for sql, values in QUERIES:
                for _ in range(2):
                    assert answer(cached, sql, values) == answer(plain, sql, values), (change, sql, values)


def test_values_that_change_between_runs_are_new_each_time(server):
    with connect(server, "root") as root:
        for sql in ("SELECT random()", "SELECT CAST(clock_timestamp() AS TEXT)"):
            assert len({root.execute(sql).fetchone() for _ in range(3)}) == 3, sql


def test_a_rolled_back_table_is_forgotten(server):
    with connect(server, "root") as root:
        sql = "SELECT count(*) FROM planned"
        assert [root.execute(sql).fetchone()[0] for _ in range(2)] == [9, 9]
        root.execute("BEGIN")
        root.execute("DELETE FROM planned WHERE n > 3")
        assert [root.execute(sql).fetchone()[0] for _ in range(2)] == [3, 3]
        root.execute("ROLLBACK")
        assert [root.execute(sql).fetchone()[0] for _ in range(2)] == [9, 9]


def test_plans_are_listed_for_those_who_ran_them(server):
    sql = "SELECT max(word) FROM planned"
    listed = "SELECT user_name, statement, dialect, kind, uses - hits, bytes > 0 FROM system.plan_cache WHERE hits > 0 AND statement LIKE '%max(word)%'"
    with connect(server, "root") as root, connect(server, "ada") as ada:

        def hit():
            ada.execute(sql)
            return ada.execute(listed).fetchall()

        ((user, statement, dialect, kind, planned, has_bytes),) = wait_until(hit, "a plan is used again")
        assert (user, statement, kind, has_bytes) == ("ada", sql, "statement", True)
        assert dialect == ada.execute("SHOW dialect").fetchone()[0]
        assert planned >= 1

        def seen():
            return hit() and ("ada", sql) in [row[:2] for row in root.execute(listed).fetchall()]

        wait_until(seen, "an administrator sees the plans of all")
        root.execute("SELECT min(word) FROM planned")
        assert ada.execute("SELECT count(*) FROM system.plan_cache WHERE user_name <> 'ada'").fetchone() == (0,)

        def explained():
            ada.execute(sql)
            return "plan: cached" in str(ada.execute("EXPLAIN " + sql).fetchall())

        wait_until(explained, "EXPLAIN tells of the plan")
        ada.execute("SET plan_cache = off")
        assert "plan: cached" not in str(ada.execute("EXPLAIN " + sql).fetchall())
