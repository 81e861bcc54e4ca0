"""StarRocks' shapes: 1 integer, 20 integers, 20 texts, fetched whole. What is compared is what its page compares: the
command-line client without printing, a pandas DataFrame, typed access over JDBC, a Parquet file.
"""

import contextlib

from .. import contest, data
from ..arena import Arena
from ..contest import Case, Contender
from ..options import Options

REPEATS = 3
SHAPES = {"1 integer": ("integer", data.parquet_integer), "20 integers": ("integers", data.parquet_integers),
          "20 texts": ("strings", data.parquet_strings)}
# PyMySQL keeps every value as a Python object, some gigabytes for so many rows, and pandas copies them.
MOST_OBJECT_ROWS = {"1 integer": 10_000_000, "20 integers": 5_000_000, "20 texts": 5_000_000}
PYARROW, ADBC = ("bowshot (pyarrow)", "bowshot", "flight-ticket"), ("bowshot (ADBC)", "bowshot", "adbc")
PACKAGE, NEAR = ("bowshot (package)", "bowshot", "package-socket"), ("bowshot (package, same host)", "bowshot", "package-memory")
PYMYSQL = ("MariaDB (PyMySQL)", "mariadb", "pymysql")


def ways(shape: str) -> dict:
    """Who is compared in what."""
    most = MOST_OBJECT_ROWS[shape]
    return {
        "fetched": [
            Contender(*PYARROW, "arrow"), Contender(*PACKAGE, "arrow"), Contender(*NEAR, "arrow"), Contender(*ADBC, "arrow"),
            Contender("MariaDB (mysql --quick)", "mariadb", "mysql-quick", "text"),
        ],
        "into pandas": [
            Contender(*PYARROW, "pandas"), Contender(*PACKAGE, "pandas"), Contender(*NEAR, "pandas"), Contender(*ADBC, "pandas"),
            Contender(*PYMYSQL, "pandas", most),
        ],
        "typed access over JDBC": [
            Contender("bowshot (JDBC)", "bowshot", "jdbc-flight", "values"),
            Contender("MariaDB (JDBC)", "mariadb", "jdbc-mariadb", "values"),
        ],
        "into a Parquet file": [
            Contender(*PYARROW, "parquet"), Contender(*ADBC, "parquet"), Contender(*PYMYSQL, "parquet", most),
        ],
    }


def run(options: Options) -> None:
    million = 1_000_000
    sizes = options.row_counts((10_000,), (million,), (million, 5 * million, 10 * million))
    shapes = options.size(("1 integer", "20 texts"), SHAPES, SHAPES)
    cases = {(shape, rows): f"{SHAPES[shape][0]}_{rows}" for rows in sizes for shape in shapes}
    if options.scale == "large" and not options.rows:
        cases["1 integer", 100 * million] = f"integer_{100 * million}"
    cases = {case: table for case, table in cases.items() if any(options.has_case(name(*case, way)) for way in ways(case[0]))}
    if not cases:
        raise ValueError(f"no case has `{options.case}` in its name")
    tables = {table: str(SHAPES[shape][1](rows)) for (shape, rows), table in cases.items()}
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, tables, needed_gb=options.size(1, 5, 40))
        for (shape, rows), table in cases.items():
            for way, contenders in ways(shape).items():
                axes = {"shape": shape, "rows": rows, "way": way}
                query = f"SELECT * FROM {table}"
                contest.run(Case("starrocks", name(shape, rows, way), query, axes, REPEATS), contenders, arena)


def name(shape: str, rows: int, way: str) -> str:
    return f"{shape}, {rows:,} rows, {way}"
