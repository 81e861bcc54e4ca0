"""The ADBC Flight SQL driver through its Python DBAPI: queries, parameters, partitions, metadata, errors."""

import concurrent.futures
import datetime
import decimal

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pytest

import data
from server import wait_until

ENDLESS = "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c WHERE a.l_partkey + b.l_partkey = c.l_partkey"


@pytest.fixture
def connection(server):
    with dbapi.connect(server.grpc_tcp, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("name", [name for name in data.plain_types().column_names if name not in ("c_list", "c_struct")])
def test_parameter_of_every_type_comes_back(cursor, name):
    column = data.plain_types()[name].combine_chunks()
    # Three rows of parameters are three executions and one result.
    batch = pa.record_batch([column], names=["0"])
    cursor.execute("SELECT $1 AS value", batch)
    got = cursor.fetch_arrow_table()["value"].combine_chunks()
    assert got.type == column.type
    assert repr(got.to_pylist()) == repr(column.to_pylist())


@pytest.mark.parametrize(("sql", "parameters", "rows"), [
    ("SELECT n_name FROM nation WHERE n_nationkey = $1", (7,), [("GERMANY",)]),
    ("SELECT n_name FROM nation WHERE n_nationkey = ?", (7,), [("GERMANY",)]),
    ("SELECT n_nationkey FROM nation WHERE n_name = $1 OR n_name = $2", ("PERU", "CHINA"), [(17,), (18,)]),
    ("SELECT count(*) FROM orders WHERE o_orderdate < $1", (datetime.date(1900, 1, 1),), [(0,)]),
    ("SELECT count(*) FROM orders WHERE o_totalprice < $1", (decimal.Decimal("-1.00"),), [(0,)]),
    ("SELECT count(*) FROM lineitem WHERE l_orderkey = $1", (None,), [(0,)]),
    ("SELECT c_bool FROM plain_types WHERE c_bool = $1", (True,), [(True,)]),
    ("SELECT c_string FROM plain_types WHERE c_binary = $1", (b"a",), [("a",)]),
    ("SELECT n_name FROM nation WHERE n_nationkey < $1 ORDER BY 1 LIMIT 1", (1.5,), [("ALGERIA",)]),
])
def test_parameters_in_predicates(cursor, sql, parameters, rows):
    cursor.execute(sql, parameters)
    assert sorted(cursor.fetchall()) == rows


def test_cancel_from_another_thread(private_server):
    with dbapi.connect(private_server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(cursor.execute, ENDLESS)
            wait_until(lambda: private_server.held().get("bowshot_running_queries"), "the query runs")
            cursor.adbc_cancel()
            with pytest.raises(dbapi.Error):
                running.result(20)
        private_server.wait_idle(1.0)


def levels(count, expression):
    """Queries around one another, each of which computes `x` of the one within."""
    around = "".join(f", q{level + 1} AS (SELECT {expression} AS x FROM q{level})" for level in range(count))
    return f"WITH q0 AS (SELECT l_orderkey % 2 AS x FROM lineitem){around} SELECT count(*) FROM q{count}"


@pytest.mark.parametrize(("sql", "refused"), [
    # The optimiser makes one expression of them, of 14,400 levels, where the stack of a query ended.
    (levels(16, "x" + " + 1" * 900) + " WHERE x > 0", "more than 3000 levels"),
    (levels(3, "x" + " + 1" * 900) + " WHERE x > 0", ""),
    # A condition on the outermost would have eight million parts.
    (levels(3, "(" + " + x" * 200 + ") % 7") + " WHERE x > 0", "more than 1000000 parts"),
    (levels(3, "(" + " + x" * 200 + ") % 7"), ""),
    (levels(15, "x + x") + " WHERE x > 0", ""),
    # No condition moves into what is computed of many rows.
    (levels(3, "sum(" + " + x" * 200 + ") % 7") + " WHERE x > 0", ""),
    (levels(3, "sum(" + " + x" * 200 + ") OVER () % 7") + " WHERE x > 0", ""),
    (f"SELECT count(*) FROM nation WHERE EXISTS ({levels(3, '(' + ' + x' * 200 + ') % 7')} WHERE x > 0)", "more than 1000000"),
])
def test_expressions_that_grow_without_end_are_refused(cursor, sql, refused):
    if not refused:
        cursor.execute(sql)
        assert cursor.fetchall()
        return
    with pytest.raises(dbapi.Error, match=refused) as caught:
        cursor.execute(sql)
    assert "CREATE TABLE" in str(caught.value)


def test_an_error_in_mid_stream_reaches_the_reader(cursor):
    with pytest.raises(dbapi.Error):
        cursor.execute("SELECT 1 / (l_orderkey - l_orderkey) FROM lineitem")
        cursor.fetch_arrow_table()


def test_executemany_of_a_query_is_refused_clearly(cursor):
    with pytest.raises(dbapi.Error):
        cursor.executemany("SELECT n_name FROM nation WHERE n_nationkey = $1", [(1,), (2,)])
