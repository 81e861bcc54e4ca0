"""StarRocks' shapes by clients of PostgreSQL and MySQL: from the database that the client was made for, from Bowshot by that
protocol, and from the same Bowshot by Arrow Flight. All of one line read the same rows of one table, in one run.
"""

from ..arena import Contender
from ..options import Options
from .starrocks import SHAPES, compare_shapes

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
    cases = [(shape, rows) for rows in sizes for shape in options.size(("1 integer", "20 texts"), SHAPES, SHAPES)]
    compare_shapes("doors", cases, ways, options, options.size(1, 5, 20))
