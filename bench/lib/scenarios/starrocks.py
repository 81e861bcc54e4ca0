"""StarRocks' shapes: 1 integer, 20 integers, 20 texts, fetched whole. What is compared is what its page compares: the
command-line client without printing, a pandas DataFrame, typed access over JDBC, a Parquet file.
"""

from .. import contest, data
from ..arena import Arena, Contender
from ..contest import Case
from ..options import Options

REPEATS = 3
SHAPES = {"1 integer": "integer", "20 integers": "integers", "20 texts": "strings"}
# PyMySQL keeps every value as a Python object, some gigabytes for so many rows, and pandas copies them.
MOST_OBJECT_ROWS = {"1 integer": 10_000_000, "20 integers": 5_000_000, "20 texts": 5_000_000}
PYARROW, ADBC = ("bowshot (pyarrow)", "bowshot", "flight-ticket"), ("bowshot (ADBC)", "bowshot", "adbc")
PYMYSQL = ("MariaDB (PyMySQL)", "mariadb", "pymysql")


def ways(shape: str) -> dict:
    """Who is compared in what."""
    most = MOST_OBJECT_ROWS[shape]
    packages = [("bowshot (package)", "bowshot", "package-socket"), ("bowshot (package, same host)", "bowshot", "package-memory")]
    ours = {into: [Contender(*client, into) for client in (PYARROW, *packages, ADBC)] for into in ("arrow", "pandas")}
    return {
        "fetched": [*ours["arrow"], Contender("MariaDB (mysql --quick)", "mariadb", "mysql-quick", "text")],
        "into pandas": [*ours["pandas"], Contender(*PYMYSQL, "pandas", most)],
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
    cases = [(shape, rows) for rows in sizes for shape in options.size(("1 integer", "20 texts"), SHAPES, SHAPES)]
    if options.scale == "large" and not options.rows:
        cases.append(("1 integer", 100 * million))
    compare_shapes("starrocks", cases, ways, options, options.size(1, 5, 40))


def compare_shapes(scenario: str, cases: list, ways, options: Options, needed_gb: float) -> None:
    """Each way to read each shape and number of rows; data is made and loaded for what `--case` leaves."""
    chosen = {
        (shape, rows, way): contenders for shape, rows in cases for way, contenders in ways(shape).items()
        if options.has_case(name(shape, rows, way))
    }
    if not chosen:
        raise ValueError(f"no case has `{options.case}` in its name")
    tables = {f"{SHAPES[shape]}_{rows}": str(data.parquet(SHAPES[shape], rows)) for shape, rows, _ in chosen}
    with Arena(options, tables, needed_gb=needed_gb) as arena:
        for (shape, rows, way), contenders in chosen.items():
            axes, query = {"shape": shape, "rows": rows, "way": way}, f"SELECT * FROM {SHAPES[shape]}_{rows}"
            contest.run(Case(scenario, name(shape, rows, way), query, axes, REPEATS), contenders, arena)


def name(shape: str, rows: int, way: str) -> str:
    return f"{shape}, {rows:,} rows, {way}"
