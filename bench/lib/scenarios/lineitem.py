"""TPC-H's lineitem to an Arrow table at the client, by number of rows: the workload of DuckDB's Quack protocol, with the
other ways of getting such a table. Each size has servers of its own, so that the large one does not cost the small one.
The largest size is read batch by batch: as one table it does not fit beside the servers' memory.
"""

import dataclasses

from .. import contest, data
from ..arena import Arena, Contender
from ..contest import Case
from ..options import Options

REPEATS = 3
MILLION = 1_000_000
# So many rows do not fit into the client's memory as one table.
TOO_MANY = 30 * MILLION
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot (package)", "bowshot", "package-socket", "arrow"),
    Contender("bowshot (package, same host)", "bowshot", "package-memory", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender("DuckDB Quack", "quack", "quack", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
    Contender("DuckDB in process", "duckdb", "duckdb", "arrow"),
    Contender("ROAPI (ADBC)", "roapi", "adbc", "arrow", 10 * MILLION),
    Contender("PostgreSQL (ADBC)", "postgres", "postgres-adbc", "arrow", 10 * MILLION),
    Contender("PostgreSQL (connectorx)", "postgres", "connectorx", "arrow", 10 * MILLION),
    Contender("PostgreSQL (psycopg)", "postgres", "psycopg", "rows", MILLION),
]
# Those that give one record batch after the other.
STREAMING = [
    dataclasses.replace(contender, into="batches")
    for contender in CONTENDERS
    if contender.reader in ("flight-ticket", "package-socket", "package-memory", "adbc", "quack", "duckdb") and contender.most_rows is None
]


def run(options: Options) -> None:
    scale = options.size(0.01, 1, 10)
    sizes = options.row_counts((5_000,), (100_000, MILLION, 6 * MILLION), (100_000, MILLION, 10 * MILLION, 59_986_052))
    streamed_from = options.size(1, TOO_MANY, TOO_MANY)
    for rows in sizes:
        path = str(data.parquet_lineitem(scale, rows))
        with Arena(options, {"lineitem": path}, needed_gb=options.size(1, 4, 8)) as arena:
            if rows < TOO_MANY:
                fetched(arena, f"{rows:,} rows", rows, CONTENDERS)
            if rows >= streamed_from:
                fetched(arena, f"{rows:,} rows, batch by batch", rows, STREAMING)


def fetched(arena: Arena, name: str, rows: int, contenders: list) -> None:
    what = "lineitem" if contenders is CONTENDERS else "lineitem, batch by batch"
    case = Case("lineitem", name, "SELECT * FROM lineitem", {"what": what, "rows": rows}, REPEATS)
    contest.run(case, contenders, arena)
