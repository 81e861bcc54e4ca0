"""The data source of Spark, in a session of Spark of its own."""

import datetime
import decimal
import os
import pathlib
import sys

import documents
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's users have it
from pyspark.sql.types import StructType

import bowshot
import bowshot.spark

SOURCES = str(pathlib.Path(__file__).parents[1] / "src")
os.environ["PYTHONPATH"] = os.pathsep.join([SOURCES, str(pathlib.Path(__file__).parent)])
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))

ROWS = 1000


@pytest.fixture(scope="session")
def spark():
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "800m").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    bowshot.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server():
    with bowshot.server() as server, server.connect(autocommit=True) as connection:
        numbers = range(ROWS)
        table = {
            "a": pa.array(numbers, pa.int64()),
            "u": pa.array(numbers, pa.uint64()),
            "s": [f"row {n}" if n % 7 else None for n in numbers],
            "f": [n / 2 for n in numbers],
            "d": pa.array(numbers, pa.date32()),
            "ts": pa.array(numbers, pa.timestamp("ns")),
            "tz": pa.array(numbers, pa.timestamp("us", tz="+02:00")),
            "dec": pa.array([decimal.Decimal(n) / 100 for n in numbers], pa.decimal128(12, 2)),
            "t": pa.array(numbers, pa.time64("us")),
            "l": [[n, None] for n in numbers],
            "st": [{"x": n, "y": "z"} for n in numbers],
            "b": [b"x"] * ROWS,
            "bo": [True, False] * (ROWS // 2),
        }
        connection.ingest("many", pa.table(table))
        yield server


@pytest.fixture
def connection(server):
    with server.connect(autocommit=True) as connection:
        yield connection


@pytest.fixture
def load(spark, server):
    def load(source, **options):
        return spark.read.format("bowshot").options(uri=server.uri, source=source, **options).load()

    return load


@pytest.fixture
def save(server):
    def save(frame, table, mode="append", **options):
        frame.write.format("bowshot").options(uri=server.uri, source=table, **options).mode(mode).save()

    return save


def test_types(load):
    frame = load("many")
    assert dict(frame.dtypes) == {
        "a": "bigint",
        "u": "decimal(20,0)",
        "s": "string",
        "f": "double",
        "d": "date",
        "ts": "timestamp_ntz",
        "tz": "timestamp",
        "dec": "decimal(12,2)",
        "t": "string",
        "l": "array<bigint>",
        "st": "struct<x:bigint,y:string>",
        "b": "binary",
        "bo": "boolean",
    }
    row = frame.filter("a = 14").first().asDict(recursive=True)
    assert row.pop("tz") is not None
    assert row == {
        "a": 14,
        "u": decimal.Decimal(14),
        "s": None,
        "f": 7.0,
        "d": datetime.date(1970, 1, 15),
        "ts": datetime.datetime(1970, 1, 1),
        "dec": decimal.Decimal("0.14"),
        "t": "00:00:00.000014",
        "l": [14, None],
        "st": {"x": 14, "y": "z"},
        "b": b"x",
        "bo": True,
    }


# What is asked, what of it the server is asked, and whose rows are the answer.
CONDITIONS = [
    ("s like 'row 99%' and a in (991, 992, 1)", "starts_with(\"s\", 'row 99')", lambda n: n in (991, 992) and n % 7),
    ("s is null and not (a > 20)", '"s" IS NULL', lambda n: n % 7 == 0 and n <= 20),
    ("d < date '1970-01-05' and dec >= 0.02", "\"d\" < DATE '1970-01-05'", lambda n: 2 <= n < 4),
    ("tz = timestamp '1970-01-01 00:00:00.000005'", '"tz" = CAST(', lambda n: n == 5),
    ("ts = timestamp_ntz '1970-01-01 00:00:00' and f > 490 and st.x < 990", None, lambda n: 980 < n < 990),
]


def test_filters(load, connection):
    frame = load("many", partitions="1")
    for condition, sql, expected in CONDITIONS:
        found = {row.a for row in frame.filter(condition).select("a").collect()}
        assert found == {n for n in range(ROWS) if expected(n)}, condition
        texts = [row[0] for row in connection.sql("SELECT statement FROM system.queries ORDER BY started DESC LIMIT 3")]
        if sql is not None:
            assert any(sql in text for text in texts), texts
        else:
            assert not any(name in text for text in texts for name in ('"f" >', '"st" <', '"ts" ='))


def test_filters_as_sql():
    from pyspark.sql import datasource as source

    kinds = {"a": "long", "s": "string", "f": "double", "t": "timestamp_ntz", "bo": "boolean", "dec": "decimal(9,2)"}
    schema = StructType()
    for name, kind in kinds.items():
        schema.add(name, kind)
    arrow = pa.schema([(name, pa.timestamp("us") if name == "t" else pa.int64()) for name in schema.names])
    nanoseconds = pa.schema([(name, pa.timestamp("ns")) for name in schema.names])
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
    for item, expected in [
        (source.EqualTo(("a",), 5), '"a" = 5'),
        (source.EqualNullSafe(("s",), None), '"s" IS NOT DISTINCT FROM NULL'),
        (source.Not(source.In(("s",), ("x", "o'y"))), "NOT (\"s\" IN ('x', 'o''y'))"),
        (source.GreaterThan(("dec",), decimal.Decimal("1.50")), '"dec" > 1.50'),
        (source.LessThanOrEqual(("t",), moment), "\"t\" <= CAST('2020-01-02T03:04:05.000006' AS TIMESTAMP)"),
        (source.EqualTo(("bo",), True), '"bo" = TRUE'),
        (source.IsNotNull(("f",)), '"f" IS NOT NULL'),
        (source.StringContains(("s",), "%"), "contains(\"s\", '%')"),
        (source.StringEndsWith(("s",), "z"), "ends_with(\"s\", 'z')"),
        (source.GreaterThan(("f",), 1.0), None),
        (source.EqualTo(("a",), "5"), None),
        (source.EqualTo(("st", "x"), 5), None),
        (source.In(("a",), ()), None),
    ]:
        assert bowshot.spark.to_sql(item, schema, arrow) == expected
    assert bowshot.spark.to_sql(source.EqualTo(("t",), moment), schema, nanoseconds) is None


def test_partitions(load, connection):
    assert load("many", column="a", partitions="4").rdd.getNumPartitions() == 4
    ranges = load("SELECT a, s FROM many WHERE a < 100", column="a", partitions="4")
    assert ranges.agg(F.sum("a"), F.count("s")).first()[0] == 4950
    # As often and as late as somebody likes.
    assert [ranges.count() for _ in range(2)] == [100, 100]
    endpoints = load("many", partitions="3")
    assert 1 <= endpoints.rdd.getNumPartitions() <= 3
    assert endpoints.count() == ROWS


def test_columns(spark, server, load, connection):
    assert load("many", columns="a, s").columns == ["a", "s"]
    frame = spark.read.format("bowshot").schema("s string, a bigint").options(uri=server.uri, source="many", partitions="1")
    assert frame.load().filter("a = 5").collect() == [("row 5", 5)]
    texts = [row[0] for row in connection.sql("SELECT statement FROM system.queries ORDER BY started DESC LIMIT 2")]
    assert any(text.startswith('SELECT "s", "a" FROM') for text in texts)


def test_what_is_wrong_is_said(load):
    for options, message in [
        ({"source": "nowhere"}, "nowhere"),
        ({"source": "many", "sauce": "x"}, "`sauce` is no option"),
        ({"source": "many", "columns": "nope"}, "nope"),
    ]:
        with pytest.raises(PySparkException, match=message):
            load(**options).collect()


def test_writing(spark, load, save, connection):
    frame = spark.range(0, 1000, numPartitions=3).withColumn("text", F.concat(F.lit("n"), "id"))
    save(frame, "written")
    save(frame, "written")
    counted = connection.sql("SELECT count(*) AS n, count(DISTINCT text) AS d FROM written").arrow().to_pylist()
    assert counted == [{"n": 2000, "d": 1000}]
    save(frame.limit(10), "written", "overwrite", staging="tables")
    assert connection.table("written").count() == 10
    save(load("many").select("ts", "tz", "dec", "l", "st", "b", "bo"), "kinds")
    assert connection.table("kinds").count() == ROWS
    assert connection.tables(like="bowshot_upload%") == []


def test_a_write_that_fails_writes_nothing(spark, save, connection):
    save(spark.range(5), "kept")
    bad = spark.range(0, 100, numPartitions=4).select(F.expr("IF(id = 99, raise_error('no'), id) AS id"))
    with pytest.raises(PySparkException):
        save(bad, "kept")
    with pytest.raises(PySparkException):
        save(spark.range(5).selectExpr("id AS other"), "kept")
    assert connection.table("kept").count() == 5
    assert connection.tables(like="bowshot_upload%") == []


def test_a_worker_that_loses_its_server_says_so(spark):
    with bowshot.server() as other, other.connect(autocommit=True) as connection:
        connection.ingest("many", pa.table({"a": range(1000)}))
        options = {"uri": other.uri, "source": "many", "column": "a", "partitions": "2"}
        frame = spark.read.format("bowshot").options(**options).load()
        assert frame.count() == 1000
        other.process.kill()
        other.process.wait()
        with pytest.raises(PySparkException, match=r"UnavailableError|OperationalError"):
            frame.count()


def test_examples_of_the_page(spark, server, connection):
    documents.orders(connection)
    documents.run("PySpark", server.uri, spark=spark)
    assert connection.table("large").count() == 89

    # The store of datasets: Spark puts, each of its partitions a part; whoever knows the path gets, here pandas by pyarrow.
    connection.sql("CREATE SCHEMA store")
    names = documents.run("Datasets by path", server.uri, spark=spark)
    names["client"].close()
    assert names["frame"].groupby("label").size().tolist() == [1000] * 10
