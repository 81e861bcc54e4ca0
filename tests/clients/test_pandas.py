"""pandas.read_sql and to_sql over ADBC."""

import adbc_driver_flightsql.dbapi as dbapi
import numpy
import pandas
import pytest

import data


@pytest.fixture
def connection(server):
    with dbapi.connect(server.grpc_tcp, autocommit=True) as connection:
        yield connection


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


@pytest.fixture
def writer(store):
    # Without autocommit, since `to_sql` ends with a commit.
    with dbapi.connect(store.grpc_tcp) as connection:
        yield connection


def elsewhere(store, table):
    """What another connection sees, which is only what has been committed."""
    with dbapi.connect(store.grpc_tcp, autocommit=True) as connection:
        return pandas.read_sql(f"SELECT * FROM {table} ORDER BY id", connection)


@pytest.mark.parametrize(("if_exists", "ids"), [("append", [1, 2, 1, 2]), ("replace", [1, 2]), ("fail", None), ("delete_rows", [1, 2])])
def test_to_sql_when_the_table_exists(store, writer, table, if_exists, ids):
    frame = pandas.DataFrame({"id": [1, 2], "name": ["a", None]})
    assert frame.to_sql(table, writer, index=False) == 2
    assert elsewhere(store, table)["id"].tolist() == [1, 2]
    if ids is None:
        with pytest.raises(ValueError, match="already exists"):
            frame.to_sql(table, writer, index=False, if_exists=if_exists)
    else:
        assert frame.to_sql(table, writer, index=False, if_exists=if_exists) == 2
        assert elsewhere(store, table)["id"].tolist() == sorted(ids)


def test_what_to_sql_writes_comes_back(store, writer, table):
    frame = pandas.DataFrame({
        "id": numpy.array([1, 2, 3], "int32"),
        "number": [1.5, None, float("-inf")],
        "text": ["a", None, "größe 🏹"],
        "truth": [True, False, True],
        "moment": pandas.to_datetime(["2024-02-29 12:34:56.789", None, "1969-12-31 00:00:00.000"]).as_unit("us"),
        "elsewhere": pandas.to_datetime(["2024-02-29", "1969-12-31", None], utc=True).as_unit("us"),
        "kind": pandas.Categorical(["x", "y", "x"]),
    })
    assert frame.to_sql(table, writer, index=False) == 3
    got = elsewhere(store, table)
    # Categories arrive as what they stand for.
    frame["kind"] = frame["kind"].astype(got["kind"].dtype)
    pandas.testing.assert_frame_equal(got, frame)
