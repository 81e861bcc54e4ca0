"""A mapped Arrow file into a new durable table: 10 M × 20 int64, and TPC-H lineitem at scale 1.

Bowshot by ADBC bulk ingest and by DoPut; DuckDB in the client's process into its own file, with a checkpoint;
PostgreSQL by COPY, binary or CSV, whichever a trial finds to be faster. If all rows would take it over a minute it gets
fewer, and its time is scaled: `scaled_from_rows` says so.
"""

import contextlib

import pyarrow as pa

from .. import data, measure, places, processes, results
from ..arena import DURABLE, Arena
from ..options import Options

ROWS = 10_000_000
FEWER_ROWS = 1_000_000
LONGEST_S = 60
LABELS = {"bowshot (ADBC)": "bowshot-adbc", "bowshot (DoPut)": "bowshot-put", "DuckDB": "duckdb", "PostgreSQL": "postgres"}
PEERS = {"bowshot (ADBC)": "bowshot", "bowshot (DoPut)": "bowshot", "DuckDB": "duckdb", "PostgreSQL": "postgres"}


def run(options: Options) -> None:
    sources = {
        "integers": data.arrow_integers(options.size(100_000, 1_000_000, ROWS)),
        "lineitem": data.arrow_lineitem(options.size(0.01, 0.1, 1)),
    }
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, {}, needed_gb=options.size(1, 6, 30), starts=DURABLE)
        disk, servers = places.disk(arena.folder()), arena.servers(PEERS)
        for table, path in sources.items():
            case(arena, servers, table, str(path), disk)


def case(arena: Arena, servers: dict, table: str, source: str, disk: dict) -> None:
    options = arena.options
    everyone = options.at_rest(list(servers.values()))
    rows = sum_rows(source)
    kinds, limits = {**LABELS}, {}
    if "PostgreSQL" in servers:
        kinds["PostgreSQL"], limits["PostgreSQL"] = trial(servers["PostgreSQL"], source, rows)

    def once(label):
        return measure.writer(
            servers[label], kinds[label], everyone, action="ingest", table=table, source=source, rows=limits.get(label)
        )

    answers = measure.in_turn([(label, label) for label in servers], options, once)
    figures = {label: scaled(measure.written(answers[label]), rows) for label in answers}
    ratios = {}
    for peer in ("DuckDB", "PostgreSQL"):
        for ours in ("bowshot (ADBC)", "bowshot (DoPut)"):
            if peer in figures and ours in figures:
                ratios[f"{ours} against {peer}"] = results.plain(figures[peer]["seconds"] / figures[ours]["seconds"])
    results.record(
        "ingest", table, figures, ratios, options, rows=rows, disk=disk, postgres_by=kinds["PostgreSQL"],
        missing=arena.missing, peer_versions=arena.versions(), axes={"what": f"ingest of {table}"},
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
