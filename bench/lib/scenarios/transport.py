"""DoGet of an Arrow IPC file, 20 × int64, one and four streams: the transport alone.

Bowshot, Arrow C++ Flight (pyarrow) and the stock arrow-flight encoder serve the same mapped file; the client is
pyarrow, drops every batch, and has one connection a stream.
"""

import contextlib

from .. import data, measure, results
from ..arena import TRANSPORT, Arena
from ..options import Options

ROWS = 4_000_000
REPEATS = 5
QUERIES = {"bowshot": "SELECT * FROM integers", "arrow-cpp-flight": "integers", "stock-arrow-flight": "integers"}
PEERS = {label: label for label in QUERIES}


def run(options: Options) -> None:
    rows = options.size(100_000, ROWS, ROWS)
    tables = {"integers": data.arrow_integers(rows)}
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, tables, starts=TRANSPORT)
        contenders = [(label, server, QUERIES[label]) for label, server in arena.servers(PEERS).items()]
        for streams in (1, 4):
            case(contenders, streams, rows, options)


def case(contenders: list, streams: int, rows: int, options: Options) -> None:
    def once(server, query):
        return measure.client(
            server, "flight-ticket", action="drain", query=query, streams=streams, repeats=REPEATS
        )

    answers = measure.in_turn(contenders, options, once)
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
    results.record(
        "transport", f"{streams} stream(s)", figures, ratios, options, rows=rows, columns=data.COLUMNS,
        axes={"what": "DoGet of 20 integers", "streams": streams},
    )
