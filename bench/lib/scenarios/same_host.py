"""The package for Python on the server's machine: rows in memory that the server shares, against its own socket; large results
into Arrow, pandas and batch by batch, and small ones, of which the time is a round trip.

Runs of one client follow one another, each on the memory that the one before has given back. `first_seconds` is that of the first
run, whose memory is new to the server as it is to a client of the socket. Who maps a result has not touched its values;
into pandas all of them are.
"""

from .. import contest, data
from ..arena import TRANSPORT, Arena, Contender
from ..contest import Case
from ..options import Options

ROWS = 4_000_000
REPEATS, SMALL_REPEATS = 5, 400
NEAR, FAR, PYARROW = "bowshot (same host)", "bowshot (package, socket)", "bowshot (pyarrow, socket)"
# At the small scale nobody looks at the times.
SMALL = ("20 integers, into Arrow", "lineitem, into Arrow", "1 row")


def contenders(into: str) -> list:
    return [
        Contender(NEAR, "bowshot", "package-memory", into),
        Contender(FAR, "bowshot", "package-socket", into),
        Contender(PYARROW, "bowshot", "flight-info", into),
    ]


def run(options: Options) -> None:
    rows = options.size(100_000, 1_000_000, ROWS)
    tables = {"integers": data.arrow("integers", rows), "lineitem": data.lineitem(options.size(0.01, 0.1, 1))}
    ways = {"into Arrow": "arrow", "into pandas": "pandas", "batch by batch": "batches"}
    cases = [
        *((f"20 integers, {way}", "SELECT * FROM integers", into, rows, REPEATS) for way, into in ways.items()),
        ("lineitem, into Arrow", "SELECT * FROM lineitem", "arrow", None, REPEATS),
        ("1 row", "SELECT 1 AS one", "arrow", 1, SMALL_REPEATS),
        ("1,000 rows", "SELECT * FROM integers LIMIT 1000", "arrow", 1000, SMALL_REPEATS),
        ("20,000 rows", "SELECT * FROM integers LIMIT 20000", "arrow", 20_000, SMALL_REPEATS // 4),
    ]
    with Arena(options, tables, starts=TRANSPORT) as arena:
        for what, query, into, count, repeats in cases:
            if options.small and what not in SMALL:
                continue
            repeats = min(repeats, 20) if options.small else repeats
            axes = {"what": what, **({"rows": count} if count and len(what) < 12 else {})}
            contest.run(Case("same_host", what, query, axes, repeats), contenders(into), arena)
