"""DoPut of 10 M × 20 int64 into a table in memory, against an Arrow C++ Flight server that keeps what it reads."""

import contextlib

from . import data, measure, processes, results
from .options import Options

ROWS = 10_000_000
LABELS = {"bowshot": "bowshot-put", "arrow-cpp-flight": "flight-put"}


def run(options: Options) -> None:
    rows = options.size(ROWS, 100_000)
    source = str(data.arrow_integers(rows))
    starts = {
        "bowshot": lambda: processes.bowshot({}),
        "arrow-cpp-flight": lambda: processes.peer("arrow-cpp-flight", "flight-put", "arrow_flight_server.py", {}),
    }
    with contextlib.ExitStack() as stack:
        servers = {label: stack.enter_context(starts[label]()) for label in starts if options.chosen(label)}

        def once(label):
            return measure.writer(
                servers[label], LABELS[label], list(servers.values()), action="ingest", table="integers", source=source
            )

        answers = measure.in_turn([(label, label) for label in servers], options.rounds, once)
    figures = {label: measure.written(answers[label]) for label in answers}
    ratios = {}
    if len(figures) == 2:
        ours, cpp = figures["bowshot"], figures["arrow-cpp-flight"]
        ratios = {
            "throughput against Arrow C++ Flight": results.at_least(ours["gb_per_second"] / cpp["gb_per_second"], 0.8),
            "server time against Arrow C++ Flight": results.plain(ours["server_cpu_s"] / cpp["server_cpu_s"]),
        }
    results.record("put", "memory", figures, ratios, options, rows=rows, columns=data.COLUMNS)
