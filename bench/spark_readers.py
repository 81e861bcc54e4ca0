"""Rows into Spark: by our data source, or by Spark's JDBC source with the driver of Flight SQL or of PostgreSQL. One program for
one of them, which `bench/run.py spark_readers` starts in turn; by itself, with a server that has the table:

    pip install -r bench/requirements/spark.txt
    python bench/spark_readers.py source grpc://127.0.0.1:50051 --partitions 4
    python bench/spark_readers.py jdbc jdbc:postgresql://127.0.0.1/postgres?user=me --jars DRIVER.jar --partitions 4 \
        --column l_orderkey --bounds 1,60000000

The job is the same for all: one aggregate that needs every column of every row (sums of whole numbers, of days and of the lengths
of texts, least and greatest of decimals and of floating-point numbers). The time is from `spark.read` to the answer, so the look
at the table's columns and the planning of its parts are in it; starting Spark, and a read of a tenth of the rows that compiles the
code and starts Python's workers, are not. Prints one JSON line. With `--check` it also has, outside of the time, a sum of the
hashes of all rows, and exact sums of decimals: what two ways of reading the same rows have to agree on.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent / "clients" / "python" / "src"
sys.path[:0] = [str(HERE), str(SOURCES)]
# Spark starts workers that need the package, too.
os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from lib import processes  # noqa: E402

# Rows that PostgreSQL's driver asks for at a time; that of Flight SQL gets batches, whatever is asked.
FETCH_ROWS = 10_000
TABLE = "lineitem"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=("source", "jdbc"))
    parser.add_argument("address", help="of the server, for our package; or a URL of JDBC")
    parser.add_argument("--partitions", type=int, default=1, help="endpoints, or ranges of --column; 1 is one reader")
    parser.add_argument("--column", help="cut by ranges of this column (JDBC needs it for more than one)")
    parser.add_argument("--bounds", default="", help="least and greatest value of the column, for JDBC")
    parser.add_argument("--schema", help="columns and types for JDBC, where the driver does not tell them as Spark needs them")
    parser.add_argument("--warm-rows", type=int, default=0, help="rows to read before")
    parser.add_argument("--jars", default="", help="drivers of JDBC, with commas between")
    parser.add_argument("--server", type=int, help="id of the server's process, whose processor time is wanted")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def session(chosen):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").appName("bench")
    settings = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "4g",
        "spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR", **({"spark.jars": chosen.jars} if chosen.jars else {}),
    }  # fmt: skip
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    if chosen.way == "source":
        import bowshot.spark

        bowshot.spark.register(made)
    return made


def frame(spark, chosen, query=None):
    """The table, or what a query gives, as a DataFrame of Spark."""
    if chosen.way == "source":
        reader = spark.read.format("bowshot").options(uri=chosen.address, source=query or TABLE)
        reader = reader.option("partitions", str(chosen.partitions))
        return (reader.option("column", chosen.column) if chosen.column else reader).load()
    reader = spark.read.format("jdbc").options(url=chosen.address, dbtable=f"({query}) AS part" if query else TABLE)
    reader = reader.option("driver", driver(chosen.address)).option("fetchsize", str(FETCH_ROWS))
    if chosen.schema:
        reader = reader.option("customSchema", chosen.schema)
    if chosen.partitions > 1:
        low, high = chosen.bounds.split(",")
        reader = reader.options(partitionColumn=chosen.column, lowerBound=low, upperBound=high, numPartitions=str(chosen.partitions))
    return reader.load()


def driver(url):
    return "org.postgresql.Driver" if url.startswith("jdbc:postgresql:") else "org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver"


def job(rows):
    """What is timed: every column of every row is looked at, by operations that cost little."""
    from pyspark.sql import functions as f

    found = [f.count(f.lit(1))]
    for field in rows.schema:
        column, kind = f.col(f"`{field.name}`"), field.dataType.typeName()
        if kind in ("byte", "short", "integer", "long"):
            found.append(f.sum(column))
        elif kind == "date":
            found.append(f.sum(f.unix_date(column)))
        elif kind == "string":
            found.append(f.sum(f.length(column)))
        else:
            found += [f.min(column), f.max(column)]
    return rows.agg(*[column.alias(f"a{number}") for number, column in enumerate(found)])


def checks(rows):
    """What is compared besides: hashes of whole rows, whole numbers all of one width, and the sums of decimals."""
    from pyspark.sql import functions as f

    kinds = {field.name: field.dataType.typeName() for field in rows.schema}
    plain = [f.col(name).cast("long") if kind in ("byte", "short", "integer") else f.col(name) for name, kind in kinds.items()]
    decimals = [f.sum(name) for name, kind in kinds.items() if kind.startswith("decimal")]
    found = [f.count(f.lit(1)), f.bit_xor(f.xxhash64(*plain)), *decimals]
    return rows.agg(*[column.alias(f"a{number}") for number, column in enumerate(found)])


def answer(row):
    """Values as JSON has them."""
    return [value if isinstance(value, int | float | None) else plain(value) for value in row]


def plain(value):
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def main():
    chosen = options()
    spark = session(chosen)
    try:
        if chosen.warm_rows:
            job(frame(spark, chosen, f"SELECT * FROM {TABLE} LIMIT {chosen.warm_rows}")).collect()
        used = processes.ProcessorTimes(chosen.server)
        start = time.perf_counter()
        rows = frame(spark, chosen)
        (row,) = job(rows).collect()
        run = {"seconds": time.perf_counter() - start, "rows": row[0], "bytes": 0}
        times = used.so_far()
        parts = rows.rdd.getNumPartitions()
        checked = answer(checks(frame(spark, chosen)).first()) if chosen.check else None
    finally:
        spark.stop()
    print(json.dumps({"runs": [run], "partitions": parts, "answer": answer(row), "checked": checked, **times}))


if __name__ == "__main__":
    main()
