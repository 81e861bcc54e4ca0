"""Hitachi's employee table: id, first name, last name, age, education; all rows into Python. ODBC's way is pyodbc's
`fetchall`, a list of rows; ours is an Arrow table, or a pandas DataFrame.
"""

import dataclasses

from .. import contest, data
from ..arena import Arena, Contender
from ..contest import Case
from ..options import Options

REPEATS = 3
# Rows as Python objects take some 500 bytes each.
MOST_ROWS = 12_500_000
WAYS = {
    "into Python": [
        Contender("bowshot (pyarrow)", "bowshot", "flight-ticket", "arrow"),
        Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
        Contender("PostgreSQL (pyodbc)", "postgres", "pyodbc-postgres", "rows", MOST_ROWS),
        Contender("MariaDB (pyodbc)", "mariadb", "pyodbc-mariadb", "rows", MOST_ROWS),
    ],
}
WAYS["into pandas"] = [dataclasses.replace(one, into="pandas") for one in WAYS["into Python"]]


def run(options: Options) -> None:
    sizes = options.row_counts((10_000,), (1_000_000,), (2_500_000, 12_500_000, 25_000_000))
    tables = {f"employees_{rows}": str(data.parquet("employees", rows)) for rows in sizes}
    with Arena(options, tables, needed_gb=options.size(1, 4, 20)) as arena:
        for rows, table in zip(sizes, tables, strict=True):
            for way, contenders in WAYS.items():
                axes = {"what": "employees", "rows": rows, "way": way}
                name = f"employees, {rows:,} rows, {way}"
                contest.run(Case("employees", name, f"SELECT * FROM {table}", axes, REPEATS), contenders, arena)
