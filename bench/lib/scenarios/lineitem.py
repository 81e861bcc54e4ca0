"""TPC-H's lineitem to an Arrow table at the client, by number of rows: the workload of DuckDB's Quack protocol, with the
other ways of getting such a table. Each size has servers of its own, so that the large one does not cost the small one.
"""

import contextlib

from .. import contest, data
from ..arena import Arena
from ..contest import Case, Contender
from ..options import Options

REPEATS = 3
MILLION = 1_000_000
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender("DuckDB Quack", "quack", "quack", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
    Contender("DuckDB in process", "duckdb", "duckdb", "arrow"),
    Contender("ROAPI (ADBC)", "roapi", "adbc", "arrow", 10 * MILLION),
    Contender("PostgreSQL (ADBC)", "postgres", "postgres-adbc", "arrow", 10 * MILLION),
    Contender("PostgreSQL (connectorx)", "postgres", "connectorx", "arrow", 10 * MILLION),
    Contender("PostgreSQL (psycopg)", "postgres", "psycopg", "rows", MILLION),
]


def run(options: Options) -> None:
    scale = options.size(0.01, 1, 10)
    sizes = options.row_counts((5_000,), (100_000, MILLION, 6 * MILLION), (100_000, MILLION, 10 * MILLION, 59_986_052))
    for rows in sizes:
        path = str(data.parquet_lineitem(scale, rows))
        with contextlib.ExitStack() as stack:
            arena = Arena(stack, options, {"lineitem": path}, needed_gb=options.size(1, 4, 12))
            axes = {"what": "lineitem", "rows": rows}
            contest.run(Case("lineitem", f"{rows:,} rows", "SELECT * FROM lineitem", axes, REPEATS), CONTENDERS, arena)
