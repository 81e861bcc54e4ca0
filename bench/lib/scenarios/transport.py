"""DoGet of an Arrow IPC file, 20 × int64, one and four streams: the transport alone.

Bowshot, Arrow C++ Flight (pyarrow) and the stock arrow-flight encoder serve the same mapped file; the client is
pyarrow, drops every batch, and has one connection a stream.
"""

from .. import data
from ..arena import TRANSPORT, Arena
from ..options import Options
from .streams import get

ROWS = 4_000_000
REPEATS = 5
QUERIES = {"bowshot": "SELECT * FROM integers", "arrow-cpp-flight": "integers", "stock-arrow-flight": "integers"}


def run(options: Options) -> None:
    rows = options.size(100_000, ROWS, ROWS)
    with Arena(options, {"integers": data.arrow("integers", rows)}, starts=TRANSPORT) as arena:
        contenders = [(label, server, QUERIES[label]) for label, server in arena.servers(dict(zip(QUERIES, QUERIES))).items()]
        for streams in (1, 4):
            arena.record(
                "transport", f"{streams} stream(s)", get(contenders, streams, REPEATS, options), rows=rows, columns=data.COLUMNS,
                axes={"what": "DoGet of 20 integers", "streams": streams},
            )
