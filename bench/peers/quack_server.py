"""DuckDB's own Quack server over Parquet files, or with `--file` over a database file that it writes. Prints its address
when it is ready; ends with its standard input.
"""

import pathlib
import sys

import duckdb
import duckdb_views

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import duckdb_extensions, processes  # noqa: E402


def main():
    arguments = sys.argv[1:]
    durable = arguments[:1] == ["--file"]
    connection = duckdb.connect(arguments[1] if durable else ":memory:")
    duckdb_extensions.load(connection, "httpfs", "quack")
    duckdb_views.create(connection, duckdb_views.arguments(arguments[2 if durable else 0 :]))
    uri = f"quack:127.0.0.1:{processes.free_port()}"
    connection.execute(f"CALL quack_serve('{uri}', token = '{duckdb_extensions.TOKEN}')").fetchall()
    print(uri, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
