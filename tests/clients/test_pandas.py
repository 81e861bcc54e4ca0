"""pandas.read_sql over ADBC."""

import adbc_driver_flightsql.dbapi as dbapi
import pandas
import pytest

import data


@pytest.fixture
def connection(server):
    with dbapi.connect(server.grpc_tcp, autocommit=True) as connection:
        yield connection


def test_read_sql(connection):
    frame = pandas.read_sql("SELECT * FROM nation ORDER BY n_nationkey", connection)
    assert list(frame.columns) == ["n_nationkey", "n_name"]
    assert frame["n_name"].tolist() == data.NATIONS


def test_read_sql_with_arrow_types(connection):
    frame = pandas.read_sql("SELECT * FROM plain_types", connection, dtype_backend="pyarrow")
    assert frame["c_decimal"].dtype.pyarrow_dtype == data.plain_types().schema.field("c_decimal").type
    assert len(frame) == 3


def test_read_sql_table_and_group_by(connection):
    assert len(pandas.read_sql_table("nation", connection)) == 25
    frame = pandas.read_sql(
        "SELECT l_returnflag, sum(l_quantity) AS quantity FROM lineitem GROUP BY l_returnflag ORDER BY l_returnflag",
        connection,
    )
    table = data.lineitem().group_by("l_returnflag").aggregate([("l_quantity", "sum")]).sort_by("l_returnflag")
    assert frame["quantity"].tolist() == table["l_quantity_sum"].to_pylist()
