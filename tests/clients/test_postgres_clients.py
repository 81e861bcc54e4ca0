"""PostgreSQL's protocol as ADBC and connectorx speak it. test_postgres.py has psycopg and asyncpg, test_odbc_sqlalchemy.py SQLAlchemy and
psqlodbc."""

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import connectorx
import pyarrow
import pytest

from server import repeated
from test_odbc_sqlalchemy import PROTOCOLS, SLOW


def uri(server):
    return f"postgresql://ada:x@127.0.0.1:{server.pg_port}/bowshot"


@pytest.fixture
def adbc(shop):
    with adbc_driver_postgresql.dbapi.connect(uri(shop), autocommit=True) as connection:
        yield connection


def fetched(connection, sql, values=None):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("sql_type, values", PROTOCOLS["postgres"].values)
def test_adbc_values(adbc, table, sql_type, values):
    fetched(adbc, f"CREATE TABLE {table} (v {sql_type})")
    for value in values:
        fetched(adbc, f"DELETE FROM {table}")
        fetched(adbc, f"INSERT INTO {table} VALUES ($1)", (value,))
        fetched(adbc, f"INSERT INTO {table} VALUES (NULL)")
        assert fetched(adbc, f"SELECT v FROM {table} ORDER BY v NULLS LAST") == [(value,), (None,)]


def test_adbc_metadata(adbc, table):
    fetched(adbc, f"CREATE TABLE {table} (a INT PRIMARY KEY, b TEXT)")
    assert adbc.adbc_get_info()["vendor_name"] == "PostgreSQL"
    schema = adbc.adbc_get_table_schema(table)
    assert schema.names == ["a", "b"] and schema.field("a").type == pyarrow.int32()
    objects = adbc.adbc_get_objects(depth="columns", table_name_filter=table).read_all().to_pylist()
    schemas = [schema for catalog in objects for schema in catalog["catalog_db_schemas"]]
    tables = [found for schema in schemas for found in schema["db_schema_tables"] or []]
    assert [found["table_name"] for found in tables] == [table]
    assert [column["column_name"] for column in tables[0]["table_columns"]] == ["a", "b"]


def test_adbc_ingests_and_reads_back(adbc, table):
    rows = pyarrow.table({
        "a": pyarrow.array(range(20_000), pyarrow.int64()),
        "b": pyarrow.array([None if n % 7 == 0 else f"x{n}" for n in range(20_000)], pyarrow.string()),
        "c": pyarrow.array([n / 4 for n in range(20_000)], pyarrow.float64()),
    })
    with adbc.cursor() as cursor:
        cursor.adbc_ingest(table, rows, mode="create")
        cursor.adbc_ingest(table, rows.slice(0, 10), mode="append")
        cursor.execute(f"SELECT count(*), sum(a), count(b), sum(c) FROM {table}")
        assert cursor.fetchone() == (20_010, 199_990_045, 17_142 + 8, 49_997_511.25)
        cursor.execute(f"SELECT * FROM {table} ORDER BY a, b LIMIT 40")
        assert cursor.fetch_arrow_table().num_rows == 40
    with pytest.raises(adbc_driver_manager.Error):
        with adbc.cursor() as cursor:
            cursor.adbc_ingest(table, rows, mode="create")


def test_adbc_cancel_and_transactions(shop, adbc, table):
    with adbc.cursor() as cursor:
        with repeated(cursor.adbc_cancel), pytest.raises(adbc_driver_manager.Error):
            cursor.execute(SLOW)
            cursor.fetchall()
    with adbc_driver_postgresql.dbapi.connect(uri(shop)) as other:
        fetched(other, f"CREATE TABLE {table} (a INT)")
        other.commit()
        fetched(other, f"INSERT INTO {table} VALUES (1)")
        other.rollback()
        fetched(other, f"INSERT INTO {table} VALUES (2)")
        other.commit()
    assert fetched(adbc, f"SELECT a FROM {table}") == [(2,)]


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor"])
def test_connectorx(shop, protocol):
    address = uri(shop) + f"?cxprotocol={protocol}"
    sql = "SELECT n_nationkey, n_name, n_nationkey / 2.0 AS half, n_nationkey > 3 AS many FROM nation ORDER BY n_nationkey"
    rows = connectorx.read_sql(address, sql, return_type="arrow").to_pydict()
    assert rows["n_name"][:2] == ["ALGERIA", "ARGENTINA"] and len(rows["n_name"]) == 25
    assert rows["many"][3:5] == [False, True] and float(rows["half"][3]) == 1.5


def test_connectorx_in_parts(shop):
    rows = connectorx.read_sql(
        uri(shop), "SELECT l_orderkey, l_quantity, l_comment, l_shipdate FROM lineitem",
        partition_on="l_orderkey", partition_num=4, return_type="arrow",
    )  # fmt: skip
    assert rows.num_rows == 60_000
    with pytest.raises(RuntimeError, match="missing"):
        connectorx.read_sql(uri(shop), "SELECT * FROM missing")
