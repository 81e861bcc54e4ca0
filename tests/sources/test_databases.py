"""Tables of other databases: the answers of the databases themselves, types, faults on the way, rights, secrets."""

import datetime
import decimal
import random
import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import pytest

import databases
import nodes
from databases import PASSWORD, Reader, Source, driver, eventually, seconds_of, text, texts
from durable import Database
from server import Server, binaries


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("databases")


@pytest.fixture(scope="session")
def postgres():
    cluster = databases.Postgres()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def other():
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def sources(folder, postgres, other):
    made = [databases.postgres_source(postgres, cache_ttl='"0s"'), databases.sqlite_source(folder),
            databases.duckdb_source(folder), databases.flight_source(other)]
    return {source.name: source for source in made}


@pytest.fixture(scope="session")
def reader(folder, sources):
    with Reader(folder, "\n".join(source.config() for source in sources.values())) as server:
        yield server


NAMES = ["pg", "lite", "duck", "other"]


@pytest.mark.parametrize("name", NAMES)
def test_a_database_is_a_catalog(reader, sources, name):
    source = sources[name]
    rows = reader.rows(f"SELECT table_schema, table_name FROM {name}.information_schema.tables WHERE table_catalog = '{name}' "
                       "AND table_name = 'things'")
    assert rows == [(source.schema, "things")]
    columns = reader.rows("SELECT column_name FROM information_schema.columns WHERE table_catalog = "
                          f"'{name}' AND table_name = 'things' ORDER BY ordinal_position")
    assert [column for (column,) in columns] == source.columns
    described = [row[0] for row in reader.rows(f"DESCRIBE {source.table}")]
    assert described == source.columns
    assert texts(reader.rows(f"SELECT * FROM {source.table}")) == texts(source.rows("SELECT * FROM things"))
    assert reader.rows(f"SELECT count(*) FROM {source.table}")[0][0] == source.rows("SELECT count(*) FROM things")[0][0]
    schemas = [row[0] for row in reader.rows(f"SELECT schema_name FROM information_schema.schemata WHERE catalog_name = '{name}'")]
    assert source.schema in schemas
    assert "not found" in reader.refused(f"SELECT * FROM {name}.{source.schema}.nothing")
    assert "not found" in reader.refused(f"SELECT * FROM {name}.nowhere.things")
    # Names are exact: rights go by them.
    assert "not found" in reader.refused(f'SELECT * FROM {name}.{source.schema}."Things"')
    assert name in [row[0] for row in reader.rows("SHOW DATABASES")]


@pytest.mark.parametrize("name", NAMES)
def test_random_statements_have_the_answers_of_the_database(reader, sources, name, pytestconfig):
    source = sources[name]
    cases = pytestconfig.getoption("--statements")
    generator = random.Random(f"{name}-{pytestconfig.getoption('--seed')}")
    for number in range(cases):
        sql = databases.statement(source, generator)
        expected = texts(source.rows(sql.replace("@@", "things")))
        # Texts are ordered by their bytes here.
        ours = sql.replace("@@", source.table).replace(' COLLATE "C"', "")
        assert texts(reader.rows(ours)) == expected, f"{number}: {ours}\n{reader.explained(ours)}"


def test_what_means_the_same_is_sent_and_the_rest_is_not(reader):
    pg = "pg.public.things"
    shown = reader.explained(f"SELECT t FROM {pg} WHERE i > 5 AND t = 'it''s' LIMIT 3")
    assert '''SELECT "t" FROM "public"."things" WHERE ("i" > 5) AND ("t" = 'it''s') LIMIT 3'''.replace("'", "'") in shown.replace("\\'", "'"), shown
    assert "FilterExec" not in shown
    shown = reader.explained(f"SELECT t FROM {pg} WHERE t LIKE 'a%' AND i IN (1, 2) LIMIT 3")
    assert '"i" IN (1, 2)' in shown or '("i" = 1)' in shown, shown
    assert "LIKE" in shown and "LIMIT 3" not in shown.split("sql=")[1], shown
    shown = reader.explained(f"SELECT id FROM {pg} WHERE f < 1.5e0 LIMIT 3")
    assert "NaN" in shown and "FilterExec" in shown, shown
    assert "SELECT count(*) FROM" in reader.explained(f"SELECT count(*) FROM {pg} WHERE i = 1")
    shown = reader.explained("SELECT id FROM lite.main.things WHERE t = 'a'")
    assert "\"t\" = " in shown and "FilterExec" in shown, shown
    shown = reader.explained("SELECT id FROM other.main.things WHERE NOT (t = 'a')")
    assert "WHERE" not in shown.split("sql=")[1].split("\n")[0], shown


def test_databases_are_joined(reader, sources):
    rows = reader.rows("SELECT count(*), sum(p.i) FROM pg.public.things p JOIN lite.main.things l ON p.id = l.id "
                       "JOIN duck.main.things d ON d.id = l.id JOIN other.main.things o ON o.id = d.id WHERE l.i = d.i")
    assert rows == [tuple(sources["lite"].rows("SELECT count(i), sum(i) FROM things")[0])]


def test_answers_are_never_kept(reader, postgres):
    postgres.run("DROP TABLE IF EXISTS news", "CREATE TABLE news (x int)", "INSERT INTO news VALUES (1)")
    sql = "SELECT sum(a.x) FROM pg.public.news a JOIN pg.public.news b ON a.x = b.x"
    for number in range(2, 8):
        for _ in range(3):
            assert reader.rows(sql)[0][0] == sum(range(1, number))
        postgres.run(f"INSERT INTO news VALUES ({number})")

    # Columns that come and go are seen, at the latest with the statement after the next.
    postgres.run("ALTER TABLE news ADD y text DEFAULT 'new'", "ALTER TABLE news DROP x")
    assert eventually(lambda: reader.rows("SELECT * FROM pg.public.news")[0] == ("new",), "the new columns")


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
            assert "does not run in a transaction" in server.refused("INSERT INTO pg.public.things (id) VALUES (1)", transaction)


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
            assert "database `lite` has" in words, words
        server.refused("SELECT i FROM lite.main.late")
        assert server.rows("SELECT count(*) FROM lite.main.late") == [(5_001,)]
        assert server.rows("SELECT * FROM lite.main.empty") == []
        assert server.rows("SELECT * FROM lite.main.seen") == [("plain", 1)] or server.rows("SELECT * FROM lite.main.seen") == [("plain", "1")]
        assert server.rows('SELECT "a ""b", "ä", "select" FROM lite.main."we""ird; --"') == [(1, "ü", "x")]
        assert "only read" in server.refused("INSERT INTO lite.main.empty VALUES (1, 'a')")
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


HOSTILE = ['we"ird; --', "ä 日本", "Select", "a.b", "back\\slash", "it's", "%", "$1", "{}", "\t"]


def test_hostile_names_and_texts(reader, postgres):
    quoted = [name.replace('"', '""') for name in HOSTILE]
    for name in quoted:
        columns = ", ".join(f'"{column}" text' for column in quoted)
        postgres.run(f'CREATE SCHEMA IF NOT EXISTS "{name}"', f'CREATE TABLE "{name}"."{name}" ({columns})',
                     f'INSERT INTO "{name}"."{name}" SELECT ' + ", ".join(["E'" + name_.replace("\\", "\\\\").replace("'", "''") + "'" for name_ in HOSTILE]))
    for name in quoted:
        table = f'pg."{name}"."{name}"'
        assert reader.rows(f"SELECT * FROM {table}") == [tuple(HOSTILE)], name
        for column, value in zip(quoted, HOSTILE):
            escaped = value.replace("'", "''")
            assert reader.rows(f"""SELECT count(*) FROM {table} WHERE "{column}" = '{escaped}'""") == [(1,)], (name, column)
            assert reader.rows(f"""SELECT count(*) FROM {table} WHERE "{column}" = '{escaped}x'""") == [(0,)], (name, column)
    for attack in ("' OR true --", "\\' OR true --", "'; DROP TABLE things; --", "\\", "\\\\'", "''", "\u0000", "a\u0000' OR true --", "\u2019 OR true",
                   "E'x'", "$$", "/* */", "\n", "\ufeff", "\U0001f680' OR true"):
        escaped = attack.replace("'", "''")
        for table in ("pg.public.things", "lite.main.things", "duck.main.things", "other.main.things"):
            with Database(reader) as database:
                if "\u0000" in attack:
                    sql = f"SELECT count(*) FROM {table} WHERE t = concat('{escaped.split(chr(0))[0]}', chr(0), '{escaped.split(chr(0))[1]}')"
                    try:
                        assert database.rows(sql) == [(0,)], (table, attack)
                    except dbapi.Error as error:
                        assert "chr" in str(error) or "character" in str(error), error
                else:
                    assert database.rows(f"SELECT count(*) FROM {table} WHERE t = '{escaped}'") == [(0,)], (table, attack)
    assert postgres.rows("SELECT count(*) FROM things") == [(602,)]


def test_a_database_that_is_not_there_fails_its_own_tables_alone(folder, sources):
    gone = Source("gone", "postgres", "public", {"uri": f'"postgres://127.0.0.1:{databases.free_port()}/d"', "timeout": '"2s"'}, None, [])
    missing = Source("missing", "sqlite", "main", {"uri": f'"{folder}/no.db"'}, None, [])
    nowhere = Source("nowhere", "flightsql", "main", {"uri": f'"grpc://127.0.0.1:{databases.free_port()}"', "timeout": '"2s"', "connect_timeout": '"2s"'}, None, [])
    broken = Source("broken", "postgres", "public", {"uri": '"postgres://127.0.0.1:1/d"'}, None, [])
    bad_driver = broken.config().replace(str(driver("postgres")), "/nowhere/libx.so")
    config = "\n".join([gone.config(), missing.config(), nowhere.config(), bad_driver, sources["lite"].config()])
    with Reader(folder, config) as server:
        for table, word in (("gone.public.t", "cannot be reached"), ("missing.main.t", "cannot be reached"), ("nowhere.main.t", "reached"),
                            ("broken.public.t", "no driver")):
            taken = seconds_of(lambda: server.refused(f"SELECT * FROM {table}"))
            assert taken < 8, (table, taken)
            assert word in server.refused(f"SELECT * FROM {table}"), table
        assert server.rows("SELECT count(*) FROM lite.main.things")[0][0] == 600
        names = {row[0] for row in server.rows("SELECT DISTINCT table_catalog FROM information_schema.tables WHERE table_name IN ('t', 'things')")}
        assert "lite" in names and "gone" not in names
        problems = dict(server.rows("SELECT name, problem FROM system.databases"))
        assert problems["lite"] is None and "cannot be reached" in problems["gone"] and "driver" in problems["broken"], problems


def test_a_slow_database_is_given_up(folder, postgres):
    postgres.run("CREATE OR REPLACE VIEW slow AS SELECT 1 AS x FROM pg_sleep(600)")
    source = Source("pg", "postgres", "public", {"uri": f'"{postgres.uri}"', "user": '"owner"', "timeout": '"1500ms"', "pool": "2"}, None, [])
    with Reader(folder, source.config()) as server:
        for _ in range(3):
            start = time.monotonic()
            assert "did not answer within" in server.refused("SELECT x FROM pg.public.slow")
            assert time.monotonic() - start < 6
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow%' AND state = 'active' AND pid <> pg_backend_pid()"
        eventually(lambda: postgres.rows(running) == [(0,)], "what nobody waits for is cancelled")
        assert server.rows("SELECT count(*) FROM pg.public.things WHERE id < 10") == [(10,)]


@pytest.fixture(scope="module")
def large(postgres):
    postgres.run("DROP TABLE IF EXISTS large", "CREATE TABLE large (id bigint PRIMARY KEY, v int, t text)",
                 "INSERT INTO large SELECT g, g % 1000, 'row ' || g FROM generate_series(1, 250000) g", "ANALYZE large")


def test_large_tables_are_read_over_several_connections_at_one_moment(reader, postgres, large):
    shown = reader.explained("SELECT sum(v) FROM pg.public.large")
    assert "parts=" in shown and '"id" <' in shown, shown
    stop, failures = threading.Event(), []

    def change():
        """Every transaction keeps the sum and moves rows from one range into another."""
        with postgres.connect() as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                number += 1
                cursor.execute(f"UPDATE large SET id = CASE WHEN id = {number} THEN {number + 1000000} ELSE id - 1000000 END "
                               f"WHERE id IN ({number}, {number + 1000000 - 1})")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(5):
            rows = reader.rows("SELECT count(*), sum(v), count(DISTINCT t) FROM pg.public.large")
            if rows != [(250_000, 124_875_000, 250_000)]:
                failures.append(rows)
    finally:
        stop.set()
        changing.join()
    assert not failures
    assert reader.rows("SELECT count(*) FROM pg.public.large WHERE v = 7") == [(250,)]


def test_rows_that_nobody_reads_are_not_asked_for(reader, postgres, large):
    running = ("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%endless%' "
               "AND pid <> pg_backend_pid()")
    postgres.run("CREATE OR REPLACE VIEW endless AS SELECT g, repeat('x', 100) AS t FROM generate_series(1, 1000000) g, generate_series(1, 1000) h")
    connection = dbapi.connect(reader.grpc_tcp)
    cursor = connection.cursor()
    cursor.execute("SELECT g, t FROM pg.public.endless")
    batches = cursor.fetch_record_batch()
    assert next(iter(batches)).num_rows > 0
    # Back pressure: the server holds a few batches and no more.
    time.sleep(0.5)
    assert postgres.rows(running) == [(1,)]
    batches.close()
    cursor.close()
    connection.close()
    eventually(lambda: postgres.rows(running) == [(0,)], "the statement has ended")
    reader.wait_idle(10)


def test_a_database_that_is_killed_while_it_is_read(folder, sources):
    cluster = databases.Postgres()
    try:
        cluster.run("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g",
                    "CREATE VIEW endless AS SELECT g AS a, repeat('x', 100) AS t FROM generate_series(1, 1000000) g, generate_series(1, 1000) h")
        source = Source("pg", "postgres", "public", {"uri": f'"{cluster.uri}"', "user": '"owner"', "timeout": '"5s"'}, None, [])
        with Reader(folder, source.config() + sources["lite"].config()) as server:
            assert server.rows("SELECT sum(a) FROM pg.public.t") == [(500_500,)]
            words = []
            asking = threading.Thread(target=lambda: words.append(server.refused("SELECT sum(a) FROM pg.public.endless", Database(server))))
            asking.start()
            time.sleep(1)
            cluster.stop("immediate")
            asking.join(20)
            assert words and "`pg`" in words[0], words
            assert "cannot be reached" in server.refused("SELECT sum(a) FROM pg.public.t")
            assert server.rows("SELECT count(*) FROM lite.main.things") == [(600,)]
            cluster.start()
            assert server.rows("SELECT sum(a) FROM pg.public.t") == [(500_500,)]
            server.wait_idle(10)
    finally:
        cluster.close()


def test_all_connections_taken(folder, postgres):
    postgres.run("CREATE OR REPLACE VIEW naps AS SELECT 1 AS x FROM pg_sleep(1)")
    source = Source("pg", "postgres", "public", {"uri": f'"{postgres.uri}"', "user": '"owner"', "timeout": '"20s"', "pool": "2"}, None, [])
    with Reader(folder, source.config()) as server:
        answers = []

        def ask():
            with Database(server) as database:
                answers.append(database.rows("SELECT x FROM pg.public.naps"))

        asking = [threading.Thread(target=ask) for _ in range(6)]
        taken = seconds_of(lambda: [[thread.start() for thread in asking], [thread.join() for thread in asking]])
        assert answers == [[(1,)]] * 6 and taken > 2.5, taken
        assert server.rows("SELECT connections FROM system.databases")[0][0] <= 2


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
        assert "credentials" in server.refused("SELECT * FROM wrong.public.things")
        server.refused("SELECT * FROM down.public.things")
        server.refused("SELECT nothing FROM good.public.things")
        for (table,) in server.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'"):
            assert PASSWORD not in str(server.rows(f"SELECT * FROM system.{table}")), table
        assert PASSWORD not in server.get("/metrics")[2]


USERS = """
[[access.users]]
name = "root"
password_hash = "{}"
admin = true
"""


@pytest.fixture(scope="module")
def guarded(folder, postgres, sources):
    """A server with users, over a database, with a place that may be attached."""
    import subprocess

    hashed = subprocess.run([binaries() / "bowshot", "hash-password"], input="the root of it", capture_output=True, text=True, check=True).stdout.strip()
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
        assert any(part in words for part in ("no database may be attached", "cannot be used")), (place, words)
    assert "credentials" in guarded.refused(f"ATTACH '{uri}' AS bad (USER 'visitor', PASSWORD 'no')", root)
    for name in ("bowshot", "system", "temp", "pg", "information_schema"):
        guarded.refused(f"ATTACH '{uri}' AS {name} (USER 'owner')", root)
    assert "syntax" in guarded.refused(f"ATTACH '{uri}' AS", root)


def test_scans_stay_on_the_node_that_was_asked(folder, sources):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = folder / "orders.parquet"
    parquet.write_table(pa.table({"id": list(range(200_000)), "t": [f"text {number}" for number in range(200_000)]}), path, row_group_size=20_000)
    config = folder / "nodes.toml"
    config.write_text(sources["pg"].config())
    more = ["--config", config, "--set", "cluster.bytes_per_thread=1", "--set", "engine.threads=2"]
    with nodes.cluster(2, more=more, sources=[path]) as (first, second):
        alone = "SELECT count(*), sum(id) FROM orders"
        both = "SELECT count(*), sum(p.i) FROM orders o JOIN pg.public.things p ON o.id = p.id"
        shown = {sql: "".join(str(row) for row in first.rows(f"EXPLAIN {sql}")) for sql in (alone, both)}
        assert "Stage" in shown[alone], shown[alone]
        # The rest of the plan runs on both; who reads the database is a task of the node that was asked.
        stages = shown[both].split("Nodes:")[1].split("┌─────")
        assert [stage.split()[3] for stage in stages if "DatabaseScan" in stage] == ["tasks=1,"], stages
        assert [tuple(row) for row in first.rows(both)] == [tuple(sources["pg"].rows("SELECT count(*), sum(i) FROM things WHERE id < 200000")[0])]
        connections = "SELECT connections FROM system.databases"
        assert first.rows(connections)[0][0] > 0 and second.rows(connections) == [[0]]
