"""Daily tables that are joined each day: two inner joins, then an inner join of their results. Two servers over the same
files, one without the join cache, which computes each answer; the other one also keeps results and asks ahead. Measured on
the third day, of which nobody has asked anything before:

- the first query of the day, all rows to the client, and one that groups them, with what was spent ahead for them;
- a dashboard of 20 queries over the same joins that was asked on the two days before, one that nobody has asked before, and
  a dashboard again on a server that keeps whole results;
- short queries of others while a join is computed ahead, as the days go on;
- queries that the cache cannot help, those of TPC-H (`no_hits`).
"""

import contextlib
import pathlib
import statistics
import sys
import time

import numpy
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq

from .. import asking, memory, no_hits, places, processes, results
from ..asking import answer, explained, timed, wait_until
from ..options import Options

# Rows of a day: joined, 3 M of them have 268 MB, and 5.5 M 490 MB.
ROWS = (100_000,), (2_500_000,), (3_000_000, 5_500_000, 12_500_000)
DAYS = [20210803, 20210804, 20210805, 20210806, 20210807, 20210808]
# Days after the third, one for each series of short queries.
SERIES = 1, 3, 3
STORES, PRODUCTS = 2_000, 20_000
FORECAST_TIMEOUT_S = 600
# Questions are asked ahead one after the other; this long after the last answer there are no more.
QUIET_SECONDS = 10
ON, OFF, KEPT = "bowshot, cache on", "bowshot, cache off", "bowshot, results kept"
ALONE, BESIDE = "bowshot alone", "bowshot beside a forecast"
FIRST_ROWS, FIRST_GROUPS, DASHBOARD, NEW_DASHBOARD, AGAIN, SHORT = (
    "first query, rows", "first query, groups", "dashboard of 20", "new dashboard of 20", "the same dashboard again",
    "short queries beside a forecast",
)
SHORT_SECONDS = 6
# What client and server may take for one row of the answer.
READER_BYTES_PER_ROW = 400


def run(options: Options) -> None:
    daily = [FIRST_ROWS, FIRST_GROUPS, DASHBOARD, NEW_DASHBOARD, AGAIN, SHORT]
    sizes = [rows for rows in options.row_counts(*ROWS) if any(options.has_case(named(what, rows)) for what in daily)]
    if not sizes and not no_hits.chosen(options):
        raise ValueError(f"no case has `{options.case}` in its name")
    for rows in sizes:
        days(rows, options)
    if no_hits.chosen(options):
        no_hits.run(options)


def named(what: str, rows: int) -> str:
    return f"{what}, {rows / 1e6:g} M rows"


def days(rows: int, options: Options) -> None:
    """Two days of questions, and what they are good for on the third."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(places.disk_folder(rows * 3e-7 + 1)) / "shop"
        folder.mkdir()
        write_products(folder)
        for day in DAYS[:2]:
            write_day(folder, day, rows)
        # One join may have half of the memory of the cache; that of 12.5 M rows has 1.1 GB.
        settings = ["--set", "join_cache.enabled=true", "--set", "join_cache.memory_bytes=4GiB"]
        on = stack.enter_context(processes.bowshot({}, str(folder), *settings, kept_results="256MiB"))
        off = stack.enter_context(processes.bowshot({}, str(folder)))
        clients = {ON: flight.connect(on.uri), OFF: flight.connect(off.uri)}
        for day in DAYS[:2]:
            no_hits.wait_until_settled(clients[ON], report(day))
            for client in clients.values():
                ask(client, day)
        write_day(folder, DAYS[2], rows)
        wait_for(clients[ON], DAYS[2])
        ahead = spent_ahead(clients[ON], DAYS[2])
        cases = {
            FIRST_ROWS: lambda: third_day(FIRST_ROWS, report(DAYS[2]), clients, rows, options, ahead),
            FIRST_GROUPS: lambda: third_day(FIRST_GROUPS, groups(DAYS[2]), clients, rows, options, ahead),
            DASHBOARD: lambda: dashboards(DASHBOARD, dashboard(DAYS[2]), clients, rows, options),
            NEW_DASHBOARD: lambda: dashboards(NEW_DASHBOARD, dashboard(DAYS[2], new=True), clients, rows, options),
            AGAIN: lambda: dashboards_again(folder, clients[OFF], rows, options),
            SHORT: lambda: beside_a_forecast(clients[ON], folder, rows, options),
        }
        for what, measured in cases.items():
            if options.has_case(named(what, rows)):
                measured()


def write_products(folder: pathlib.Path) -> None:
    ids = numpy.arange(PRODUCTS)
    table = {"id": ids, "name": [f"product number {at:08}" for at in ids], "category": [f"category {at % 37}" for at in ids]}
    pq.write_table(pa.table(table), folder / "products.parquet")


def write_day(folder: pathlib.Path, day: int, rows: int) -> None:
    """Written beside and renamed, as a loader should."""
    dice = numpy.random.default_rng(day)
    ids = numpy.arange(STORES)
    stores = {"id": ids, "city": [f"city {at % 211}" for at in ids], "region": [f"region {at % 9}" for at in ids]}
    sales = {
        "id": numpy.arange(rows),
        "store": dice.integers(0, STORES, rows),
        "product": dice.integers(0, PRODUCTS, rows),
        "amount": dice.random(rows),
        "pieces": dice.integers(1, 100, rows),
    }
    for name, table in [("stores", stores), ("sales", sales)]:
        begun = folder / f".{name}{day}.tmp"
        pq.write_table(pa.table(table), begun)
        begun.rename(folder / f"{name}{day}.parquet")


def joins(day: int) -> str:
    return (
        f"(SELECT s.id, s.amount, s.pieces, t.city, t.region FROM sales{day} s JOIN stores{day} t ON s.store = t.id) a "
        f"JOIN (SELECT s.id, p.name, p.category FROM sales{day} s JOIN products p ON s.product = p.id) b ON a.id = b.id"
    )


def report(day: int) -> str:
    return f"SELECT a.id, a.amount, a.pieces, a.city, a.region, b.name, b.category FROM {joins(day)}"


def groups(day: int) -> str:
    return f"SELECT a.region, count(*), sum(a.amount) FROM {joins(day)} GROUP BY a.region"


def dashboard(day: int, new: bool = False) -> list:
    """Twenty queries that group and filter the same joins; other ones for a new dashboard."""
    keys = ["a.region", "a.city", "b.category", "b.name", "a.region, b.category"]
    values = ["count(*)", "sum(a.amount)", "avg(a.pieces)", "max(a.amount)"]
    filters = ["a.region = 'region 3'", "a.pieces > 50", "b.category = 'category 7'", "a.amount < 0.1"]
    if new:
        values = ["min(a.pieces)", "min(a.amount)", "sum(a.pieces)", "max(a.pieces)"]
        filters = ["a.region = 'region 4'", "a.pieces > 60", "b.category = 'category 9'", "a.amount < 0.2"]
    return asking.dashboard(joins(day), keys, values, filters)


def ask(client, day: int) -> None:
    """What is asked every day."""
    for sql in [report(day), groups(day), *dashboard(day)]:
        timed(client, sql)


def wait_for(client, day: int) -> None:
    """Until the join of a day and the small one of the answers are there, without asking for them."""
    wait_until(lambda: is_cached(client, day, "forecast AND "), FORECAST_TIMEOUT_S, f"the join of {day} was not computed ahead")
    answered = lambda: not unanswered(client, day) or is_quiet(client, day)
    wait_until(answered, FORECAST_TIMEOUT_S, f"questions of {day} do not end")
    for sql in unanswered(client, day):
        print(f"not kept, since it took less than a millisecond or was not asked ahead: {sql}", file=sys.stderr)


def unanswered(client, day: int) -> list:
    """Those whose answers are not there yet, or that were answered too fast to be worth keeping."""
    return [sql for sql in [groups(day), *dashboard(day)] if "ResultCache: hit" not in explained(client, sql)]


def is_quiet(client, day: int) -> bool:
    """Whether the last answer of a day has been there for so long that no more are being asked for."""
    latest = f"SELECT extract(epoch FROM now() - max(created)) FROM system.result_cache WHERE tables LIKE '%sales{day}%'"
    age = answer(client, latest).column(0)[0].as_py()
    return age is not None and age > QUIET_SECONDS


def is_cached(client, day: int, which: str = "") -> bool:
    sql = f"SELECT count(*) FROM system.join_cache WHERE {which}tables LIKE '%sales{day}%'"
    return answer(client, sql).column(0)[0].as_py() > 0


def spent_ahead(client, day: int) -> dict:
    """What the answers of a day have taken before anybody asked: time, and memory as long as they are kept."""
    spent = {}
    for what, table in (("joins", "join_cache"), ("results", "result_cache")):
        sql = f"SELECT sum(cost_ms) AS cost, sum(bytes) AS bytes FROM system.{table} WHERE tables LIKE '%sales{day}%'"
        (row,) = answer(client, sql).to_pylist()
        spent[f"{what}_ahead_seconds"], spent[f"{what}_ahead_bytes"] = float(row["cost"]) / 1e3, int(row["bytes"])
    return spent


def third_day(what: str, sql: str, clients: dict, rows: int, options: Options, ahead: dict) -> None:
    figures = {}
    for label, client in clients.items():
        if what == FIRST_ROWS:
            memory.at_hand(rows * READER_BYTES_PER_ROW)
        figures[label] = timed(client, sql)
    figures[ON].update(ahead)
    if len({figure["rows"] for figure in figures.values()}) != 1:
        raise RuntimeError(f"different answers: {figures}")
    for label, client in clients.items():
        again = statistics.median(timed(client, sql)["seconds"] for _ in range(options.rounds))
        figures[label]["again_seconds"] = again
    record(what, what, figures, rows, options)


def dashboards(what: str, queries: list, clients: dict, rows: int, options: Options) -> None:
    figures = {label: {"seconds": sum(timed(client, sql)["seconds"] for sql in queries)} for label, client in clients.items()}
    record(what, what.removesuffix(f" of {len(queries)}"), figures, rows, options)


def record(what: str, axis: str, figures: dict, rows: int, options: Options, **settings) -> None:
    results.record("joins", named(what, rows), figures, options, rows=rows, axes={"what": axis, "rows": rows}, **settings)


def dashboards_again(folder: pathlib.Path, off: flight.FlightClient, rows: int, options: Options) -> None:
    """The dashboard once, then again, on a server that keeps results."""
    with processes.bowshot({}, str(folder), kept_results="256MiB") as server:
        figures = asking.all_in_turn(dashboard(DAYS[2]), {KEPT: flight.connect(server.uri), OFF: off}, options)
    record(AGAIN, "dashboard again", figures, rows, options)


def short_queries(client, until) -> list:
    # A result of chance is computed each time.
    sql = f"SELECT count(*), sum(amount) FROM sales{DAYS[0]} WHERE pieces = 7 AND random() < 2"
    times = []
    while not until():
        times.append(timed(client, sql)["seconds"])
    return times


def beside_a_forecast(client, folder: pathlib.Path, rows: int, options: Options) -> None:
    """The slowest of a hundred of the short queries of others, alone and while the next day is computed ahead: medians of
    several days, since one scatters.
    """
    ask(client, DAYS[2])  # whatever other cases were left out
    coming, found = DAYS[3 : 3 + options.size(*SERIES)], {ALONE: [], BESIDE: []}
    for day in coming:
        for label, times in series(client, folder, day, rows).items():
            found[label].append(1e3 * float(numpy.quantile(times, 0.99)))
        if day != coming[-1]:
            go_on(client, day)
    figures = {
        label: {"p99_ms": statistics.median(values), "all_p99_ms": [round(value, 3) for value in values]}
        for label, values in found.items()
    }
    record(SHORT, "short queries", figures, rows, options, series=len(coming))


def series(client, folder: pathlib.Path, day: int, rows: int) -> dict:
    """Seconds of short queries, one after the other, before a day has come and until its join is there."""
    # The same look after each query, so that only the forecast makes a difference.
    end = time.monotonic() + SHORT_SECONDS
    alone = short_queries(client, lambda: is_cached(client, day) or time.monotonic() > end)
    write_day(folder, day, rows)
    deadline = time.monotonic() + FORECAST_TIMEOUT_S

    def done():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the join of {day} was not computed ahead")
        return is_cached(client, day)

    return {ALONE: alone, BESIDE: short_queries(client, done)}


def go_on(client, day: int) -> None:
    """Until nothing is computed for a day any more, which would slow down what is to be alone; then the day is asked for, as
    those before it.
    """
    try:
        wait_for(client, day)
    except RuntimeError as error:
        print(f"going on all the same: {error}", file=sys.stderr)  # the series are worth more than this
    ask(client, day)
