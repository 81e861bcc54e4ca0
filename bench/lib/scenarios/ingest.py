"""A mapped Arrow file into a new durable table: 10 M × 20 int64, and TPC-H lineitem at scale 1.

Bowshot by ADBC bulk ingest and by DoPut; DuckDB in the client's process into its own file, with a checkpoint;
PostgreSQL by COPY, binary or CSV, whichever a trial finds to be faster. If all rows would take it over a minute it gets
fewer, and its time is scaled: `scaled_from_rows` says so.
"""

import dataclasses

import pyarrow as pa

from .. import data, measure, places, processes
from ..arena import DURABLE, Arena, Contender
from ..options import Options

ROWS = 10_000_000
FEWER_ROWS = 1_000_000
LONGEST_S = 60
POSTGRES = "PostgreSQL"
CONTENDERS = [
    Contender("bowshot (ADBC)", "bowshot", "bowshot-adbc"), Contender("bowshot (DoPut)", "bowshot", "bowshot-put"),
    Contender("DuckDB", "duckdb", "duckdb"), Contender(POSTGRES, "postgres", "postgres"),
]


def run(options: Options) -> None:
    sources = {
        "integers": data.arrow("integers", options.size(100_000, 1_000_000, ROWS)),
        "lineitem": data.arrow_lineitem(options.size(0.01, 0.1, 1)),
    }
    with Arena(options, {}, needed_gb=options.size(1, 6, 30), starts=DURABLE) as arena:
        disk = places.disk(arena.folder())
        for table, path in sources.items():
            compare(arena, table, str(path), disk)


def compare(arena: Arena, table: str, source: str, disk: dict) -> None:
    with pa.ipc.open_file(pa.memory_map(source)) as file:
        rows = sum(file.get_batch(index).num_rows for index in range(file.num_record_batches))
    chosen, limits = arena.choose(CONTENDERS), {}
    for at, (label, server, contender) in enumerate(chosen):
        if label == POSTGRES:
            best, limits[label] = try_copies(server, source, rows)
            chosen[at] = label, server, dataclasses.replace(contender, reader=best)
    answers = arena.write(
        chosen, lambda label: {"action": "ingest", "table": table, "source": source, "rows": limits.get(label)}
    )
    figures = {label: scale(measure.written(answers[label]), rows) for label in answers}
    kinds = {label: contender.reader for label, _, contender in chosen}
    arena.record(
        "ingest", table, figures, rows=rows, disk=disk, postgres_by=kinds.get(POSTGRES), axes={"what": f"ingest of {table}"},
    )


def try_copies(server: processes.Server, source: str, rows: int) -> tuple:
    """Which COPY is faster with few rows, and how many rows it can do in time (None for all)."""
    tried = {
        kind: measure.writer(server, kind, [server], action="ingest", table="trial", source=source, rows=FEWER_ROWS)
        for kind in ("postgres", "postgres-csv")
    }
    best = min(tried, key=lambda kind: tried[kind]["seconds"])
    whole = tried[best]["seconds"] * rows / tried[best]["rows"]
    return best, FEWER_ROWS if whole > LONGEST_S else None


def scale(figure: dict, rows: int) -> dict:
    """The figure for all rows, if fewer were measured; rates stay as they are."""
    if figure["rows"] == rows:
        return figure
    factor = rows / figure["rows"]
    for name in ("seconds", "bytes", "cpu_s", "server_cpu_s"):
        figure[name] *= factor
    return {**figure, "rows": rows, "scaled_from_rows": figure["rows"]}
