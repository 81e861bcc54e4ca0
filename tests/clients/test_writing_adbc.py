"""Writing through the ADBC Flight SQL driver: bulk ingest, statements with many rows of parameters, transactions."""

import datetime
import decimal
import time

import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pyarrow as pa
import pytest

import data
from server import Server

Status = adbc_driver_manager.AdbcStatusCode
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["one", None, "größe 🏹"]})


def connect(store, autocommit=True):
    return dbapi.connect(store.grpc_tcp, autocommit=autocommit)


@pytest.fixture
def connection(store):
    with connect(store) as connection:
        yield connection


@pytest.fixture
def cursor(connection):
    with connection.cursor() as cursor:
        yield cursor


@pytest.fixture
def transacting(store):
    """A connection without autocommit."""
    with connect(store, autocommit=False) as connection:
        yield connection


def select(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall()


def ids(store, table):
    """What a connection of its own sees."""
    with connect(store) as connection, connection.cursor() as cursor:
        return [row[0] for row in select(cursor, f"SELECT id FROM {table} ORDER BY id")]


# Bulk ingest.


def test_ingested_rows_come_back(cursor, table):
    assert cursor.adbc_ingest(table, ROWS, mode="create") == 3
    cursor.execute(f"SELECT * FROM {table} ORDER BY id")
    got = cursor.fetch_arrow_table()
    assert got.schema.equals(ROWS.schema) and got.equals(ROWS)


@pytest.mark.parametrize("name", data.plain_types().column_names)
def test_every_plain_type_survives(cursor, table, name):
    column = data.plain_types().select([name])
    assert cursor.adbc_ingest(table, column, mode="create") == 3
    cursor.execute(f"SELECT * FROM {table}")
    got = cursor.fetch_arrow_table()
    assert got.schema.equals(column.schema)
    assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, column.to_pylist()))


def test_modes(cursor, table):
    with pytest.raises(dbapi.Error, match=f"(?s){table}.*(not found|does not exist)|not found.*{table}") as caught:
        cursor.adbc_ingest(table, ROWS, mode="append")
    assert caught.value.status_code == Status.NOT_FOUND
    assert cursor.adbc_ingest(table, ROWS, mode="create_append") == 3
    assert cursor.adbc_ingest(table, ROWS, mode="create_append") == 3
    assert cursor.adbc_ingest(table, ROWS, mode="append") == 3
    assert select(cursor, f"SELECT count(*) FROM {table}") == [(9,)]
    with pytest.raises(dbapi.Error, match=f"(?s){table}.*exists") as caught:
        cursor.adbc_ingest(table, ROWS, mode="create")
    assert caught.value.status_code == Status.ALREADY_EXISTS
    assert cursor.adbc_ingest(table, pa.table({"other": [0.5]}), mode="replace") == 1
    cursor.execute(f"SELECT * FROM {table}")
    assert cursor.fetch_arrow_table().to_pydict() == {"other": [0.5]}


def test_names_are_taken_as_they_are(cursor):
    name = 'Written "By" Ingest; DROP TABLE nation'
    quoted = '"' + name.replace('"', '""') + '"'
    assert cursor.adbc_ingest(name, pa.table({"A b": [1], "Größe": ["x"]}), mode="create") == 1
    assert select(cursor, f'SELECT "A b", "Größe" FROM {quoted}') == [(1, "x")]
    cursor.execute(f"DROP TABLE {quoted}")


def test_ingest_into_a_schema(cursor, table):
    cursor.execute(f"CREATE SCHEMA {table}")
    assert cursor.adbc_ingest("t", ROWS, mode="create", catalog_name="bowshot", db_schema_name=table) == 3
    assert select(cursor, f"SELECT count(*) FROM {table}.t") == [(3,)]
    with pytest.raises(dbapi.Error, match="nowhere") as caught:
        cursor.adbc_ingest("t", ROWS, mode="create", db_schema_name="nowhere")
    assert caught.value.status_code == Status.NOT_FOUND


def test_columns_are_found_by_name(cursor, table):
    cursor.adbc_ingest(table, ROWS, mode="create")
    assert cursor.adbc_ingest(table, pa.table({"name": ["four"], "id": [4]}), mode="append") == 1
    assert cursor.adbc_ingest(table, pa.table({"id": pa.array([5], pa.int8())}), mode="append") == 1
    assert select(cursor, f"SELECT * FROM {table} WHERE id > 3 ORDER BY id") == [(4, "four"), (5, None)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pa.table({"id": [4], "nonsense": [1]}), "`nonsense`"),
        (pa.table({"id": ["four"], "name": ["x"]}), "`id`"),
        (pa.table({"id": [1.5], "name": ["x"]}), "`id`"),
        (pa.table({"id": pa.array([2**63], pa.uint64()), "name": ["x"]}), "`id`"),
        (pa.table({"id": pa.array([[1]]), "name": ["x"]}), "`id`"),
    ],
    ids=["unknown", "text", "fraction", "overflow", "list"],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(store, cursor, table, rows, words):
    cursor.adbc_ingest(table, ROWS, mode="create")
    with pytest.raises(dbapi.Error, match=words) as caught:
        cursor.adbc_ingest(table, rows, mode="append")
    assert caught.value.status_code == Status.INVALID_ARGUMENT
    assert ids(store, table) == [1, 2, 3]


def test_a_bad_row_after_many_good_ones_writes_nothing(store, cursor, table):
    cursor.adbc_ingest(table, ROWS, mode="create")
    schema = pa.schema([("id", pa.uint64())])
    good = [pa.record_batch([pa.array(range(1000), pa.uint64())], schema=schema)] * 50
    bad = pa.record_batch([pa.array([2**64 - 1], pa.uint64())], schema=schema)
    with pytest.raises(dbapi.Error, match="`id`"):
        cursor.adbc_ingest(table, pa.RecordBatchReader.from_batches(schema, [*good, bad]), mode="append")
    assert ids(store, table) == [1, 2, 3]


def test_a_reader_that_fails_writes_nothing(store, cursor, table):
    cursor.adbc_ingest(table, ROWS, mode="create")

    def batches():
        yield from ROWS.to_batches()
        raise ValueError("the file ended early")

    with pytest.raises(Exception, match="the file ended early"):
        cursor.adbc_ingest(table, pa.RecordBatchReader.from_batches(ROWS.schema, batches()), mode="append")
    assert ids(store, table) == [1, 2, 3]


def test_dictionary_columns(cursor, table):
    column = pa.chunked_array([pa.array(["a", "b", None, "a"]).dictionary_encode()] * 3)
    assert cursor.adbc_ingest(table, pa.table({"kind": column}), mode="create") == 12
    assert select(cursor, f"SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY kind") == [("a", 6), ("b", 3), (None, 3)]


def test_many_rows(cursor, table):
    rows = data.lineitem(200_000)
    # The driver sends a batch as one message, of 16 MiB at most.
    assert cursor.adbc_ingest(table, rows.to_reader(max_chunksize=50_000), mode="create") == 200_000
    cursor.execute(f"SELECT count(*), sum(l_partkey), min(l_comment) FROM {table}")
    keys, comments = rows["l_partkey"].to_pylist(), rows["l_comment"].to_pylist()
    assert cursor.fetchall() == [(200_000, sum(keys), min(comments))]


def test_a_temporary_table_is_of_its_session_alone(store, table):
    with connect(store) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest(table, ROWS, mode="create", temporary=True) == 3
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(3,)]
        with pytest.raises(dbapi.Error, match=table):
            ids(store, table)
        with pytest.raises(dbapi.Error, match="temporary") as caught:
            cursor.adbc_ingest(table, ROWS, mode="create", temporary=True, db_schema_name="main")
        assert caught.value.status_code == Status.INVALID_ARGUMENT
    with pytest.raises(dbapi.Error, match=table):
        ids(store, table)


def test_ingested_tables_are_listed(connection, cursor, table):
    cursor.adbc_ingest(table, ROWS, mode="create")
    assert connection.adbc_get_table_schema(table).equals(ROWS.schema)
    objects = connection.adbc_get_objects(depth="tables", table_name_filter=table).read_all().to_pylist()
    (found,) = [
        listed
        for catalog in objects
        for schema in catalog["catalog_db_schemas"]
        for listed in schema["db_schema_tables"] or []
    ]
    assert (found["table_name"], found["table_type"]) == (table, "TABLE")


def test_the_memory_of_tables_has_a_limit(data_folder, table):
    with Server(data_folder, arguments=["--set", "storage.memory_bytes=16777216"]) as server:
        with connect(server) as connection, connection.cursor() as cursor:
            big = pa.table({"id": pa.array(range(4_000_000), pa.int64())})
            with pytest.raises(dbapi.Error, match="storage.memory_bytes"):
                cursor.adbc_ingest(table, big.to_reader(max_chunksize=500_000), mode="create")
            with pytest.raises(dbapi.Error, match=table):
                cursor.execute(f"SELECT * FROM {table}")
            # What was taken in is given back.
            assert cursor.adbc_ingest(table, big.slice(0, 1_000_000), mode="create") == 1_000_000
        server.wait_idle(5.0)


# Statements.


def test_statements_write(cursor, table):
    cursor.execute(f"CREATE TABLE {table} (id BIGINT, name VARCHAR, price DECIMAL(10, 2), day DATE)")
    cursor.execute(f"INSERT INTO {table} VALUES (1, 'a', 1.50, DATE '2024-02-29'), (2, NULL, NULL, NULL)")
    assert select(cursor, f"SELECT * FROM {table} ORDER BY id") == [
        (1, "a", decimal.Decimal("1.50"), datetime.date(2024, 2, 29)),
        (2, None, None, None),
    ]
    cursor.execute(f"UPDATE {table} SET name = name || '!' WHERE id = 1")
    cursor.execute(f"DELETE FROM {table} WHERE name IS NULL")
    assert select(cursor, f"SELECT id, name FROM {table}") == [(1, "a!")]
    cursor.execute(f"DROP TABLE {table}")
    with pytest.raises(dbapi.Error, match=table):
        cursor.execute(f"SELECT * FROM {table}")


def test_parameters_of_many_rows(cursor, table):
    cursor.execute(f"CREATE TABLE {table} (id BIGINT, name VARCHAR)")
    cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(number, f"row {number}") for number in range(100)])
    assert cursor.rowcount == 100
    cursor.executemany(f"UPDATE {table} SET name = $1 WHERE id < $2", [("x", 10), ("y", 5)])
    assert cursor.rowcount == 15
    assert select(cursor, f"SELECT name, count(*) FROM {table} WHERE name < 'z' AND id < 10 GROUP BY name ORDER BY name") == [
        ("x", 5),
        ("y", 5),
    ]
    cursor.executemany(f"DELETE FROM {table} WHERE id = ?", [(0,), (1,), (1000,)])
    assert cursor.rowcount == 2
    assert select(cursor, f"SELECT count(*) FROM {table}") == [(98,)]


def test_many_rows_of_parameters_are_one_change(store, cursor, table):
    cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
    with pytest.raises(dbapi.Error):
        cursor.executemany(f"INSERT INTO {table} SELECT 10 / CAST($1 AS BIGINT)", [(1,), (2,), (0,)])
    assert ids(store, table) == []
    batch = pa.record_batch({"id": pa.array(range(5000), pa.int64())})
    cursor.executemany(f"INSERT INTO {table} VALUES ($1)", batch)
    assert ids(store, table) == list(range(5000))


# Transactions.


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
        assert select(cursor, f"SELECT count(*) FROM {table}") == [(3,)]
        cursor.execute("ROLLBACK TO SAVEPOINT b")
        assert select(cursor, f"SELECT max(id) FROM {table}") == [(2,)]
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
            ("COMMIT", "a statement does not end it"),
            ("ROLLBACK", "a statement does not end it"),
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


def test_the_second_of_two_writers_is_told_to_run_again(store, connection, table):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
    with connect(store, autocommit=False) as first, connect(store, autocommit=False) as second:
        with first.cursor() as one, second.cursor() as two:
            one.execute(f"UPDATE {table} SET id = id + 10")
            two.execute(f"UPDATE {table} SET id = id + 100")
            first.commit()
            with pytest.raises(dbapi.Error, match="run the transaction again"):
                second.commit()
    # After a commit that fails the driver has no transaction and begins none: its user connects again.
    with connect(store, autocommit=False) as again, again.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET id = id + 100")
        again.commit()
    assert ids(store, table) == [111]


def test_a_transaction_sees_one_state(store, connection, transacting, table):
    with connection.cursor() as writer, transacting.cursor() as reader:
        writer.execute(f"CREATE TABLE {table} (id BIGINT)")
        writer.execute(f"INSERT INTO {table} VALUES (1)")
        assert select(reader, f"SELECT id FROM {table}") == [(1,)]
        writer.execute(f"INSERT INTO {table} VALUES (2)")
        assert select(reader, f"SELECT id FROM {table} ORDER BY id") == [(1,)]
        transacting.commit()
        assert select(reader, f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]


def test_autocommit_can_be_switched(store, connection, table):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id BIGINT)")
        connection.adbc_connection.set_autocommit(False)
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        assert ids(store, table) == []
        # Switching it on commits.
        connection.adbc_connection.set_autocommit(True)
    assert ids(store, table) == [1]


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
