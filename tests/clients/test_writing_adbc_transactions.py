"""Transactions and savepoints of the ADBC Flight SQL driver."""

import time

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pytest

from server import Server
from writing_adbc import ROWS, Status, connect, ids, select


def test_a_commit_is_seen_by_others(store, transacting, table):
    with transacting.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(2,)]
        with pytest.raises(dbapi.Error, match=table):
            ids(store, table)
        transacting.commit()
        assert ids(store, table) == [1, 2]
        cursor.execute(f"UPDATE {table} SET id = id + 10")
        cursor.executemany(f"INSERT INTO {table} VALUES (?)", [(3,), (4,)])
        assert ids(store, table) == [1, 2]
        transacting.commit()
    assert ids(store, table) == [3, 4, 11, 12]


def test_a_rollback_leaves_nothing(store, connection, transacting, table):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
    with transacting.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (2)")
        cursor.execute(f"DELETE FROM {table} WHERE id = 1")
        assert select(cursor, f"SELECT id FROM {table}") == [(2,)]
        transacting.rollback()
        assert select(cursor, f"SELECT id FROM {table}") == [(1,)]
        cursor.execute(f"DROP TABLE {table}")
        transacting.rollback()
    assert ids(store, table) == [1]


def test_a_connection_that_closes_without_commit_leaves_nothing(store, connection, table):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
    with connect(store, autocommit=False) as other, other.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        assert select(cursor, f"SELECT id FROM {table}") == [(1,)]
    assert ids(store, table) == []


def test_the_same_statement_after_a_commit(store, transacting, table):
    # The driver prepares a text once for each cursor; the handle is that of the transaction before.
    with transacting.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        transacting.commit()
        for _ in range(3):
            cursor.execute(f"INSERT INTO {table} VALUES (1)")
            transacting.commit()
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        transacting.rollback()
    assert ids(store, table) == [1, 1, 1]


def test_an_ingest_belongs_to_the_open_transaction(store, transacting, table):
    # The driver sends no transaction id with an ingest; it belongs to the only one that its session has open.
    with transacting.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        assert cursor.adbc_ingest(table, ROWS.select(["id"]), mode="append") == 3
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(3,)]
        with pytest.raises(dbapi.Error, match=table):
            ids(store, table)
        transacting.commit()
        assert ids(store, table) == [1, 2, 3]
        cursor.execute(f"DROP TABLE {table}")
        assert cursor.adbc_ingest(table, pa.table({"id": [4]}), mode="create") == 1
        transacting.commit()
        assert ids(store, table) == [4]
        cursor.adbc_ingest(table, ROWS.select(["id"]), mode="append")
        transacting.rollback()
    assert ids(store, table) == [4]


def test_savepoints_by_sql_are_of_the_drivers_transaction(store, transacting, table):
    with transacting.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        cursor.execute("SAVEPOINT a")
        cursor.execute(f"INSERT INTO {table} VALUES (2)")
        cursor.execute("SAVEPOINT b")
        cursor.adbc_ingest(table, pa.table({"id": [3]}), mode="append")
        cursor.execute(f"CREATE TABLE {table}_2 AS SELECT 1 AS a")
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(3,)]
        cursor.execute("ROLLBACK TO SAVEPOINT b")
        assert select(cursor, f"SELECT max(id) FROM {table}") == [(2,)]
        with pytest.raises(dbapi.Error, match="not found"):
            cursor.execute(f"DROP TABLE {table}_2")
        cursor.execute("RELEASE SAVEPOINT b")
        with pytest.raises(dbapi.Error, match="savepoint `b` not found"):
            cursor.execute("ROLLBACK TO SAVEPOINT b")
        cursor.execute("ROLLBACK TO a")
        assert select(cursor, f"SELECT id FROM {table}") == [(1,)]
        cursor.execute(f"INSERT INTO {table} VALUES (4)")
        transacting.commit()
        assert ids(store, table) == [1, 4]
        with pytest.raises(dbapi.Error, match="savepoint `a` not found"):
            cursor.execute("RELEASE a")
        for text in (f"DELETE FROM {table}", "SAVEPOINT c", f"INSERT INTO {table} VALUES (5)", "ROLLBACK TO c"):
            cursor.execute(text)
        transacting.commit()
    assert ids(store, table) == []


def test_texts_do_not_end_the_drivers_transaction(store, transacting, table):
    with transacting.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} AS SELECT 1 AS id")
        for text, words in (
            ("BEGIN", "a transaction is open already"),
            ("START TRANSACTION", "a transaction is open already"),
            ("COMMIT", "a statement cannot end it"),
            ("ROLLBACK", "a statement cannot end it"),
            (f"INSERT INTO {table} VALUES (2); COMMIT", "more than one statement"),
        ):
            with pytest.raises(dbapi.Error, match=words) as caught:
                cursor.execute(text)
            assert caught.value.status_code == Status.INVALID_ARGUMENT, text
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(1,)]
        with pytest.raises(dbapi.Error, match=table):
            ids(store, table)
        transacting.commit()
    assert ids(store, table) == [1]


def test_savepoints_by_sql_without_a_transaction(cursor):
    for text in ("SAVEPOINT a", "RELEASE SAVEPOINT a", "ROLLBACK TO SAVEPOINT a"):
        with pytest.raises(dbapi.Error, match="no transaction is open"):
            cursor.execute(text)


def test_an_open_transaction_ends_after_its_time(data_folder):
    with Server(data_folder, arguments=["--set", "limits.transaction_timeout=1s"]) as server:
        with connect(server) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id BIGINT)")
        with connect(server, autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES (1)")
            wait_until_refused(cursor)
            # The way out for clients that begin the next one when the last has ended.
            connection.rollback()
            cursor.execute("INSERT INTO t VALUES (2)")
            connection.commit()
        assert ids(server, "t") == [2]


def wait_until_refused(cursor):
    """Waits longer and longer between statements, since every one keeps the transaction open."""
    for seconds in (1.2, 2.5, 5, 10):
        time.sleep(seconds)
        try:
            select(cursor, "SELECT id FROM t")
        except dbapi.Error as error:
            assert "transaction" in str(error)
            return
    raise AssertionError("the transaction is still open")
