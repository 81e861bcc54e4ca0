"""MySQL's protocol as SQLAlchemy with pandas and MariaDB's ODBC driver through pyodbc speak it. test_mysql.py has PyMySQL and
mysql-connector-python, java/ Connector/J and MariaDB's, go/ go-sql-driver, node/ mysql2."""

import contextlib
import datetime
import decimal
import pathlib

import pandas
import pyodbc
import pytest
import sqlalchemy

D = decimal.Decimal
ODBC = pathlib.Path("/usr/lib/x86_64-linux-gnu/odbc/libmaodbc.so")

VALUES = [
    ("TINYINT", [0, -128, 127]),
    ("INT", [-1, 2147483647]),
    ("BIGINT", [-(2**63), 2**63 - 1]),
    ("DOUBLE", [0.1, 1e300]),
    ("DECIMAL(20, 5)", [D("1.50000"), D("-99999999999.00001")]),
    ("TEXT", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]),
    ("BLOB", [b"", b"\x00\xff\\'"]),
    ("DATE", [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]),
    # The driver sends whole seconds.
    ("DATETIME", [datetime.datetime(2024, 1, 2, 3, 4, 5), datetime.datetime(1969, 12, 31, 23, 59, 59)]),
]
TYPES = [name for name, _ in VALUES]


@pytest.fixture
def engine(shop):
    engine = sqlalchemy.create_engine(f"mysql+pymysql://ada@127.0.0.1:{shop.mysql_port}/main")
    yield engine
    engine.dispose()


def test_sqlalchemy_reflects(engine, table):
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE {table} (a BIGINT PRIMARY KEY, b VARCHAR(20) NOT NULL, c DECIMAL(10, 2))"))
    seen = sqlalchemy.inspect(engine)
    assert table in seen.get_table_names() and "main" in seen.get_schema_names() and seen.has_table(table)
    assert [column["name"] for column in seen.get_columns(table)] == ["a", "b", "c"]
    assert [column["nullable"] for column in seen.get_columns(table)] == [False, False, True]
    assert seen.get_pk_constraint(table)["constrained_columns"] == ["a"]


def test_sqlalchemy_and_pandas(engine, table):
    frame = pandas.DataFrame(
        {
            "a": range(300),
            "b": [f"x{n}" if n % 3 else None for n in range(300)],
            "c": [n / 8 for n in range(300)],
            "d": pandas.date_range("2024-01-01", periods=300, freq="h"),
        }
    )
    frame.to_sql(table, engine, index=False, chunksize=100)
    back = pandas.read_sql_query(f"SELECT * FROM {table} ORDER BY a", engine)
    assert back["c"].sum() == frame["c"].sum() and back["d"].max() == frame["d"].max() and back["b"].isna().sum() == 100
    assert len(pandas.read_sql_table(table, engine)) == 300
    with engine.connect() as connection:
        with pytest.raises(sqlalchemy.exc.ProgrammingError) as raised:
            connection.execute(sqlalchemy.text("SELECT * FROM missing"))
        assert raised.value.orig.args[0] == 1146
        connection.rollback()
        connection.execute(sqlalchemy.text(f"DELETE FROM {table}"))
        connection.rollback()
        assert connection.scalar(sqlalchemy.text(f"SELECT count(*) FROM {table}")) == 300


def odbc_to(server, **more):
    if not ODBC.exists():
        pytest.skip("MariaDB's ODBC driver is not installed")
    parts = {"Driver": ODBC, "Server": "127.0.0.1", "Port": server.mysql_port, "Database": "main", "UID": "ada"}
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    return contextlib.closing(pyodbc.connect(text, **{"autocommit": True, **more}))


@pytest.mark.parametrize("sql_type, values", VALUES, ids=TYPES)
def test_odbc_values(shop, table, sql_type, values):
    with odbc_to(shop) as connection:
        connection.execute(f"CREATE TABLE {table} (n INT, v {sql_type})")
        for index, value in enumerate(values):
            connection.execute(f"INSERT INTO {table} VALUES (?, ?)", index, value)
            [(back,)] = connection.execute(f"SELECT v FROM {table} WHERE n = ?", index).fetchall()
            assert back == value
        connection.execute(f"INSERT INTO {table} VALUES (-1, NULL)")
        assert connection.execute(f"SELECT v FROM {table} WHERE n = -1").fetchval() is None


def test_odbc_metadata(shop, table):
    with odbc_to(shop) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TABLE {table} (a INT PRIMARY KEY, b VARCHAR(20) NOT NULL, c DECIMAL(10, 2))")
        assert connection.getinfo(pyodbc.SQL_DBMS_NAME) in ("MySQL", "MariaDB")
        assert [row[2] for row in cursor.tables(table=table)] == [table]
        # Its question for columns assigns variables within expressions, which are not there.
        with pytest.raises(pyodbc.Error):
            cursor.columns(table=table)
        # It asks for `COLUMN_KEY = 'pri'`.
        assert [row[3] for row in cursor.primaryKeys(table=table)] == ["a"]
        assert cursor.getTypeInfo().fetchall()


def test_odbc_errors_and_transactions(shop, table):
    with odbc_to(shop) as connection:
        for sql, state, number in (
            ("SELECT * FROM missing", "42S02", 1146),
            ("SELEC 1", "42000", 1064),
            ("SELECT missing FROM nation", "42S22", 1054),
        ):
            with pytest.raises(pyodbc.Error) as raised:
                connection.execute(sql).fetchall()
            assert raised.value.args[0] == state and f"({number})" in raised.value.args[1], raised.value
        connection.execute(f"CREATE TABLE {table} (a INT)")
    with odbc_to(shop, autocommit=False) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        connection.rollback()
        connection.cursor().executemany(f"INSERT INTO {table} VALUES (?)", [(n,) for n in range(200)])
        connection.commit()
        assert tuple(connection.execute(f"SELECT count(*), sum(a) FROM {table}").fetchone()) == (200, 19_900)
