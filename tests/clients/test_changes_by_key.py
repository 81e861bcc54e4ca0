"""Rows that are changed by a key are found by its index, and statements that differ in literals share a plan. What becomes of the
tables, and what is refused, is the same as with a scan and a plan for each."""

import random
import re

import psycopg
import pytest

from server import Server

ROWS = 10_000
TABLE = """CREATE TABLE {} (k INT PRIMARY KEY, n INT NOT NULL, big BIGINT, word TEXT DEFAULT 'x', code TEXT UNIQUE,
    price NUMERIC(10, 2), half DOUBLE PRECISION, day DATE, at TIMESTAMP, twice BIGINT GENERATED ALWAYS AS (n * 2) STORED,
    CHECK (n >= 0))"""
FILL = """INSERT INTO {} (k, n, big, word, code, price, half, day, at) SELECT s, s % 100, s * 1000000000, 'word ' || s, 'code ' || s,
    s / 4.0, s / 2.0, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00' FROM generate_series(1, {}) AS g(s)"""


@pytest.fixture
def pair(shared):
    """Two connections with a table each: one that looks keys up, one that scans."""
    with connect(shared) as fast, connect(shared) as slow:
        slow.execute("SET key_lookups = off")
        for connection, table in ((fast, "fast"), (slow, "slow")):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(TABLE.format(table))
            connection.execute(FILL.format(table, ROWS))
        yield fast, slow


def connect(server, user="ada"):
    return psycopg.connect(**server.postgres(user=user, autocommit=True))


def outcome(connection, table, sql, values=None):
    """The tag and rows of a statement, or its error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.format(t=table), values, prepare=values is not None)
            return cursor.statusmessage, cursor.fetchall() if cursor.description else None
    except psycopg.Error as error:
        # Which one of several rows is named is not settled.
        return error.sqlstate, re.sub(r"\(-?\d+\) twice", "(…) twice", str(error).replace(table, "{t}"))


def same(pair, sql, values=None):
    fast, slow = pair
    expected = outcome(slow, "slow", sql, values)
    assert outcome(fast, "fast", sql, values) == expected, (sql, values)
    return expected


def check_rows(pair):
    fast, slow = pair
    sql = "SELECT * FROM {} ORDER BY k".format
    assert fast.execute(sql("fast")).fetchall() == slow.execute(sql("slow")).fetchall()


STATEMENTS = [
    "UPDATE {t} SET n = n + 5 WHERE k = 7",
    "UPDATE {t} SET n = n + -5 WHERE k = 7",
    "UPDATE {t} SET n = n - 1000 WHERE k = 7",
    "UPDATE {t} SET n = n + 3000000000 WHERE k = 7",
    "UPDATE {t} SET n = n + 2147483647 WHERE k = 7",
    "UPDATE {t} SET n = n * 2, big = big + n, word = 'a' WHERE k = 8",
    "UPDATE {t} SET n = 3000000000 WHERE k = 8",
    "UPDATE {t} SET n = NULL WHERE k = 8",
    "UPDATE {t} SET n = 'seven' WHERE k = 8",
    "UPDATE {t} SET n = '7' WHERE k = 8",
    "UPDATE {t} SET n = 7.5 WHERE k = 8",
    "UPDATE {t} SET n = n / 2, half = half / 3, price = price * 1.5 WHERE k = 9",
    "UPDATE {t} SET n = n / 0 WHERE k = 9",
    "UPDATE {t} SET n = n / 0 WHERE k = -9",
    "UPDATE {t} SET word = DEFAULT, day = '2025-01-01', at = '2025-01-01 10:00:00' WHERE k = 9",
    "UPDATE {t} SET day = day + 1, at = at + INTERVAL '1 day' WHERE k = 9",
    "UPDATE {t} SET k = k + 20000 WHERE k = 10",
    "UPDATE {t} SET k = 12 WHERE k = 11",
    "UPDATE {t} SET code = 'code 14' WHERE k = 13",
    "UPDATE {t} SET code = NULL WHERE k = 13",
    "UPDATE {t} SET twice = 1 WHERE k = 14",
    "UPDATE {t} SET nothing = 1 WHERE k = 14",
    "UPDATE {t} AS a SET n = a.n + 1 WHERE a.k = 15",
    "UPDATE {t} SET n = 1 WHERE k = 15 AND n = 99",
    "UPDATE {t} SET n = 1 WHERE code = 'code 16'",
    "UPDATE {t} SET n = 1 WHERE k = 99999",
    "UPDATE {t} SET n = 1 WHERE k = NULL",
    "UPDATE {t} SET n = 1 WHERE k = 16 RETURNING k, n, twice",
    "DELETE FROM {t} WHERE k = 17",
    "DELETE FROM {t} WHERE k = 17",
    "DELETE FROM {t} WHERE code = 'code 18'",
    "DELETE FROM {t} WHERE k = 19 RETURNING *",
    "INSERT INTO {t} (k, n) VALUES (17, 1)",
    "INSERT INTO {t} (k, n) VALUES (17, 2)",
    "INSERT INTO {t} (k, n) VALUES (-1, -2)",
    "INSERT INTO {t} (k, n, code) VALUES (-2, 5, 'code 20')",
    "INSERT INTO {t} (k, n, price) VALUES (-3, 5, 1.005), (-4, 6, NULL)",
    "INSERT INTO {t} (k, n) VALUES (-5, 5), (-5, 6)",
    "INSERT INTO {t} (k, n, day) VALUES (-6, 5, '2024-02-30')",
    "INSERT INTO {t} (k, n, word) VALUES (-7, 5, DEFAULT)",
    "INSERT INTO {t} (k) VALUES (-8)",
    "INSERT INTO {t} (k, n, price) VALUES (-9, 5, 1.25) RETURNING *",
    "INSERT INTO {t} (k, n) VALUES (-10, 5), (-11, 6) RETURNING k, n * 2 AS m, upper(word), twice, (SELECT max(k) FROM {t})",
    "INSERT INTO {t} (k, n) VALUES (-12, 5) RETURNING n / (k + 12)",
    "DELETE FROM {t} WHERE k = -9 RETURNING k, price + 1, day",
    "DELETE FROM {t} WHERE k = -9 RETURNING k, price + 1, day",
]  # fmt: skip


def test_statements(pair):
    # The first lookup in a file makes no index.
    for turn in range(3):
        for sql in STATEMENTS:
            same(pair, sql)
        check_rows(pair)


def test_parameters(pair):
    for turn in range(3):
        for sql, values in (
            ("UPDATE {t} SET n = n + %s WHERE k = %s", (turn, 7)),
            ("UPDATE {t} SET n = n + %s WHERE k = %s", (-1000, 7)),
            ("UPDATE {t} SET n = n + %s WHERE k = %s", (2**40, 7)),
            ("UPDATE {t} SET word = %s, half = %s WHERE k = %s", (f"it's {turn}", 0.5, 8)),
            ("UPDATE {t} SET word = %s WHERE code = %s", (None, "code 9")),
            ("UPDATE {t} SET n = %s WHERE k = %s", (None, 8)),
            ("UPDATE {t} SET k = %s WHERE k = %s", (12, 11)),
            ("DELETE FROM {t} WHERE k = %s", (20 + turn,)),
            ("DELETE FROM {t} WHERE k = %s", (None,)),
            ("INSERT INTO {t} (k, n, word) VALUES (%s, %s, %s)", (20_000 + turn, turn, "new")),
            ("INSERT INTO {t} (k, n, word) VALUES (%s, %s, %s)", (20_000, turn, "twice")),
            ("INSERT INTO {t} (k, n) VALUES (%s, %s)", (30_000 + turn, -1)),
            ("INSERT INTO {t} (k, n) VALUES (%s, %s) RETURNING k, n + 1, word, twice", (40_000 + turn, turn)),
            ("INSERT INTO {t} (k, n) VALUES (%s, %s) RETURNING k, n + 1, word, twice", (40_000, turn)),
            ("UPDATE {t} SET n = %s WHERE k = %s RETURNING old.n, new.n, twice", (turn, 21)),
        ):
            same(pair, sql, values)
        check_rows(pair)


def step(choose):
    """A statement with other values each time."""
    key, number = choose.choice([*range(1, 40), 5_000, ROWS, ROWS + 7]), choose.randrange(-50, 150)
    return choose.choice((
        f"UPDATE {{t}} SET n = n + {number} WHERE k = {key}",
        f"UPDATE {{t}} SET big = {number}, word = 'w{number}' WHERE k = {key}",
        f"UPDATE {{t}} SET k = {key + choose.randrange(3)} WHERE k = {key}",
        f"UPDATE {{t}} SET n = 1 WHERE n = {number}",
        f"DELETE FROM {{t}} WHERE k = {key}",
        f"DELETE FROM {{t}} WHERE k = {key} RETURNING n, word",
        f"INSERT INTO {{t}} (k, n, code) VALUES ({key}, {number}, 'c{number}')",
        f"INSERT INTO {{t}} (k, n, code) VALUES ({key}, {number}, 'c{number}') RETURNING k, n + {number}, code",
        f"INSERT INTO {{t}} (k, n) VALUES ({key}, 1), ({key + 100_000}, 2)",
        f"SELECT n, word, twice FROM {{t}} WHERE k = {key}",
        "SELECT count(*), sum(n), sum(big) FROM {t}",
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_sequences_in_and_outside_of_transactions(pair, seed):
    choose = random.Random(seed)
    is_open = has_failed = False
    for _ in range(250):
        if is_open:
            sql = choose.choice([*["step"] * 8, "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"])
            if has_failed:
                sql = "ROLLBACK"
        else:
            sql = choose.choice([*["step"] * 6, "BEGIN"])
        sql = step(choose) if sql == "step" else sql
        code, _ = same(pair, sql)
        has_failed = is_open and len(code) == 5 and code not in ("BEGIN",)
        is_open = (is_open or sql == "BEGIN") and sql not in ("COMMIT", "ROLLBACK")
    same(pair, "ROLLBACK")
    check_rows(pair)


def test_rows_survive_a_kill(tmp_path):
    data = tmp_path / "data"
    server = Server(arguments=["--pg", "127.0.0.1:0"], data=data)
    with connect(server) as connection:
        connection.execute(TABLE.format("t"))
        connection.execute(FILL.format("t", ROWS))
        for key in range(1, 200):
            connection.execute(f"UPDATE t SET n = n + 1000 WHERE k = {key}")
        connection.execute("DELETE FROM t WHERE k = 300")
        expected = connection.execute("SELECT * FROM t ORDER BY k").fetchall()
    server.kill()
    with Server(arguments=["--pg", "127.0.0.1:0"], data=data) as server, connect(server) as connection:
        assert connection.execute("SELECT * FROM t ORDER BY k").fetchall() == expected
        connection.execute("OPTIMIZE t")
        assert connection.execute("SELECT * FROM t ORDER BY k").fetchall() == expected
        assert connection.execute("SELECT n FROM t WHERE k = 199").fetchall() == [(1099,)]


def test_others_see_what_a_statement_has_changed(shared, pair):
    """A plan that is used again is one on the newest rows."""
    fast, _ = pair
    with connect(shared) as other:
        for number in range(20):
            fast.execute(f"UPDATE fast SET big = {number} WHERE k = 5")
            assert other.execute("SELECT big FROM fast WHERE k = 5").fetchone() == (number,)
            other.execute(f"UPDATE fast SET big = big + {1000 + number} WHERE k = 5")
            assert fast.execute("SELECT big FROM fast WHERE k = 5").fetchone() == (1000 + 2 * number,)
        other.execute("ALTER TABLE fast ADD CHECK (k <> 5 OR big < 5000)")
        with pytest.raises(psycopg.errors.CheckViolation):
            fast.execute("UPDATE fast SET big = 6000 WHERE k = 5")
        other.execute("DROP TABLE fast")
        with pytest.raises(psycopg.errors.UndefinedTable):
            fast.execute("UPDATE fast SET big = 7 WHERE k = 5")
