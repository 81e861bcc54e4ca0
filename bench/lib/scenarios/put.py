"""DoPut of 10 M × 20 int64 into a table in memory, against an Arrow C++ Flight server that keeps what it reads."""

import contextlib

from .. import data, measure, results
from ..arena import TRANSPORT, Arena
from ..options import Options

ROWS = 10_000_000
LABELS = {"bowshot": "bowshot-put", "arrow-cpp-flight": "flight-put"}
PEERS = {"bowshot": "bowshot", "arrow-cpp-flight": "arrow-cpp-flight"}


def run(options: Options) -> None:
    rows = options.size(100_000, 1_000_000, ROWS)
    source = str(data.arrow_integers(rows))
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, {}, starts=TRANSPORT)
        servers = arena.servers(PEERS)

        def once(label):
            return measure.writer(
                servers[label], LABELS[label], options.at_rest(list(servers.values())), action="ingest", table="integers",
                source=source,
            )

        answers = measure.in_turn([(label, label) for label in servers], options, once)
    figures = {label: measure.written(answers[label]) for label in answers}
    ratios = {}
    if len(figures) == 2:
        ours, cpp = figures["bowshot"], figures["arrow-cpp-flight"]
        ratios = {
            "throughput against Arrow C++ Flight": results.at_least(ours["gb_per_second"] / cpp["gb_per_second"], 0.8),
            "server time against Arrow C++ Flight": results.plain(ours["server_cpu_s"] / cpp["server_cpu_s"]),
        }
    results.record(
        "put", "memory", figures, ratios, options, rows=rows, columns=data.COLUMNS,
        axes={"what": "DoPut into memory"},
    )
