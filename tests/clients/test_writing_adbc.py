"""Writing through the ADBC Flight SQL driver: bulk ingest, statements with many rows of parameters."""

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pytest

from server import Server
from writing_adbc import ROWS, Status, connect, ids, select


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


@pytest.mark.parametrize(("rows", "words"), [
    (pa.table({"id": [4], "nonsense": [1]}), "`nonsense`"),
    (pa.table({"id": ["four"], "name": ["x"]}), "`id`"),
    (pa.table({"id": [1.5], "name": ["x"]}), "`id`"),
    (pa.table({"id": pa.array([2**63], pa.uint64()), "name": ["x"]}), "`id`"),
    (pa.table({"id": pa.array([[1]]), "name": ["x"]}), "`id`"),
], ids=["unknown", "text", "fraction", "overflow", "list"])
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
