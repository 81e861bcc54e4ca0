"""Statements that change tables, as SQL text: definitions, changes of rows, views, transactions. Changes of rows are also
compared with SQLite's, statement by statement."""

import random
import sqlite3

import pytest

from writing import Connection, Status


@pytest.fixture
def db(store):
    connection = Connection(store)
    yield connection
    connection.close()


@pytest.fixture
def other(store):
    connection = Connection(store)
    yield connection
    connection.close()


def test_create_insert_select_drop(db, table):
    assert db.run(f"CREATE TABLE {table} (id BIGINT NOT NULL, name TEXT, at TIMESTAMP)") == 0
    assert db.run(f"INSERT INTO {table} VALUES (1, 'one', '2026-01-01'), (2, NULL, NULL)") == 2
    assert db.run(f"INSERT INTO {table} (name, id) SELECT upper(name), id + 10 FROM {table}") == 2
    assert db.rows(f"SELECT id, name FROM {table} ORDER BY id") == [(1, "one"), (2, None), (11, "ONE"), (12, None)]
    db.fails(f"CREATE TABLE {table} (id BIGINT)", "already exists", Status.ALREADY_EXISTS)
    db.run(f"CREATE TABLE IF NOT EXISTS {table} (other TEXT)")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(4,)]
    db.run(f"CREATE OR REPLACE TABLE {table} (other TEXT)")
    assert db.rows(f"SELECT count(other) FROM {table}") == [(0,)]
    db.run(f"DROP TABLE {table}")
    db.fails(f"DROP TABLE {table}", "not found", Status.NOT_FOUND)
    db.run(f"DROP TABLE IF EXISTS {table}")
    db.fails(f"SELECT * FROM {table}", "not found", Status.NOT_FOUND)


def test_create_as(db, table):
    assert db.run(f"CREATE TABLE {table} AS SELECT * FROM orders") == db.rows("SELECT count(*) FROM orders")[0][0]
    assert db.rows(f"SELECT * FROM {table} EXCEPT SELECT * FROM orders") == []
    db.fails(f"CREATE TABLE {table} AS SELECT 1 AS one", "already exists")
    assert db.run(f"CREATE OR REPLACE TABLE {table} AS SELECT count(*) AS n FROM {table}") == 1
    db.fails("CREATE TABLE twice AS SELECT 1 AS a, 2 AS a", "a")
    db.run(f"DROP TABLE {table}")


def test_tables_of_files_are_read_only(db):
    for sql in (
        "INSERT INTO nation VALUES (1, 'x')",
        "UPDATE nation SET n_name = 'x'",
        "DELETE FROM nation",
        "DROP TABLE nation",
        "TRUNCATE TABLE nation",
        "ALTER TABLE nation ADD COLUMN x INT",
    ):
        db.fails(sql, "table of files", Status.NOT_IMPLEMENTED)
    db.fails("CREATE TABLE nation (x INT)", "table of files", Status.ALREADY_EXISTS)
    assert db.rows("SELECT count(*) FROM nation") == [(25,)]


def test_constraints_hold(db, table):
    db.run(
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, size INT NOT NULL DEFAULT 7, word TEXT DEFAULT 'a' || 'b', "
        "CONSTRAINT positive CHECK (size > 0))"
    )
    assert db.run(f"INSERT INTO {table} (id) VALUES (1), (2)") == 2
    assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(1, 7, "ab"), (2, 7, "ab")]
    db.fails(f"INSERT INTO {table} (id, size) VALUES (3, 1), (4, -1)", "positive")
    db.fails(f"INSERT INTO {table} (id, size) VALUES (3, NULL)", "`size`")
    db.fails(f"INSERT INTO {table} (size) VALUES (3)", "`id`")
    db.fails(f"INSERT INTO {table} (id) VALUES (2)", "primary key", Status.ALREADY_EXISTS)
    db.fails(f"INSERT INTO {table} (id) VALUES (5), (5)", "primary key", Status.ALREADY_EXISTS)
    db.fails(f"UPDATE {table} SET id = 1", "primary key")
    db.fails(f"UPDATE {table} SET size = 0 WHERE id = 1", "positive")
    assert db.run(f"UPDATE {table} SET id = id + 1, size = DEFAULT") == 2
    assert db.rows(f"SELECT id, size FROM {table} ORDER BY id") == [(2, 7), (3, 7)]
    keys = db.connection.adbc_get_objects(table_name_filter=table).read_all()
    assert keys.num_rows == 1
    db.run(f"DROP TABLE {table}")
    db.fails(f"CREATE TABLE {table} (id INT REFERENCES orders (o_orderkey))", "not enforced", Status.NOT_IMPLEMENTED)
    db.run(f"CREATE TABLE {table} (id INT UNIQUE)")
    assert db.run(f"INSERT INTO {table} VALUES (1), (NULL), (NULL)") == 3
    db.fails(f"INSERT INTO {table} VALUES (2), (1)", "unique key", Status.ALREADY_EXISTS)
    assert db.rows(f"SELECT count(*) FROM {table}") == [(3,)]
    db.run(f"DROP TABLE {table}")


def test_update_and_delete(db, table):
    db.run(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, NULL), (4, 40)) AS v(id, x)")
    assert db.run(f"UPDATE {table} SET x = x + 1 WHERE id <= 2") == 2
    assert db.run(f"UPDATE {table} AS t SET x = n.n_nationkey FROM nation n WHERE n.n_nationkey = t.id AND t.id > 2") == 2
    assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(1, 11), (2, 21), (3, 3), (4, 4)]
    assert db.run(f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE x > 20)") == 1
    assert db.run(f"DELETE FROM {table} WHERE false") == 0
    assert db.run(f"DELETE FROM {table} WHERE NULL") == 0
    assert db.run(f"DELETE FROM {table} t WHERE EXISTS (SELECT 1 FROM nation n WHERE n.n_nationkey = t.x)") == 3 - 0
    assert db.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    assert db.run(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)") == 3
    assert db.run(f"DELETE FROM {table} ORDER BY id DESC LIMIT 1") == 1
    assert db.run(f"DELETE FROM {table} USING nation n WHERE n.n_nationkey = {table}.id AND n.n_nationkey = 1") == 1
    assert db.rows(f"SELECT id FROM {table}") == [(2,)]
    assert db.run(f"TRUNCATE TABLE {table}") == 1
    db.fails(f"UPDATE {table} SET nothing = 1", "`nothing`", Status.NOT_FOUND)
    db.fails(f"UPDATE {table} SET x = 1, x = 2", "twice")
    db.run(f"DROP TABLE {table}")


def test_merge(db, table):
    db.run(f"CREATE TABLE {table} (id INT, x INT, word TEXT DEFAULT 'new')")
    db.run(f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    changed = db.run(
        f"MERGE INTO {table} AS t USING (VALUES (1, 100), (2, -1), (9, 900), (10, -5)) AS s(id, x) ON t.id = s.id "
        "WHEN MATCHED AND s.x < 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET x = t.x + s.x "
        "WHEN NOT MATCHED AND s.x > 0 THEN INSERT (id, x) VALUES (s.id, s.x)"
    )
    assert changed == 3
    assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(1, 101, "a"), (3, 3, "c"), (9, 900, "new")]
    db.fails(
        f"MERGE INTO {table} t USING (VALUES (1), (1)) AS s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 0",
        "twice",
    )
    assert db.rows(f"SELECT x FROM {table} WHERE id = 1") == [(101,)]
    # Each condition stands in the query more than once.
    volatile = f"MERGE INTO {table} t USING (VALUES (1)) AS s(id) ON t.id = s.id WHEN MATCHED AND random() < 0.5 THEN DELETE"
    db.fails(volatile, "random()", Status.NOT_IMPLEMENTED)
    db.run(f"CREATE OR REPLACE TABLE {table} AS SELECT 1 AS id, 9007199254740993 AS x, 0 AS y")
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
    db.fails(f"DELETE FROM {table} WHERE {many}", "UNION ALL")
    db.fails(f"UPDATE {table} SET other.x = 6", "other.x")
    db.fails(f"UPDATE {table} SET x = -x ORDER BY x LIMIT 1", "ORDER BY", Status.NOT_IMPLEMENTED)
    for name in (table, f"{table}_2"):
        db.run(f"DROP TABLE {name}")


def test_alter(db, table):
    db.run(f"CREATE TABLE {table} (id INT, x INT)")
    db.run(f"INSERT INTO {table} VALUES (1, 10), (2, 20)")
    db.run(f"ALTER TABLE {table} ADD COLUMN word TEXT NOT NULL DEFAULT 'w'")
    db.fails(f"ALTER TABLE {table} ADD COLUMN none TEXT NOT NULL", "default")
    db.run(f"ALTER TABLE {table} RENAME COLUMN x TO y")
    db.fails(f"ALTER TABLE {table} ADD COLUMN z INT DEFAULT 1 CHECK (z > 5)", "ADD CONSTRAINT")
    db.fails(f"ALTER TABLE {table} ADD COLUMN __bowshot_address INT", "reserved")
    db.run(f"ALTER TABLE {table} ALTER COLUMN y SET DATA TYPE BIGINT")
    db.run(f"ALTER TABLE {table} ALTER COLUMN y SET DEFAULT 5")
    db.run(f"INSERT INTO {table} (id) VALUES (3)")
    assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(1, 10, "w"), (2, 20, "w"), (3, 5, "w")]
    db.run(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (y < 100)")
    db.fails(f"ALTER TABLE {table} ADD CONSTRAINT tiny CHECK (y < 10)", "tiny")
    db.fails(f"ALTER TABLE {table} DROP COLUMN y", "small")
    db.fails(f"ALTER TABLE {table} ALTER COLUMN y SET DATA TYPE INT", "small")
    db.run(f"ALTER TABLE {table} DROP CONSTRAINT small")
    db.run(f"ALTER TABLE {table} DROP COLUMN y")
    db.run(f"ALTER TABLE {table} RENAME TO {table}_2")
    assert db.rows(f"SELECT * FROM {table}_2 ORDER BY id") == [(1, "w"), (2, "w"), (3, "w")]
    db.fails(f"SELECT * FROM {table}", "not found")
    db.run(f"COMMENT ON TABLE {table}_2 IS 'kept'")
    db.run(f"DROP TABLE {table}_2")


def test_schemas_and_catalogs(db, table):
    db.run(f"CREATE SCHEMA {table}")
    db.run(f"CREATE TABLE {table}.t AS SELECT 1 AS x")
    assert db.rows(f"SELECT x FROM bowshot.{table}.t") == [(1,)]
    assert db.rows(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{table}'") == [("t",)]
    db.fails(f"DROP SCHEMA {table}", "not empty")
    db.run(f"DROP SCHEMA {table} CASCADE")
    db.fails(f"CREATE TABLE {table}.t (x INT)", "not found", Status.NOT_FOUND)
    db.run(f"CREATE DATABASE {table}")
    db.run(f"CREATE TABLE {table}.main.t (x INT)")
    assert db.run(f"INSERT INTO {table}.main.t VALUES (5)") == 1
    assert db.rows(f"SELECT * FROM {table}.main.t") == [(5,)]
    db.run(f"DROP DATABASE {table} CASCADE")
    db.fails("CREATE SCHEMA system", "reserved")


def test_views(db, other, table):
    db.run(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1), (2)) AS v(x)")
    db.run(f"CREATE VIEW {table}_v (double) AS SELECT x * 2 FROM {table}")
    assert other.rows(f"SELECT * FROM {table}_v ORDER BY double") == [(2,), (4,)]
    db.run(f"INSERT INTO {table} VALUES (3)")
    assert other.rows(f"SELECT sum(double) FROM {table}_v") == [(12,)]
    db.fails(f"INSERT INTO {table}_v VALUES (1)", "is a view")
    db.fails(f"DROP TABLE {table}_v", "view")
    db.fails(f"CREATE VIEW {table}_w AS SELECT * FROM missing_table", "missing_table")
    # What a reader calls by the same name for itself does not get in between.
    other.run(f"CREATE TEMPORARY TABLE {table} AS SELECT 1000 AS x")
    assert other.rows(f"SELECT sum(x) FROM {table}") == [(1000,)]
    assert other.rows(f"SELECT sum(double) FROM {table}_v") == [(12,)]
    db.run(f"CREATE OR REPLACE VIEW {table}_v AS SELECT * FROM {table}_v")
    db.fails(f"SELECT * FROM {table}_v", "circle")
    db.run(f"DROP VIEW {table}_v")
    db.run(f"DROP TABLE {table}")


def test_temporary_tables(db, other, table):
    db.run(f"CREATE TEMPORARY TABLE {table} (x INT)")
    db.run(f"INSERT INTO {table} VALUES (1)")
    assert db.rows(f"SELECT * FROM {table}") == [(1,)]
    assert db.rows(f"SELECT * FROM temp.main.{table}") == [(1,)]
    other.fails(f"SELECT * FROM {table}", "not found")
    db.run(f"DROP TABLE {table}")


def test_transactions(db, other, table):
    db.run(f"CREATE TABLE {table} (x INT)")
    db.run("BEGIN")
    db.run(f"INSERT INTO {table} VALUES (1)")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(1,)]
    assert other.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    db.run("SAVEPOINT one")
    db.run(f"INSERT INTO {table} VALUES (2)")
    db.run(f"CREATE TABLE {table}_2 AS SELECT * FROM {table}")
    db.run("ROLLBACK TO SAVEPOINT one")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(1,)]
    # A statement that fails changes nothing, and the transaction goes on.
    db.fails(f"INSERT INTO {table} VALUES ('no number')", "no number")
    db.run("RELEASE SAVEPOINT one")
    db.run("COMMIT")
    assert other.rows(f"SELECT count(*) FROM {table}") == [(1,)]
    other.fails(f"SELECT * FROM {table}_2", "not found")
    db.run("START TRANSACTION")
    db.run(f"DELETE FROM {table}")
    db.run("ROLLBACK")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(1,)]
    # As in PostgreSQL, there is nothing to keep.
    db.run("COMMIT")
    db.fails("SAVEPOINT one", "no transaction")
    db.run("START TRANSACTION READ ONLY")
    db.fails(f"DELETE FROM {table}", "read-only")
    db.run("ROLLBACK")
    db.run("START TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert db.rows("SHOW transaction_isolation") == [("serializable",)]
    db.run("ROLLBACK")
    assert db.rows("SHOW transaction_isolation") == [("repeatable read",)]
    db.run(f"DROP TABLE {table}")


def test_first_committer_wins(db, other, table):
    db.run(f"CREATE TABLE {table} AS SELECT 1 AS x")
    for connection in (db, other):
        connection.run("BEGIN")
        assert connection.run(f"UPDATE {table} SET x = x + 1") == 1
    db.run("COMMIT")
    other.fails("COMMIT", "another transaction")
    other.run("COMMIT")
    assert other.rows(f"SELECT x FROM {table}") == [(2,)]
    db.run(f"DROP TABLE {table}")


def test_statements_that_have_no_support_change_nothing(db, table):
    db.run(f"CREATE TABLE {table} AS SELECT 1 AS x")
    for sql in (
        f"INSERT INTO {table} VALUES (2) ON CONFLICT (x) DO NOTHING",
        f"INSERT INTO {table} VALUES (2) ON CONFLICT DO UPDATE SET x = 3",
        f"MERGE INTO {table} t USING (SELECT 1 AS y) s ON t.x = s.y WHEN MATCHED THEN DELETE RETURNING *",
        f"INSERT INTO {table} VALUES (2) RETURNING nothing",
        f"INSERT INTO {table} VALUES (2) RETURNING x / 0",
        f"COPY {table} TO '/tmp/somewhere.csv'",
    ):
        db.fails(sql, "")
    assert db.rows(f"SELECT * FROM {table}") == [(1,)]
    db.run(f"DROP TABLE {table}")


def test_explain_analyze_runs_a_change_and_shows_its_plan(db, table):
    db.run(f"CREATE TABLE {table} AS SELECT 1 AS x")
    rows = db.rows(f"EXPLAIN ANALYZE INSERT INTO {table} SELECT x + 1 FROM {table}")
    shown = " ".join(str(value) for row in rows for value in row)
    assert "rows=1" in shown and "output_rows=1" in shown, shown
    assert sorted(db.rows(f"SELECT * FROM {table}")) == [(1,), (2,)]
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
