"""Tables of other databases: the answers of the databases themselves, what is sent there, hostile names."""

import random

import adbc_driver_flightsql.dbapi as dbapi
import pytest

import databases
from databases import eventually, texts
from durable import Database

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
