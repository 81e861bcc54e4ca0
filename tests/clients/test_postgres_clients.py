"""PostgreSQL's protocol as the clients above libpq and beside it speak it: ADBC, connectorx, SQLAlchemy with pandas, and psqlodbc
through pyodbc. test_postgres.py has psycopg and asyncpg, java/ pgjdbc, go/ pgx, node/ node-postgres."""

import contextlib
import datetime
import decimal
import pathlib

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import connectorx
import pandas
import pyarrow
import pyodbc
import pytest
import sqlalchemy
from sqlalchemy import orm

from server import repeated

D = decimal.Decimal
ODBC = pathlib.Path("/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so")
SLOW = "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey"

VALUES = [
    ("smallint", [0, -32768, 32767]),
    ("integer", [-1, 2147483647]),
    ("bigint", [-(2**63), 2**63 - 1]),
    ("real", [0.5, -1.25]),
    ("double precision", [0.1, 1e300]),
    ("boolean", [True, False]),
    ("text", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]),
    ("bytea", [b"", b"\x00\xff\\'"]),
    ("date", [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]),
    ("timestamp", [datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(2024, 1, 2, 3, 4, 5, 6)]),
]
TYPES = [name for name, _ in VALUES]


def uri(server, scheme="postgresql"):
    return f"{scheme}://ada:x@127.0.0.1:{server.pg_port}/bowshot"


@pytest.fixture
def adbc(shop):
    with adbc_driver_postgresql.dbapi.connect(uri(shop), autocommit=True) as connection:
        yield connection


def fetched(connection, sql, values=None):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("sql_type, values", VALUES, ids=TYPES)
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
    rows = pyarrow.table(
        {
            "a": pyarrow.array(range(20_000), pyarrow.int64()),
            "b": pyarrow.array([None if n % 7 == 0 else f"x{n}" for n in range(20_000)], pyarrow.string()),
            "c": pyarrow.array([n / 4 for n in range(20_000)], pyarrow.float64()),
        }
    )
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


def test_adbc_errors_cancel_and_transactions(shop, adbc, table):
    for sql, code in (
        ("SELECT * FROM missing", "42P01"),
        ("SELECT missing FROM nation", "42703"),
        ("SELEC 1", "42601"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT 'x'::int", "22P02"),
    ):
        with pytest.raises(adbc_driver_manager.Error) as raised:
            fetched(adbc, sql)
        assert raised.value.sqlstate == code, sql
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


@pytest.fixture
def engine(shop):
    engine = sqlalchemy.create_engine(uri(shop, "postgresql+psycopg"))
    yield engine
    engine.dispose()


def test_sqlalchemy_reflects(engine, table):
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE {table} (a BIGINT PRIMARY KEY, b TEXT NOT NULL, c NUMERIC(10, 2))"))
    seen = sqlalchemy.inspect(engine)
    assert table in seen.get_table_names() and "main" in seen.get_schema_names() and seen.has_table(table)
    assert [column["name"] for column in seen.get_columns(table)] == ["a", "b", "c"]
    assert [column["nullable"] for column in seen.get_columns(table)] == [False, False, True]
    assert seen.get_pk_constraint(table)["constrained_columns"] == ["a"]
    assert seen.get_foreign_keys(table) == []
    reflected = sqlalchemy.Table(table, sqlalchemy.MetaData(), autoload_with=engine)
    assert isinstance(reflected.c.c.type, sqlalchemy.Numeric)


def test_sqlalchemy_writes_and_reads_objects(engine, table):
    class Base(orm.DeclarativeBase):
        pass

    class Thing(Base):
        __tablename__ = table
        id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.BigInteger, primary_key=True, autoincrement=False)
        name: orm.Mapped[str | None]
        price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sqlalchemy.Numeric(10, 2))
        made: orm.Mapped[datetime.datetime]

    Base.metadata.create_all(engine)
    made = datetime.datetime(2024, 1, 2, 3, 4, 5, 6)
    with orm.Session(engine) as session:
        session.add_all(Thing(id=n, name=f"n{n}", price=D(n) / 4, made=made) for n in range(100))
        session.commit()
        thing = session.get(Thing, 7)
        assert (thing.name, thing.price, thing.made) == ("n7", D("1.75"), made)
        thing.name = None
        session.commit()
        assert session.scalar(sqlalchemy.select(sqlalchemy.func.count(Thing.name))) == 99
    with orm.Session(engine) as session:
        session.add(Thing(id=7, name="again", price=0, made=made))
        with pytest.raises(sqlalchemy.exc.IntegrityError) as raised:
            session.commit()
        assert raised.value.orig.sqlstate == "23505"
    Base.metadata.drop_all(engine)


def test_pandas_over_sqlalchemy(engine, table):
    frame = pandas.DataFrame(
        {
            "a": range(500),
            "b": [f"x{n}" if n % 3 else None for n in range(500)],
            "c": [n / 8 for n in range(500)],
            "d": pandas.date_range("2024-01-01", periods=500, freq="h"),
            "e": [n % 2 == 0 for n in range(500)],
        }
    )
    frame.to_sql(table, engine, index=False, method="multi", chunksize=100)
    frame.to_sql(table, engine, index=False, if_exists="append")
    back = pandas.read_sql_query(f"SELECT * FROM {table} ORDER BY a", engine)
    assert len(back) == 1000 and list(back.columns) == ["a", "b", "c", "d", "e"]
    assert back["c"].sum() == frame["c"].sum() * 2 and back["d"].max() == frame["d"].max()
    assert pandas.read_sql_table(table, engine)["e"].sum() == 500
    frame.to_sql(table, engine, index=False, if_exists="replace")
    assert pandas.read_sql_query(f"SELECT count(*) AS n FROM {table}", engine)["n"][0] == 500


def odbc_to(server, **more):
    if not ODBC.exists():
        pytest.skip("psqlodbc is not installed")
    parts = {
        "Driver": ODBC, "Server": "127.0.0.1", "Port": server.pg_port, "Database": "bowshot",
        "UID": "ada", "PWD": "x", "SSLmode": "disable", "BoolsAsChar": 0,
    }  # fmt: skip
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    return contextlib.closing(pyodbc.connect(text, **{"autocommit": True, **more}))


@pytest.mark.parametrize("sql_type, values", VALUES, ids=TYPES)
def test_psqlodbc_values(shop, table, sql_type, values):
    with odbc_to(shop) as connection:
        connection.execute(f"CREATE TABLE {table} (n INT, v {sql_type})")
        for index, value in enumerate(values):
            connection.execute(f"INSERT INTO {table} VALUES (?, ?)", index, value)
            [(back,)] = connection.execute(f"SELECT v FROM {table} WHERE n = ?", index).fetchall()
            assert back == value
        connection.execute(f"INSERT INTO {table} VALUES (-1, NULL)")
        assert connection.execute(f"SELECT v FROM {table} WHERE n = -1").fetchval() is None


def test_psqlodbc_metadata(shop, table):
    with odbc_to(shop) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TABLE {table} (a INT PRIMARY KEY, b VARCHAR NOT NULL, c NUMERIC(10, 2))")
        assert connection.getinfo(pyodbc.SQL_DBMS_NAME) == "PostgreSQL"
        assert [row.table_name for row in cursor.tables(table=table)] == [table]
        columns = cursor.columns(table=table).fetchall()
        assert [(row.column_name, row.nullable) for row in columns] == [("a", 0), ("b", 0), ("c", 1)]
        assert [(row.column_name, row.key_seq) for row in cursor.primaryKeys(table=table).fetchall()] == [("a", 1)]
        assert cursor.statistics(table).fetchall() is not None
        assert cursor.getTypeInfo().fetchall()


def test_psqlodbc_errors_cancel_and_transactions(shop, table):
    with odbc_to(shop) as connection:
        for sql, state in (
            ("SELECT * FROM missing", "42P01"),
            ("SELEC 1", "42601"),
            ("SELECT missing FROM nation", "42703"),
            ("SELECT 1 / 0", "22012"),
        ):
            with pytest.raises(pyodbc.Error) as raised:
                connection.execute(sql).fetchall()
            assert raised.value.args[0] in (state, {"42P01": "42S02", "42703": "42S22"}.get(state)), raised.value
        cursor = connection.cursor()
        with repeated(cursor.cancel), pytest.raises(pyodbc.Error):
            cursor.execute(SLOW)
        connection.execute(f"CREATE TABLE {table} (a INT)")
    with odbc_to(shop, autocommit=False) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        connection.rollback()
        cursor = connection.cursor()
        cursor.executemany(f"INSERT INTO {table} VALUES (?)", [(n,) for n in range(200)])
        connection.commit()
        assert tuple(connection.execute(f"SELECT count(*), sum(a) FROM {table}").fetchone()) == (200, 19_900)
