"""The dialect of SQLAlchemy, and pandas over it."""

import datetime
import decimal
import uuid

import pytest

sa = pytest.importorskip("sqlalchemy")
orm = pytest.importorskip("sqlalchemy.orm")
registry = pytest.importorskip("sqlalchemy.dialects").registry

registry.register("bowshot", "bowshot.sqlalchemy", "BowshotDialect")


@pytest.fixture
def engine(shared):
    engine = sa.create_engine(shared.uri.replace("grpc://", "bowshot://"))
    yield engine
    engine.dispose()


@pytest.fixture
def made(engine, table):
    found = sa.Table(
        table,
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(50), nullable=False, comment="what it is called"),
        sa.Column("born", sa.Date),
        sa.Column("pay", sa.Numeric(10, 2)),
        sa.Column("key", sa.Uuid, unique=True),
        sa.Column("more", sa.JSON),
        sa.Column("length", sa.Interval),
        sa.Column("seen", sa.DateTime(timezone=True)),
        sa.Column("photo", sa.LargeBinary),
        sa.Column("tags", sa.ARRAY(sa.String)),
        sa.Column("size", sa.Float, server_default=sa.text("1.5")),
        comment="some people",
    )
    found.create(engine)
    yield found
    found.drop(engine)


def test_every_type_comes_back(engine, made):
    values = {
        "name": "größe 'x' %s ? :y",
        "born": datetime.date(2024, 2, 29),
        "pay": decimal.Decimal("12.50"),
        "key": uuid.UUID(int=5),
        "more": {"a": [1, None]},
        "length": datetime.timedelta(days=1, seconds=2),
        "seen": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
        "photo": b"\x00\xff",
        "tags": ["a", "b"],
    }
    with engine.begin() as connection:
        assert connection.execute(made.insert().values(**values)).inserted_primary_key == (1,)
        assert connection.execute(sa.select(made)).one()._asdict() == {"id": 1, **values, "size": 1.5}


def test_many_rows_and_transactions(engine, made):
    with engine.begin() as connection:
        connection.execute(made.insert(), [{"name": f"name {number}"} for number in range(2500)])
    count = sa.select(sa.func.count()).select_from(made)
    with engine.connect() as connection:
        assert connection.scalar(count) == 2500
        assert connection.execute(made.update().where(made.c.id <= 10).values(name="x")).rowcount == 10
        with connection.begin_nested() as nested:
            connection.execute(made.delete())
            nested.rollback()
        assert connection.scalar(count) == 2500
        connection.rollback()
        assert connection.scalar(count.where(made.c.name == "x")) == 0
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(made.insert().values(id=1, name="again"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(made.delete())
    with engine.connect() as connection:
        assert connection.scalar(count) == 0


def test_objects(engine, table):
    base = orm.declarative_base()

    class Person(base):
        __tablename__ = table
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String)

    base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Person(name="a"), Person(name="b")])
        session.commit()
        found = session.scalars(sa.select(Person).where(Person.name.like("b%"))).one()
        found.name = "c"
        session.commit()
        assert [person.name for person in session.scalars(sa.select(Person).order_by(Person.id))] == ["a", "c"]
    base.metadata.drop_all(engine)


def test_pandas(engine, table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2, 3], "name": ["a", None, "c"], "at": pandas.to_datetime(["2024-01-01"] * 3)})
    frame.to_sql(table, engine, index=False)
    frame.to_sql(table, engine, index=False, if_exists="append", method="multi")
    assert len(pandas.read_sql_table(table, engine)) == 6
    found = pandas.read_sql(sa.text(f"SELECT * FROM {table} WHERE id = :id"), engine, params={"id": 2})
    assert found["id"].tolist() == [2, 2]
    frame.to_sql(table, engine, index=False, if_exists="replace")
    assert len(pandas.read_sql(f"SELECT * FROM {table}", engine)) == 3


def test_pandas_over_the_connection_itself(connection):
    pandas = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql("SELECT id, name FROM nation ORDER BY id", connection)
    assert frame["name"].tolist()[0] == "ALGERIA"
