"""The ADBC Flight SQL driver through its Python DBAPI: queries, parameters, partitions, metadata, errors."""

import concurrent.futures
import datetime
import decimal

import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pyarrow as pa
import pytest

import data
from server import wait_until

# What an error says that is about a table made of files.
FILES = "(?is)nation.*(files.*read-only|read-only.*files)"
ENDLESS = "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c WHERE a.l_partkey + b.l_partkey = c.l_partkey"


@pytest.fixture
def connection(server):
    with dbapi.connect(server.grpc_tcp, autocommit=True) as connection:
        yield connection


def test_fetch_arrow_table(cursor):
    cursor.execute("SELECT * FROM lineitem")
    table = cursor.fetch_arrow_table()
    assert table.num_rows == data.LINEITEM_ROWS
    assert table.schema.equals(data.lineitem().schema)
    assert cursor.rowcount in (-1, data.LINEITEM_ROWS)


def test_fetch_df_and_polars(cursor):
    cursor.execute("SELECT n_name FROM nation ORDER BY n_nationkey")
    assert list(cursor.fetch_df()["n_name"]) == data.NATIONS
    cursor.execute("SELECT n_name FROM nation ORDER BY n_nationkey")
    assert cursor.fetch_polars()["n_name"].to_list() == data.NATIONS


def test_rows(cursor):
    cursor.execute("SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey")
    assert [column[0] for column in cursor.description] == ["n_nationkey", "n_name"]
    assert cursor.fetchone() == (0, "ALGERIA")
    assert cursor.fetchmany(2) == [(1, "ARGENTINA"), (2, "BRAZIL")]
    assert len(cursor.fetchall()) == 22


def test_every_plain_type_as_python_values(cursor):
    cursor.execute("SELECT * FROM plain_types")
    assert cursor.fetch_arrow_table().schema.equals(data.plain_types().schema)


@pytest.mark.parametrize("name", [name for name in data.plain_types().column_names if name not in ("c_list", "c_struct")])
def test_parameter_of_every_type_comes_back(cursor, name):
    column = data.plain_types()[name].combine_chunks()
    # Three rows of parameters are three executions and one result.
    batch = pa.record_batch([column], names=["0"])
    cursor.execute("SELECT $1 AS value", batch)
    got = cursor.fetch_arrow_table()["value"].combine_chunks()
    assert got.type == column.type
    assert repr(got.to_pylist()) == repr(column.to_pylist())


@pytest.mark.parametrize(
    ("sql", "parameters", "rows"),
    [
        ("SELECT n_name FROM nation WHERE n_nationkey = $1", (7,), [("GERMANY",)]),
        ("SELECT n_name FROM nation WHERE n_nationkey = ?", (7,), [("GERMANY",)]),
        ("SELECT n_nationkey FROM nation WHERE n_name = $1 OR n_name = $2", ("PERU", "CHINA"), [(17,), (18,)]),
        ("SELECT count(*) FROM orders WHERE o_orderdate < $1", (datetime.date(1900, 1, 1),), [(0,)]),
        ("SELECT count(*) FROM orders WHERE o_totalprice < $1", (decimal.Decimal("-1.00"),), [(0,)]),
        ("SELECT count(*) FROM lineitem WHERE l_orderkey = $1", (None,), [(0,)]),
        ("SELECT c_bool FROM plain_types WHERE c_bool = $1", (True,), [(True,)]),
        ("SELECT c_string FROM plain_types WHERE c_binary = $1", (b"a",), [("a",)]),
        ("SELECT n_name FROM nation WHERE n_nationkey < $1 ORDER BY 1 LIMIT 1", (1.5,), [("ALGERIA",)]),
    ],
)
def test_parameters_in_predicates(cursor, sql, parameters, rows):
    cursor.execute(sql, parameters)
    assert sorted(cursor.fetchall()) == rows


def test_parameters_again_with_other_values(cursor):
    sql = "SELECT n_name FROM nation WHERE n_nationkey = $1"
    for key in (3, 4, 3):
        cursor.execute(sql, (key,))
        assert cursor.fetchall() == [(data.NATIONS[key],)]


def test_wrong_number_of_parameters_is_an_error(cursor):
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT $1, $2", (1,))
        cursor.fetchall()


def test_prepare_tells_the_parameters(cursor):
    schema = cursor.adbc_prepare("SELECT n_name FROM nation WHERE n_nationkey = $1 AND n_name LIKE $2")
    assert [field.type for field in schema] == [pa.int64(), pa.string()]


def test_partitions_are_read_by_another_connection(server, connection, cursor):
    partitions, schema = cursor.adbc_execute_partitions("SELECT * FROM orders")
    assert schema.equals(data.orders().schema)
    assert len(partitions) == 1
    with dbapi.connect(server.grpc_tcp, autocommit=True) as other, other.cursor() as reader:
        reader.adbc_read_partition(partitions[0])
        assert reader.fetch_arrow_table().num_rows == data.ORDERS_ROWS


def test_several_partitions(server):
    options = {"adbc.flight.sql.session.option.endpoints": "4"}
    with dbapi.connect(server.grpc_tcp, conn_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        partitions, schema = cursor.adbc_execute_partitions("SELECT * FROM lineitem")
        assert len(partitions) == 4
        tables = []
        for partition in partitions:
            with dbapi.connect(server.grpc_tcp, autocommit=True) as other, other.cursor() as reader:
                reader.adbc_read_partition(partition)
                tables.append(reader.fetch_arrow_table())
        assert sum(table.num_rows for table in tables) == data.LINEITEM_ROWS
        assert all(table.schema.equals(schema) for table in tables)


def objects(connection, **filters):
    return connection.adbc_get_objects(**filters).read_all().to_pylist()


def tables_of(catalogs, schema="main"):
    (catalog,) = [entry for entry in catalogs if entry["catalog_name"] == "bowshot"]
    (found,) = [entry for entry in catalog["catalog_db_schemas"] if entry["db_schema_name"] == schema]
    return {table["table_name"]: table for table in found["db_schema_tables"] or []}


def test_get_objects_at_every_depth(connection):
    assert "bowshot" in [entry["catalog_name"] for entry in objects(connection, depth="catalogs")]
    (bowshot,) = [e for e in objects(connection, depth="db_schemas") if e["catalog_name"] == "bowshot"]
    assert {"main", "system"} <= {entry["db_schema_name"] for entry in bowshot["catalog_db_schemas"]}
    tables = tables_of(objects(connection, depth="tables"))
    assert {"lineitem", "orders", "nation", "sales"} <= set(tables)
    assert tables["nation"]["table_type"] == "TABLE"
    columns = tables_of(objects(connection, depth="all"))["nation"]["table_columns"]
    assert [(column["column_name"], column["ordinal_position"]) for column in columns] == [("n_nationkey", 1), ("n_name", 2)]


def test_get_objects_filters(connection):
    assert set(tables_of(objects(connection, depth="tables", table_name_filter="nat%"))) == {"nation"}
    assert set(tables_of(objects(connection, depth="tables", table_name_filter="natio_"))) == {"nation"}
    assert tables_of(objects(connection, depth="tables", table_types_filter=["VIEW"])) == {}
    assert "nation" in tables_of(objects(connection, depth="tables", table_types_filter=["TABLE"]))
    assert objects(connection, depth="all", catalog_filter="nowhere") == []
    found = objects(connection, depth="all", db_schema_filter="main", table_name_filter="nation", column_name_filter="%name")
    assert [column["column_name"] for column in tables_of(found)["nation"]["table_columns"]] == ["n_name"]


def test_get_info(connection):
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Bowshot"
    assert info["driver_name"] == "ADBC Flight SQL Driver - Go"
    assert info["vendor_version"] and info["vendor_arrow_version"]


def test_get_table_schema_and_types(connection):
    schema = connection.adbc_get_table_schema("lineitem")
    assert schema.equals(data.lineitem().schema)
    assert connection.adbc_get_table_schema("nation", db_schema_filter="main").names == ["n_nationkey", "n_name"]
    with pytest.raises(dbapi.Error):
        connection.adbc_get_table_schema("lineitm")
    assert {"TABLE", "VIEW"} <= set(connection.adbc_get_table_types())


def test_execute_schema(cursor):
    schema = cursor.adbc_execute_schema("SELECT l_orderkey, l_comment FROM lineitem")
    assert schema.equals(pa.schema([("l_orderkey", pa.int64()), ("l_comment", pa.string())]))


def test_current_catalog_and_schema(connection):
    assert connection.adbc_current_catalog == "bowshot"
    assert connection.adbc_current_db_schema == "main"
    connection.adbc_current_db_schema = "system"
    assert connection.adbc_current_db_schema == "system"
    with pytest.raises(dbapi.Error):
        connection.adbc_current_catalog = "nowhere"


def test_closing_a_cursor_in_mid_stream_frees_everything(server, connection):
    cursor = connection.cursor()
    cursor.execute("SELECT a.* FROM lineitem a CROSS JOIN orders")
    reader = cursor.fetch_record_batch()
    assert reader.read_next_batch().num_rows > 0
    assert server.held()["bowshot_running_queries"] == 1
    reader.close()
    cursor.close()
    server.wait_idle(1.0)


def test_cancel_from_another_thread(private_server):
    with dbapi.connect(private_server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(cursor.execute, ENDLESS)
            wait_until(lambda: private_server.held().get("bowshot_running_queries"), "the query runs")
            cursor.adbc_cancel()
            with pytest.raises(dbapi.Error):
                running.result(20)
        private_server.wait_idle(1.0)


@pytest.mark.parametrize(
    ("sql", "status"),
    [
        ("SELEC 1", adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT),
        # The driver prepares what it runs, which is one statement.
        ("SELECT 1; SELECT 2", adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT),
        ("SELECT * FROM lineitm", adbc_driver_manager.AdbcStatusCode.NOT_FOUND),
        ("SELECT no_such_column FROM nation", adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT),
    ],
)
def test_errors_have_status_codes(cursor, sql, status):
    with pytest.raises(dbapi.Error) as caught:
        cursor.execute(sql)
        cursor.fetchall()
    assert caught.value.status_code == status


def levels(count, expression):
    """Queries around one another, each of which computes `x` of the one within."""
    around = "".join(f", q{level + 1} AS (SELECT {expression} AS x FROM q{level})" for level in range(count))
    return f"WITH q0 AS (SELECT l_orderkey % 2 AS x FROM lineitem){around} SELECT count(*) FROM q{count}"


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
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
    ],
)
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


def test_without_autocommit_every_read_is_in_a_transaction(server):
    with dbapi.connect(server.grpc_tcp) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
        connection.commit()
        # The driver runs the statement that it prepared in the transaction before.
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_executemany_of_a_query_is_refused_clearly(cursor):
    with pytest.raises(dbapi.Error):
        cursor.executemany("SELECT n_name FROM nation WHERE n_nationkey = $1", [(1,), (2,)])


@pytest.mark.parametrize("mode", ["append", "replace", "create_append"])
def test_ingest_into_a_table_made_of_files_is_refused(cursor, mode):
    with pytest.raises(dbapi.Error, match=FILES):
        cursor.adbc_ingest("nation", data.nation(), mode=mode)
