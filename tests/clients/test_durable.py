"""What a data folder keeps over a restart, and what it does not; versions, OPTIMIZE and VACUUM."""

import datetime
import decimal
import time

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pytest

from durable import Database, contents, restarts, rows_of
from server import Server, wait_until

MANY = pa.table({"x": pa.array(range(100_000), pa.int64()), "word": pa.array([f"word {n % 97}" for n in range(100_000)])})


@pytest.fixture(params=["stopped", "killed"])
def restart(request, data):
    yield from restarts(data, request.param)


def versions(db, table):
    sql = f"SELECT version FROM bowshot.system.table_history WHERE table_name = '{table}' ORDER BY version"
    return [version for (version,) in db.rows(sql)]


# Restarts.


def test_sequences_give_no_number_twice(restart):
    def numbers():
        return [number for (number,) in db.rows("SELECT nextval('numbers') FROM generate_series(1, 50)")]

    db = restart()
    db.run("CREATE SEQUENCE numbers INCREMENT BY 3")
    given = numbers() + numbers()
    db = restart()
    given += numbers()
    assert len(set(given)) == 150 and all(number % 3 == 1 for number in given)
    assert db.rows("SELECT setval('numbers', 100000)") == [(100000,)]
    db = restart()
    assert min(numbers()) > 100000


def test_everything_is_kept(restart):
    db = restart()
    db.run(
        "CREATE TABLE full_of_rules (id BIGINT PRIMARY KEY, size INT NOT NULL DEFAULT 7, word VARCHAR DEFAULT 'a' || 'b', "
        "price DECIMAL(10, 2), day DATE, CONSTRAINT positive CHECK (size > 0))",
        "COMMENT ON TABLE full_of_rules IS 'größe 🏹'",
        "INSERT INTO full_of_rules (id, price, day) VALUES (1, 1.50, DATE '2024-02-29'), (2, NULL, NULL)",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.full_of_rules AS SELECT 5 AS x",
        "CREATE DATABASE other",
        "CREATE TABLE other.main.t AS SELECT 6 AS x",
        "CREATE VIEW seen AS SELECT id * 2 AS double FROM full_of_rules",
        'CREATE TABLE "Größe ""x""" AS SELECT 7 AS "A b"',
    )
    db.ingest("many", MANY)
    shown = db.rows("SHOW CREATE TABLE full_of_rules")
    for _ in range(2):
        db = restart()
        assert db.rows("SHOW CREATE TABLE full_of_rules") == shown
        assert db.rows("SELECT * FROM full_of_rules WHERE id < 3 ORDER BY id") == [
            (1, 7, "ab", decimal.Decimal("1.50"), datetime.date(2024, 2, 29)),
            (2, 7, "ab", None, None),
        ]
        assert [db.one(f"SELECT x FROM {name}") for name in ("sales.full_of_rules", "other.main.t")] == [5, 6]
        assert db.rows("SELECT double FROM seen WHERE double < 5 ORDER BY 1") == [(2,), (4,)]
        assert db.arrow('SELECT * FROM "Größe ""x"""').to_pydict() == {"A b": [7]}
        assert db.rows("SELECT count(*), sum(x) FROM many") == [(100_000, sum(range(100_000)))]
        for sql, words in {
            "INSERT INTO full_of_rules (id) VALUES (1)": "primary key",
            "INSERT INTO full_of_rules (id, size) VALUES (9, 0)": "positive",
            "INSERT INTO full_of_rules (id, size) VALUES (9, NULL)": "`size`",
            "CREATE SCHEMA sales": "exists",
        }.items():
            with pytest.raises(dbapi.Error, match=words):
                db.run(sql)
        db.run("INSERT INTO full_of_rules (id) SELECT max(id) + 10 FROM full_of_rules")


def test_what_is_not_durable_ends_with_the_server(restart):
    db = restart()
    db.run("CREATE TABLE fleeting (x BIGINT) WITH (storage = 'memory')", "INSERT INTO fleeting VALUES (1)")
    db.run("CREATE TEMPORARY TABLE mine (x BIGINT)", "CREATE TABLE kept (x BIGINT)")
    db.run("BEGIN", "INSERT INTO kept VALUES (1)", "CREATE TABLE open (x BIGINT)")
    db = restart()
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' AND table_catalog = 'bowshot'"
    assert db.rows(listed) == [("kept",)]
    assert db.one("SELECT count(*) FROM kept") == 0
    db.run("CREATE TABLE fleeting (y BIGINT)")


def test_what_is_dropped_stays_so(restart, data):
    db = restart()
    db.ingest("t", MANY)
    db.run("CREATE VIEW v AS SELECT * FROM t", "DROP VIEW v", "DROP TABLE t", "CREATE TABLE t (y BIGINT)", "CREATE SCHEMA s")
    db.run("CREATE TABLE s.t AS SELECT 1 AS x", "DROP SCHEMA s CASCADE")
    db = restart()
    assert db.arrow("SELECT * FROM t").column_names == ["y"]
    for name in ("v", "s.t"):
        with pytest.raises(dbapi.Error, match="not found"):
            db.rows(f"SELECT * FROM {name}")
    wait_until(lambda: not [path for path in data.rglob("*.parquet")], "the files of dropped tables are gone", 30)


def test_changes_after_changes(restart):
    db = restart()
    db.run("CREATE TABLE t (id BIGINT, n BIGINT)")
    expected = {}
    for number in range(6):
        db.run(f"INSERT INTO t (id, n) VALUES ({number}, 0)", "UPDATE t SET n = n + 1")
        expected = {id: n + 1 for id, n in {**expected, number: 0}.items()}
        if number == 3:
            db.run("DELETE FROM t WHERE id = 1", "OPTIMIZE t", "ALTER TABLE t ADD COLUMN more BIGINT DEFAULT 3")
            del expected[1]
        db = restart()
        assert dict(db.rows("SELECT id, n FROM t")) == expected
    assert db.one("SELECT sum(more) FROM t") == 3 * len(expected)


def test_a_start_without_changes_writes_no_rows(data):
    with Server(data=data) as server, Database(server) as db:
        db.ingest("t", MANY)
        db.run("INSERT INTO t VALUES (-1, 'few')", "OPTIMIZE t")
    before = contents(data / "tables")
    with Server(data=data) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 100_001
    assert contents(data / "tables") == before


@pytest.mark.timeout(1200)
def test_long_texts_are_read_back_however_files_are_united(db, table):
    # A thousandth of it is written: more than two gigabytes of text fit into one file of a good size.
    db.run(f"CREATE TABLE {table} (n BIGINT, x VARCHAR)")
    for first in range(0, 2_400, 400):
        series = f"generate_series({first}, {first + 399}) AS s(value)"
        db.run(f"INSERT INTO {table} SELECT value, repeat('a', 1000000) || value FROM {series}")
    db.run(f"OPTIMIZE {table}")
    found = db.rows(f"SELECT count(*), sum(n), min(length(x)), max(length(x)) FROM {table} WHERE x LIKE '%a' || n")
    assert found == [(2_400, 2_878_800, 1_000_001, 1_000_004)]
    db.run(f"DROP TABLE {table}")


# Versions.


def test_earlier_versions_can_be_read(restart):
    db = restart()
    db.run("CREATE TABLE t (x BIGINT)")
    expected = {versions(db, "t")[-1]: []}
    for sql in ("INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (3)", "UPDATE t SET x = x * 10", "DELETE FROM t WHERE x = 20"):
        db.run(sql)
        expected[versions(db, "t")[-1]] = [x for (x,) in db.rows("SELECT x FROM t ORDER BY x")]
    assert list(expected.values()) == [[], [1, 2], [1, 2, 3], [10, 20, 30], [10, 30]]
    for _ in range(2):
        for version, rows in expected.items():
            assert db.rows(f"SELECT x FROM t FOR VERSION AS OF {version} ORDER BY x") == [(x,) for x in rows]
        with pytest.raises(dbapi.Error, match="version"):
            db.rows("SELECT * FROM t FOR VERSION AS OF 99999")
        # What moves rows from the catalog to files makes no other rows.
        db.run("OPTIMIZE t")
        db = restart()


def test_the_history_tells_what_was_done(db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"INSERT INTO {table} VALUES (1), (2), (3)", f"DELETE FROM {table} WHERE x < 3")
    db.run("BEGIN", f"INSERT INTO {table} VALUES (7)", f"INSERT INTO {table} VALUES (8)", "COMMIT")
    history = db.arrow(f"SELECT * FROM bowshot.system.table_history WHERE table_name = '{table}' ORDER BY version")
    assert history.column_names == [
        "table_catalog", "table_schema", "table_name", "version", "committed_at", "operation", "rows_added", "rows_removed",
    ]  # fmt: skip
    assert history.schema.field("version").type == pa.int64() and pa.types.is_timestamp(history.schema.field("committed_at").type)
    assert history["table_catalog"].unique().to_pylist() == ["bowshot"]
    changes = [(row["rows_added"] or 0, row["rows_removed"] or 0) for row in history.to_pylist()]
    assert [change for change in changes if change != (0, 0)] == [(3, 0), (0, 2), (2, 0)]
    moments = history["committed_at"].to_pylist()
    assert moments == sorted(moments) and None not in moments


def test_a_moment_names_a_version(db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"INSERT INTO {table} VALUES (1)")
    # The clock of the history is the server's: a moment between two commits is taken from it.
    time.sleep(0.05)
    moment = str(db.one("SELECT CAST(now() AS VARCHAR)"))
    time.sleep(0.05)
    db.run(f"INSERT INTO {table} VALUES (2)")
    assert db.rows(f"SELECT x FROM {table} FOR TIMESTAMP AS OF '{moment}'") == [(1,)]
    with pytest.raises(dbapi.Error, match="(?i)version|earl|before"):
        db.rows(f"SELECT x FROM {table} FOR TIMESTAMP AS OF '2000-01-01 00:00:00'")


def test_vacuum_takes_what_no_version_needs(db, table):
    db.ingest(table, MANY)
    folder = db.location(table)
    first = versions(db, table)[-1]
    db.run(f"UPDATE {table} SET word = 'x'", f"VACUUM {table}")
    assert db.one(f"SELECT count(DISTINCT word) FROM {table} FOR VERSION AS OF {first}") == 97
    held = len(rows_of(folder))
    db.run(f"VACUUM {table} RETAIN 0 HOURS")
    wait_until(lambda: len(rows_of(folder)) < held, "fewer files, once their last readers are done", 20)
    assert db.rows(f"SELECT count(*), count(DISTINCT word) FROM {table}") == [(100_000, 1)]
    with pytest.raises(dbapi.Error, match="(?i)version"):
        db.rows(f"SELECT count(DISTINCT word) FROM {table} FOR VERSION AS OF {first}")


def test_vacuum_is_refused_in_a_transaction(db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", "BEGIN")
    with pytest.raises(dbapi.Error, match="cannot run in a transaction"):
        db.run(f"VACUUM {table} RETAIN 0 HOURS")
    db.run("ROLLBACK", f"VACUUM {table} RETAIN 0 HOURS")


def test_a_rollback_undoes_a_restart_of_identities(db, table):
    db.run(f"CREATE TABLE {table} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10), a INT)")
    db.run(f"INSERT INTO {table} (a) VALUES (1), (2), (3)", "BEGIN", f"TRUNCATE {table} RESTART IDENTITY")
    db.run(f"INSERT INTO {table} (a) VALUES (4)")
    assert db.rows(f"SELECT * FROM {table}") == [(10, 4)]
    db.run("ROLLBACK")
    assert db.rows(f"SELECT * FROM {table} ORDER BY id") == [(10, 1), (11, 2), (12, 3)]
    db.run(f"INSERT INTO {table} (a) VALUES (5)")
    ((number, _),) = db.rows(f"SELECT * FROM {table} WHERE a = 5")
    assert number > 12


def test_words_in_comments_are_no_statement(db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)")
    assert db.rows(f"/* /* */ vacuum */ SELECT count(*) FROM {table}") == [(0,)]
    with pytest.raises(dbapi.Error, match="(?i)syntax"):
        db.run(f"/* /* */ vacuum */ SELECT {table} RETAIN 0 HOURS")


def test_vacuum_leaves_what_a_reader_holds(shared, db, table):
    db.ingest(table, MANY)
    with Database(shared) as reader:
        reader.run("BEGIN")
        assert reader.one(f"SELECT count(*) FROM {table}") == 100_000
        db.run(f"UPDATE {table} SET word = 'x'", f"VACUUM {table} RETAIN 0 HOURS")
        assert reader.one(f"SELECT count(DISTINCT word) FROM {table}") == 97
        reader.run("ROLLBACK")


def test_optimize_makes_few_files_of_many(db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)")
    for start in range(0, 100_000, 20_000):
        db.run(f"INSERT INTO {table} SELECT value FROM generate_series({start}, {start + 19_999}) AS s(value)")
    before = db.rows(f"SELECT count(*), sum(x), max(x) FROM {table}")
    db.run(f"OPTIMIZE\t{table}", f"-- what nobody needs\nvacuum\n{table} RETAIN 0 HOURS")
    assert db.rows(f"SELECT count(*), sum(x), max(x) FROM {table}") == before
    folder = db.location(table)
    wait_until(lambda: len(rows_of(folder)) <= 2, "two files, once the last readers of the others are done", 20)
