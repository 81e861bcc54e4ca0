"""ClickBench's table (105 columns of a web-analytics log) into a pandas DataFrame: whole, and by groups of types."""

from .. import clickbench_data, contest
from ..arena import Arena, Contender
from ..contest import Case
from ..options import Options

REPEATS = 3
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "pandas"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "pandas"),
    Contender("DuckDB in process", "duckdb", "duckdb", "pandas"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "pandas"),
    Contender("DuckDB Quack", "quack", "quack", "pandas"),
    Contender("MariaDB (PyMySQL)", "mariadb", "pymysql", "pandas", 1_000_000),
]


def run(options: Options) -> None:
    rows = options.size(2_000, 200_000, 1_000_000)
    groups = {"all 105 columns": ["*"], **clickbench_data.groups()}
    with Arena(options, {"hits": str(clickbench_data.parquet(rows))}, needed_gb=options.size(1, 3, 10)) as arena:
        for group, columns in groups.items():
            axes = {"columns": group, "rows": rows, "way": "into pandas"}
            query = f"SELECT {', '.join(columns)} FROM hits"
            contest.run(Case("clickbench", f"{group}, {rows:,} rows", query, axes, REPEATS), CONTENDERS, arena)
