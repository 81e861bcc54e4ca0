"""Lakes that DuckDB has written: what we read is what DuckDB reads."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import refused
from lake import asked, same, sorted_rows

TYPES = {
    "a": ("BOOLEAN", "true"), "b": ("TINYINT", "-128"), "c": ("SMALLINT", "-32768"), "d": ("INTEGER", "2147483647"),
    "e": ("BIGINT", "-9223372036854775808"), "f": ("UTINYINT", "255"), "g": ("USMALLINT", "65535"), "h": ("UINTEGER", "4294967295"),
    "i": ("UBIGINT", "18446744073709551615"), "j": ("REAL", "1.5"), "k": ("DOUBLE", "0.1"), "l": ("DECIMAL(10,2)", "-12.34"),
    "m": ("DECIMAL(38,10)", "1234567890123456789.0123456789"), "n": ("VARCHAR", "'größe '' \\n'"), "o": ("BLOB", "'\\x00\\xFFab'::BLOB"),
    "p": ("DATE", "'2024-02-29'"), "q": ("TIME", "'23:59:59.999999'"), "r": ("TIMESTAMP", "'2020-01-01 01:02:03.456789'"),
    "s": ("TIMESTAMP_S", "'1969-12-31 23:59:59'"), "t": ("TIMESTAMP_MS", "'2020-01-01 01:02:03.4'"),
    "u": ("TIMESTAMP_NS", "'2020-01-01 01:02:03.123456789'"), "v": ("TIMESTAMPTZ", "'2020-01-01 01:02:03+02'"),
    "w": ("UUID", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"), "x": ("JSON", "'{\"a\": [1]}'"),
}
NESTED = {
    "l": ("INTEGER[]", "[1, NULL, 3]"), "s": ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x'}"), "m": ("MAP(VARCHAR, INTEGER)", "MAP {'k': 1}"),
    "d": ("STRUCT(x DOUBLE[], y MAP(INTEGER, DATE))[]", "[{'x': [0.5], 'y': MAP {1: DATE '2020-01-01'}}, NULL]"),
}


def typed(lake, types):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in types.items())
    values = ", ".join(value for _, value in types.values())
    lake.run(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({values})", "INSERT INTO t (a) VALUES (NULL)" if "a" in types else "SELECT 1")


def numbers(lake, rows=1000, name="t"):
    lake.run(f"CREATE TABLE {name} AS SELECT range AS id, CASE WHEN range % 10 > 0 THEN 'größe ' || range % 7 END AS word, "
             f"range % 4 AS number, DATE '2024-02-28' + (range % 3)::INTEGER AS day FROM range({rows})")


def test_rows_and_conditions(lake):
    numbers(lake)
    lake.run("INSERT INTO t SELECT range, 'later', 9, DATE '2030-01-01' FROM range(1000, 1100)")
    with asked(lake.source) as database:
        same(lake, database)
        for where in ("id > 395 AND id < 405", "word = 'größe 3'", "word IS NULL", "day = '2024-03-01'", "id < 0", "id >= 1000", "true"):
            sql = f"SELECT count(*) AS n, sum(id)::BIGINT AS s, min(word) AS w, max(day) AS d, count(word) AS c FROM main.t WHERE {where}"
            same(lake, database, sql)
        assert database.one("SELECT count(*) FROM lake.main.t") == 1100
        assert len(database.rows("SELECT id FROM lake.main.t LIMIT 7")) == 7
        assert database.rows("SELECT max(id), min(id) FROM lake.main.t") == [(1099, 0)]


@pytest.mark.parametrize("inlined", [0, 50])
def test_every_type(lake, inlining, inlined):
    made = inlining if inlined else lake
    typed(made, TYPES)
    with asked(made.source) as database:
        got = database.arrow("SELECT * FROM lake.main.t")
        wanted = made.arrow("SELECT * FROM t")
        plain = [name for name in wanted.schema.names if name != "w"]
        assert sorted_rows(got.select(plain)) == sorted_rows(wanted.select(plain))
        assert got.schema.field("w").type == pa.uuid() and got.schema.field("v").type == pa.timestamp("us", "UTC")
        assert {str(value) for value in got["w"].to_pylist()} == {"None", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}
        for name, (kind, value) in TYPES.items():
            if name not in "oxw":
                assert database.one(f"SELECT count(*) FROM lake.main.t WHERE {name} = {value}") == 1, (name, kind)


def test_nested_types(lake):
    typed(lake, NESTED)
    lake.run("INSERT INTO t VALUES (NULL, NULL, NULL, NULL), ([], {'a': NULL, 'b': NULL}, MAP {}, [])")
    with asked(lake.source) as database:
        same(lake, database)
        assert database.one("SELECT s['b'] FROM lake.main.t WHERE s['a'] = 1") == "x"


def test_numbers_of_128_bits(lake, inlining):
    for made, name in ((lake, "t"), (inlining, "u")):
        made.run(f"CREATE TABLE {name} (n HUGEINT, u UHUGEINT)", f"INSERT INTO {name} VALUES (12345, 7), (-170, NULL), (NULL, 0)")
        with asked(made.source) as database:
            sql = f"SELECT n::BIGINT AS n, u::BIGINT AS u FROM main.{name}"
            same(made, database, sql)
            same(made, database, f"{sql} WHERE n < 0")
    inlining.run("INSERT INTO u VALUES (170141183460469231731687303715884105727, 1)")
    with asked(inlining.source) as database:
        refused(database, "SELECT * FROM lake.main.u", "`n`", "ducklake_flush_inlined_data")


def test_numbers_that_are_none(inlining):
    inlining.run("CREATE TABLE t (d DOUBLE, f REAL)", "INSERT INTO t VALUES ('nan', 'inf'), ('-inf', 'nan'), (1e300, -0.0), (NULL, 1)")
    with asked(inlining.source) as database:
        same(inlining, database)
        inlining.run("CALL ducklake_flush_inlined_data('lake')")
        same(inlining, database)
        assert database.one("SELECT count(*) FROM lake.main.t WHERE d > 1e301") == 1


@pytest.mark.parametrize("kind, value", [("INTERVAL", "INTERVAL '1 month'"), ("TIMETZ", "'01:02:03+01'"), ("VARIANT", "1::VARIANT")])
def test_types_that_are_not_read(lake, kind, value):
    numbers(lake, 3, "good")
    lake.run(f"CREATE TABLE t (a INT, odd {kind})", f"INSERT INTO t VALUES (1, {value})")
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.t", "main.t", "`odd`", "unsupported")
        assert database.one("SELECT count(*) FROM lake.main.good") == 3


def test_values_that_the_catalog_keeps_in_another_form(inlining):
    inlining.run("CREATE TABLE t (a INT, l INT[])", "INSERT INTO t VALUES (1, NULL)")
    with asked(inlining.source) as database:
        same(inlining, database)
        inlining.run("INSERT INTO t VALUES (2, [1, 2])")
        refused(database, "SELECT * FROM lake.main.t", "`l`", "ducklake_flush_inlined_data")
        inlining.run("CALL ducklake_flush_inlined_data('lake')")
        same(inlining, database)
        inlining.run("CREATE TABLE d (d DATE)", "INSERT INTO d VALUES ('infinity')")
        refused(database, "SELECT * FROM lake.main.d", "`d`")


def test_rows_in_the_catalog(inlining):
    numbers(inlining)
    with asked(inlining.source) as database:
        for change in (
            "INSERT INTO t VALUES (5000, 'new', NULL, '2025-01-01'), (5001, NULL, 1, NULL)", "DELETE FROM t WHERE id IN (3, 5, 999)",
            "UPDATE t SET word = 'changed' WHERE id IN (7, 5000)", "DELETE FROM t WHERE id = 5001", "DELETE FROM t WHERE id = 7",
            "INSERT INTO t SELECT range, 'file', 0, NULL FROM range(6000, 6100)", "DELETE FROM t WHERE id = 6042",
            "CALL ducklake_flush_inlined_data('lake')", "DELETE FROM t WHERE id = 6043", "DELETE FROM t WHERE id < 20",
        ):
            inlining.run(change)
            same(inlining, database)
            same(inlining, database, "SELECT count(*) AS n, max(id) AS m, count(word) AS w FROM main.t")
        inlining.run("DELETE FROM t")
        assert same(inlining, database).num_rows == 0


def test_rows_in_the_catalog_of_changed_columns(inlining):
    inlining.run("CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (1, 2)", "ALTER TABLE t RENAME a TO z", "INSERT INTO t VALUES (3, 4)",
                 "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b BIGINT DEFAULT 9", "INSERT INTO t VALUES (5, 6)",
                 "ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT 'it''s'", "ALTER TABLE t ALTER z TYPE BIGINT", "INSERT INTO t VALUES (1::BIGINT << 40, 7, 'x')")
    with asked(inlining.source) as database:
        same(inlining, database)
        same(inlining, database, "SELECT z FROM main.t WHERE c = 'it''s' AND b = 9")
        inlining.run("BEGIN", "CREATE TABLE tx (a INT)", "INSERT INTO tx VALUES (1)", "ALTER TABLE tx ADD COLUMN q INT", "INSERT INTO tx VALUES (2, 3)", "COMMIT")
        same(inlining, database, "SELECT * FROM main.tx")


def test_rows_in_the_catalog_of_widened_columns(inlining):
    inlining.run("CREATE TABLE t (f FLOAT, i TINYINT)", "INSERT INTO t VALUES (0.1, -7), (NULL, NULL)", "ALTER TABLE t ALTER f TYPE DOUBLE",
                 "ALTER TABLE t ALTER i TYPE BIGINT", "INSERT INTO t VALUES (0.1, 1::BIGINT << 40)")
    with asked(inlining.source) as database:
        assert sorted(same(inlining, database, "SELECT f FROM main.t WHERE f IS NOT NULL").column("f").to_pylist()) == [0.1, 0.10000000149011612]
        same(inlining, database)


def test_files_of_deleted_rows(lake):
    numbers(lake)
    with asked(lake.source) as database:
        for change in (
            "DELETE FROM t WHERE id % 10 = 3", "DELETE FROM t WHERE id % 10 = 4", "UPDATE t SET number = 100 WHERE id = 7",
            "INSERT INTO t VALUES (1, 'again', 1, NULL)", "DELETE FROM t WHERE id = 1", "CALL ducklake_merge_adjacent_files('lake')",
            "DELETE FROM t WHERE number = 100", "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
            "MERGE INTO t USING (SELECT 2 AS id, 'merged' AS word UNION ALL SELECT 7777, 'new') AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET word = s.word WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, s.word)",
        ):
            lake.run(change)
            same(lake, database)
            same(lake, database, "SELECT count(*) AS n, min(id) AS a, max(number) AS b, sum(id)::BIGINT AS s FROM main.t WHERE id < 500")


def test_columns_that_have_changed(lake):
    lake.run("CREATE TABLE t (a INTEGER, b REAL, c DECIMAL(5, 2), d VARCHAR, e UTINYINT)", "INSERT INTO t VALUES (1, 0.5, 1.25, 'old', 200), (2, NULL, NULL, 'older', NULL)",
             "ALTER TABLE t RENAME a TO z", "ALTER TABLE t ALTER z TYPE BIGINT", "ALTER TABLE t ALTER b TYPE DOUBLE", "ALTER TABLE t DROP COLUMN d",
             "ALTER TABLE t ALTER e TYPE UINTEGER", "INSERT INTO t VALUES (1::BIGINT << 40, 0.1, 3, 4000000000)", "ALTER TABLE t ADD COLUMN d INTEGER",
             "ALTER TABLE t ADD COLUMN w DECIMAL(5, 2) DEFAULT 1.5", "ALTER TABLE t ADD COLUMN ts TIMESTAMP DEFAULT '2020-01-01 01:02:03'",
             "ALTER TABLE t ADD COLUMN bo BOOLEAN DEFAULT 'true'", "INSERT INTO t (z, d) VALUES (9, 9)")
    with asked(lake.source) as database:
        same(lake, database)
        for where in ("z > 1", "d IS NULL", "w = 1.5", "bo", "ts < '2021-01-01'", "e > 255"):
            same(lake, database, f"SELECT z, d, w FROM main.t WHERE {where}")
        lake.run("ALTER TABLE t RENAME z TO b2", "ALTER TABLE t RENAME b TO z", "ALTER TABLE t RENAME b2 TO b")
        same(lake, database)


def test_fields_within_columns_that_have_changed(lake):
    lake.run("CREATE TABLE t (i INT, s STRUCT(a INT, b VARCHAR), l STRUCT(x INT)[])", "INSERT INTO t VALUES (1, {'a': 1, 'b': 'x'}, [{'x': 1}])",
             "ALTER TABLE t ADD COLUMN s.c INT", "ALTER TABLE t DROP COLUMN s.a", "ALTER TABLE t ADD COLUMN l.element.y INT",
             "INSERT INTO t VALUES (2, {'b': 'y', 'c': 3}, [{'x': 2, 'y': 4}, NULL])")
    with asked(lake.source) as database:
        same(lake, database)
        lake.run("CREATE TABLE r AS SELECT * FROM t", "ALTER TABLE r RENAME COLUMN s.b TO bb")
        refused(database, "SELECT * FROM lake.main.r", "renamed")
        lake.run("CREATE TABLE d AS SELECT i, s FROM t", "ALTER TABLE d ADD COLUMN s.e INT DEFAULT 5")
        refused(database, "SELECT * FROM lake.main.d", "`e`", "nested")
        same(lake, database)


def test_partitions(lake):
    lake.run("CREATE TABLE t (k INT, y VARCHAR, ts TIMESTAMP)", "ALTER TABLE t SET PARTITIONED BY (y, year(ts))",
             "INSERT INTO t VALUES (1, 'a/b c=%25', '2020-01-01'), (2, NULL, '2021-01-01'), (3, 'ü', NULL)",
             "ALTER TABLE t SET PARTITIONED BY (k)", "INSERT INTO t SELECT range % 5, 'x', NULL FROM range(100)")
    with asked(lake.source) as database:
        same(lake, database)
        for where in ("y = 'a/b c=%25'", "y IS NULL", "k = 3", "ts >= '2021-01-01'"):
            same(lake, database, f"SELECT * FROM main.t WHERE {where}")


def test_files_of_others(lake):
    land = lake.data / "land"
    (land / "part=7" / "word=a%20b").mkdir(parents=True)
    lake.run("CREATE TABLE t (i BIGINT, j BIGINT, gone INT)", "INSERT INTO t VALUES (0, 0, 0)", "ALTER TABLE t RENAME j TO jj", "ALTER TABLE t DROP COLUMN gone",
             "ALTER TABLE t ADD COLUMN more VARCHAR DEFAULT 'none'")
    pq.write_table(pa.table({"jj": [3, 4], "i": [1, 2]}), land / "f.parquet")
    lake.run(f"CALL ducklake_add_data_files('lake', 't', '{land}/f.parquet', allow_missing => true)", "ALTER TABLE t RENAME jj TO j3")
    pq.write_table(pa.table({"i": [10, 20]}), land / "part=7" / "word=a%20b" / "f.parquet")
    lake.run("CREATE TABLE hive (i BIGINT, part INT, word VARCHAR)",
             f"CALL ducklake_add_data_files('lake', 'hive', '{land}/part=7/word=a%20b/f.parquet', hive_partitioning => true)")
    point = pa.struct([("y", pa.int32()), ("x", pa.int32())])
    nested = pa.table({"p": pa.array([{"y": 2, "x": 1}], point), "l": pa.array([[{"y": 4, "x": 3}]], pa.list_(point)),
                       "m": pa.array([[("k", {"y": 6, "x": 5})]], pa.map_(pa.string(), point)), "mixed": pa.array([1], pa.int32())})
    pq.write_table(nested, land / "nested.parquet")
    lake.run('CREATE TABLE nested (p STRUCT(x INT, y INT), l STRUCT(x INT, y INT)[], m MAP(VARCHAR, STRUCT(x INT, y INT)), "MiXed" INT)',
             f"CALL ducklake_add_data_files('lake', 'nested', '{land}/nested.parquet')", "DELETE FROM t WHERE i = 2")
    with asked(lake.source) as database:
        same(lake, database)
        same(lake, database, "SELECT * FROM main.hive WHERE part = 7")
        same(lake, database, "SELECT * FROM main.nested")
        lake.run("ALTER TABLE nested DROP COLUMN p.x", "ALTER TABLE nested ADD COLUMN p.x INT")
        refused(database, "SELECT * FROM lake.main.nested", "`x`")


def test_schemas_and_names(lake):
    lake.run("CREATE SCHEMA s2", 'CREATE SCHEMA "We ird"', 'CREATE TABLE s2."T. x" AS SELECT 1 AS "A b"', 'CREATE TABLE "We ird".t AS SELECT 2 AS a',
             "CREATE TABLE t AS SELECT 3 AS a", "CREATE TABLE gone AS SELECT 4 AS a", "DROP TABLE gone")
    with asked(lake.source) as database:
        listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'lake' AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, 2"
        assert database.rows(listed) == [("We ird", "t"), ("main", "t"), ("s2", "T. x")]
        assert database.rows('SELECT "A b" FROM lake.s2."T. x"') == [(1,)] and database.one('SELECT a FROM lake."We ird".t') == 2
        refused(database, "SELECT * FROM lake.main.gone", "not found")
        refused(database, "SELECT * FROM lake.nowhere.t", "not found")
        lake.run('ALTER TABLE s2."T. x" RENAME TO plain', "DROP TABLE t", "CREATE TABLE t AS SELECT 'another' AS b")
        assert database.rows("SELECT * FROM lake.s2.plain") == [(1,)] and database.rows("SELECT * FROM lake.main.t") == [("another",)]
        refused(database, 'SELECT * FROM lake.s2."T. x"', "not found")
        columns = database.rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = 'lake' AND table_name = 'plain'")
        assert [name for name, _ in columns] == ["A b"]
        database.run("USE lake.main")
        assert database.rows("SELECT * FROM t") == [("another",)]


def test_views_are_not_read(lake):
    lake.run("CREATE TABLE t AS SELECT 1 AS a", "CREATE VIEW v AS SELECT a + 1 AS b FROM t")
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.v", "view", "CREATE VIEW")
        assert database.rows("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'lake' AND table_schema = 'main'") == [("t",)]


@pytest.mark.parametrize("inlined", [0, 50])
def test_earlier_snapshots(lake, inlining, inlined):
    made = inlining if inlined else lake
    made.run("CREATE TABLE t (i INT)")
    first = made.snapshot()
    for i in range(6):
        made.run(f"INSERT INTO t VALUES ({i})")
    made.run("DELETE FROM t WHERE i = 2", "UPDATE t SET i = 30 WHERE i = 3", "ALTER TABLE t ADD COLUMN word VARCHAR DEFAULT 'w'", "INSERT INTO t VALUES (7, NULL)")
    last = made.snapshot()
    with asked(made.source) as database:
        for merge in ("SELECT 1", "CALL ducklake_flush_inlined_data('lake')", "CALL ducklake_merge_adjacent_files('lake')"):
            made.run(merge)
            for at in range(first, last + 1):
                same(made, database, at=at)
            same(made, database)
        refused(database, "SELECT * FROM lake.main.t FOR VERSION AS OF 99999", "snapshot not found", "the first is 0", f"the last is {made.snapshot()}")
        refused(database, f"SELECT * FROM lake.main.t FOR VERSION AS OF {first - 1}", f"does not exist in snapshot {first - 1}")
        refused(database, "SELECT * FROM lake.main.t FOR TIMESTAMP AS OF '2001-01-01'", "snapshot not found")
        assert database.rows("SELECT count(*) FROM lake.main.t FOR TIMESTAMP AS OF '2999-01-01 00:00:00+01:00'") == made.rows("SELECT count(*) FROM t")
        for snapshot, time in made.rows("SELECT snapshot_id, snapshot_time FROM ducklake_snapshots('lake')"):
            if first < snapshot <= last:
                moment = time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
                assert database.one(f"SELECT count(*) FROM lake.main.t FOR TIMESTAMP AS OF '{moment}'") == made.one(f"SELECT count(*) FROM t AT (VERSION => {snapshot})")


def test_times_that_do_not_decide_may_be_wrong(lake):
    lake.run("CREATE TABLE t (i INT)", "INSERT INTO t VALUES (1)")
    with lake.itself() as catalog:
        catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = 'yesterday' WHERE snapshot_id = 1")
    with asked(lake.source) as database:
        assert database.one("SELECT count(*) FROM lake.main.t FOR TIMESTAMP AS OF '2999-01-01'") == 1
        refused(database, "SELECT * FROM lake.main.t FOR TIMESTAMP AS OF '2001-01-01'", "snapshot 1 has an invalid time")


def test_the_next_statement_sees_what_was_committed(lake):
    lake.run("CREATE TABLE t (i BIGINT)")
    with asked(lake.source) as database:
        for count in range(1, 15):
            lake.run(f"INSERT INTO t VALUES ({count})")
            assert database.one("SELECT count(*) FROM lake.main.t") == count
            assert database.one("SELECT sum(i) FROM lake.main.t") == count * (count + 1) // 2
        lake.run("CREATE TABLE late AS SELECT 1 AS a")
        assert database.one("SELECT a FROM lake.main.late") == 1


def test_a_lake_of_no_rows(lake):
    lake.run("CREATE TABLE t (i INT, s VARCHAR)")
    assert not lake.data.exists() or not any(lake.data.rglob("*.parquet"))
    with asked(lake.source) as database:
        assert same(lake, database).num_rows == 0
        assert database.rows("SELECT count(*), max(i) FROM lake.main.t") == [(0, None)]


def test_together_with_other_tables(lake):
    numbers(lake)
    lake.run("CREATE TABLE u AS SELECT range AS number, 'name ' || range AS name FROM range(4)")
    with asked(lake.source) as database:
        sql = "SELECT u.name, count(*) AS n FROM {0}t AS t JOIN {0}u AS u ON t.number = u.number WHERE t.word LIKE 'gr%' GROUP BY u.name ORDER BY 1"
        assert database.rows(sql.format("lake.main.")) == lake.rows(sql.format("main."))
        database.run("CREATE TABLE own AS SELECT * FROM lake.main.t", "CREATE VIEW seen AS SELECT id FROM lake.main.t WHERE id < 5")
        assert database.rows("SELECT count(*) FROM own JOIN lake.main.t USING (id)") == [(1000,)]
        lake.run("DELETE FROM t WHERE id = 1")
        assert database.one("SELECT count(*) FROM seen") == 4
        for _ in range(3):
            assert database.rows("SELECT count(*), sum(id) FROM lake.main.t") == [(999, 499499)]
