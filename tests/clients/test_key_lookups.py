"""Rows that are asked for by a key come from an index in memory. They are those of a scan, whatever has happened to the table."""

import datetime
import decimal
import uuid

import psycopg
import pytest


ROWS = 10_000
DAY = datetime.date(1990, 1, 1)
ZEROS = "00000000-0000-0000-0000-"

# The type of a key, the SQL of the key of row `n`, the same in Python, values that are no key, and whether an index may be used.
KEYS = [
    ("INT", "n", int, [0, -1, ROWS + 1, 2**40, None], True),
    ("BIGINT", "n * 10000000000", lambda n: n * 10_000_000_000, [0, -(2**63), None], True),
    ("SMALLINT", "n", int, [0, 32_000, 40_000, None], True),
    ("INT", "10001 - n", lambda n: 10_001 - n, [0, 2**31], True),
    ("TEXT", "'key ' || n", lambda n: f"key {n}", ["", "key", "KEY 7", "key 7 ", None], True),
    ("DATE", "CAST(TIMESTAMP '1990-01-01 00:00:00' + n * INTERVAL '1 day' AS DATE)", lambda n: DAY + datetime.timedelta(days=n), [DAY, None], True),
    ("CHAR(12)", "'key ' || n", lambda n: f"key {n}", ["", None], False),
    ("NUMERIC(12, 2)", "n + 0.5", lambda n: decimal.Decimal(n) + decimal.Decimal("0.5"), [decimal.Decimal(7), None], False),
    ("UUID", f"CAST('{ZEROS}' || lpad(CAST(n AS TEXT), 12, '0') AS UUID)", lambda n: uuid.UUID(f"{ZEROS}{n:012}"), [uuid.UUID(int=0), None], False),
]
ASKED = [1, 2, 7, 4095, 4096, 9_999, ROWS]
COLUMNS = "k, n, word, price, day, moment, flag, short, padded, half"
TABLE = """CREATE TABLE keyed (k {} PRIMARY KEY, n INT NOT NULL, word TEXT DEFAULT 'x', price NUMERIC(10, 2), day DATE,
    moment TIMESTAMP, flag BOOLEAN, short VARCHAR(20), padded CHAR(8), half DOUBLE PRECISION)"""
FILL = """INSERT INTO keyed SELECT {}, n, CASE WHEN n % 3 > 0 THEN 'word ' || n END, n / 4.0,
    CAST(TIMESTAMP '2020-01-01 00:00:00' + (n % 365) * INTERVAL '1 day' AS DATE),
    TIMESTAMP '2020-01-01 00:00:00' + n * INTERVAL '1 second', n % 2 = 0, 'v' || n, 'p' || (n % 1000), n / 2.0
    FROM generate_series(1, {}) AS s(n)"""


def connect(server, **more):
    return psycopg.connect(**server.postgres(autocommit=True, **more))


@pytest.fixture
def pair(shared):
    """Two connections: one that looks keys up, one that scans."""
    with connect(shared) as fast, connect(shared) as slow:
        slow.execute("SET key_lookups = off")
        yield fast, slow


def make(connection, data_type="INT", key="n", rows=ROWS):
    connection.execute("DROP TABLE IF EXISTS keyed")
    connection.execute(TABLE.format(data_type))
    connection.execute(FILL.format(key, rows))


def answer(connection, sql, *values, binary=False):
    """The rows with the names and types of their columns."""
    with connection.cursor(binary=binary) as cursor:
        cursor.execute(sql, values, prepare=True)
        return [(column.name, column.type_code, column.internal_size, column.precision) for column in cursor.description], cursor.fetchall()


def same(pair, sql, *values, times=3):
    """What both give, the first time as later, once there is an index."""
    fast, slow = pair
    expected = answer(slow, sql, *values)
    for turn in range(times):
        assert answer(fast, sql, *values, binary=turn % 2 == 1) == expected, (sql, values, turn)
    return expected[1]


def is_looked_up(connection, sql):
    return "KeyLookup" in str(connection.execute("EXPLAIN " + sql).fetchall())


def by_text(connection, sql, *values):
    """The same as `answer` of a text with the values in it, which no client prepares."""
    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute(sql, values or None)
        return [(column.name, column.type_code, column.internal_size, column.precision) for column in cursor.description], cursor.fetchall()


def same_by_text(pair, sql, *values):
    """What texts give with and without lookups. The plan of one may be that of an earlier text with other values."""
    fast, slow = pair
    expected = by_text(slow, sql, *values)
    for _ in range(2):
        assert by_text(fast, sql, *values) == expected, (sql, values)
        with fast.cursor() as cursor:
            # Prepared anew for each execution.
            assert cursor.execute(sql, values, prepare=False).fetchall() == expected[1], (sql, values)
    return expected[1]


@pytest.mark.parametrize("ask", [same, same_by_text])
@pytest.mark.parametrize(("data_type", "key", "value", "others", "has_index"), KEYS)
def test_keys_of_every_type_give_the_rows_of_a_scan(pair, ask, data_type, key, value, others, has_index):
    fast, slow = pair
    rows = 3_000 if data_type == "SMALLINT" else ROWS
    make(fast, data_type, key, rows)
    literal = {"TEXT": "'x'", "CHAR(12)": "'x'"}.get(data_type, "7")
    if data_type not in ("DATE", "UUID"):
        assert is_looked_up(fast, f"SELECT n FROM keyed WHERE k = {literal}") == has_index
    for n in (asked for asked in ASKED if asked <= rows):
        for sql in ("SELECT n FROM keyed WHERE k = %s", f"SELECT {COLUMNS} FROM keyed WHERE k = %s", "SELECT * FROM keyed a WHERE a.k = %s"):
            ((*found,),) = ask(pair, sql, value(n))
            assert n in found
    for other in others:
        assert ask(pair, "SELECT n AS number, k FROM keyed WHERE %s = k AND n > 0", other) == []


def test_literals_and_renamed_columns(pair):
    make(pair[0])
    for sql in (
        "SELECT n, n AS m, word w FROM keyed WHERE k = 77",
        "SELECT word FROM main.keyed WHERE 77 = keyed.k",
        "SELECT * FROM keyed WHERE k = -77",
        "SELECT * FROM keyed WHERE k = 3000000000",
        "SELECT * FROM keyed WHERE k = 77.0",
        "SELECT * FROM keyed WHERE k = '77'",
        "SELECT * FROM keyed WHERE k = NULL",
        "SELECT * FROM keyed WHERE k = 77 AND n = 78",
        "SELECT * FROM keyed WHERE k = 77 AND k = 78",
        "SELECT * FROM keyed WHERE k = 77 ORDER BY n LIMIT 1",
    ):
        same(pair, sql)


@pytest.mark.parametrize("ask", [same, same_by_text])
def test_limits_and_orders_of_one_row(pair, ask):
    fast, slow = pair
    make(fast)
    for tail, rows in (
        ("LIMIT 1", 1),
        ("LIMIT 21", 1),
        ("LIMIT 0", 0),
        ("LIMIT 1 OFFSET 0", 1),
        ("LIMIT 1 OFFSET 1", 0),
        ("OFFSET 1", 0),
        ("FETCH FIRST 1 ROW ONLY", 1),
        ("LIMIT ALL", 1),
        ("ORDER BY k LIMIT 1", 1),
        ("ORDER BY word DESC, n LIMIT 21", 1),
        ("ORDER BY price", 1),
        ("ORDER BY price LIMIT 0", 0),
    ):
        for key in (7, 8, 0):
            found = ask(pair, f"SELECT k, n, word FROM keyed WHERE k = %s {tail}", key)
            assert len(found) == (rows if key else 0), (tail, key)
    for limit in (1, 21, 0, 1, 2):
        assert len(ask(pair, "SELECT * FROM keyed WHERE k = %s ORDER BY k LIMIT %s", 7, limit)) == min(limit, 1)
    for limit in (-1, "x"):
        failures = set()
        for connection in (fast, slow):
            with pytest.raises(psycopg.Error) as failure:
                answer(connection, "SELECT n FROM keyed WHERE k = %s LIMIT %s", 7, limit)
            failures.add((failure.value.sqlstate, failure.value.diag.message_primary))
        assert len(failures) == 1
    assert is_looked_up(fast, "SELECT n FROM keyed WHERE k = 7 ORDER BY n LIMIT 21")
    assert not is_looked_up(fast, "SELECT n FROM keyed WHERE k = 7 LIMIT 0")
    assert not is_looked_up(fast, "SELECT n FROM keyed WHERE k = 7 LIMIT 1 OFFSET 1")


def test_keys_of_two_columns_and_unique_columns(pair):
    fast, _ = pair
    fast.execute("DROP TABLE IF EXISTS double")
    fast.execute("CREATE TABLE double (a INT, b TEXT, c BIGINT UNIQUE, d INT, PRIMARY KEY (b, a))")
    fast.execute("INSERT INTO double SELECT n % 100, 'b' || (n / 100), CASE WHEN n % 2 = 0 THEN n END, n FROM generate_series(0, 9999) AS s(n)")
    assert is_looked_up(fast, "SELECT d FROM double WHERE a = 1 AND b = 'b2'")
    assert is_looked_up(fast, "SELECT d FROM double WHERE c = 4")
    assert not is_looked_up(fast, "SELECT d FROM double WHERE a = 1")
    assert not is_looked_up(fast, "SELECT d FROM double WHERE a = 1 AND b = 'b2' AND d = 3")
    for a, b, rows in [(7, "b3", [(307,)]), (99, "b99", [(9999,)]), (7, "b100", []), (100, "b3", []), (None, "b3", [])]:
        assert same(pair, "SELECT d FROM double WHERE a = %s AND b = %s", a, b) == rows
    for c, rows in [(0, [(0,)]), (9998, [(9998,)]), (3, []), (None, [])]:
        assert same(pair, "SELECT d FROM double WHERE c = %s", c) == rows


def test_the_session_option_turns_it_off(pair):
    fast, slow = pair
    make(fast)
    sql = "SELECT n FROM keyed WHERE k = 7"
    assert is_looked_up(fast, sql) and not is_looked_up(slow, sql)
    assert slow.execute("SHOW key_lookups").fetchone()[0] in ("off", "false")
    slow.execute("RESET key_lookups")
    assert is_looked_up(slow, sql)
    fast.execute("CREATE OR REPLACE VIEW seen AS SELECT * FROM keyed")
    assert not is_looked_up(fast, "SELECT n FROM keyed WHERE n = 7")
    assert same(pair, "SELECT n FROM seen WHERE k = %s", 7) == [(7,)]
    fast.execute("DROP VIEW seen")


def test_texts_with_values_of_other_kinds(pair):
    make(pair[0])
    for value in ("7", "8", "-7", "'7'", "'8'", "7.0", "7.5", "3000000000", "9223372036854775807", "9223372036854775808", "007", "NULL", "DATE '2020-01-01'", "'x'", "9"):
        sql = f"SELECT n, word FROM keyed WHERE k = {value}"
        answers = []
        for connection in pair:
            try:
                answers.append(by_text(connection, sql))
            except psycopg.Error as error:
                answers.append((error.sqlstate, str(error)))
        assert answers[0] == answers[1], value
    fast, _ = pair
    fast.execute("CREATE OR REPLACE TABLE double (a INT, b INT, c TEXT, PRIMARY KEY (a, b))")
    fast.execute("INSERT INTO double SELECT n / 100, n % 100, 'c' || n FROM generate_series(0, 9999) AS s(n)")
    for a, b in [(1, 1), (1, 2), (2, 1), (3, 7), (7, 3), (7, 7)]:
        assert same_by_text(pair, "SELECT c FROM double WHERE a = %s AND b = %s", a, b) == [(f"c{a * 100 + b}",)]
        assert same_by_text(pair, "SELECT c FROM double WHERE b = %s AND a = %s", b, a) == [(f"c{a * 100 + b}",)]


def test_changes_are_seen_at_once(pair):
    fast, slow = pair
    make(slow)
    look = "SELECT * FROM keyed WHERE k = %s"
    changes = [
        ("SELECT 1", [7, 8, 9]),
        ("UPDATE keyed SET word = 'new' WHERE k = 7", [7, 8]),
        ("UPDATE keyed SET k = 20007 WHERE k = 7", [7, 20007]),
        ("DELETE FROM keyed WHERE k = 20007", [20007, 8]),
        ("INSERT INTO keyed (k, n) VALUES (7, 70)", [7, 8]),
        ("INSERT INTO keyed (k, n) VALUES (7, 71) ON CONFLICT (k) DO UPDATE SET n = 71", [7]),
        ("OPTIMIZE keyed", [7]),
        ("ALTER TABLE keyed ALTER COLUMN n SET DATA TYPE BIGINT", [7, 8]),
        ("ALTER TABLE keyed ADD COLUMN more INT DEFAULT 5", [7, 8]),
        ("ALTER TABLE keyed DROP COLUMN half", [7, 8]),
        ("ALTER TABLE keyed RENAME COLUMN word TO words", [7, 8]),
        ("TRUNCATE TABLE keyed", [8]),
        ("INSERT INTO keyed (k, n) VALUES (8, 80)", [7, 8]),
        ("DROP TABLE keyed", []),
        ("CREATE TABLE keyed (n INT, k TEXT PRIMARY KEY)", ["7"]),
        ("INSERT INTO keyed VALUES (1, '7'), (2, '8')", ["7", "8"]),
        ("CREATE OR REPLACE TABLE keyed (k INT, n INT)", [7, 8]),
        ("INSERT INTO keyed VALUES (7, 1), (7, 2)", [7, 8]),
        ("CREATE OR REPLACE VIEW keyed_view AS SELECT * FROM keyed", [7, 8]),
    ]
    for turn, (sql, keys) in enumerate(changes):
        slow.execute(sql)
        for key in keys:
            rows = same_by_text(pair, look, key)
            # A prepared statement refuses another type of its result.
            assert same(pair, f"SELECT * FROM keyed AS t{turn} WHERE k = %s", key) == rows, sql
        if not keys:
            for connection in pair:
                with pytest.raises(psycopg.errors.UndefinedTable):
                    by_text(connection, look, 7)
    slow.execute("DROP VIEW keyed_view")


def test_texts_follow_settings(pair):
    fast, slow = pair
    make(fast, "TEXT", "'key ' || n")
    fast.execute("CREATE SCHEMA IF NOT EXISTS beside")
    fast.execute("CREATE OR REPLACE TABLE beside.keyed (k TEXT PRIMARY KEY, n INT)")
    fast.execute("INSERT INTO beside.keyed VALUES ('key 7', -7), ('key 8', -8)")
    look = "SELECT n FROM keyed WHERE k = %s"
    for _ in range(2):
        assert [same_by_text(pair, look, f"key {n}") for n in (7, 8)] == [[(7,)], [(8,)]]
        for connection in pair:
            connection.execute("SET search_path = beside, main")
        assert [same_by_text(pair, look, f"key {n}") for n in (7, 8, 9)] == [[(-7,)], [(-8,)], []]
        for connection in pair:
            connection.execute("RESET search_path")
        assert same_by_text(pair, look, "KEY 7") == []
    sql = "SELECT n FROM keyed WHERE k = '{}'".format
    for dialect in ("postgres", "mysql", "ansi", "mysql"):
        for connection in pair:
            connection.execute(f"SET dialect = '{dialect}'")
        for key in ("key 7", "KEY 7", "key 8", "KEY 8"):
            assert by_text(fast, sql(key)) == by_text(slow, sql(key)), (dialect, key)
    for connection in pair:
        connection.execute("SET dialect = 'postgres'")
    assert same_by_text(pair, look, "key 8") == [(8,)]
    fast.execute("SET key_lookups = off")
    assert same_by_text(pair, look, "key 9") == [(9,)]
    fast.execute("SET key_lookups = on")
    assert same_by_text(pair, look, "key 9") == [(9,)]
    fast.execute("CREATE TEMPORARY TABLE keyed (k TEXT PRIMARY KEY, n INT)")
    assert by_text(fast, look, "key 9")[1] == answer(fast, "SELECT n FROM keyed AS later WHERE k = %s", "key 9")[1]
    slow.execute("DROP SCHEMA beside CASCADE")


@pytest.mark.parametrize("ask", [answer, by_text])
def test_transactions_see_their_own_rows_and_no_others(shared, pair, ask):
    fast, _ = pair
    make(fast)
    look = "SELECT n FROM keyed WHERE k = %s"
    with connect(shared) as third:

        def rows(*keys):
            return [ask(third, look, key)[1] for key in keys for _ in range(2)][1::2]

        assert rows(7, 8) == [[(7,)], [(8,)]]
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            third.execute(f"BEGIN ISOLATION LEVEL {level}")
            assert rows(7, 8) == [[(7,)], [(8,)]]
            fast.execute("UPDATE keyed SET n = 80 WHERE k = 8")
            assert rows(7, 8) == [[(7,)], [(8,)]]
            assert [same_by_text(pair, look, key) for key in (7, 8)] == [[(7,)], [(80,)]]
            third.execute("UPDATE keyed SET n = 70 WHERE k = 7")
            third.execute("INSERT INTO keyed (k, n) VALUES (20000, 1)")
            third.execute("DELETE FROM keyed WHERE k = 9")
            assert rows(7, 8, 20_000, 9) == [[(70,)], [(8,)], [(1,)], []]
            assert [same_by_text(pair, look, key) for key in (7, 20_000, 9)] == [[(7,)], [], [(9,)]]
            third.execute("ROLLBACK")
            assert rows(7, 8) == [[(7,)], [(80,)]]
            fast.execute("UPDATE keyed SET n = 8 WHERE k = 8")
            assert rows(7, 8) == [[(7,)], [(8,)]]
