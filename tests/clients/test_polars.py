"""polars.read_database_uri and write_database, which find the ADBC driver by the scheme of the address."""

import datetime
import decimal

import adbc_driver_flightsql.dbapi as dbapi
import polars
import pytest

import data


@pytest.fixture
def uri(server):
    return f"flightsql://{server.host}:{server.port}?transport=tcp"


def test_every_plain_type(uri):
    frame = polars.read_database_uri("SELECT * FROM plain_types", uri, engine="adbc")
    assert frame.columns == data.plain_types().column_names and frame.height == 3
    assert frame["c_string"].to_list() == ["a", None, "größe 🏹"]


@pytest.fixture
def target(store):
    return f"flightsql://{store.host}:{store.port}?transport=tcp"


def rows(uri, table):
    return polars.read_database_uri(f"SELECT * FROM {table} ORDER BY id", uri, engine="adbc")


@pytest.mark.parametrize(("if_exists", "ids"), [("append", [1, 1, 2, 2]), ("replace", [1, 2]), ("fail", None)])
def test_write_database_when_the_table_exists(target, table, if_exists, ids):
    frame = polars.DataFrame({"id": [1, 2], "name": ["a", None]})
    assert frame.write_database(table, target, engine="adbc") == 2
    if ids is None:
        with pytest.raises(dbapi.Error, match="(?i)exists"):
            frame.write_database(table, target, engine="adbc", if_table_exists=if_exists)
        assert rows(target, table).height == 2
    else:
        assert frame.write_database(table, target, engine="adbc", if_table_exists=if_exists) == 2
        assert rows(target, table)["id"].to_list() == ids


def test_what_write_database_writes_comes_back(target, table):
    frame = polars.DataFrame({
        "id": polars.Series([1, 2], dtype=polars.Int16),
        "text": ["größe 🏹", None],
        "bytes": [b"\x00\xff", None],
        "number": [0.5, None],
        "price": polars.Series([decimal.Decimal("1.50"), None], dtype=polars.Decimal(10, 2)),
        "day": [datetime.date(2024, 2, 29), None],
        "moment": [datetime.datetime(2024, 2, 29, 12, 34, 56, 789), None],
        "list": [[1, None], None],
        "kind": polars.Series(["x", "y"], dtype=polars.Categorical),
    })
    assert frame.write_database(table, target, engine="adbc") == 2
    # Categories arrive as what they stand for.
    assert rows(target, table).equals(frame.with_columns(polars.col("kind").cast(polars.String)))


def test_write_database_in_a_transaction_of_the_caller(store, target, table):
    frame = polars.DataFrame({"id": [1]})
    frame.write_database(table, target, engine="adbc")
    with dbapi.connect(store.grpc_tcp) as connection:
        polars.DataFrame({"id": [2]}).write_database(table, connection, engine="adbc", if_table_exists="append")
        connection.commit()
    assert rows(target, table)["id"].to_list() == [1, 2]
