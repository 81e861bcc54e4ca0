"""flightsql-dbapi: its DBAPI, its Flight SQL client and its SQLAlchemy dialect for DataFusion servers."""

import datetime

import flightsql
import flightsql.sqlalchemy  # noqa: F401 registers the dialect
import pytest
import sqlalchemy

import data

# The package is old and SQLAlchemy 1.4 with it.
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture
def client(server):
    client = flightsql.FlightSQLClient(host=server.host, port=server.port, insecure=True)
    yield client
    client.close()


@pytest.fixture
def connection(client):
    return flightsql.connect(client)


@pytest.fixture
def engine(server):
    options = "insecure=true&feature-sqlalchemy-prepared-statements=on"
    engine = sqlalchemy.create_engine(f"datafusion+flightsql://{server.host}:{server.port}?{options}")
    yield engine
    engine.dispose()


def test_rows(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey")
    assert [column[0] for column in cursor.description] == ["n_nationkey", "n_name"]
    assert [row[1] for row in cursor.fetchall()] == data.NATIONS


@pytest.mark.parametrize(("sql", "parameters", "rows"), [
    ("SELECT n_name FROM nation WHERE n_nationkey = ?", (7,), [("GERMANY",)]),
    ("SELECT n_nationkey FROM nation WHERE n_name = ?", ("PERU",), [(17,)]),
    ("SELECT c_string FROM plain_types WHERE c_binary = ?", (b"a",), [("a",)]),
    ("SELECT c_string FROM plain_types WHERE c_bool = ?", (True,), [("a",)]),
    ("SELECT c_string FROM plain_types WHERE c_float64 = ?", (1.5,), [("a",)]),
])
def test_parameters_arrive_as_unions(connection, sql, parameters, rows):
    cursor = connection.cursor()
    cursor.execute(sql, parameters)
    assert [tuple(row) for row in cursor.fetchall()] == rows


def test_metadata(connection):
    assert "nation" in connection.flightsql_get_table_names("main")
    assert "main" in connection.flightsql_get_schema_names()
    columns = {column["name"]: column["type"] for column in connection.flightsql_get_columns("nation", "main")}
    assert list(columns) == ["n_nationkey", "n_name"]
    info = connection.flightsql_get_sql_info([0, 2, 3, 504])
    assert info[0] == "Bowshot" and info[3] is False and info[504] == '"'
    assert connection.flightsql_get_primary_keys("nation", "main") == []


def test_client_metadata_commands(client):
    for info in (
        client.get_catalogs(),
        client.get_table_types(),
        client.get_xdbc_type_info(None),
        client.get_exported_keys(flightsql.TableRef(table="nation")),
        client.get_imported_keys(flightsql.TableRef(table="nation")),
        client.get_cross_reference(flightsql.TableRef(table="nation"), flightsql.TableRef(table="orders")),
    ):
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert table.schema.equals(info.schema)


def test_update_is_answered_before_the_stream_is_closed(client):
    with pytest.raises(Exception, match="(?i)read-only"):
        client.execute_update("DROP TABLE nation")


def test_sqlalchemy_reads_and_reflects(engine):
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT n_name FROM nation ORDER BY n_nationkey LIMIT 2")).fetchall()
        assert [row[0] for row in rows] == data.NATIONS[:2]
    inspector = sqlalchemy.inspect(engine)
    assert "nation" in inspector.get_table_names("main")
    assert [column["name"] for column in inspector.get_columns("nation", "main")] == ["n_nationkey", "n_name"]


def test_sqlalchemy_expressions(engine):
    nation = sqlalchemy.Table("nation", sqlalchemy.MetaData(), autoload_with=engine)
    query = sqlalchemy.select(nation.c.n_name).where(nation.c.n_nationkey == 7)
    with engine.connect() as connection:
        assert connection.execute(query).scalar() == "GERMANY"
        orders = sqlalchemy.text("SELECT count(*) FROM orders WHERE o_orderdate < :day")
        assert connection.execute(orders, {"day": datetime.date(1900, 1, 1).isoformat()}).scalar() == 0
