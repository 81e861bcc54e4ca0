"""`SELECT *` from Parquet into a pyarrow table: TPC-H lineitem at scale 1, 1 M × 20 integers, 1 M × 20 strings.

Bowshot is read twice, by pyarrow with SQL text as ticket and by the ADBC driver; DuckDB over its own Quack protocol
and behind an Arrow C++ Flight server.
"""

import contextlib

from . import data, measure, processes, results
from .options import Options

ROWS = 1_000_000
REPEATS = 5


def run(options: Options) -> None:
    rows = options.size(ROWS, 50_000)
    tables = {
        "lineitem": data.lineitem(options.size(1, 0.01)),
        "integers": data.parquet_integers(rows),
        "strings": data.parquet_strings(rows),
    }
    with contextlib.ExitStack() as stack:
        ours = lambda: processes.bowshot(tables)
        starts = {
            "bowshot (pyarrow)": (ours, "flight-ticket"),
            "bowshot (ADBC)": (ours, "adbc"),
            "DuckDB Quack": (lambda: processes.peer("quack", "quack", "quack_server.py", tables), "quack"),
            "DuckDB behind Arrow Flight": (
                lambda: processes.peer("duckdb-flight", "flight-ticket", "duckdb_flight_server.py", tables),
                "flight-ticket",
            ),
        }
        running, contenders = {}, []
        for label, (start, kind) in starts.items():
            if not options.chosen(label):
                continue
            if start not in running:
                running[start] = stack.enter_context(start())
            contenders.append((label, running[start], kind))
        for table in tables:
            case(contenders, table, options)


def case(contenders: list, table: str, options: Options) -> None:
    def once(server, kind):
        return measure.client(server, kind, action="fetch", query=f"SELECT * FROM {table}", repeats=REPEATS)

    answers = measure.in_turn(contenders, options.rounds, once)
    figures = {label: measure.transfer(answers[label]) for label in answers}
    ratios = {}
    if len(figures) == 4:
        for label in ("bowshot (pyarrow)", "bowshot (ADBC)"):
            ours = figures[label]["seconds"]
            judge = results.at_least if label == "bowshot (pyarrow)" else lambda ratio, _: results.plain(ratio)
            ratios[f"{label} against Quack"] = judge(figures["DuckDB Quack"]["seconds"] / ours, 3.5)
            ratios[f"{label} against DuckDB behind Arrow Flight"] = judge(
                figures["DuckDB behind Arrow Flight"]["seconds"] / ours, 1.5
            )
    results.record("select", table, figures, ratios, options, repeats=REPEATS)
