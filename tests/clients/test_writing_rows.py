"""Rows that go in, come back with RETURNING, and meet keys; parameters with types of their own."""

import pyarrow as pa
import pytest

from durable import Database, refused
from writing_adbc import Status


@pytest.fixture
def db(store):
    with Database(store) as database:
        yield database


def test_default_stands_for_the_default_of_its_column(db, table):
    db.run(f"CREATE TABLE {table} (n INT DEFAULT 7, s TEXT DEFAULT upper('ab'), r DOUBLE DEFAULT random(), none INT)")
    assert db.run(f"INSERT INTO {table} VALUES (1, DEFAULT, default, DEFAULT), (DEFAULT, 'x', DEFAULT, 4)") == 2
    assert db.run(f"INSERT INTO {table} (none, n) VALUES (DEFAULT, DEFAULT), (5, 5)") == 2
    assert db.run(f"INSERT INTO {table} DEFAULT VALUES") == 1
    rows = [(1, "AB", None), (7, "x", 4), (7, "AB", None), (5, "AB", 5), (7, "AB", None)]
    assert sorted(db.rows(f"SELECT n, s, none FROM {table}"), key=str) == sorted(rows, key=str)
    assert db.rows(f"SELECT count(DISTINCT r) FROM {table}") == [(5,)]
    assert db.run(f"INSERT INTO {table} (n) VALUES ((SELECT max(n) + 1 FROM {table})), (DEFAULT), ((SELECT 9 WHERE false))") == 3
    assert db.run(f"DELETE FROM {table} WHERE n IS NULL OR n = 8") == 2
    assert db.run(f"DELETE FROM {table} WHERE n = 7 AND none IS NULL") == 3
    assert db.run(f"INSERT INTO {table} VALUES (7, 'AB', 1, NULL), (7, 'AB', 2, NULL)") == 2
    many = ", ".join(["((SELECT 1))"] * 101)
    refused(db, f"INSERT INTO {table} (n) VALUES {many}", "101 rows")
    refused(db, f"INSERT INTO {table} (n) VALUES (DEFAULT, DEFAULT)", "got 2 values")
    refused(db, f"INSERT INTO {table} (n) VALUES (DEFAULT + 1)", "default")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(5,)]


def test_rows_with_queries_keep_their_values(db, table):
    """Rows of one statement must not take each other's types."""
    db.run(f"CREATE TABLE {table} (n BIGINT, s TEXT, d DATE)")
    assert db.run(f"INSERT INTO {table} VALUES ((SELECT 9007199254740993), 'a', NULL), (1.0, 'a', NULL), (2.5e0, 'a', NULL)") == 3
    assert db.run(f"INSERT INTO {table} VALUES (1, (SELECT 1), DATE '2026-01-02'), (1, 2.5, '2026-01-03'), (1, true, (SELECT NULL))") == 3
    assert db.run(f"INSERT INTO {table} (d, n) VALUES ((SELECT DATE '2026-01-04'), 1), (NULL, NULL)") == 2
    rows = [(1, "1"), (1, "2.5"), (1, "a"), (1, "true"), (2, "a"), (9007199254740993, "a")]
    assert db.rows(f"SELECT n, s FROM {table} WHERE s IS NOT NULL ORDER BY n, s") == rows
    assert db.rows(f"SELECT count(d), count(*) FROM {table}") == [(3, 8)]
    assert db.run(f"INSERT INTO {table} (n, s) VALUES (0, (SELECT 'x')), (0, 0)") == 2
    refused(db, f"INSERT INTO {table} (n) VALUES ((SELECT 'seven')), (1)", "seven")
    refused(db, f"INSERT INTO {table} (n) VALUES ((SELECT value FROM generate_series(1, 2) AS s(value)))", "")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(10,)]


def test_values_beside_a_query_mean_what_they_mean_in_their_dialect(db, table):
    db.run(f"CREATE TABLE {table} (n BIGINT, s TEXT)")
    try:
        db.run("SET dialect = 'mysql'")
        # It answers a row here, as servers of the dialect do.
        db.run(f"INSERT INTO {table} VALUES ((SELECT 1), 'it\\'s'), (2, 'a\\\\b'), (3, \"double\")")
        db.run("SET dialect = 'postgres'")
        assert db.run(f"INSERT INTO {table} VALUES ((SELECT 4), E'tab\\there'), (5, 'a\\\\b')") == 2
    finally:
        db.run("SET dialect = 'ansi'")
    rows = [(1, "it's"), (2, "a\\b"), (3, "double"), (4, "tab\there"), (5, "a\\\\b")]
    assert db.rows(f"SELECT * FROM {table} ORDER BY n") == rows


def test_queries_before_a_statement_that_changes_rows(db, table):
    db.run(f"CREATE TABLE {table} (n INT, s TEXT)")
    few = "WITH few AS (SELECT value AS n FROM generate_series(1, 3) AS s(value))"
    assert db.run(f"{few} INSERT INTO {table} SELECT n, 'new' FROM few") == 3
    assert db.run(f"{few} INSERT INTO {table} WITH more AS (SELECT n + 3 AS n FROM few) SELECT n, 'more' FROM more") == 3
    assert db.run(f"{few} UPDATE {table} SET s = 'few' FROM few WHERE few.n = {table}.n AND few.n > 1") == 2
    returned = f"{few} UPDATE {table} SET s = 'one' WHERE n IN (SELECT n FROM few) AND s = 'new' RETURNING n, s"
    assert db.rows(returned) == [(1, "one")]
    merged = f"MERGE INTO {table} USING few ON {table}.n = few.n + 2 WHEN MATCHED THEN UPDATE SET s = 'merged'"
    assert db.run(f"{few} {merged} WHEN NOT MATCHED THEN INSERT VALUES (0, 'never')") == 3
    assert db.run(f"{few} DELETE FROM {table} WHERE n NOT IN (SELECT n + 1 FROM few)") == 3
    assert db.rows(f"SELECT * FROM {table} ORDER BY n") == [(2, "few"), (3, "merged"), (4, "merged")]
    refused(db, f"{few} INSERT INTO missing SELECT n FROM few", "missing")
    # The inner one of two of one name.
    assert db.run(f"{few} INSERT INTO {table} WITH few AS (SELECT 9 AS n) SELECT n, 'inner' FROM few") == 1
    assert db.rows(f"DELETE FROM {table} WHERE s = 'inner' RETURNING n") == [(9,)]
    db.run(f"CREATE VIEW {table}_v AS SELECT 100 AS n")
    plain = f"WITH {table}_v AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM {table}_v WHERE n < 105) SELECT n, 'plain' FROM {table}_v"
    assert db.run(f"WITH RECURSIVE r AS (SELECT 1 AS n) INSERT INTO {table} {plain}") == 2
    assert db.run(f"DELETE FROM {table} WHERE s = 'plain' AND n IN (1, 101)") == 2
    db.run(f"DROP VIEW {table}_v")
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET n = 0", f"INSERT INTO {table} VALUES (9, 'x')"):
        refused(db, f"WITH {table} AS (SELECT * FROM {table} WHERE n > 2) {statement}", "both the changed table")
    for name in ("__bowshot_change.target", "__BOWSHOT_change.target"):
        shadow = f'WITH "{name}" AS (SELECT *, 0 AS "__bowshot_address" FROM {table})'
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET n = 0", f"INSERT INTO {table} VALUES (9, 'x')"):
            refused(db, f"{shadow} {statement}", "reserved")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(3,)]


def test_rows_that_came_one_by_one_are_read_together(db, table):
    db.run(f"CREATE TABLE {table} (n BIGINT)")
    for number in range(100):
        db.run(f"INSERT INTO {table} VALUES ({number})")
    with db.connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        batches = [batch.num_rows for batch in cursor.fetch_record_batch()]
    assert sum(batches) == 100 and len(batches) <= 10, batches


@pytest.mark.parametrize("rows", [1, 10_000])
def test_a_key_is_there_once_however_few_or_many_rows_come(db, table, rows):
    db.run(f"CREATE TABLE {table} (a BIGINT, b TEXT, c INT, PRIMARY KEY (a, b))")
    fill = f"INSERT INTO {table} SELECT value, 'k' || (value % 3), 0 FROM generate_series({{}}, {{}}) AS s(value)"
    assert db.run(fill.format(1, rows)) == rows
    assert db.run(fill.format(rows + 1, 2 * rows)) == rows
    assert db.run(f"INSERT INTO {table} VALUES (1, 'other', 1), (1, 'third', 1)") == 2
    refused(db, f"INSERT INTO {table} VALUES (5000000, 'x', 1), (1, 'k1', 1)", "(1, k1) twice", status=Status.ALREADY_EXISTS)
    refused(db, f"INSERT INTO {table} VALUES (-1, 'x', 1), (-1, 'x', 2)", "(-1, x) twice", status=Status.ALREADY_EXISTS)
    refused(db, fill.format(rows, rows + 30), "twice", status=Status.ALREADY_EXISTS)
    refused(db, f"UPDATE {table} SET b = 'other' WHERE c = 1 AND b = 'third'", "(1, other) twice", status=Status.ALREADY_EXISTS)
    assert db.run(f"UPDATE {table} SET c = 9 WHERE a = 1") == 3
    assert db.rows(f"SELECT count(*) FROM {table}") == [(2 * rows + 2,)]


def test_parameters_under_casts_and_limits_have_their_types(db):
    for sql, values, expected in [
        ("SELECT CAST(? AS BIGINT) + 1", (41,), [(42,)]),
        ("SELECT CAST(? AS BIGINT) + 1", ("41",), [(42,)]),
        ("SELECT TRY_CAST(? AS INT)", (7,), [(7,)]),
        ("SELECT value FROM generate_series(1, 9) AS s(value) ORDER BY value LIMIT ? OFFSET ?", (2, 3), [(4,), (5,)]),
        ("SELECT CAST($1 AS BIGINT) AS a, CAST($1 AS VARCHAR) AS b", (7,), [(7, "7")]),
    ]:
        with db.connection.cursor() as cursor:
            cursor.execute(sql, values)
            assert cursor.fetchall() == expected, sql
    with db.connection.cursor() as cursor:
        cursor.adbc_statement.set_sql_query("SELECT CAST(? AS BIGINT), TRY_CAST(? AS DATE) LIMIT ?")
        cursor.adbc_statement.prepare()
        types = [str(field.type) for field in pa.Schema._import_from_c_capsule(
            cursor.adbc_statement.get_parameter_schema().__arrow_c_schema__()
        )]
    assert types == ["int64", "date32[day]", "int64"]


@pytest.mark.parametrize("storage", ["memory", "durable"])
@pytest.mark.parametrize("rows", [3, 20_000])
def test_returning(db, table, storage, rows):
    def many(sql):
        with db.connection.cursor() as cursor:
            cursor.execute(sql)
            names = [column[0] for column in cursor.description]
            return names, sorted(cursor.fetchall(), key=str)

    with_storage = "" if storage == "durable" else "WITH (storage = 'memory')"
    db.run(f"CREATE TABLE {table} (id BIGINT, name TEXT DEFAULT 'nobody', n INT) {with_storage}")
    assert many(f"INSERT INTO {table} (id) VALUES (1), (2) RETURNING *") == (
        ["id", "name", "n"], [(1, "nobody", None), (2, "nobody", None)],
    )  # fmt: skip
    names, found = many(
        f"INSERT INTO {table} SELECT value, 'x', 1 FROM generate_series(3, {rows + 2}) AS s(value) RETURNING id, {table}.id * 2 AS twice"
    )
    assert names == ["id", "twice"] and found == sorted([(n, 2 * n) for n in range(3, rows + 3)], key=str)
    assert many(f"UPDATE {table} AS t SET n = t.id + 1, name = upper(name) WHERE id < 3 RETURNING t.id, name, n + 1 AS m") == (
        ["id", "name", "m"], [(1, "NOBODY", 3), (2, "NOBODY", 4)],
    )  # fmt: skip
    assert many(f"DELETE FROM {table} WHERE id = 0 RETURNING id")[1] == []
    # A row that meets several others is taken out once, and returned once.
    assert many(f"DELETE FROM {table} USING (VALUES (1), (1), (2)) AS v(x) WHERE id = x RETURNING id, name")[1] == [
        (1, "NOBODY"), (2, "NOBODY"),
    ]  # fmt: skip
    assert len(many(f"DELETE FROM {table} RETURNING *")[1]) == rows
    assert db.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    # Who asks for the number gets the number.
    with db.connection.cursor() as cursor:
        cursor.adbc_statement.set_sql_query(f"INSERT INTO {table} (id) VALUES (1), (2) RETURNING id")
        assert cursor.adbc_statement.execute_update() == 2
        cursor.executemany(f"INSERT INTO {table} (id, name) VALUES (?, ?) RETURNING id", [(7, "a"), (8, "b")])
    assert db.rows(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,), (7,), (8,)]
    db.run("BEGIN")
    assert many(f"DELETE FROM {table} WHERE id > 6 RETURNING id")[1] == [(7,), (8,)]
    db.run("ROLLBACK")
    assert db.rows(f"SELECT count(*) FROM {table}") == [(4,)]
    db.run(f"DROP TABLE {table}")


def test_a_condition_stays_with_its_column_where_another_has_its_name(db, table):
    """DataFusion pushes conditions through joins by the names of columns, and takes the first of a name."""
    a, b = f"{table}_a", f"{table}_b"
    for name in (a, b):
        db.run(f"CREATE TABLE {name} (c0 INT, c1 INT)")
        db.run(f"INSERT INTO {name} VALUES (1,1), (2,12), (3,NULL), (NULL,4), (NULL,1), (5,21)")
    outer = f"FROM {a} FULL JOIN {b} ON {a}.c1 = {b}.c0 WHERE CAST({b}.c1 AS VARCHAR) LIKE '%1%' AND {a}.c0 IS NULL"
    assert sorted(db.rows(f"SELECT {a}.c0, {b}.c0 {outer}"), key=str) == [(None, 1), (None, 2), (None, 5), (None, None)]
    for name in (a, b):
        db.run(f"CREATE OR REPLACE TABLE {name} AS SELECT value AS k, value * 7919 % 10007 AS c0 FROM generate_series(1, 20000) AS s(value)")
    top = f"SELECT {a}.c0, {b}.c0 FROM {a} RIGHT JOIN {b} ON {a}.k = {b}.k + 5 ORDER BY {a}.c0 DESC NULLS LAST, {b}.c0 LIMIT 2"
    assert [first for first, _ in db.rows(top)] == [10006, 10006]
    for name in (a, b):
        db.run(f"DROP TABLE {name}")
