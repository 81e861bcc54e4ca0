"""Materialized views of a table of sales, on one server, beside the same without views:

- a dashboard of 20 queries over the table, and one over its joins, answered from views that the server has made by itself;
- the refresh of a grouped view after a thousandth of the rows has changed, of the last day or of every day, or has been
  added and the table compacted, against the whole computation of its query;
- inserts into a table with a view that is refreshed on commit.
"""

import itertools
import sys
import time

import numpy
import pyarrow as pa
import pyarrow.flight as flight

from .. import asking, latencies, measure, places, processes, readers, results, tpc
from ..asking import answer, explained, timed
from ..options import Options

ROWS = (60_000,), (6_000_000,), (60_000_000,)
DAYS, STORES, CHANNELS, CATEGORIES = 365, 10, 4, 8
# One row in so many changes before a refresh.
SHARE = 1_000
# Of one turn: rows that are inserted one by one, and batches.
SINGLE_ROWS, BATCHES_OF_A_TURN, BATCH_ROWS = (20, 100, 200), (2, 10, 10), 10_000
AUTOMATIC = ("--set", "views.automatic=true", "--set", "views.memory_bytes=1GiB", "--set", "views.suggest_every=1s")
# The server makes one view for each search; after so long without a new answer from a view there are no more.
QUIET_SECONDS = 15, 60, 180
ON, OFF = "bowshot, views on", "bowshot, views off"
LAST_DAY, EVERY_DAY, OPTIMIZED = "refresh, rows of the last day", "refresh, rows of every day", "refresh after OPTIMIZE"
DASHBOARD, JOINS = "dashboard", "dashboard over joins"
SINGLE, BATCHES = "single rows", "batches"
CASES = DASHBOARD, JOINS, LAST_DAY, EVERY_DAY, SINGLE, BATCHES, OPTIMIZED
BY_DAY = "SELECT day, store, count(*) AS sold, sum(pieces) AS pieces, max(cents) AS most FROM sales GROUP BY day, store"
# Values and conditions of the dashboards.
ASKED = (
    ["count(*)", "sum(cents)", "max(cents)", "sum(pieces), min(cents)"],
    ["day >= 100", "store = 3", "channel <> 2 AND day < 300", "category IN (1, 5)"],
)
JOINED = "sales JOIN stores ON store = stores.id JOIN categories ON category = categories.id"


def run(options: Options) -> None:
    for rows in options.row_counts(*ROWS):
        if any(options.has_case(named(what, rows)) for what in CASES):
            measure_all(rows, options)


def named(what: str, rows: int) -> str:
    return f"{what}, {rows / 1e6:g} M rows"


def measure_all(rows: int, options: Options) -> None:
    """Views that the server makes are gone after a restart, so that it refreshes none of them beside the other cases."""
    dashboards = {
        DASHBOARD: (answer_from_views, asking.dashboard("sales", ["store", "channel", "category", "day", "store, category"], *ASKED)),
        JOINS: (answer_from_views, asking.dashboard(JOINED, ["region", "name", "channel", "day", "region, name"], *ASKED)),
    }
    writes = {
        LAST_DAY: (refresh, insert_rows), EVERY_DAY: (refresh, update_rows), SINGLE: (insert, one_by_one),
        BATCHES: (insert, by_batches), OPTIMIZED: (refresh, insert_and_optimize),
    }
    with places.disk_folder(rows * 1e-7 + 1) as folder:
        for cases, settings in ((dashboards, AUTOMATIC), (writes, ())):
            with processes.bowshot({}, *settings, data=str(folder)) as server:
                if cases is dashboards:
                    fill(server, rows)
                for what, (measured, subject) in cases.items():
                    if options.has_case(named(what, rows)):
                        measured(what, subject, server, rows, options)


def fill(server: processes.Server, rows: int) -> None:
    of_a_day = rows // DAYS
    days = (sales(day, of_a_day if day else rows - of_a_day * (DAYS - 1)) for day in range(DAYS))
    ingest(server, "sales", pa.RecordBatchReader.from_batches(sales(0, 0).schema, days))
    ingest(server, "stores", pa.table({"id": range(STORES), "region": [f"region {at % 3}" for at in range(STORES)]}))
    ingest(server, "categories", pa.table({"id": range(CATEGORIES), "name": [f"category {at}" for at in range(CATEGORIES)]}))
    processes.settle([server])


def sales(day: int, rows: int) -> pa.RecordBatch:
    dice = numpy.random.default_rng(day)
    limits = {"store": STORES, "channel": CHANNELS, "category": CATEGORIES, "pieces": 100, "cents": 100_000}
    columns = {name: dice.integers(0, limit, rows) for name, limit in limits.items()}
    return pa.RecordBatch.from_pydict({"day": numpy.full(rows, day), **columns})


def ingest(server: processes.Server, table: str, rows) -> float:
    """Seconds that it takes to append the rows to a table, which is made where it is missing."""
    with readers.adbc_connection(server.uri) as connection, connection.cursor() as cursor:
        start = time.perf_counter()
        cursor.adbc_ingest(table, rows, mode="create_append")
        return time.perf_counter() - start


def sessions(server: processes.Server) -> dict:
    """One that is answered from views, and one that is not."""
    clients = {label: flight.connect(server.uri) for label in (ON, OFF)}
    answer(clients[OFF], "SET materialized_view_rewrite = off")
    return clients


def answer_from_views(what: str, queries: list, server: processes.Server, rows: int, options: Options) -> None:
    clients = sessions(server)
    unanswered, seconds = learn(clients[ON], queries, options)
    processes.settle([server])
    figures = asking.all_in_turn(queries, clients, options)
    figures[ON].update(answered_from_views=len(queries) - len(unanswered), learning_seconds=seconds)
    record(what, figures, rows, options, queries=len(queries), unanswered=unanswered)


def learn(client: flight.FlightClient, queries: list, options: Options) -> tuple:
    """Asks until views answer all queries, or no more of them; those that none answers, and the seconds until the last answer."""
    left, start = queries, time.monotonic()
    latest = start
    while left and time.monotonic() - latest < options.size(*QUIET_SECONDS):
        for sql in left:
            answer(client, sql)
        fewer = [sql for sql in left if "bowshot_views" not in explained(client, sql)]
        if len(fewer) < len(left):
            left, latest = fewer, time.monotonic()
    for sql in left:
        print(f"no view answers {sql}", file=sys.stderr)
    return left, latest - start


def in_turn(contenders: dict, once, options: Options) -> dict:
    found = measure.in_turn(list(contenders.items()), options, once)
    shown = {"seconds", "median_ms"}
    return {label: measure.medians(answers, *shown.intersection(answers[0])) for label, answers in found.items()}


def record(what: str, figures: dict, rows: int, options: Options, **settings) -> None:
    results.record("views", named(what, rows), figures, options, rows=rows, axes={"what": what, "rows": rows}, **settings)


def refresh(what: str, change, server: processes.Server, rows: int, options: Options) -> None:
    clients, turns = sessions(server), itertools.count()
    answer(clients[ON], f"CREATE MATERIALIZED VIEW by_day AS {BY_DAY}")

    def refreshed():
        change(server, clients[ON], rows // SHARE, next(turns))
        processes.settle([] if options.small else [server])
        (plan,) = answer(clients[ON], "EXPLAIN REFRESH MATERIALIZED VIEW by_day").to_pylist()
        if plan["refresh"] != "incremental":
            raise RuntimeError(f"{what}: {plan}")
        return timed(clients[ON], "REFRESH MATERIALIZED VIEW by_day")

    contenders = {ON: refreshed, OFF: lambda: timed(clients[OFF], BY_DAY)}
    figures = in_turn(contenders, lambda work: {"seconds": work()["seconds"]}, options)
    check_view(what, clients)
    record(what, figures, rows, options, changed=rows // SHARE)


def insert_rows(server: processes.Server, _client, count: int, _turn: int) -> None:
    ingest(server, "sales", sales(DAYS - 1, count))


def update_rows(_server, client: flight.FlightClient, _count: int, turn: int) -> None:
    answer(client, f"UPDATE sales SET pieces = pieces + 1 WHERE cents % {SHARE} = {turn}")


def insert_and_optimize(server: processes.Server, client: flight.FlightClient, count: int, turn: int) -> None:
    insert_rows(server, client, count, turn)
    answer(client, "OPTIMIZE sales")


def check_view(what: str, clients: dict) -> None:
    """That the view has the rows of its query; it is dropped."""
    tpc.expect_equal(what, answer(clients[ON], "SELECT * FROM by_day"), answer(clients[OFF], BY_DAY))
    answer(clients[ON], "DROP MATERIALIZED VIEW by_day")


def insert(what: str, once, server: processes.Server, rows: int, options: Options) -> None:
    """The same rows of the last day into the table with a view and into its copy."""
    clients, tables = sessions(server), {ON: "sales", OFF: "plain"}
    answer(clients[OFF], "CREATE OR REPLACE TABLE plain AS SELECT * FROM sales")
    answer(clients[ON], f"CREATE MATERIALIZED VIEW by_day REFRESH ON COMMIT AS {BY_DAY}")
    processes.settle([server])
    figures = in_turn(tables, lambda table: once(server, table, options), options)
    check_view(what, clients)
    record(what, figures, rows, options, disk=places.disk(places.DISK))


def one_by_one(server: processes.Server, table: str, options: Options) -> dict:
    client, values = flight.connect(server.uri), sales(DAYS - 1, options.size(*SINGLE_ROWS)).to_pylist()
    times = [timed(client, f"INSERT INTO {table} VALUES {tuple(row.values())}")["seconds"] for row in values]
    return latencies.figures(times, sum(times))


def by_batches(server: processes.Server, table: str, options: Options) -> dict:
    batch = sales(DAYS - 1, BATCH_ROWS)
    return {"seconds": sum(ingest(server, table, batch) for _ in range(options.size(*BATCHES_OF_A_TURN)))}
