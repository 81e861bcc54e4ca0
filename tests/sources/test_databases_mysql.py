"""Tables of MariaDB: its own answers to random statements, what is sent there, hostile names, rights by ATTACH."""

import contextlib
import datetime
import random

import pytest

import databases
import mariadb
from databases import PASSWORD, Reader, literal
from server import hash_password
from test_databases_rights import USERS, GuardedReader

EXTRA = list(mariadb.MORE)
CASES = 200


@pytest.fixture(scope="module")
def my(folder):
    server = mariadb.MariaDb()
    yield server
    server.close()


@pytest.fixture(scope="module")
def source(my):
    """Beside the table a view in which texts are compared as here, and bits are numbers."""
    source = mariadb.mariadb_source(my, cache_ttl='"0s"')
    collated = "COLLATE utf8mb4_nopad_bin"
    my.run("CREATE VIEW shop.plain AS SELECT id, i, big, d, t " + collated + " AS t, day, moment, b + 0 AS b, f, z, u, CAST(e AS CHAR) " + collated +
           f" AS e, c {collated} AS c, r, bits + 0 AS bits, bin {collated} AS bin, CONVERT(old USING utf8mb4) {collated} AS old FROM shop.things")
    return source


@pytest.fixture(scope="module")
def reader(folder, source):
    with Reader(folder, source.config()) as server:
        yield server


def text(value):
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    return databases.text(value)


def texts(rows):
    return sorted([tuple(text(value) for value in row) for row in rows])


def test_a_database_is_a_catalog(reader, my, folder):
    tables = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'my' AND table_schema NOT IN ('information_schema', 'pg_catalog')"
    assert sorted(reader.rows(tables)) == [("shop", "plain"), ("shop", "things")]
    columns = reader.rows("SELECT column_name, is_nullable FROM information_schema.columns WHERE table_catalog = 'my' AND table_name = 'things' "
                          "ORDER BY ordinal_position")
    assert columns == [(name, "NO" if name == "id" else "YES") for name in [*mariadb.KINDS, *EXTRA]]
    every = ", ".join([*mariadb.KINDS, *EXTRA])
    assert texts(reader.rows(f"SELECT {every} FROM my.shop.things")) == texts(my.rows(f"SELECT {every} FROM shop.plain"))
    assert reader.rows("SELECT count(*) FROM my.shop.things") == [(601,)]
    # Names are exact, schemas that the address does not name are not there, and accounts are nobody's business.
    for name in ('my.shop."Things"', "my.shop.nothing", "my.mysql.global_priv", "my.information_schema.innodb_trx", 'my."Shop".things'):
        assert "not found" in reader.refused(f"SELECT * FROM {name}"), name
    # What is told of the server is told of this one.
    assert reader.rows("SELECT engine FROM my.information_schema.engines") == [("Bowshot",)]
    assert "my" in [row[0] for row in reader.rows("SHOW DATABASES")]
    my.run("CREATE DATABASE IF NOT EXISTS other", "CREATE TABLE other.t (a INT)", "CREATE SEQUENCE other.numbers")
    everything = mariadb.MySource("all", "mysql", "shop", mariadb.entry(my, uri=f'"{my.uri}"'), None, [])
    named = mariadb.MySource("named", "mysql", "shop", mariadb.entry(my, uri=f'"{my.uri}"', schemas='["mysql", "other"]'), None, [])
    with Reader(folder, everything.config() + named.config()) as server:
        listed = server.rows("SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'all' AND table_schema NOT IN ('information_schema', 'pg_catalog')")
        assert sorted(listed) == [("other", "t"), ("shop", "plain"), ("shop", "things")]
        assert "not found" in server.refused('SELECT * FROM "all".mysql.global_priv')
        assert "not found" in server.refused("SELECT * FROM named.shop.things")
        assert server.rows("SELECT count(*) FROM named.mysql.global_priv")[0][0] > 0


def condition(random_):
    """A condition over the columns that only MariaDB has, as it is written here and there."""
    column = random_.choice(EXTRA)
    compare = random_.choice(["=", "<>", "<", "<=", ">", ">="])
    if random_.random() < 0.15:
        both = f"{column} IS {random_.choice(['', 'NOT '])}NULL"
        return both, both
    if column == "z":
        moment = datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=random_.choice([-2 * 10**15, 0, 10**12, random_.randint(0, 10**15), 3 * 10**15]))
        return f"z {compare} TIMESTAMPTZ '{moment}+00:00'", f"z {compare} TIMESTAMP '{moment}'"
    if column in ("e", "c", "bin", "old"):
        value = lambda: literal(random_.choice(databases.TEXTS))  # noqa: E731
    elif column == "r":
        value = lambda: f"CAST({float(random_.randint(-1000, 1000)) / 8} AS FLOAT)"  # noqa: E731
    else:
        value = lambda: str(random_.choice([0, 1, 5, 2**19, 2**63, 2**64 - 1][:(6 if column == "u" else 4)]))  # noqa: E731
    if column != "r" and random_.random() < 0.3:
        listed = ", ".join(value() for _ in range(random_.randint(1, 4)))
        both = f"{column} {random_.choice(['', 'NOT '])}IN ({listed})"
        return both, both
    both = f"{column} {compare} {value()}"
    return both, both


def statement(source, random_):
    """A statement here and there."""
    sql = databases.statement(source, random_)
    ours, theirs = sql, sql
    if random_.random() < 0.6:
        here, there = condition(random_)
        if random_.random() < 0.2:
            here, there = f"(NOT ({here}))", f"(NOT ({there}))"
        word = random_.choice(["AND", "OR"])
        for marker, joined in ((" WHERE ", True), ("@@", False)):
            if marker in sql:
                extra = (f" WHERE ({here}) {word} ", f" WHERE ({there}) {word} ") if joined else (f"@@ WHERE ({here})", f"@@ WHERE ({there})")
                ours, theirs = sql.replace(marker, extra[0], 1), sql.replace(marker, extra[1], 1)
                break
    return ours.replace("@@", "my.shop.things"), theirs.replace("@@", "shop.plain")


@pytest.mark.timeout(900)
def test_random_statements_have_the_answers_of_the_database(reader, source, my, pytestconfig):
    generator = random.Random(f"my-{pytestconfig.getoption('--seed')}")
    with contextlib.closing(my.connect()) as connection, connection.cursor() as cursor:
        for number in range(max(CASES, pytestconfig.getoption("--statements"))):
            ours, theirs = statement(source, generator)
            cursor.execute(theirs)
            expected = texts(cursor.fetchall())
            assert texts(reader.rows(ours)) == expected, f"{number}: {ours}\n{theirs}\n{reader.explained(ours)}"


def sent(reader, sql):
    return reader.explained(sql).split("sql=")[1].split("\\n")[0].replace("\\'", "'")


def test_what_means_the_same_is_sent_and_the_rest_is_not(reader):
    table = "my.shop.things"
    shown = sent(reader, f"SELECT t FROM {table} WHERE i > 5 AND t = 'it''s' LIMIT 3")
    assert "SELECT `t` FROM `shop`.`things` WHERE (`i` > 5) AND" in shown and "LIMIT 3" in shown, shown
    assert "(`t` = 'it''s') AND (CAST(`t` AS BINARY) = CAST('it''s' AS BINARY))" in shown, shown
    assert "FilterExec" not in reader.explained(f"SELECT t FROM {table} WHERE i > 5 AND t >= 'a' AND u IN (1, 18446744073709551615)")
    shown = sent(reader, f"SELECT t FROM {table} WHERE t LIKE 'a%' AND i IN (1, 2, 3, 4) LIMIT 3")
    assert "`i` IN (1, 2, 3, 4)" in shown and "LIMIT" not in shown.split("FilterExec")[0], shown
    assert "X'5C'" in sent(reader, f"SELECT id FROM {table} WHERE t = '\\'")
    # There may be days that are none: what may keep one of them is looked at again.
    explained = reader.explained(f"SELECT id FROM {table} WHERE day < DATE '2024-01-01' LIMIT 3")
    assert "`day` < DATE" in explained.replace("\\'", "'") and "FilterExec" in explained, explained
    assert "FilterExec" not in reader.explained(f"SELECT id FROM {table} WHERE day = DATE '2024-01-01' LIMIT 3")
    assert "SELECT count(*) FROM" in sent(reader, f"SELECT count(*) FROM {table} WHERE i = 1")
    assert "WHERE" not in sent(reader, f"SELECT id FROM {table} WHERE day IS NULL").split("FilterExec")[0]


HOSTILE = ["we`ird; --", 'we"ird', "ä 日本", "Select", "a.b", "back\\slash", "it's", "%", "$1", "{}", "?", ":name", "a``b"]


def test_hostile_names_and_texts(reader, my):
    quoted = ["`" + name.replace("`", "``") + "`" for name in HOSTILE]
    columns = ", ".join(f"{column} TEXT" for column in quoted)
    values = ", ".join(literal(name) for name in HOSTILE)
    for name in quoted:
        my.run(f"CREATE TABLE shop.{name} ({columns})", f"INSERT INTO shop.{name} VALUES ({values})")
    for name in HOSTILE:
        table = 'my.shop."' + name.replace('"', '""') + '"'
        assert reader.rows(f"SELECT * FROM {table}") == [tuple(HOSTILE)], name
        for column in HOSTILE:
            named = '"' + column.replace('"', '""') + '"'
            assert reader.rows(f"SELECT count(*) FROM {table} WHERE {named} = {literal(column)}") == [(1,)], (name, column)
            assert reader.rows(f"SELECT count(*) FROM {table} WHERE {named} = {literal(column + 'x')}") == [(0,)], (name, column)
    for attack in ("' OR 1 --", "\\' OR 1 -- ", "'; DROP TABLE things; --", "\\", "\\\\'", "''", "\u2019 OR 1", "/*! OR 1 */", "\n", "\ufeff", "\u00bf' OR 1 -- ",
                   "??", ":a", "` OR 1", "a\tb", "\x1a"):
        for column in ("t", "c", "old", "bin", "e"):
            assert reader.rows(f"SELECT count(*) FROM my.shop.things WHERE {column} = {literal(attack)}") == [(0,)], (attack, column)
            assert reader.rows(f"SELECT count(*) FROM my.shop.things WHERE {column} NOT IN ({literal(attack)}, 'a')")[0][0] > 0
    my.run(*(f"DROP TABLE shop.{name}" for name in quoted))
    assert my.rows("SELECT count(*) FROM shop.things") == [(601,)]


def test_nothing_is_written_while_it_is_read(reader, my):
    """Not even by a function in a view: sessions only read."""
    my.run("CREATE TABLE shop.written (a INT)",
           "CREATE FUNCTION shop.writes() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO shop.written VALUES (1); RETURN 1; END",
           "CREATE VIEW shop.trap AS SELECT shop.writes() AS x")
    # Already its columns are not told to a session that may only read.
    words = reader.refused("SELECT x FROM my.shop.trap")
    assert "not found" in words or "READ ONLY" in words, words
    assert my.rows("SELECT count(*) FROM shop.written") == [(0,)]
    assert "read-only" in reader.refused("INSERT INTO my.shop.written VALUES (1)")
    my.run("DROP VIEW shop.trap", "DROP FUNCTION shop.writes", "DROP TABLE shop.written")


def test_attach_names_the_user_in_the_address(folder, my):
    quoted = PASSWORD.replace("'", "''")
    config = f'[attach]\nplaces = ["mysql://127.0.0.1:{my.port}/"]\n'
    with GuardedReader(folder, config + USERS.format(hash_password("the root of it"))) as server:
        root = server.of("root", "the root of it")
        place = f"127.0.0.1:{my.port}/shop"
        root.run(f"ATTACH 'mysql://reader@{place}' AS m (PASSWORD '{quoted}')")
        assert root.rows("SELECT count(*) FROM m.shop.things") == [(601,)]
        assert root.rows("SELECT name, kind, place, read_only FROM system.databases") == [("m", "mysql", f"mysql://{place}", True)]
        assert PASSWORD not in str(root.rows("SELECT * FROM system.queries"))
        root.run("DETACH m", f"ATTACH 'mariadb://{place}' AS m (TYPE mariadb, USER 'reader', PASSWORD '{quoted}', ZERO_DATES 'null')")
        assert "already exists" in server.refused(f"ATTACH 'mysql://reader@{place}' AS m (PASSWORD '{quoted}')", root)
        assert "refused the login" in server.refused(f"ATTACH 'mysql://reader@{place}' AS bad (PASSWORD 'no')", root)
        for uri in (f"mysql://reader:{PASSWORD.split()[0]}@{place}", "mysql://reader@127.0.0.1:1/shop", f"mysql://reader@{place}?sslmode=prefer",
                    f"mysql://reader@{place}/more", f"mysql://reader@localhost:{my.port}/shop", f"mysql://{place}", f"mysql://reader@{place}?socket=/tmp/x"):
            words = server.refused(f"ATTACH '{uri}' AS bad", root)
            assert "cannot attach a database" in words or "cannot be used" in words, (uri, words)
        assert "does not exist" in server.refused("DETACH nothing", root)


def test_attach_takes_the_credentials_of_a_secret(folder, my):
    quoted = PASSWORD.replace("'", "''")
    config = f'[attach]\nplaces = ["mysql://127.0.0.1:{my.port}/"]\n'
    with GuardedReader(folder, config + USERS.format(hash_password("the root of it"))) as server:
        root = server.of("root", "the root of it")
        uri, count = f"mysql://127.0.0.1:{my.port}/shop", "SELECT count(*) FROM m.shop.things"
        assert "`user`" in server.refused(f"ATTACH '{uri}' AS m", root)
        make = f"SECRET shop (TYPE mysql, SCOPE '{uri}', USER 'reader', PASSWORD '{quoted}')"
        root.run(f"CREATE {make}")
        for attach in (f"ATTACH '{uri}' AS m (SECRET shop)", f"ATTACH '{uri}' AS m", f"ATTACH 'mariadb://127.0.0.1:{my.port}/shop' AS m (TYPE mariadb)"):
            root.run(attach)
            assert root.rows(count) == [(601,)]
            root.run("DETACH m")
        root.run(f"ATTACH '{uri}' AS m (SECRET shop)", f"CREATE OR REPLACE SECRET shop (TYPE mysql, SCOPE '{uri}', USER 'reader', PASSWORD 'no')")
        assert "refused the login" in server.refused(count, root)
        root.run(f"CREATE OR REPLACE SECRET shop (TYPE mysql, SCOPE '{uri}', PASSWORD '{quoted}')")
        assert "`user`" in server.refused(count, root)
        root.run(f"CREATE OR REPLACE {make}")
        assert root.rows(count) == [(601,)]
        root.run("DROP SECRET shop")
        assert "its secret `shop` was dropped" in server.refused(count, root)
        assert PASSWORD not in str(root.rows("SELECT * FROM system.queries"))
