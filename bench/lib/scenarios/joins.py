"""Daily tables that are joined each day: two inner joins, then an inner join of their results. Two servers over the same
files, one without the join cache, which computes each answer; the other one also keeps results and asks ahead. Measured on
the third day, of which nobody has asked anything before:

- the first query of the day, all rows to the client, and one that groups them, with what was spent ahead for them;
- a dashboard of 20 queries over the same joins that was asked on the two days before, one that nobody has asked before, and
  a dashboard again on a server that keeps whole results;
- short queries of others while a join is computed ahead;
- queries that the cache cannot help.
"""

import contextlib
import pathlib
import statistics
import time

import numpy
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq

from .. import memory, places, processes, results
from ..options import Options

MILLIONS = [0.1, 2.5, 12.5]
DAYS = [20210803, 20210804, 20210805, 20210806]
STORES, PRODUCTS = 2_000, 20_000
FORECAST_TIMEOUT_S = 120
OFF = "bowshot, cache off"
SHORT_SECONDS = 6
# What client and server may take for one row of the answer.
READER_BYTES_PER_ROW = 400


def run(options: Options) -> None:
    case(int(options.size(*MILLIONS) * 1e6), options)


def case(rows: int, options: Options) -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(places.disk_folder(rows * 2e-7 + 1)) / "shop"
        folder.mkdir()
        write_products(folder)
        for day in DAYS[:2]:
            write_day(folder, day, rows)
        # One join may have half of the memory of the cache; that of 12.5 M rows has 1.1 GB.
        settings = ["--set", "join_cache.enabled=true", "--set", "join_cache.memory_bytes=4GiB"]
        on = stack.enter_context(processes.bowshot({}, str(folder), *settings, kept_results="256MiB"))
        off = stack.enter_context(processes.bowshot({}, str(folder)))
        clients = {"bowshot, cache on": flight.connect(on.uri), OFF: flight.connect(off.uri)}
        for day in DAYS[:2]:
            wait_until_settled(clients["bowshot, cache on"], day)
            for client in clients.values():
                fetch(client, report(day))
                fetch(client, groups(day))
                for sql in dashboard(day):
                    fetch(client, sql)
        write_day(folder, DAYS[2], rows)
        wait_for(clients["bowshot, cache on"], DAYS[2])
        ahead = spent_ahead(clients["bowshot, cache on"], DAYS[2])
        third_day("rows", report(DAYS[2]), clients, rows, options, ahead)
        third_day("groups", groups(DAYS[2]), clients, rows, options, ahead)
        dashboards("dashboard", dashboard(DAYS[2]), clients, rows, options)
        dashboards("new dashboard", dashboard(DAYS[2], new=True), clients, rows, options)
        with processes.bowshot({}, str(folder), kept_results="256MiB") as kept:
            dashboards_again({"bowshot, results kept": flight.connect(kept.uri), OFF: clients[OFF]}, rows, options)
        beside_a_forecast(clients, folder, rows, options)


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
    return [
        f"SELECT {key}, {value} FROM {joins(day)}" + (f" WHERE {condition}" if at % 2 else "") + f" GROUP BY {key}"
        for at, key in enumerate(keys)
        for value, condition in zip(values, filters)
    ]


def fetch(client, sql: str) -> dict:
    start = time.perf_counter()
    table = client.do_get(flight.Ticket(sql.encode())).read_all()
    return {"seconds": time.perf_counter() - start, "rows": table.num_rows, "bytes": table.nbytes}


def wait_until_settled(client, day: int) -> None:
    """Until the files of a day are old enough for their time stamps to tell one version from the next."""
    sql = f"EXPLAIN {report(day)}".encode()
    deadline = time.monotonic() + FORECAST_TIMEOUT_S
    while "JoinCache: miss" not in str(client.do_get(flight.Ticket(sql)).read_all().to_pydict()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the files of {day} are not settled")
        time.sleep(0.2)


def wait_for(client, day: int) -> None:
    """Until the join of a day and the small one of the answers are there, without asking for them."""
    sql = f"SELECT count(*) FROM system.join_cache WHERE forecast AND tables LIKE '%sales{day}%'"
    deadline = time.monotonic() + FORECAST_TIMEOUT_S
    while client.do_get(flight.Ticket(sql.encode())).read_all().column(0)[0].as_py() == 0:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the join of {day} was not computed ahead")
        time.sleep(0.2)
    for sql in [groups(day), *dashboard(day)]:
        explain = flight.Ticket(f"EXPLAIN {sql}".encode())
        while "ResultCache: hit" not in str(client.do_get(explain).read_all().to_pydict()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"this was not asked ahead: {sql}")
            time.sleep(0.2)


def spent_ahead(client, day: int) -> dict:
    """What the answers of a day have taken before anybody asked: time, and memory as long as they are kept."""
    spent = {}
    for what, table in (("joins", "join_cache"), ("results", "result_cache")):
        sql = f"SELECT sum(cost_ms) AS cost, sum(bytes) AS bytes FROM system.{table} WHERE tables LIKE '%sales{day}%'"
        (row,) = client.do_get(flight.Ticket(sql.encode())).read_all().to_pylist()
        spent[f"{what}_ahead_seconds"], spent[f"{what}_ahead_bytes"] = float(row["cost"]) / 1e3, int(row["bytes"])
    return spent


def third_day(kind: str, sql: str, clients: dict, rows: int, options: Options, ahead: dict) -> None:
    figures = {}
    for label, client in clients.items():
        if kind == "rows":
            memory.at_hand(rows * READER_BYTES_PER_ROW)
        figures[label] = fetch(client, sql)
    figures["bowshot, cache on"].update(ahead)
    if len({figure["rows"] for figure in figures.values()}) != 1:
        raise RuntimeError(f"different answers: {figures}")
    again = {label: statistics.median(fetch(client, sql)["seconds"] for _ in range(options.rounds))
             for label, client in clients.items()}
    for label, seconds in again.items():
        figures[label]["again_seconds"] = seconds
    ratios = {
        "first query of the third day": results.at_least(
            figures[OFF]["seconds"] / figures["bowshot, cache on"]["seconds"], 10
        ),
        "the same again": results.plain(again[OFF] / again["bowshot, cache on"]),
    }
    results.record("joins", f"first query, {kind}, {rows / 1e6:g} M rows", figures, ratios, options, rows=rows,
                   axes={"what": f"first query, {kind}"})


def dashboards(kind: str, queries: list, clients: dict, rows: int, options: Options) -> None:
    figures = {
        label: {"seconds": sum(fetch(client, sql)["seconds"] for sql in queries)} for label, client in clients.items()
    }
    ratio = figures[OFF]["seconds"] / figures["bowshot, cache on"]["seconds"]
    results.record("joins", f"{kind} of {len(queries)}, {rows / 1e6:g} M rows", figures,
                   {"total": results.at_least(ratio, 5)}, options, rows=rows, axes={"what": kind})


def dashboards_again(clients: dict, rows: int, options: Options) -> None:
    """Every query of the dashboard once, then all of them again, and the answers compared."""
    queries = dashboard(DAYS[2])
    first = {label: [answer(client, sql) for sql in queries] for label, client in clients.items()}
    seconds = {label: [] for label in clients}
    for _ in range(options.rounds):
        for label, client in clients.items():
            start = time.perf_counter()
            again = [answer(client, sql) for sql in queries]
            seconds[label].append(time.perf_counter() - start)
            if any(rows_of(one) != rows_of(other) for one, other in zip(again, first[OFF])):
                raise RuntimeError(f"different answers from {label}")
    figures = {label: {"seconds": statistics.median(all_of)} for label, all_of in seconds.items()}
    ratio = figures[OFF]["seconds"] / figures["bowshot, results kept"]["seconds"]
    results.record("joins", f"the same dashboard again, {rows / 1e6:g} M rows", figures,
                   {"total": results.plain(ratio)}, options, rows=rows, axes={"what": "dashboard again"})


def answer(client, sql: str) -> pa.Table:
    return client.do_get(flight.Ticket(sql.encode())).read_all()


def rows_of(table: pa.Table) -> list:
    """Sums of floating-point numbers depend on the order of their rows."""
    shown = lambda value: round(value, 3) if isinstance(value, float) else value
    return sorted(tuple(map(shown, row.values())) for row in table.to_pylist())


def short_queries(client, until) -> list:
    # A result of chance is computed each time.
    sql = f"SELECT count(*), sum(amount) FROM sales{DAYS[0]} WHERE pieces = 7 AND random() < 2"
    times = []
    while not until():
        times.append(fetch(client, sql)["seconds"])
    return times


def beside_a_forecast(clients: dict, folder: pathlib.Path, rows: int, options: Options) -> None:
    """The slowest of a hundred of the short queries of others, alone and while the fourth day is computed ahead."""
    client = clients["bowshot, cache on"]
    there = f"SELECT count(*) FROM system.join_cache WHERE tables LIKE '%sales{DAYS[3]}%'"

    def is_there():
        return client.do_get(flight.Ticket(there.encode())).read_all().column(0)[0].as_py() > 0

    def done():
        if time.monotonic() > deadline:
            raise RuntimeError("the join of the fourth day was not computed ahead")
        return is_there()

    # The same look after each query, so that only the forecast makes a difference.
    end = time.monotonic() + SHORT_SECONDS
    alone = short_queries(client, lambda: is_there() or time.monotonic() > end)
    write_day(folder, DAYS[3], rows)
    deadline = time.monotonic() + FORECAST_TIMEOUT_S
    beside = short_queries(client, done)
    times = {"bowshot alone": alone, "bowshot beside a forecast": beside}
    quantiles = {name: float(numpy.quantile(seconds, 0.99)) for name, seconds in times.items()}
    figures = {name: {"p99_ms": value * 1e3} for name, value in quantiles.items()}
    results.record("joins", f"short queries beside a forecast, {rows / 1e6:g} M rows", figures,
                   {"p99": results.at_most(quantiles["bowshot beside a forecast"] / quantiles["bowshot alone"], 1.2)},
                   options, rows=rows,
                   axes={"what": "short queries"})
