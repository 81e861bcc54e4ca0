"""`SELECT *` from Parquet into a pyarrow table: TPC-H lineitem at scale 1, 1 M × 20 integers, 1 M × 20 strings.

Bowshot is read twice, by pyarrow with SQL text as ticket and by the ADBC driver; DuckDB over its own Quack protocol
and behind an Arrow C++ Flight server.
"""

from .. import contest, data
from ..arena import Arena, Contender
from ..contest import Case
from ..options import Options

ROWS = 1_000_000
REPEATS = 5
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender("DuckDB Quack", "quack", "quack", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
]


def run(options: Options) -> None:
    rows = options.size(50_000, ROWS, ROWS)
    tables = {
        "lineitem": data.lineitem(options.size(0.01, 1, 1)),
        "integers": data.parquet("integers", rows),
        "strings": data.parquet("strings", rows),
    }
    with Arena(options, tables) as arena:
        for table in tables:
            axes = {"what": f"SELECT * FROM {table}"}
            contest.run(Case("select", table, f"SELECT * FROM {table}", axes, REPEATS), CONTENDERS, arena)
