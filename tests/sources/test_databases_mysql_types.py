"""Types of MariaDB, there and back; rows that are added."""

import contextlib
import datetime
import decimal

import pytest

import mariadb
from databases import Reader, eventually
from durable import Database

LONG = datetime.timedelta(hours=838, minutes=59, seconds=59, microseconds=999999)

TYPES = [
    # what MariaDB has, a value as it reads it, the type here, the value here
    ("TINYINT", "-128", "TINYINT", -128), ("TINYINT UNSIGNED", "255", "UTINYINT", 255), ("BOOLEAN", "TRUE", "TINYINT", 1),
    ("SMALLINT", "-32768", "SMALLINT", -32768), ("SMALLINT UNSIGNED", "65535", "USMALLINT", 65535),
    ("MEDIUMINT", "-8388608", "INTEGER", -8388608), ("MEDIUMINT UNSIGNED", "16777215", "UINTEGER", 16777215),
    ("INT", "-2147483648", "INTEGER", -(2**31)), ("INT UNSIGNED ZEROFILL", "4294967295", "UINTEGER", 2**32 - 1),
    ("BIGINT", "-9223372036854775808", "BIGINT", -(2**63)), ("BIGINT UNSIGNED", "18446744073709551615", "UBIGINT", 2**64 - 1),
    ("DECIMAL(10, 2)", "-12345678.90", "DECIMAL(10,2)", decimal.Decimal("-12345678.90")),
    ("DECIMAL(38, 0)", "12345678901234567890123456789012345678", "DECIMAL(38,0)", decimal.Decimal("12345678901234567890123456789012345678")),
    ("DECIMAL(38, 30)", "-1.5", "DECIMAL(38,30)", decimal.Decimal("-1.500000000000000000000000000000")),
    ("DECIMAL(65, 30)", "12345678901234567890123456789012345.5", "VARCHAR", "12345678901234567890123456789012345.500000000000000000000000000000"),
    ("FLOAT", "16777217.5", "REAL", 16777218.0), ("FLOAT", "0.1", "REAL", 0.10000000149011612), ("DOUBLE", "1e300", "DOUBLE", 1e300),
    ("DOUBLE", "0.1", "DOUBLE", 0.1), ("DATE", "'1000-01-01'", "DATE", datetime.date(1000, 1, 1)), ("DATE", "'9999-12-31'", "DATE", datetime.date(9999, 12, 31)),
    ("DATETIME(6)", "'2024-02-29 12:34:56.789012'", "TIMESTAMP", datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)),
    ("DATETIME", "'1000-01-01 00:00:00'", "TIMESTAMP", datetime.datetime(1000, 1, 1)),
    ("TIMESTAMP(6) NULL", "'2024-02-29 12:34:56.5'", "TIMESTAMPTZ", datetime.datetime(2024, 2, 29, 12, 34, 56, 500000)),
    ("TIME(6)", "'-838:59:59.999999'", "INTERVAL", -LONG), ("TIME(6)", "'838:59:59.999999'", "INTERVAL", LONG),
    ("TIME", "'00:00:01'", "INTERVAL", datetime.timedelta(seconds=1)), ("TIME", "'-00:00:01'", "INTERVAL", -datetime.timedelta(seconds=1)),
    ("YEAR", "2155", "SMALLINT", 2155), ("BIT(1)", "b'1'", "BOOLEAN", True), ("BIT(64)", "0xFFFFFFFFFFFFFFFF", "UBIGINT", 2**64 - 1), ("BIT(9)", "b'100000001'", "UBIGINT", 257),
    ("CHAR(4)", "'ab'", "VARCHAR", "ab"), ("VARCHAR(20)", "'ä''\\ 🚀 '", "VARCHAR", "ä'\\ 🚀 "), ("TINYTEXT", "''", "VARCHAR", ""), ("MEDIUMTEXT", "'x'", "VARCHAR", "x"),
    ("VARCHAR(20) CHARACTER SET latin1", "'äöü'", "VARCHAR", "äöü"), ("TEXT CHARACTER SET ucs2", "'日本'", "VARCHAR", "日本"),
    ("VARCHAR(20) CHARACTER SET utf8mb3", "'日本'", "VARCHAR", "日本"),
    ("BINARY(4)", "X'00ff'", "BLOB", b"\x00\xff\x00\x00"), ("VARBINARY(9)", "X'00ff'", "BLOB", b"\x00\xff"), ("BLOB", "X'27225C00ff0a'", "BLOB", b"'\"\\\x00\xff\n"), ("LONGBLOB", "''", "BLOB", b""),
    ("ENUM('a unsigned', 'b''c', 'ü')", "'b''c'", "VARCHAR", "b'c"), ("SET('a', 'b', 'c')", "'c,a'", "VARCHAR", "a,c"), ("JSON", "'{\"a\": [1, null]}'", "VARCHAR", '{"a": [1, null]}'),
    ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "VARCHAR", "123e4567-e89b-12d3-a456-426655440000"), ("INET6", "'::1'", "VARCHAR", "::1"),
    ("POINT", "ST_GeomFromText('POINT(1 2)', 4326)", "BLOB", bytes.fromhex("e61000000101000000000000000000f03f0000000000000040")),
]


@pytest.fixture(scope="module")
def my(folder):
    server = mariadb.MariaDb("--max-allowed-packet=4M")
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(TYPES))
    values = ", ".join(value for _, value, *_ in TYPES)
    names = ", ".join(f"c{number}" for number in range(len(TYPES)))
    server.run(f"CREATE TABLE shop.kinds (n INT, {columns})", f"INSERT INTO shop.kinds (n, {names}) VALUES (1, {values})", "INSERT INTO shop.kinds (n) VALUES (2)")
    yield server
    server.close()


@pytest.fixture(scope="module")
def writer(folder, my):
    source = mariadb.MySource("my", "mysql", "shop", mariadb.entry(my, read_only="false", cache_ttl='"0s"'), None, [])
    with Reader(folder, source.config()) as server:
        yield server


def test_types_of_mariadb(writer, my):
    found = dict(writer.rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = 'my' AND table_name = 'kinds'"))
    ((_, *first),) = writer.rows("SELECT * FROM my.shop.kinds WHERE n = 1")
    ((_, *theirs),) = my.rows("SELECT * FROM shop.kinds WHERE n = 1")
    for number, (kind, _, _, value) in enumerate(TYPES):
        got, told = first[number], theirs[number]
        if isinstance(got, datetime.datetime):
            got = got.replace(tzinfo=None)
        assert got == value and type(got) is type(value), (kind, got, value, found[f"c{number}"])
        # MariaDB's own client says the same, but for numbers in bits, floats of six digits, and what its library makes of texts.
        if kind.startswith("BIT"):
            told = int.from_bytes(told, "big")
        if isinstance(value, str) and isinstance(told, decimal.Decimal):
            told = f"{told:f}"
        if not kind.startswith("FLOAT"):
            assert told == value, (kind, told, value)
    ((_, *second),) = writer.rows("SELECT * FROM my.shop.kinds WHERE n = 2")
    assert set(second) == {None}
    kinds = {kind: found[f"c{number}"] for number, (kind, _, _, _) in enumerate(TYPES)}
    assert kinds["DATETIME"].lower().startswith("timestamp") and "interval" in kinds["TIME"].lower(), kinds


def test_rows_go_there_and_back(writer, my):
    """What was read of a table of every type is added to another one, and MariaDB itself finds no difference."""
    my.run("CREATE TABLE shop.copied LIKE shop.kinds", "ALTER TABLE shop.copied ADD extra INT AUTO_INCREMENT PRIMARY KEY, ADD note TEXT DEFAULT 'here'")
    names = ", ".join(["n", *(f"c{number}" for number in range(len(TYPES)))])
    assert writer.rows(f"INSERT INTO my.shop.copied ({names}) SELECT {names} FROM my.shop.kinds") in ([(2,)], [])
    different = [kind for number, (kind, *_) in enumerate(TYPES)
                 if my.rows(f"SELECT count(*) FROM shop.kinds a JOIN shop.copied b ON a.n = b.n AND a.c{number} <=> b.c{number} AND HEX(a.c{number}) <=> HEX(b.c{number})") != [(2,)]]
    assert different == []
    assert my.rows("SELECT min(note), count(extra), max(extra) FROM shop.copied") == [("here", 2, 2)]
    # By way of a table here.
    writer.database.run("CREATE TABLE here AS SELECT * FROM my.shop.kinds", f"INSERT INTO my.shop.copied ({names}) SELECT {names} FROM here")
    assert my.rows("SELECT count(*) FROM shop.kinds a JOIN shop.copied b USING (n, c7, c11, c21, c24)") == [(2,)]
    my.run("DROP TABLE shop.copied")


def test_days_that_are_none_are_never_silent(folder, my):
    my.run("CREATE TABLE shop.zeros (k INT PRIMARY KEY, d DATE, t DATETIME(6), z TIMESTAMP NULL, n DATE NOT NULL)",
           "SET sql_mode = 'ALLOW_INVALID_DATES'", "INSERT INTO shop.zeros VALUES (1, '2024-01-01', '2024-01-01', '2024-01-01', '2024-01-01')")
    with contextlib.closing(my.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute("INSERT INTO shop.zeros VALUES (2, '0000-00-00', '0000-00-00 00:00:00', 0, '0000-00-00'), (3, '2024-02-31', '2024-02-31', NULL, '2024-01-02'), "
                       "(4, '2024-00-10', '2024-00-10', NULL, '2024-01-02'), (5, NULL, NULL, NULL, '2024-01-02')")
    usual = mariadb.MySource("my", "mysql", "shop", mariadb.entry(my), None, [])
    lenient = mariadb.MySource("nulls", "mysql", "shop", mariadb.entry(my, zero_dates='"null"'), None, [])
    with Reader(folder, usual.config() + lenient.config()) as server:
        for column in "dtzn":
            words = server.refused(f"SELECT {column} FROM my.shop.zeros")
            assert f"`{column}`" in words and "zero_dates" in words, words
        assert server.rows("SELECT d, t, z, n FROM my.shop.zeros WHERE k = 1")[0][0] == datetime.date(2024, 1, 1)
        assert server.rows("SELECT k FROM my.shop.zeros WHERE d = DATE '2024-01-01'") == [(1,)]
        # What is decided over such a day is an error, not an answer.
        for condition in ("d < DATE '2025-01-01'", "d > DATE '2023-01-01'", "d <> DATE '2024-01-01'", "NOT (d = DATE '2024-01-01')", "d IS NOT NULL", "d IS NULL", "t < TIMESTAMP '2025-01-01 00:00:00'",
                          "z < TIMESTAMPTZ '2025-01-01 00:00:00+00'", "n < DATE '2025-01-01'", "d NOT IN (DATE '2024-01-01', DATE '2024-01-03', DATE '2024-01-04', DATE '2024-01-05')"):
            assert "zero_dates" in server.refused(f"SELECT count(*) FROM my.shop.zeros WHERE {condition}"), condition
        nulls = "nulls.shop.zeros"
        assert server.rows(f"SELECT k, d FROM {nulls} ORDER BY k") == [(1, datetime.date(2024, 1, 1)), (2, None), (3, None), (4, None), (5, None)]
        for condition, keys in (("d < DATE '2025-01-01'", [1]), ("d IS NULL", [2, 3, 4, 5]), ("d IS NOT NULL", [1]), ("NOT (d = DATE '2024-01-02')", [1]), ("n IS NULL", [2]),
                                ("t > TIMESTAMP '2023-01-01 00:00:00'", [1]), ("z IS NULL", [2, 3, 4, 5]), ("d IN (DATE '2024-01-01')", [1])):
            assert server.rows(f"SELECT k FROM {nulls} WHERE {condition} ORDER BY k") == [(key,) for key in keys], condition
            assert server.rows(f"SELECT count(*) FROM {nulls} WHERE {condition}") == [(len(keys),)], condition


def test_all_rows_are_added_or_none(writer, my):
    my.run("CREATE TABLE shop.target (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(40), d DECIMAL(10, 2), f DOUBLE, n INT NOT NULL DEFAULT 7, s VARCHAR(3))")
    table = "my.shop.target"
    writer.database.run(f"INSERT INTO {table} (id, t) VALUES (0, 'zero is kept'), (5, 'it''s \\ \"so\" `?` :a %s')")
    assert my.rows("SELECT id, t, n FROM shop.target ORDER BY id") == [(0, "zero is kept", 7), (5, "it's \\ \"so\" `?` :a %s", 7)]
    many = "SELECT 100 + a, 'row ' || a, a / 4.0 FROM generate_series(1, 100000) AS g(a)"
    writer.database.run(f"INSERT INTO {table} (id, t, f) {many}")
    assert my.rows("SELECT count(*), sum(id), sum(f), min(t) FROM shop.target WHERE id > 100") == [(100_000, 5_010_050_000, 1_250_012_500.0, "row 1")]
    my.run("DELETE FROM shop.target WHERE id > 100")
    before = my.rows("SELECT count(*) FROM shop.target")
    for rows, word in (("(id) SELECT 100 + a % 40000 FROM generate_series(1, 50000) AS g(a)", "Duplicate entry"),
                       ("(id) SELECT 100 + a / (a - 200000) FROM generate_series(1, 300000) AS g(a)", ""),
                       ("(id, s) SELECT 100 + a, repeat('x', CAST(a / 30000 AS INT)) FROM generate_series(1, 150000) AS g(a)", "too long"),
                       ("(id, f) SELECT 100 + a, CASE WHEN a = 5000 THEN CAST('NaN' AS DOUBLE) ELSE 1 END FROM generate_series(1, 5000) AS g(a)", "out of range"),
                       ("(n) SELECT CASE WHEN a < 1000 THEN a END FROM generate_series(1, 1000) AS g(a)", ""),
                       ("(id, t) SELECT 100, repeat('x', 5000000)", "max_allowed_packet"),
                       ("(nothing) VALUES (1)", "no column")):
        assert word in writer.refused(f"INSERT INTO {table} {rows}"), rows
        assert my.rows("SELECT count(*) FROM shop.target") == before, rows
    eventually(lambda: my.rows("SELECT count(*) FROM information_schema.innodb_trx") == [(0,)], "no transaction is left")
    large = "SELECT 1000 + a, repeat('ä', 1000000) FROM generate_series(1, 12) AS g(a)"
    my.run("CREATE TABLE shop.wide (id INT, t LONGTEXT)")
    writer.database.run(f"INSERT INTO my.shop.wide {large}")
    assert my.rows("SELECT count(*), min(char_length(t)) FROM shop.wide") == [(12, 1_000_000)]
    assert writer.rows("SELECT count(*), sum(length(t)) FROM my.shop.wide") == [(12, 12_000_000)]
    my.run("DROP TABLE shop.wide")


def test_what_cannot_be_undone_or_promised_is_refused(writer, my):
    my.run("CREATE TABLE IF NOT EXISTS shop.plain (id INT, d DATE, h TIME(6), g INT AS (id + 1))", "CREATE TABLE shop.isam (id INT) ENGINE = MyISAM", "CREATE VIEW shop.seen AS SELECT id FROM shop.plain")
    for table in ("isam", "seen"):
        assert "has no transactions" in writer.refused(f"INSERT INTO my.shop.{table} VALUES (1)"), table
    assert my.rows("SELECT count(*) FROM shop.isam") == [(0,)]
    table = "my.shop.plain"
    for sql, word in ((f"UPDATE {table} SET id = 1", "another database"), (f"DELETE FROM {table}", "another database"), (f"TRUNCATE TABLE {table}", "another database"),
                      (f"DROP TABLE {table}", "another database"), ("CREATE TABLE my.shop.made (x INT)", "another database"), (f"ALTER TABLE {table} ADD COLUMN x INT", "another database"),
                      (f"INSERT INTO {table} (id) VALUES (1) ON CONFLICT DO NOTHING", "only added"), (f"INSERT INTO {table} (id) VALUES (1) RETURNING id", "only added"),
                      (f"INSERT INTO {table} (g) VALUES (1)", "generated"), (f"INSERT INTO {table} (h) VALUES (INTERVAL '839 hours')", ""),
                      (f"INSERT INTO {table} (d) VALUES (DATE '9999-12-31' + INTERVAL '1 day')", "")):
        assert word in writer.refused(sql), sql
    assert my.rows("SELECT count(*) FROM shop.plain") == [(0,)]
    with Database(writer, autocommit=False) as transaction:
        assert "cannot run in a transaction" in writer.refused(f"INSERT INTO {table} (id) VALUES (1)", transaction)
