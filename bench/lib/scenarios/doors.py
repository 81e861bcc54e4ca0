"""StarRocks' shapes by clients of PostgreSQL and MySQL: from the database that the client was made for, from Bowshot by that
protocol, and from the same Bowshot by Arrow Flight. All of one line read the same rows of one table, in one run.
"""

import contextlib

from .. import contest, results
from ..arena import Arena
from ..contest import Case, Contender
from ..options import Options
from .starrocks import SHAPES

REPEATS = 3
# What keeps every value as an object of its language is not asked for more.
MOST_ROWS = {"1 integer": 10_000_000, "20 integers": 1_000_000, "20 texts": 1_000_000}
FLIGHT = Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow")


def pair(database: str, door: str, reader: str, title: str, into: str, most: int | None = None) -> list:
    """One client at the database and at our front end for it."""
    protocol = {"bowshot-pg": "PostgreSQL's", "bowshot-mysql": "MySQL's"}[door]
    ours = Contender(f"bowshot, {protocol} protocol ({title})", door, reader, into, most)
    return [ours, Contender(f"{'PostgreSQL' if door == 'bowshot-pg' else 'MariaDB'} ({title})", database, reader, into, most)]


def ways(shape: str) -> dict:
    """Who is compared in what; the first one is ours, the second one the database."""
    most = MOST_ROWS[shape]
    postgres, mysql = ("postgres", "bowshot-pg"), ("mariadb", "bowshot-mysql")
    return {
        "ADBC for PostgreSQL": [*pair(*postgres, "postgres-adbc", "ADBC", "arrow"), FLIGHT],
        "connectorx": [*pair(*postgres, "connectorx", "connectorx", "arrow"), FLIGHT],
        "psycopg": pair(*postgres, "psycopg", "psycopg", "rows", most),
        "JDBC for PostgreSQL": pair(*postgres, "jdbc-postgres", "JDBC", "values"),
        "mysql --quick": [*pair(*mysql, "mysql-quick", "mysql --quick", "text"), FLIGHT],
        "PyMySQL": pair(*mysql, "pymysql", "PyMySQL", "rows", most),
        "JDBC for MariaDB": pair(*mysql, "jdbc-mariadb", "JDBC", "values"),
    }


def run(options: Options) -> None:
    million = 1_000_000
    sizes = options.row_counts((10_000,), (million,), (million, 5 * million))
    shapes = options.size(("1 integer", "20 texts"), SHAPES, SHAPES)
    cases = {(shape, rows): f"{SHAPES[shape][0]}_{rows}" for rows in sizes for shape in shapes}
    tables = {table: str(SHAPES[shape][1](rows)) for (shape, rows), table in cases.items()}
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, tables, needed_gb=options.size(1, 5, 20))
        for (shape, rows), table in cases.items():
            for way, contenders in ways(shape).items():
                case = Case(
                    "doors", f"{shape}, {rows:,} rows, {way}", f"SELECT * FROM {table}",
                    {"shape": shape, "rows": rows, "way": way}, REPEATS,
                )
                contest.run(case, contenders, arena, lambda figures, pair=contenders: judged(figures, pair))


def judged(figures: dict, contenders: list) -> dict:
    """The database's time by ours, which is to be at least 1; and ours by Flight's."""
    ours, database, *flight = [contender.label for contender in contenders]
    ratios = {}
    if ours in figures and database in figures:
        ratios["against the database itself"] = results.at_least(figures[database]["seconds"] / figures[ours]["seconds"], 1)
    for label in flight:
        if ours in figures and label in figures:
            ratios["against Flight"] = results.plain(figures[ours]["seconds"] / figures[label]["seconds"])
    return ratios
