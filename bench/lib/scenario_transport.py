"""DoGet of an Arrow IPC file, 20 × int64, one and four streams: the transport alone.

Bowshot, Arrow C++ Flight (pyarrow) and the stock arrow-flight encoder serve the same mapped file; the client is
pyarrow, drops every batch, and has one connection a stream.
"""

import contextlib

from . import data, measure, processes, results
from .options import Options

ROWS = 4_000_000
REPEATS = 5


def run(options: Options) -> None:
    rows = options.size(ROWS, 100_000)
    tables = {"integers": data.arrow_integers(rows)}
    with contextlib.ExitStack() as stack:
        servers = {
            "bowshot": (lambda: processes.bowshot(tables), "SELECT * FROM integers"),
            "arrow-cpp-flight": (
                lambda: processes.peer("arrow-cpp-flight", "flight-ticket", "arrow_flight_server.py", tables),
                "integers",
            ),
            "stock-arrow-flight": (lambda: processes.stock_flight(tables), "integers"),
        }
        chosen = {name: value for name, value in servers.items() if options.chosen(name)}
        contenders = [(name, stack.enter_context(start()), query) for name, (start, query) in chosen.items()]
        for streams in (1, 4):
            case(contenders, streams, rows, options)


def case(contenders: list, streams: int, rows: int, options: Options) -> None:
    def once(server, query):
        return measure.client(
            server, "flight-ticket", action="drain", query=query, streams=streams, repeats=REPEATS
        )

    answers = measure.in_turn(contenders, options.rounds, once)
    figures = {label: measure.transfer(answers[label]) for label in answers}
    ratios = {}
    if len(figures) == 3:
        ours, cpp, stock = (figures[name] for name in ("bowshot", "arrow-cpp-flight", "stock-arrow-flight"))
        ratios = {
            "throughput against Arrow C++ Flight": results.at_least(ours["gb_per_second"] / cpp["gb_per_second"], 1.0),
            "server time per GB against Arrow C++ Flight": results.at_most(
                ours["server_cpu_s_per_gb"] / cpp["server_cpu_s_per_gb"], 1.1
            ),
            "throughput against stock arrow-flight": results.at_least(
                ours["gb_per_second"] / stock["gb_per_second"], 1.5
            ),
        }
    results.record("transport", f"{streams} stream(s)", figures, ratios, options, rows=rows, columns=data.COLUMNS)
