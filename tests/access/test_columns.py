"""Rights to write single columns, as PostgreSQL means them: a statement needs its right on each column that it gives a value,
in every way in which rows are added and changed. What is left out gets its default, or stays what it is."""

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pytest

import world
from world import PASSWORDS, Refused, psycopg_connect, refused

SETUP = [
    # Carl sees and writes a part of `t`; he sees all of `u`.
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 7, b VARCHAR, secret VARCHAR DEFAULT 'deep')",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 7, b VARCHAR)",
    "CREATE TABLE blind (id INTEGER, a INTEGER)",
    "CREATE TABLE with_key (id INTEGER PRIMARY KEY, a INTEGER)",
    "INSERT INTO with_key VALUES (1, 10), (2, 20)",
    "CREATE USER carl PASSWORD 'carl''s own'",
    "GRANT SELECT ON with_key TO carl",
    "CREATE MASK id ON with_key (id) FOR carl USING (null)",
    "CREATE ROLE exchange",
    "GRANT exchange TO carl",
    "GRANT SELECT (id, a), INSERT (id, a), UPDATE (a) ON t TO carl",
    "GRANT SELECT, INSERT (id, a), UPDATE (a) ON u TO carl",
    "GRANT INSERT (a), UPDATE (a) ON blind TO carl",
    "INSERT INTO t VALUES (1, 10, 'x', 'one'), (2, 20, 'y', 'two')",
]


@pytest.fixture
def fresh(made):
    root = made.at("root")
    for table, rows in (("t", "(1, 10, 'x', 'one'), (2, 20, 'y', 'two')"), ("u", "(1, 10, 'x'), (2, 20, 'y')"), ("blind", "(1, 1)")):
        root.rows(f"TRUNCATE {table}")
        root.rows(f"INSERT INTO {table} VALUES {rows}")


def all_of(made, table="t"):
    return made.at("root").rows(f"SELECT * FROM {table} ORDER BY 1")


ONE, TWO = ("1", "10", "x", "one"), ("2", "20", "y", "two")


@pytest.mark.parametrize("door", world.DOORS)
@pytest.mark.parametrize(("sql", "expected"), [
    ("INSERT INTO t (id, a) VALUES (3, 30)", [ONE, TWO, ("3", "30", None, "deep")]),
    ("INSERT INTO t (id) VALUES (3)", [ONE, TWO, ("3", "7", None, "deep")]),
    ("INSERT INTO t (a, id) VALUES (DEFAULT, 3)", [ONE, TWO, ("3", "7", None, "deep")]),
    ("INSERT INTO t (id, a) SELECT id + 2, a FROM t WHERE id = 1", [ONE, TWO, ("3", "10", None, "deep")]),
    ("INSERT INTO t BY NAME SELECT 5 AS a, 3 AS id", [ONE, TWO, ("3", "5", None, "deep")]),
    ("UPDATE t SET a = a + 1 WHERE id = 1", [("1", "11", "x", "one"), TWO]),
    ("UPDATE t SET a = DEFAULT", [("1", "7", "x", "one"), ("2", "7", "y", "two")]),
    ("UPDATE t AS q SET a = s.v FROM (VALUES (2, 9)) AS s (i, v) WHERE q.id = s.i", [ONE, ("2", "9", "y", "two")]),
    ("UPDATE t SET a = (SELECT max(a) FROM t) WHERE id = 1", [("1", "20", "x", "one"), TWO]),
    ("UPDATE t SET a = 0 WHERE id > 100", [ONE, TWO]),
])
def test_what_is_granted(made, fresh, door, sql, expected):
    made.at("carl", door).rows(sql)
    assert all_of(made) == expected


@pytest.mark.parametrize("door", ("flight", "http"))
@pytest.mark.parametrize(("sql", "words"), [
    ("INSERT INTO t VALUES (3, 30, 'z', 'mine')", "column `b`"),
    ("INSERT INTO t SELECT 3, 30, 'z', 'mine'", "column `b`"),
    ("INSERT INTO t (id, b) VALUES (3, 'z')", "column `b`"),
    ("INSERT INTO t (id, b) VALUES (3, DEFAULT)", "column `b`"),
    ("INSERT INTO t (id, secret) SELECT 3, 'mine'", "column `secret`"),
    ("INSERT INTO t BY NAME SELECT 3 AS id, 'mine' AS secret", "column `secret`"),
    ("WITH w AS (SELECT 3 AS id) INSERT INTO t (id, b) SELECT id, 'z' FROM w", "column `b`"),
    ("INSERT INTO t (id, nothing) VALUES (3, 1)", "column `nothing`"),
    ("INSERT INTO t (id) VALUES (3) RETURNING id", "RETURNING would show"),
    ("INSERT INTO t (id) VALUES (3) RETURNING nothing", "RETURNING would show"),
    ("INSERT OVERWRITE t SELECT 3, 30, 'z', 'mine'", "may not"),
    ("INSERT INTO t (id, a) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET b = 'z'", "column `b`"),
    ("INSERT OR REPLACE INTO t (id, a) VALUES (1, 1)", "delete rows from"),
    ("UPDATE t SET b = 'z'", "column `b`"),
    ("UPDATE t SET a = 1, b = 'z'", "column `b`"),
    ("UPDATE t SET (a, b) = (1, 'z')", "column `b`"),
    ("UPDATE t SET id = 5 WHERE id = 1", "column `id`"),
    ("UPDATE t SET nothing = 1", "column `nothing`"),
    ("UPDATE t SET a = length(secret)", "secret"),
    ("UPDATE t SET a = 1 WHERE secret = 'one'", "secret"),
    ("UPDATE t SET a = 1 WHERE EXISTS (SELECT 1 FROM t AS i WHERE i.secret = 'one')", "secret"),
    ("UPDATE t SET a = 1 RETURNING *", "RETURNING would show"),
    ("DELETE FROM t", "delete rows from"),
    ("TRUNCATE t", "delete rows from"),
    ("MERGE INTO t USING (VALUES (1)) AS s (i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET a = 1", "sees a part"),
    ("MERGE INTO t USING (VALUES (1)) AS s (i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET secret = 'z'", "column `secret`"),
    ("COPY t FROM 'rows.csv'", "column `b`"),
    ("COPY t (id, b) FROM 'rows.csv'", "column `b`"),
    ("UPDATE blind SET a = 1", "may not read"),
    ("INSERT INTO blind (id) VALUES (1)", "column `id`"),
])
def test_what_is_not(made, door, sql, words):
    before = all_of(made)
    with pytest.raises(Refused) as caught:
        made.at("carl", door).rows(sql)
    told = str(caught.value)
    assert words in told, told
    # Whose names are not in the statement, are not in the answer.
    assert "secret" in sql or "secret" not in told, told
    assert all_of(made) == before


MERGE = "MERGE INTO u USING (VALUES (1, 5), (3, 6)) AS s (i, v) ON u.id = s.i "


@pytest.mark.parametrize("door", ("flight", "postgres"))
@pytest.mark.parametrize(("sql", "expected"), [
    (MERGE + "WHEN MATCHED THEN UPDATE SET a = v", [("1", "5", "x"), ("2", "20", "y")]),
    (MERGE + "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (i, v)", [("1", "10", "x"), ("2", "20", "y"), ("3", "6", None)]),
    (MERGE + "WHEN MATCHED THEN UPDATE SET b = 'z'", "column `b`"),
    (MERGE + "WHEN NOT MATCHED THEN INSERT VALUES (i, v, 'z')", "column `b`"),
    (MERGE + "WHEN NOT MATCHED THEN INSERT (id, b) VALUES (i, 'z')", "column `b`"),
    (MERGE + "WHEN MATCHED THEN DELETE", "delete rows from"),
    (MERGE + "WHEN MATCHED AND a > 0 THEN UPDATE SET a = v WHEN MATCHED THEN UPDATE SET b = 'z'", "column `b`"),
    ("INSERT INTO u (id, a) VALUES (1, 5), (3, 6) ON CONFLICT (id) DO UPDATE SET a = excluded.a", [("1", "5", "x"), ("2", "20", "y"), ("3", "6", None)]),
    ("INSERT INTO u (id, a) VALUES (1, 5), (3, 6) ON CONFLICT DO NOTHING", [("1", "10", "x"), ("2", "20", "y"), ("3", "6", None)]),
    ("INSERT INTO u (id, a) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET b = 'z'", "column `b`"),
    ("INSERT INTO u (id, b) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET a = 1", "column `b`"),
    ("INSERT OR REPLACE INTO u (id, a) VALUES (1, 5)", "delete rows from"),
    ("UPDATE u SET a = 1 WHERE b = 'x' RETURNING id, a, b", [("1", "1", "x"), ("2", "20", "y")]),
])
def test_merge_and_conflicts(made, fresh, door, sql, expected):
    carl = made.at("carl", door)
    if isinstance(expected, list):
        carl.rows(sql)
        assert all_of(made, "u") == expected
        return
    with pytest.raises(Refused) as caught:
        carl.rows(sql)
    assert expected in str(caught.value)
    assert all_of(made, "u") == [("1", "10", "x"), ("2", "20", "y")]


def test_rows_that_come_outside_of_a_statement(made, fresh):
    login = {"username": "carl", "password": PASSWORDS["carl"]}
    wrong = pa.table({"id": [4], "b": ["z"]})
    with adbc.connect(made.server.grpc_tcp, db_kwargs=login, autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("t", pa.table({"id": pa.array([3], pa.int32())}), mode="append") == 1
        for rows in (wrong, pa.table({"nothing": [1]}), pa.table({"id": [4], "secret": ["z"]})):
            with pytest.raises(adbc.Error, match="may not give new rows a value"):
                cursor.adbc_ingest("t", rows, mode="append")
        with pytest.raises(adbc.Error, match="may not"):
            cursor.adbc_ingest("t", pa.table({"id": [4]}), mode="replace")
        cursor.executemany("INSERT INTO t (id, a) VALUES (?, ?)", [(5, 50), (6, 60)])
        with pytest.raises(adbc.Error, match="column `b`"):
            cursor.executemany("INSERT INTO t (id, b) VALUES (?, ?)", [(7, "z"), (8, "z")])
    http = made.at("carl", "http")
    http.ask("POST", "/v1/tables/t", b"id,a\n9,90\n", **{"content-type": "text/csv"})
    for method, body in (("POST", b"id,b\n4,z\n"), ("PUT", b"id\n4\n")):
        with pytest.raises(Refused, match="may not"):
            http.ask(method, "/v1/tables/t", body, **{"content-type": "text/csv"})
    expected = [ONE, TWO] + [(str(id), a, None, "deep") for id, a in ((3, "7"), (5, "50"), (6, "60"), (9, "90"))]
    assert all_of(made) == expected


def test_copy_from_the_client_and_from_files(made, fresh):
    with psycopg_connect(made.server, "carl", autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY t (id, a) FROM STDIN") as copy:
            copy.write("3\t30\n")
        # Without a list of columns there are those that are seen.
        for sql, row in (("COPY t FROM STDIN", "4\t40\tz\tmine\n"), ("COPY t (id, b) FROM STDIN", "4\tz\n")):
            with pytest.raises(psycopg.Error, match="may not|extra data|does not exist|not found"):
                with cursor.copy(sql) as copy:
                    copy.write(row)
    (made.folder / "exchange" / "rows.csv").write_text("id,a\n4,40\n")
    made.at("carl").rows("COPY t (id, a) FROM 'rows.csv'")
    assert all_of(made)[2:] == [("3", "30", None, "deep"), ("4", "40", None, "deep")]


def test_rights_on_columns_come_and_go(made, fresh):
    root, carl = made.at("root"), made.at("carl")
    root.rows("GRANT UPDATE (b) ON t TO carl")
    carl.rows("UPDATE t SET b = 'z', a = 1 WHERE id = 1")
    assert all_of(made)[0] == ("1", "1", "z", "one")
    root.rows("REVOKE UPDATE (b) ON t FROM carl")
    refused(carl, "UPDATE t SET b = 'q'", "column `b`")
    # A right on the table, or on what it is in, is one on all columns.
    root.rows("GRANT UPDATE ON SCHEMA main TO carl")
    carl.rows("UPDATE t SET secret = 'q' WHERE id = 2")
    root.rows("REVOKE UPDATE ON SCHEMA main FROM carl")
    assert all_of(made)[1] == ("2", "20", "y", "q")
    refused(root, "ALTER TABLE t RENAME COLUMN a TO c", "column rights")
    # A mask is written back by nobody.
    root.rows("CREATE MASK hidden ON u (b) FOR carl USING (redact)")
    refused(carl, "UPDATE u SET a = 1", "UPDATE would write the masked values back")
    root.rows("DROP MASK hidden ON u")


def test_filters_hold_for_who_writes_a_part(made, fresh):
    root, carl = made.at("root"), made.at("carl")
    root.rows("CREATE ROW POLICY small ON t FOR carl USING (a < 15)")
    try:
        carl.rows("UPDATE t SET a = a + 1")
        assert all_of(made) == [("1", "11", "x", "one"), TWO]
        refused(carl, "UPDATE t SET a = 99", "may not see")
    finally:
        root.rows("DROP ROW POLICY small ON t")
    assert all_of(made) == [("1", "11", "x", "one"), TWO]


BAD = "CASE WHEN a = 5 THEN CAST(secret AS INTEGER) ELSE 1 END"


@pytest.mark.parametrize(("table", "more", "words"), [
    ("keyed", "UNIQUE (a, secret)", "twice"),
    ("computed", f"made INTEGER GENERATED ALWAYS AS ({BAD}) STORED", "a generated column cannot be computed"),
    ("checked", f"CONSTRAINT sane CHECK ({BAD} > 0)", "constraint `sane` cannot be computed"),
])
def test_errors_tell_nothing_of_what_is_not_seen(made, table, more, words):
    root, carl = made.at("root"), made.at("carl")
    root.rows(f"CREATE TABLE {table} (id INTEGER, a INTEGER, secret VARCHAR, {more})")
    root.rows(f"INSERT INTO {table} (id, a, secret) VALUES (1, 1, 'deep one'), (2, 2, 'deep one')")
    root.rows(f"GRANT SELECT (id, a), UPDATE (a) ON {table} TO carl")
    refused(root, f"UPDATE {table} SET a = 5", "deep one")
    with pytest.raises(Refused, match=words) as caught:
        carl.rows(f"UPDATE {table} SET a = 5")
    assert "deep" not in str(caught.value) and "secret" not in str(caught.value), caught.value


def test_who_only_writes_knows_the_columns_of_the_rights(made):
    carl = made.at("carl")
    assert carl.rows("SELECT column_name FROM information_schema.columns WHERE table_name = 'blind'") == [("a",)]
    names = "SELECT attname FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class ON attrelid = pg_class.oid WHERE relname = 'blind' AND attnum > 0"
    assert carl.rows(names) == [("a",)]


def test_they_are_shown(made):
    root, carl = made.at("root"), made.at("carl")
    lines = {line for (line,) in carl.rows("SHOW GRANTS")}
    assert {f"GRANT {right} ON TABLE bowshot.main.t TO carl" for right in ("SELECT (a, id)", "INSERT (a, id)", "UPDATE (a)")} <= lines
    shown = "SELECT privilege, columns, is_grantable, grantor FROM system.grants WHERE table_name = 't' AND grantee = 'carl' ORDER BY 1"
    expected = [("INSERT", "a, id", "False", None), ("SELECT", "a, id", "False", None), ("UPDATE", "a", "False", None)]
    assert carl.rows(shown) == root.rows(shown) == expected
    columns = "SELECT column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE grantee = 'carl' AND table_name = '{}' ORDER BY 2, 1"
    of_t = [("a", "INSERT", "NO"), ("id", "INSERT", "NO"), ("a", "SELECT", "NO"), ("id", "SELECT", "NO"), ("a", "UPDATE", "NO")]
    assert carl.rows(columns.format("t")) == root.rows(columns.format("t")) == of_t
    assert [row for row in carl.rows(columns.format("u")) if row[1] == "SELECT"] == [(name, "SELECT", "NO") for name in ("a", "b", "id")]
    tables = "SELECT table_name, privilege_type FROM information_schema.table_privileges WHERE grantee = 'carl'"
    assert sorted(carl.rows(tables)) == [("u", "SELECT"), ("with_key", "SELECT")]
    assert carl.rows("SELECT * FROM information_schema.column_privileges WHERE column_name = 'secret'") == []
    root.rows("CREATE TABLE owned (id INTEGER)")
    owned = root.rows("SELECT count(DISTINCT privilege_type) FROM information_schema.table_privileges WHERE table_name = 'owned' AND grantee = 'root'")
    assert owned == [("4",)], "its owner has all rights"


def test_a_masked_key_determines_no_other_column(made):
    sql = "SELECT a FROM with_key GROUP BY id ORDER BY 1"
    assert made.at("root").rows(sql) == [("10",), ("20",)]
    refused(made.at("carl"), sql, "GROUP BY")
