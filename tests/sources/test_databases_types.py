"""Tables of other databases: types, there and back."""

import datetime
import decimal

import pytest

import databases
from databases import Reader, Source, text, texts
from durable import Database


TYPES = [
    # what PostgreSQL has, a value, the type here, the value here
    ("int2", "-32768", "SMALLINT", -32768), ("int4", "2147483647", "INTEGER", 2147483647),
    ("int8", "-9223372036854775808", "BIGINT", -(2**63)), ("float4", "'1.5'", "REAL", 1.5), ("float8", "'1e300'", "DOUBLE", 1e300),
    ("numeric(10, 2)", "'-12345678.90'", "DECIMAL(10,2)", decimal.Decimal("-12345678.90")),
    ("numeric(38, 0)", "'12345678901234567890123456789012345678'", "DECIMAL(38,0)", decimal.Decimal("12345678901234567890123456789012345678")),
    ("numeric", "'1234567890123456789012345678901234567890.5'", "VARCHAR", "1234567890123456789012345678901234567890.5"),
    ("numeric(60, 30)", "'1.5'", "VARCHAR", "1.500000000000000000000000000000"),
    ("bool", "true", "BOOLEAN", True), ("text", "'ä''\\x'", "VARCHAR", "ä'\\x"), ("varchar(9)", "'abc'", "VARCHAR", "abc"),
    ("char(4)", "'ab'", "VARCHAR", "ab  "), ("name", "'abc'", "VARCHAR", "abc"), ("bytea", "'\\x0001ff'", "BLOB", b"\x00\x01\xff"),
    ("date", "'0001-01-01'", "DATE", datetime.date(1, 1, 1)),
    ("timestamp", "'2024-02-29 12:34:56.789012'", "TIMESTAMP", datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)),
    ("timestamptz", "'2024-02-29 12:34:56+02'", "TIMESTAMPTZ", "2024-02-29 10:34:56+00:00"), ("time", "'23:59:59.5'", "TIME", datetime.time(23, 59, 59, 500000)),
    ("interval", "'1 month 2 days 3 seconds'", "INTERVAL", "MonthDayNano(months=1, days=2, nanoseconds=3000000000)"),
    ("oid", "4294967295", "BIGINT", 4294967295), ("uuid", "'00000000-0000-0000-0000-00000000000a'", "VARCHAR", "00000000-0000-0000-0000-00000000000a"),
    ("json", "'{\"a\":1}'", "VARCHAR", '{"a":1}'), ("jsonb", "'{\"a\":1}'", "VARCHAR", '{"a": 1}'), ("int4[]", "'{{1,2},{3,4}}'", "VARCHAR", "{{1,2},{3,4}}"),
    ("text[]", "'{a,NULL}'", "VARCHAR", "{a,NULL}"), ("inet", "'1.2.3.4/8'", "VARCHAR", "1.2.3.4/8"), ("point", "'(1,2)'", "VARCHAR", "(1,2)"),
    ("int4range", "'[1,3)'", "VARCHAR", "[1,3)"), ("bit(3)", "'101'", "VARCHAR", "101"), ("timetz", "'12:00+01'", "VARCHAR", "12:00:00+01"),
    ("xml", "'<a/>'", "VARCHAR", "<a/>"), ("mood", "'happy'", "VARCHAR", "happy"), ("pair", "'(1,x)'", "VARCHAR", "(1,x)"),
    ("positive", "5", "INTEGER", 5), ("word", "'abc'", "VARCHAR", "abc"), ("money", "'3.5'", "VARCHAR", "$3.50"), ("tsvector", "'a b'", "VARCHAR", "'a' 'b'"),
]


@pytest.fixture(scope="module")
def kinds(postgres):
    postgres.run("CREATE TYPE mood AS ENUM ('happy', 'sad')", "CREATE TYPE pair AS (a int, b text)",
                 "CREATE DOMAIN positive AS int CHECK (value > 0)", "CREATE DOMAIN word AS varchar(9)")
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(TYPES))
    values = ", ".join(f"CAST({value} AS {kind})" for kind, value, *_ in TYPES)
    postgres.run(f"CREATE TABLE kinds (n int, {columns})", f"INSERT INTO kinds SELECT 1, {values}", "INSERT INTO kinds (n) VALUES (2)")


def test_types_of_postgres(reader, kinds):
    found = dict(reader.rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = 'pg' AND table_name = 'kinds'"))
    ((_, *first),) = reader.rows("SELECT * FROM pg.public.kinds WHERE n = 1")
    for number, (kind, _, _, value) in enumerate(TYPES):
        got = first[number]
        if isinstance(got, float):
            assert got == value, kind
        else:
            assert text(got) == text(value) or str(got) == value, (kind, got, value, found[f"c{number}"])
    ((_, *second),) = reader.rows("SELECT * FROM pg.public.kinds WHERE n = 2")
    assert set(second) == {None}


def test_rows_go_there_and_back(folder, postgres, kinds, sources):
    """What was read of a table of every type is added to another one, and PostgreSQL itself finds no difference."""
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(TYPES))
    postgres.run(f"CREATE TABLE copied (n int, {columns}, extra serial, note text DEFAULT 'here')")
    writable = databases.postgres_source(postgres, read_only="false")
    with Reader(folder, writable.config()) as server:
        names = ", ".join(["n", *(f"c{number}" for number in range(len(TYPES)))])
        server.database.run("CREATE TABLE here AS SELECT * FROM pg.public.kinds")
        assert server.rows(f"INSERT INTO pg.public.copied ({names}) SELECT {names} FROM here") in ([(2,)], [])
        same = " AND ".join(f"a.c{number}::text IS NOT DISTINCT FROM b.c{number}::text" for number in range(len(TYPES)))
        assert postgres.rows(f"SELECT count(*) FROM kinds a JOIN copied b ON a.n = b.n WHERE {same}") == [(2,)]
        assert postgres.rows("SELECT min(note), count(extra) FROM copied") == [("here", 2)]
        # The way without texts in between.
        server.database.run("INSERT INTO pg.public.things (id, t, d, day, moment, b, f) VALUES (20000, 'it''s', 1.25, DATE '2024-02-29', "
                            "TIMESTAMP '2024-02-29 01:02:03', true, 1.5)")
        assert postgres.rows("SELECT t, d::text, day, b, f FROM things WHERE id = 20000") == [("it's", "1.25", datetime.date(2024, 2, 29), True, 1.5)]
        # All or nothing.
        before = postgres.rows("SELECT count(*) FROM things")
        assert "duplicate key" in server.refused("INSERT INTO pg.public.things (id) SELECT 30000 + a % 40000 FROM generate_series(1, 50000) AS g(a)")
        server.refused("INSERT INTO pg.public.things (id) SELECT 50000 + a / (a - 200000) FROM generate_series(1, 300000) AS g(a)")
        assert postgres.rows("SELECT count(*) FROM things") == before
        many = "SELECT 100000 + a FROM generate_series(1, 200000) AS g(a)"
        server.database.run(f"INSERT INTO pg.public.things (id) {many}")
        assert postgres.rows("SELECT count(*) FROM things WHERE id > 100000") == [(200_000,)]
        postgres.run("DELETE FROM things WHERE id > 19999")
        for sql, word in (("UPDATE pg.public.things SET i = 1", "another database"), ("DELETE FROM pg.public.things", "another database"),
                          ("DELETE FROM pg.public.things WHERE id IN (SELECT 1 WHERE false)", "another database"),
                          ("TRUNCATE TABLE pg.public.things", "another database"), ("DROP TABLE pg.public.things", "another database"),
                          ("CREATE TABLE pg.public.made (x INT)", "another database"), ("ALTER TABLE pg.public.things ADD COLUMN x INT", "another database"),
                          ("MERGE INTO pg.public.things t USING pg.public.things s ON t.id = s.id WHEN MATCHED THEN DELETE", "another database"),
                          ("INSERT INTO pg.public.things (id) VALUES (1) ON CONFLICT DO NOTHING", "only added"),
                          ("INSERT INTO pg.public.things (id) VALUES (1) RETURNING id", "only added"),
                          ("INSERT OVERWRITE pg.public.things SELECT * FROM pg.public.things", "only added"),
                          ("INSERT INTO pg.public.things (nothing) VALUES (1)", "no column"), ("INSERT INTO pg.public.nothing VALUES (1)", "not found"),
                          ("CREATE DATABASE pg", "has this name")):
            assert word in server.refused(sql), sql
        assert postgres.rows("SELECT count(*) FROM things") == [(602,)]
        with Database(server, autocommit=False) as transaction:
            assert "cannot run in a transaction" in server.refused("INSERT INTO pg.public.things (id) VALUES (1)", transaction)


def test_values_without_a_place_are_errors(reader, postgres):
    postgres.run("DROP TABLE IF EXISTS odd", "CREATE TABLE odd (k text, n numeric(5, 2), d date, t timestamp, z timestamptz)",
                 "INSERT INTO odd (k, n) VALUES ('nan', 'NaN')", "INSERT INTO odd (k, d) VALUES ('day', 'infinity')",
                 "INSERT INTO odd (k, d) VALUES ('day-', '-infinity')", "INSERT INTO odd (k, t) VALUES ('at', 'infinity')",
                 "INSERT INTO odd (k, z) VALUES ('zone', '-infinity')")
    for key, column in (("nan", "n"), ("day", "d"), ("day-", "d"), ("at", "t"), ("zone", "z")):
        words = reader.refused(f"SELECT {column} FROM pg.public.odd WHERE k = '{key}'")
        assert f"`{column}`" in words or "range" in words or "overflow" in words, words
    assert reader.rows("SELECT count(*) FROM pg.public.odd") == [(5,)]


def test_sqlite_keeps_any_value_in_any_column(folder):
    import sqlite3

    path = folder / "odd.db"
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            CREATE TABLE odd (k TEXT, i INTEGER, f REAL, n NUMERIC, b BOOLEAN, t TEXT, x BLOB, u);
            INSERT INTO odd VALUES ('plain', 1, 1.5, 2, 1, 'a', x'00ff', 'any'), ('none', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
            INSERT INTO odd (k, i) VALUES ('i', 'abc'); INSERT INTO odd (k, i) VALUES ('i', 1.5);
            INSERT INTO odd (k, n) VALUES ('n', 9007199254740993); INSERT INTO odd (k, n) VALUES ('n', 'abc');
            INSERT INTO odd (k, b) VALUES ('b', 2); INSERT INTO odd (k, t) VALUES ('t', x'ff41'); INSERT INTO odd (k, x) VALUES ('x', 'text');
            CREATE VIEW seen AS SELECT k, i FROM odd WHERE k = 'plain';
            CREATE TABLE "we""ird; --" ("a ""b" INTEGER, "ä" TEXT, "select" TEXT);
            INSERT INTO "we""ird; --" VALUES (1, 'ü', 'x');
            CREATE TABLE empty (i INTEGER, t TEXT); CREATE TABLE late (i INTEGER);
            WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 5000) INSERT INTO late SELECT a FROM n;
            INSERT INTO late VALUES ('abc');
        """)
    connection.close()
    source = Source("lite", "sqlite", "main", {"uri": f'"{path}"'}, None, [])
    with Reader(folder, source.config()) as server:
        assert server.rows("SELECT i, f, n, b, t, x, u FROM lite.main.odd WHERE k = 'plain'") == [(1, 1.5, 2.0, True, "a", b"\x00\xff", "any")]
        assert set(server.rows("SELECT i, f, n, b, t, x, u FROM lite.main.odd WHERE k = 'none'")[0]) == {None}
        for key in "inbtx":
            words = server.refused(f"SELECT {key} FROM lite.main.odd WHERE k = '{key}'")
            assert "database `lite`" in words, words
        server.refused("SELECT i FROM lite.main.late")
        assert server.rows("SELECT count(*) FROM lite.main.late") == [(5_001,)]
        assert server.rows("SELECT * FROM lite.main.empty") == []
        assert server.rows("SELECT * FROM lite.main.seen") == [("plain", 1)] or server.rows("SELECT * FROM lite.main.seen") == [("plain", "1")]
        assert server.rows('SELECT "a ""b", "ä", "select" FROM lite.main."we""ird; --"') == [(1, "ü", "x")]
        assert "read-only" in server.refused("INSERT INTO lite.main.empty VALUES (1, 'a')")
    writable = Source("lite", "sqlite", "main", {"uri": f'"{path}"', "read_only": "false"}, None, [])
    with Reader(folder, writable.config()) as server:
        server.database.run("INSERT INTO lite.main.empty SELECT a, 'it''s' FROM generate_series(1, 10000) AS g(a)")
        server.database.run("INSERT INTO lite.main.empty (t) VALUES ('alone')")
        assert server.rows("SELECT count(*), sum(i), count(t) FROM lite.main.empty") == [(10_001, 50_005_000, 10_001)]


def test_types_of_duckdb_there_and_back(folder):
    import duckdb

    path = folder / "kinds.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("""CREATE TABLE kinds AS SELECT 1::TINYINT a, 200::UTINYINT b, 1::SMALLINT c, 1::INT d, 1::BIGINT e, 18446744073709551615::UBIGINT f,
            170141183460469231731687303715884105727::HUGEINT g, 1.5::FLOAT h, 1.5::DOUBLE i, 12.34::DECIMAL(10, 2) j, 'ä''' k, '\\x00\\xFF'::BLOB l,
            DATE '2024-02-29' m, TIME '01:02:03.5' n, TIMESTAMP '2024-02-29 01:02:03.123456' o, TIMESTAMPTZ '2024-02-29 01:02:03+00' p,
            TIMESTAMP_NS '2024-02-29 01:02:03.123456789' q, true r, '00000000-0000-0000-0000-00000000000a'::UUID s, 'x'::ENUM('x', 'y') t, [1, 2] u,
            {'a': 1, 'b': 'x'} v""")
        connection.execute("CREATE TABLE copied AS FROM kinds WHERE false")
        connection.execute("CREATE TABLE sundry (id INT DEFAULT 7, t VARCHAR, note VARCHAR DEFAULT 'here')")
    source = Source("duck", "duckdb", "main", {"uri": f'"{path}"', "read_only": "false"}, None, [])
    with Reader(folder, source.config()) as server:
        (row,) = server.rows("SELECT a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, r, s, t, u, v FROM duck.main.kinds")
        assert row[:12] == (1, 200, 1, 1, 1, 2**64 - 1, "170141183460469231731687303715884105727", 1.5, 1.5, decimal.Decimal("12.34"), "ä'", b"\x00\xff"), row
        assert row[12:] == (datetime.date(2024, 2, 29), datetime.time(1, 2, 3, 500000), datetime.datetime(2024, 2, 29, 1, 2, 3, 123456), True,
                            "00000000-0000-0000-0000-00000000000a", "x", [1, 2], {"a": 1, "b": "x"}), row
        simple = "a, c, d, e, h, i, j, k, l, m, o, r, s, t"
        server.database.run(f"INSERT INTO duck.main.copied ({simple}) SELECT {simple} FROM duck.main.kinds",
                            "INSERT INTO duck.main.sundry (t) SELECT 'x' FROM generate_series(1, 5000) AS g(a)")
        assert server.rows(f"SELECT {simple} FROM duck.main.copied") == server.rows(f"SELECT {simple} FROM duck.main.kinds")
        assert server.rows("SELECT count(*), sum(id), min(note) FROM duck.main.sundry") == [(5_000, 35_000, "here")]


def test_rows_go_to_another_bowshot(folder, other, sources):
    with Database(other) as database:
        database.run("CREATE TABLE target (id INT, t VARCHAR, d DECIMAL(12, 2), day DATE, moment TIMESTAMP, b BOOLEAN, f DOUBLE)")
    source = Source("other", "flightsql", "main", {"uri": f'"{other.grpc_tcp}"', "read_only": "false"}, None, [])
    with Reader(folder, source.config()) as server:
        columns = "id, t, d, day, moment, b, f"
        server.database.run(f"INSERT INTO other.main.target SELECT {columns} FROM other.main.things")
        assert texts(server.rows("SELECT * FROM other.main.target")) == texts(server.rows(f"SELECT {columns} FROM other.main.things"))
