"""`SELECT *` from Parquet into a pyarrow table: TPC-H lineitem at scale 1, 1 M × 20 integers, 1 M × 20 strings.

Bowshot is read twice, by pyarrow with SQL text as ticket and by the ADBC driver; DuckDB over its own Quack protocol
and behind an Arrow C++ Flight server.
"""

import contextlib

from .. import contest, data, results
from ..arena import Arena
from ..contest import Case, Contender
from ..options import Options

ROWS = 1_000_000
REPEATS = 5
QUACK, FLIGHT = "DuckDB Quack", "DuckDB behind Arrow Flight"
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender(QUACK, "quack", "quack", "arrow"),
    Contender(FLIGHT, "duckdb-flight", "flight-ticket", "arrow"),
]
# How many times as fast as each peer we want to be, read by pyarrow.
WANTED = {QUACK: 3.5, FLIGHT: 1.5}


def run(options: Options) -> None:
    rows = options.size(50_000, ROWS, ROWS)
    tables = {
        "lineitem": data.lineitem(options.size(0.01, 1, 1)),
        "integers": data.parquet_integers(rows),
        "strings": data.parquet_strings(rows),
    }
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, tables)
        for table in tables:
            axes = {"what": f"SELECT * FROM {table}"}
            contest.run(Case("select", table, f"SELECT * FROM {table}", axes, REPEATS), CONTENDERS, arena, wanted)


def wanted(figures: dict) -> dict:
    ours = figures.get("bowshot (pyarrow)")
    return {
        f"bowshot (pyarrow) against {peer}": results.at_least(figures[peer]["seconds"] / ours["seconds"], ratio)
        for peer, ratio in WANTED.items() if ours and peer in figures
    }
