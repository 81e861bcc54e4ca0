"""Statements that change tables, as SQL text: what is refused, and changes of rows beside SQLite's, statement by statement. What the
others do is in tests/sql."""

import random
import sqlite3

import pytest

from durable import Database, refused
from writing_adbc import Status


@pytest.fixture
def db(store):
    with Database(store) as database:
        yield database


@pytest.fixture
def other(store):
    with Database(store) as database:
        yield database


ALREADY, MISSING, UNSUPPORTED = Status.ALREADY_EXISTS, Status.NOT_FOUND, Status.NOT_IMPLEMENTED
PAIRS = "MERGE INTO {t} t USING (VALUES (1), (1)) AS s(id) ON t.id = s.id"
# What it says, and with which status; `{t}` is a table, `{t}_v` a view of it, and the schema `{t}_s` has a table.
REFUSED = [
    ("CREATE TABLE {t} (id BIGINT)", "already exists", ALREADY),
    ("CREATE TABLE {t} AS SELECT 1 AS one", "already exists", ALREADY),
    ("CREATE TABLE {t}_2 AS SELECT 1 AS a, 2 AS a", "a", None),
    ("CREATE TABLE {t}_2 (id INT REFERENCES orders (o_orderkey))", "not enforced", UNSUPPORTED),
    ("CREATE TABLE {t}_3.t (x INT)", "not found", MISSING),
    ("DROP TABLE {t}_2", "not found", MISSING),
    ("SELECT * FROM {t}_2", "not found", MISSING),
    ("CREATE SCHEMA system", "reserved", None),
    ("DROP SCHEMA {t}_s", "not empty", None),
    ("CREATE VIEW {t}_w AS SELECT * FROM {t}_2", "{t}_2", None),
    ("INSERT INTO {t}_v VALUES (1)", "is a view", None),
    ("DROP TABLE {t}_v", "view", None),
    ("CREATE TABLE nation (x INT)", "table of files", ALREADY),
    ("INSERT INTO nation VALUES (1, 'x')", "table of files", UNSUPPORTED),
    ("UPDATE nation SET n_name = 'x'", "table of files", UNSUPPORTED),
    ("DELETE FROM nation", "table of files", UNSUPPORTED),
    ("DROP TABLE nation", "table of files", UNSUPPORTED),
    ("TRUNCATE TABLE nation", "table of files", UNSUPPORTED),
    ("ALTER TABLE nation ADD COLUMN x INT", "table of files", UNSUPPORTED),
    ("INSERT INTO {t} VALUES (1, 1)", "primary key", ALREADY),
    ("INSERT INTO {t} VALUES (5, 1), (5, 1)", "primary key", ALREADY),
    ("INSERT INTO {t} VALUES (3, 1), (4, -1)", "positive", None),
    ("INSERT INTO {t} VALUES (3, NULL)", "`x`", None),
    ("INSERT INTO {t} (x) VALUES (3)", "`id`", None),
    ("INSERT INTO {t} VALUES (3, 'no number')", "no number", None),
    ("INSERT INTO {t} VALUES (3, 3) ON CONFLICT (x) DO NOTHING", "", None),
    ("INSERT INTO {t} VALUES (3, 3) ON CONFLICT DO UPDATE SET x = 3", "", None),
    ("INSERT INTO {t} VALUES (3, 3) RETURNING nothing", "", None),
    ("INSERT INTO {t} VALUES (3, 3) RETURNING x / 0", "", None),
    ("UPDATE {t} SET id = 1", "primary key", None),
    ("UPDATE {t} SET x = 0 WHERE id = 1", "positive", None),
    ("UPDATE {t} SET nothing = 1", "`nothing`", MISSING),
    ("UPDATE {t} SET x = 1, x = 2", "twice", None),
    ("UPDATE {t} SET other.x = 6", "other.x", None),
    ("UPDATE {t} SET x = -x ORDER BY x LIMIT 1", "ORDER BY", UNSUPPORTED),
    (PAIRS + " WHEN MATCHED THEN UPDATE SET x = 7", "twice", None),
    # Each condition stands in the query more than once.
    (PAIRS + " WHEN MATCHED AND random() < 0.5 THEN DELETE", "random()", UNSUPPORTED),
    (PAIRS + " WHEN MATCHED THEN DELETE RETURNING *", "", None),
    ("ALTER TABLE {t} ADD COLUMN none TEXT NOT NULL", "default", None),
    ("ALTER TABLE {t} ADD COLUMN z INT DEFAULT 1 CHECK (z > 5)", "ADD CONSTRAINT", None),
    ("ALTER TABLE {t} ADD COLUMN __bowshot_address INT", "reserved", None),
    ("ALTER TABLE {t} ADD CONSTRAINT tiny CHECK (x < 10)", "tiny", None),
    ("ALTER TABLE {t} DROP COLUMN x", "positive", None),
    ("ALTER TABLE {t} ALTER COLUMN x SET DATA TYPE BIGINT", "positive", None),
    ("COPY {t} TO '/tmp/somewhere.csv'", "", None),
    ("START TRANSACTION READ ONLY; DELETE FROM {t}", "read-only", None),
    ("SAVEPOINT one", "no transaction", None),
]


def test_what_is_refused_says_why_and_changes_nothing(db, table):
    db.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, x INT NOT NULL, CONSTRAINT positive CHECK (x > 0))")
    db.run(f"INSERT INTO {table} VALUES (1, 10), (2, 20)")
    db.run(f"CREATE VIEW {table}_v AS SELECT x FROM {table}")
    db.run(f"CREATE SCHEMA {table}_s")
    db.run(f"CREATE TABLE {table}_s.t AS SELECT 1 AS x")
    for sql, words, status in REFUSED:
        *before, last = sql.format(t=table).split("; ")
        for statement in before:
            db.run(statement)
        refused(db, last, words.format(t=table), status=status)
        if before:
            db.run("ROLLBACK")
        assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(1, 10), (2, 20)], sql
    assert db.rows("SELECT count(*) FROM nation") == [(25,)]
    # All keys at once.
    assert db.run(f"UPDATE {table} SET id = id + 1") == 2
    db.run(f"DROP SCHEMA {table}_s CASCADE")
    db.run(f"DROP VIEW {table}_v")
    db.run(f"DROP TABLE {table}")


def test_a_merge_keeps_what_it_does_not_change(db, table):
    db.run(f"CREATE TABLE {table} AS SELECT 1 AS id, 9007199254740993 AS x, 0 AS y")
    changed = db.run(
        f"MERGE INTO {table} t USING (VALUES (1)) AS s(k) ON t.id = s.k "
        "WHEN MATCHED AND s.k = 2 THEN UPDATE SET x = 1.5 WHEN MATCHED THEN UPDATE SET y = 7"
    )
    assert changed == 1 and db.rows(f"SELECT * FROM {table}") == [(1, 9007199254740993, 7)]
    db.run(f"DROP TABLE {table}")


def test_unknown_is_no_at_every_depth(db, table):
    db.run(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 10), (2, NULL), (3, 30)) AS v(id, x)")
    db.run(f"CREATE TABLE {table}_2 AS SELECT * FROM (VALUES (10), (NULL)) AS v(k)")
    unknown = f"w.id = 99 OR w.x NOT IN (SELECT k FROM {table}_2)"
    for sql in (
        f"DELETE FROM {table} w WHERE {unknown}",
        f"DELETE FROM {table} WHERE id IN (SELECT w.id FROM {table} w WHERE {unknown})",
        f"DELETE FROM {table} t WHERE EXISTS (SELECT 1 FROM {table} w WHERE w.id = t.id AND ({unknown}))",
        f"UPDATE {table} t SET x = -1 FROM (SELECT id FROM {table} w WHERE {unknown}) s WHERE s.id = t.id",
        f"INSERT INTO {table} SELECT id + 100, x FROM {table} w WHERE {unknown}",
    ):
        assert db.run(sql) == 0, sql
    many = " OR ".join(f"NOT (id IN (SELECT {number}))" for number in range(17))
    refused(db, f"DELETE FROM {table} WHERE {many}", "UNION ALL")
    for name in (table, f"{table}_2"):
        db.run(f"DROP TABLE {name}")


def test_views(db, other, table):
    db.run(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1), (2)) AS v(x)")
    db.run(f"CREATE VIEW {table}_v (double) AS SELECT x * 2 FROM {table}")
    assert other.rows(f"SELECT * FROM {table}_v ORDER BY double") == [(2,), (4,)]
    db.run(f"INSERT INTO {table} VALUES (3)")
    assert other.rows(f"SELECT sum(double) FROM {table}_v") == [(12,)]
    # What a reader calls by the same name for itself does not get in between.
    other.run(f"CREATE TEMPORARY TABLE {table} AS SELECT 1000 AS x")
    assert other.rows(f"SELECT sum(x) FROM {table}") == [(1000,)]
    assert other.rows(f"SELECT sum(double) FROM {table}_v") == [(12,)]
    db.run(f"CREATE OR REPLACE VIEW {table}_v AS SELECT * FROM {table}_v")
    refused(db, f"SELECT * FROM {table}_v", "circle")
    db.run(f"DROP VIEW {table}_v")
    db.run(f"DROP TABLE {table}")


# Compared with SQLite.


class Statements:
    """Random statements over two tables, in the SQL that both databases understand."""

    def __init__(self, seed, table):
        self.random = random.Random(seed)
        self.t, self.u = f"{table}_t", f"{table}_u"

    def value(self):
        return self.random.choice(["NULL", *map(str, range(-3, 12))])

    def number(self, row="t"):
        choices = [f"{row}.a", f"{row}.b", self.value(), f"{row}.a + {row}.b", f"coalesce({row}.a, {self.value()})"]
        return self.random.choice(choices)

    def condition(self, depth=0):
        kind = self.random.randrange(12 if depth < 2 else 6)
        t, u = self.t, self.u
        if kind == 0:
            return f"t.a {self.random.choice(['=', '<>', '<', '>='])} {self.number()}"
        if kind == 1:
            return f"t.{self.random.choice('ab')} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == 2:
            return self.random.choice(["1 = 0", "1 = 1", "NULL = 1"])
        if kind == 3:
            return f"t.b IN ({self.value()}, {self.value()})"
        if kind == 4:
            return f"t.a BETWEEN {self.random.randrange(0, 4)} AND {self.random.randrange(3, 9)}"
        if kind == 5:
            return f"t.a IN (SELECT k FROM {u})"
        if kind == 6:
            return f"t.a NOT IN (SELECT k FROM {u} WHERE k IS NOT NULL)"
        if kind == 7:
            negated = self.random.choice(["", "NOT "])
            return f"{negated}EXISTS (SELECT 1 FROM {u} u WHERE u.k = t.a AND u.v {self.random.choice('<>')} t.b)"
        if kind == 8:
            return f"t.b > (SELECT avg(v) FROM {u})"
        if kind == 9:
            return f"t.a = (SELECT max(a) FROM {t})"
        word = self.random.choice(["AND", "OR"])
        both = f"({self.condition(depth + 1)}) {word} ({self.condition(depth + 1)})"
        return f"NOT ({both})" if kind == 11 else both

    def change(self):
        t, u = self.t, self.u
        where = f" WHERE {self.condition()}" if self.random.random() < 0.95 else ""
        kind = self.random.randrange(10)
        if kind < 3:
            rows = ", ".join(f"({self.value()}, {self.value()})" for _ in range(self.random.randrange(1, 6)))
            return f"INSERT INTO {self.random.choice([t, u])} VALUES {rows}"
        if kind < 4:
            return f"INSERT INTO {t} (b, a) SELECT t.a, t.b + 1 FROM {t} AS t{where}"
        if kind < 6:
            return f"UPDATE {t} AS t SET a = {self.number()}, b = {self.number()}{where}"
        if kind < 7:
            # One row for each key, so that it does not matter which of them comes first.
            others = f"(SELECT k, max(v) AS v FROM {u} GROUP BY k) AS u"
            return f"UPDATE {t} AS t SET b = u.v FROM {others} WHERE u.k = t.a AND ({self.condition()})"
        if kind < 9:
            return f"DELETE FROM {t} AS t{where}"
        return f"DELETE FROM {u} WHERE k = {self.value()}"


@pytest.mark.parametrize("seed", range(4))
def test_changes_are_those_of_sqlite(db, table, seed):
    statements = Statements(seed, table)
    reference = sqlite3.connect(":memory:")
    for name, columns in ((statements.t, "a BIGINT, b BIGINT"), (statements.u, "k BIGINT, v BIGINT")):
        db.run(f"CREATE TABLE {name} ({columns})")
        reference.execute(f"CREATE TABLE {name} ({columns})")
    key = lambda row: [(value is None, value or 0) for value in row]
    for step in range(250):
        sql = statements.change()
        cursor = reference.execute(sql)
        changed = db.run(sql)
        assert changed == cursor.rowcount, f"step {step}: {sql}"
        for name in (statements.t, statements.u):
            ours = sorted(db.rows(f"SELECT * FROM {name}"), key=key)
            theirs = sorted(reference.execute(f"SELECT * FROM {name}").fetchall(), key=key)
            assert ours == theirs, f"step {step}: {sql}"
        if len(theirs) + len(ours) > 400:
            for run in (db.run, reference.execute):
                run(f"DELETE FROM {statements.t}")
    for name in (statements.t, statements.u):
        db.run(f"DROP TABLE {name}")
