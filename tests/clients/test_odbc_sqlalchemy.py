"""SQLAlchemy with pandas, and pyodbc with psqlodbc and MariaDB's driver: the same over PostgreSQL's protocol and over MySQL's.
test_postgres.py and test_mysql.py have the drivers of Python, java/, go/ and node/ those of other languages."""

import contextlib
import datetime
import decimal
import pathlib
import types

import pandas
import pyodbc
import pytest
import sqlalchemy
from sqlalchemy import orm

import test_mysql
import test_postgres
from server import repeated

D = decimal.Decimal
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu/odbc")
SLOW = "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey"
PROTOCOLS = {
    "postgres": types.SimpleNamespace(
        uri=lambda server: f"postgresql+psycopg://ada:x@127.0.0.1:{server.pg_port}/bowshot",
        library=LIBRARIES / "psqlodbcw.so",
        odbc=lambda server: {"Port": server.pg_port, "Database": "bowshot", "PWD": "x", "SSLmode": "disable", "BoolsAsChar": 0},
        products=("PostgreSQL",),
        duplicate=lambda error: error.sqlstate == "23505",
        values=[
            (name, values)
            for name, values in test_postgres.VALUES
            if not name.startswith(("numeric", "time", "interval")) and "[]" not in name or name == "timestamp"
        ],
    ),
    "mysql": types.SimpleNamespace(
        uri=lambda server: f"mysql+pymysql://ada@127.0.0.1:{server.mysql_port}/main",
        library=LIBRARIES / "libmaodbc.so",
        odbc=lambda server: {"Port": server.mysql_port, "Database": "main"},
        products=("MySQL", "MariaDB"),
        duplicate=lambda error: error.args[0] == 1062,
        values=[
            *(case for case in test_mysql.VALUES if case[0] not in ("BIGINT UNSIGNED", "FLOAT", "BOOLEAN", "TIME(6)", "DATETIME(6)")),
            # The driver sends whole seconds.
            ("DATETIME", [datetime.datetime(2024, 1, 2, 3, 4, 5), datetime.datetime(1969, 12, 31, 23, 59, 59)]),
        ],
    ),
}
VALUES = [(protocol, *case) for protocol, it in PROTOCOLS.items() for case in it.values]


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return request.param


@pytest.fixture
def engine(shop, protocol):
    engine = sqlalchemy.create_engine(PROTOCOLS[protocol].uri(shop))
    yield engine
    engine.dispose()


def test_sqlalchemy_writes_and_reads_objects(engine, protocol, table):
    class Base(orm.DeclarativeBase):
        pass

    class Thing(Base):
        __tablename__ = table
        id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.BigInteger, primary_key=True, autoincrement=False)
        name: orm.Mapped[str | None] = orm.mapped_column(sqlalchemy.String(20))
        price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sqlalchemy.Numeric(10, 2))
        made: orm.Mapped[datetime.datetime]

    Base.metadata.create_all(engine)
    made = datetime.datetime(2024, 1, 2, 3, 4, 5)
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
        assert PROTOCOLS[protocol].duplicate(raised.value.orig)
    Base.metadata.drop_all(engine)


def test_a_model_with_foreign_keys(engine, protocol):
    class Base(orm.DeclarativeBase):
        pass

    class Author(Base):
        __tablename__ = "author"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)
        name = sqlalchemy.Column(sqlalchemy.String(20), nullable=False)
        about = sqlalchemy.Column(sqlalchemy.Text)
        books = orm.relationship("Book", back_populates="author")

    class Book(Base):
        __tablename__ = "book"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)
        title = sqlalchemy.Column(sqlalchemy.String(40), unique=True)
        author_id = sqlalchemy.Column(sqlalchemy.ForeignKey("author.id"), nullable=False)
        author = orm.relationship("Author", back_populates="books")

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Author(name="a", books=[Book(title="one"), Book(title="two")]), Author(name="b")])
        session.commit()
        # The numbers are those that the server gives.
        assert session.scalars(sqlalchemy.select(Book.author_id)).all() == [1, 1]
        titles = sqlalchemy.select(Book.title).join(Author).where(Author.name == "a").order_by(Book.id)
        assert session.scalars(titles).all() == ["one", "two"]
    seen = sqlalchemy.inspect(engine)
    [key] = seen.get_foreign_keys("book")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["author_id"], "author", ["id"])
    if protocol == "postgres":
        types = {column["name"]: str(column["type"]) for column in seen.get_columns("author")}
        assert types == {"id": "INTEGER", "name": "VARCHAR(20)", "about": "TEXT"}
    reflected = sqlalchemy.MetaData()
    reflected.reflect(engine)
    assert {"author", "book"} <= set(reflected.tables)
    Base.metadata.drop_all(engine)


def test_pandas_over_sqlalchemy(engine, table):
    frame = pandas.DataFrame({
        "a": range(500),
        "b": [f"x{n}" if n % 3 else None for n in range(500)],
        "c": [n / 8 for n in range(500)],
        "d": pandas.date_range("2024-01-01", periods=500, freq="h"),
        "e": [n % 2 == 0 for n in range(500)],
    })
    frame.to_sql(table, engine, index=False, method="multi", chunksize=100)
    frame.to_sql(table, engine, index=False, if_exists="append")
    back = pandas.read_sql_query(f"SELECT * FROM {table} ORDER BY a", engine)
    assert len(back) == 1000 and list(back.columns) == ["a", "b", "c", "d", "e"] and back["b"].isna().sum() == 334
    assert back["c"].sum() == frame["c"].sum() * 2 and back["d"].max() == frame["d"].max()
    assert pandas.read_sql_table(table, engine)["e"].sum() == 500
    frame.to_sql(table, engine, index=False, if_exists="replace")
    assert pandas.read_sql_query(f"SELECT count(*) AS n FROM {table}", engine)["n"][0] == 500
    with engine.connect() as connection:
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            connection.execute(sqlalchemy.text("SELECT * FROM missing"))
        connection.rollback()
        connection.execute(sqlalchemy.text(f"DELETE FROM {table}"))
        connection.rollback()
        assert connection.scalar(sqlalchemy.text(f"SELECT count(*) FROM {table}")) == 500


def odbc_to(server, protocol, **more):
    it = PROTOCOLS[protocol]
    if not it.library.exists():
        pytest.skip(f"the ODBC driver {it.library.name} is not installed")
    parts = {"Driver": it.library, "Server": "127.0.0.1", "UID": "ada", **it.odbc(server)}
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    return contextlib.closing(pyodbc.connect(text, **{"autocommit": True, **more}))


@pytest.mark.parametrize("protocol, sql_type, values", VALUES, ids=[f"{protocol} {name}" for protocol, name, _ in VALUES])
def test_odbc_values(shop, table, protocol, sql_type, values):
    with odbc_to(shop, protocol) as connection:
        connection.execute(f"CREATE TABLE {table} (n INT, v {sql_type})")
        for index, value in enumerate(values):
            connection.execute(f"INSERT INTO {table} VALUES (?, ?)", index, value)
            [(back,)] = connection.execute(f"SELECT v FROM {table} WHERE n = ?", index).fetchall()
            assert back == value
        connection.execute(f"INSERT INTO {table} VALUES (-1, NULL)")
        assert connection.execute(f"SELECT v FROM {table} WHERE n = -1").fetchval() is None


def test_odbc_metadata(shop, protocol, table):
    with odbc_to(shop, protocol) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TABLE {table} (a INT PRIMARY KEY, b VARCHAR(20) NOT NULL, c DECIMAL(10, 2))")
        assert connection.getinfo(pyodbc.SQL_DBMS_NAME) in PROTOCOLS[protocol].products
        assert [row[2] for row in cursor.tables(table=table)] == [table]
        if protocol == "mysql":
            # Its question for columns assigns variables within expressions, which are not there.
            with pytest.raises(pyodbc.Error):
                cursor.columns(table=table)
        else:
            columns = cursor.columns(table=table).fetchall()
            assert [(row.column_name, row.nullable) for row in columns] == [("a", 0), ("b", 0), ("c", 1)]
            assert cursor.statistics(table).fetchall() is not None
        # MariaDB's asks for `COLUMN_KEY = 'pri'`.
        assert [row[3:5] for row in cursor.primaryKeys(table=table).fetchall()] == [("a", 1)]
        assert cursor.getTypeInfo().fetchall()


def test_odbc_cancel_and_transactions(shop, protocol, table):
    with odbc_to(shop, protocol) as connection:
        if protocol == "postgres":
            cursor = connection.cursor()
            with repeated(cursor.cancel), pytest.raises(pyodbc.Error):
                cursor.execute(SLOW)
        connection.execute(f"CREATE TABLE {table} (a INT)")
    with odbc_to(shop, protocol, autocommit=False) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        connection.rollback()
        connection.cursor().executemany(f"INSERT INTO {table} VALUES (?)", [(n,) for n in range(200)])
        connection.commit()
        assert tuple(connection.execute(f"SELECT count(*), sum(a) FROM {table}").fetchone()) == (200, 19_900)
