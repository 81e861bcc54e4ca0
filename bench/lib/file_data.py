"""Text files as people have them: orders in 20 columns of mixed types, as one file of separated values, as one of JSON lines,
and as many small files. DuckDB writes them, quoting only what needs it.
"""

import os
import pathlib
import tempfile

from . import data

# Of one order in each of the two formats, about.
CSV_ROW_BYTES, JSON_ROW_BYTES = 195, 391
ORDERS = """
    SELECT id,
        (a % 100000)::INTEGER AS customer, (a // 100000 % 500)::INTEGER AS store, (b % 100)::INTEGER AS quantity,
        (b // 100 % 100000 / 100)::DECIMAL(10, 2) AS price, (c % 100 / 100)::DECIMAL(4, 2) AS discount,
        (c // 100 % 2500 / 100)::DECIMAL(6, 2) AS tax,
        DATE '2024-01-01' + (a % 700)::INTEGER AS day,
        TIMESTAMP '2024-01-01' + to_seconds((b % 60000000)::INTEGER) AS ordered_at,
        CASE WHEN c % 10 > 0 THEN TIMESTAMP '2024-01-05' + to_seconds((b % 60000000)::INTEGER) END AS shipped_at,
        ['new', 'paid', 'packed', 'shipped', 'returned'][1 + (a % 5)::INTEGER] AS status,
        ['AT', 'BE', 'CH', 'DE', 'DK', 'ES', 'FI', 'FR', 'GB', 'IE', 'IT', 'NL', 'NO', 'PL', 'PT', 'SE'][1 + (b % 16)::INTEGER] AS country,
        'city of ' || chr((65 + c % 26)::INTEGER) || chr((97 + b % 26)::INTEGER) AS city,
        'Customer ' || chr((65 + a % 26)::INTEGER) || '. ' || chr((65 + b % 26)::INTEGER) || 'smith' AS name,
        'user' || (a % 100000) || '@example.org' AS email,
        c % 4 > 0 AS paid,
        a % 1000000 / 7.0::DOUBLE AS weight,
        'K' || lower(hex(a % 4294967296)) AS code,
        CASE c % 20 WHEN 0 THEN 'left at the door, "as always"' WHEN 1 THEN 'two parcels, one of them heavy' ELSE 'no remarks' END AS note,
        CASE WHEN c % 3 > 0 THEN (b % 5 + 1)::INTEGER END AS rating
    FROM (SELECT range AS id, hash(range) AS a, hash(range + 1000000007) AS b, hash(range + 2000000011) AS c FROM range({rows}))
"""


def csv(size: int) -> pathlib.Path:
    """About so many bytes."""
    rows = size // CSV_ROW_BYTES
    return data.made(data.FOLDER / f"orders-{rows}.csv", lambda path: written(rows, path, "FORMAT csv"))


def json_lines(size: int) -> pathlib.Path:
    """About so many bytes."""
    rows = size // JSON_ROW_BYTES
    return data.made(data.FOLDER / f"orders-{rows}.jsonl", lambda path: written(rows, path, "FORMAT json"))


def small_files(count: int, rows: int) -> pathlib.Path:
    """A folder of so many files of separated values with so many rows each."""

    def make(folder):
        folder.mkdir()
        with tempfile.TemporaryDirectory() as scratch:
            whole = pathlib.Path(scratch) / "orders.csv"
            written(count * rows, whole, "FORMAT csv")
            with open(whole, encoding="utf-8") as lines:
                header = next(lines)
                for number in range(count):
                    part = [header, *(next(lines) for _ in range(rows))]
                    (folder / f"part-{number:06}.csv").write_text("".join(part), encoding="utf-8")

    return data.made(data.FOLDER / f"orders-{count}x{rows}", make)


def written(rows: int, path: pathlib.Path, options: str) -> None:
    import duckdb

    connection = duckdb.connect()
    # So that the same rows stand in the same order whatever the machine.
    connection.execute("SET threads = 1")
    connection.execute(f"COPY ({ORDERS.format(rows=rows)}) TO '{path}' ({options})")


def facts(path: pathlib.Path) -> dict:
    """How many files and bytes there are."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {"files": len(files), "bytes": sum(os.path.getsize(file) for file in files)}
