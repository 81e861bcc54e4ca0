"""The scenarios: their names, what they ask, and how the report reads their figures. Modules are imported when they run."""

import dataclasses
import importlib


@dataclasses.dataclass(frozen=True)
class Metric:
    """A figure of a contender: its name in the results, and for readers. `lower` tells whether less is better."""

    name: str
    title: str
    unit: str
    lower: bool = True

    def ratio(self, ours: float, theirs: float) -> float:
        """How many times better ours is."""
        return theirs / ours if self.lower else ours / theirs


SECONDS = Metric("seconds", "time", "s")
ROWS = Metric("rows_per_second", "throughput", "rows/s", lower=False)
SPEED = Metric("gb_per_second", "throughput", "GB/s", lower=False)
SERVER_CPU = Metric("server_cpu_s_per_gb", "server's processor time", "s per GB")
MEDIAN = Metric("median_ms", "median time", "ms")
P99 = Metric("p99_ms", "99th percentile", "ms")
QUERIES = Metric("queries_per_second", "queries per second", "1/s", lower=False)
TRANSACTIONS = Metric("transactions_per_second", "transactions per second", "1/s", lower=False)
INSERTS = Metric("inserts_per_second", "committed inserts per second", "1/s", lower=False)
PEAK = Metric("peak_above_idle", "peak of the server's memory above idle", "bytes")
UPDATE = Metric("update_seconds", "time of UPDATE", "s")
DELETE = Metric("delete_seconds", "time of DELETE", "s")
FIRST_ANSWER = Metric("first_answer_seconds", "time from starting everything to the first answer", "s")
READING = Metric("peak_rss", "peak of the memory of the process that reads", "bytes")
READY = Metric("ready_seconds", "time until the server is ready", "s")
LISTING = Metric("listing_seconds", "time of listing the tables", "s")
GEOMETRIC = Metric("geometric_mean_s", "geometric mean of a query's time", "s")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """`question` is what a reader learns; `metrics` begin with those that ratios are made of, as many as `judged`. `by_hand` is one
    that runs only when it is named, since its packages are too large for every machine that runs all.
    """

    name: str
    title: str
    question: str
    metrics: tuple
    judged: int = 1
    by_hand: bool = False

    def run(self, options) -> None:
        module = next((module for module, names in MODULES.items() if self.name in names), self.name)
        function = self.name if module in MODULES else "run"
        getattr(importlib.import_module(f".scenarios.{module}", __package__), function)(options)


# Scenarios that are functions of one module; each other one has a module with a function `run`.
MODULES = {
    "tables": ("starrocks", "doors", "employees", "clickbench", "lineitem", "select", "same_host"),
    "writes": ("ingest", "put", "inserts", "change", "ingest_memory"),
}


SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario(
        "starrocks", "Wide and narrow tables into Python, Java and files",
        "One integer, 20 integers and 20 texts in a row, fetched whole: the shapes of StarRocks' measurements, against "
        "MariaDB and the clients that its users have.",
        (SECONDS, ROWS),
    ),
    Scenario(
        "doors", "The clients of PostgreSQL and MySQL, there and here",
        "StarRocks' shapes by the same client from the database that it was made for, and from Bowshot by that protocol: how "
        "long whoever changes nothing waits; and what Flight gives over the same engine.",
        (SECONDS, ROWS),
    ),
    Scenario(
        "employees", "An employee table through ODBC or through Arrow",
        "Five columns, fetched whole into Python: the workload of Hitachi's talk, against pyodbc's fetchall.",
        (SECONDS, ROWS),
    ),
    Scenario(
        "streams", "Streams of small records, in and out",
        "Records of 32 bytes in memory, read and written by 1 to 16 streams: what the transport itself can do, against "
        "Arrow's own C++ implementation, plain TCP and a copy in memory.",
        (SPEED,),
    ),
    Scenario(
        "clickbench", "A web-analytics table into pandas",
        "ClickBench's table of 105 columns, whole and by groups of types, into a pandas DataFrame.",
        (SECONDS, ROWS),
    ),
    Scenario(
        "lineitem", "TPC-H's lineitem to the client",
        "Sixteen columns of mixed types from Parquet to an Arrow table at the client, by number of rows: the workload of "
        "DuckDB's Quack protocol.",
        (SECONDS, ROWS),
    ),
    Scenario(
        "tpch", "TPC-H, 22 queries", "Whole time at the client of each of the 22 queries over the same Parquet files.",
        (GEOMETRIC,),
    ),
    Scenario(
        "tpcds", "TPC-DS, 99 queries", "Whole time at the client of each of the 99 queries over the same Parquet files.",
        (GEOMETRIC,),
    ),
    Scenario(
        "latency", "Small queries", "How long a query of one row takes, and how many a second many clients get.",
        (MEDIAN, P99, QUERIES),
    ),
    Scenario(
        "memory", "Memory while many rows stream", "The server's memory while lineitem streams to clients of several "
        "speeds and numbers.", (PEAK, SECONDS),
    ),
    Scenario(
        "transport", "One large table, stream by stream", "DoGet of an Arrow file of 20 integer columns.",
        (SPEED, SERVER_CPU),
    ),
    Scenario(
        "same_host", "A client on the server's machine", "Rows in memory that server and client share, against the same client over its "
        "socket.", (SECONDS,),
    ),
    Scenario(
        "select", "Parquet into an Arrow table", "`SELECT *` of three tables into a pyarrow table.", (SECONDS,),
    ),
    Scenario(
        "files", "Files as they come", "One query over 1 GB of CSV, 1 GB of JSON lines and 10,000 small files, read whole each "
        "time; and a folder of 100,000 files before the first query.", (SECONDS, FIRST_ANSWER, READING, READY, LISTING),
    ),
    Scenario("ingest", "Arrow into a durable table", "An Arrow file becomes a table that survives a crash.", (SECONDS,)),
    Scenario("put", "Arrow into memory", "DoPut of integers into a table in memory.", (SPEED,)),
    Scenario(
        "inserts", "Rows one by one", "Single rows into a durable table, each committed before the next.", (INSERTS,),
    ),
    Scenario(
        "transactions", "Small statements and transactions", "Rows by their key, and transactions over durable tables, by tools and "
        "drivers of PostgreSQL and MySQL, from the databases themselves and from our front ends for them.",
        (TRANSACTIONS, QUERIES, P99), judged=2,
    ),
    Scenario(
        "change", "UPDATE and DELETE", "One row in a hundred of a durable table is changed, then deleted.",
        (UPDATE, DELETE), judged=2,
    ),
    Scenario(
        "ingest_memory", "Memory while rows are ingested", "The server's memory during one long ingest.",
        (PEAK, SECONDS),
    ),
    Scenario(
        "joins", "Daily joins", "Two inner joins and the join of their results over tables that come each day: the first "
        "query of the third day, with the join cache and without.", (SECONDS, P99),
    ),
    Scenario(
        "views", "Materialized views", "Refreshes against whole computations, dashboards that are answered from views against those that "
        "are not, and inserts into a table with a view against one without.", (SECONDS, MEDIAN),
    ),
    Scenario(
        "scoring", "Rows through a model", "A million rows of 30 columns through an XGBoost model of 100 trees, and single rows over an "
        "open stream: against XGBoost in process and a service that takes JSON.", (SECONDS, MEDIAN, P99, ROWS),
    ),
    Scenario(
        "rooms", "Federated rounds", "Three workers send their weights and get the mean of all: through a room, against a service that "
        "takes JSON.", (SECONDS,),
    ),
    Scenario(
        "training_readers", "Epochs of PyTorch and TensorFlow", "Batches of 20 features and a label from the server, against the same "
        "loop over a local Parquet file; nothing is trained.", (SECONDS, ROWS), by_hand=True,
    ),
)}
# What `all` runs.
EVERYWHERE = [name for name, scenario in SCENARIOS.items() if not scenario.by_hand]


def is_lower_better(figure: str) -> bool:
    """Of figures that no scenario shows, such as processor times, less is better."""
    known = [metric for scenario in SCENARIOS.values() for metric in scenario.metrics if metric.name == figure]
    return known[0].lower if known else True
