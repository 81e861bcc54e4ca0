"""A mapped Arrow file into a new durable table: 10 M × 20 int64, and TPC-H lineitem at scale 1.

Bowshot by ADBC bulk ingest and by DoPut; DuckDB in the client's process into its own file, with a checkpoint;
PostgreSQL by COPY, binary or CSV, whichever a trial finds to be faster. If all rows would take it over a minute it gets
fewer, and its time is scaled: `scaled_from_rows` says so.
"""

import contextlib

import pyarrow as pa

from . import data, measure, places, postgres, processes, results
from .options import Options

ROWS = 10_000_000
FEWER_ROWS = 1_000_000
LONGEST_S = 60
LABELS = {"bowshot (ADBC)": "bowshot-adbc", "bowshot (DoPut)": "bowshot-put", "DuckDB": "duckdb", "PostgreSQL": "postgres"}


def run(options: Options) -> None:
    sources = {
        "integers": data.arrow_integers(options.size(ROWS, 100_000)),
        "lineitem": data.arrow_lineitem(options.size(1, 0.01)),
    }
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(places.disk_folder(options.size(30, 1)))
        disk = places.disk(folder)
        servers = start(stack, folder, options)
        for table, path in sources.items():
            case(servers, table, str(path), options, disk)


def start(stack: contextlib.ExitStack, folder, options: Options) -> dict:
    """The chosen contenders: label to server. Bowshot is one server under two labels."""
    servers = {}
    if ours := [label for label in LABELS if label.startswith("bowshot") and options.chosen(label)]:
        server = stack.enter_context(processes.bowshot({}, data=str(folder / "bowshot")))
        servers.update((label, server) for label in ours)
    if options.chosen("DuckDB"):
        servers["DuckDB"] = processes.InProcess("DuckDB", "duckdb", str(folder / "duckdb.db"))
    if options.chosen("PostgreSQL"):
        servers["PostgreSQL"] = stack.enter_context(postgres.server(folder))
    return servers


def case(servers: dict, table: str, source: str, options: Options, disk: dict) -> None:
    everyone = list(servers.values())
    rows = sum_rows(source)
    kinds, limits = {**LABELS}, {}
    if "PostgreSQL" in servers:
        kinds["PostgreSQL"], limits["PostgreSQL"] = trial(servers["PostgreSQL"], source, rows)

    def once(label):
        return measure.writer(
            servers[label], kinds[label], everyone, action="ingest", table=table, source=source, rows=limits.get(label)
        )

    answers = measure.in_turn([(label, label) for label in servers], options.rounds, once)
    figures = {label: scaled(measure.written(answers[label]), rows) for label in answers}
    ratios = {}
    for peer in ("DuckDB", "PostgreSQL"):
        for ours in ("bowshot (ADBC)", "bowshot (DoPut)"):
            if peer in figures and ours in figures:
                ratios[f"{ours} against {peer}"] = results.plain(figures[peer]["seconds"] / figures[ours]["seconds"])
    version = postgres.version() if "PostgreSQL" in servers else None
    results.record(
        "ingest", table, figures, ratios, options, rows=rows, disk=disk, postgres=version,
        postgres_by=kinds["PostgreSQL"] if version else None,
    )


def sum_rows(source: str) -> int:
    file = pa.ipc.open_file(pa.memory_map(source))
    return sum(file.get_batch(index).num_rows for index in range(file.num_record_batches))


def trial(server: processes.Server, source: str, rows: int) -> tuple:
    """Which COPY is faster with few rows, and how many rows it can do in time (None for all)."""
    tried = {
        kind: measure.writer(server, kind, [server], action="ingest", table="trial", source=source, rows=FEWER_ROWS)
        for kind in ("postgres", "postgres-csv")
    }
    best = min(tried, key=lambda kind: tried[kind]["seconds"])
    whole = tried[best]["seconds"] * rows / tried[best]["rows"]
    return best, FEWER_ROWS if whole > LONGEST_S else None


def scaled(figure: dict, rows: int) -> dict:
    """The figure for all rows, if fewer were measured; rates stay as they are."""
    if figure["rows"] == rows:
        return figure
    factor = rows / figure["rows"]
    for name in ("seconds", "bytes", "cpu_s", "server_cpu_s"):
        figure[name] *= factor
    return {**figure, "rows": rows, "scaled_from_rows": figure["rows"]}
