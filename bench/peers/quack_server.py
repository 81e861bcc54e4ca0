"""DuckDB's own Quack server over Parquet files, or with `--file` over a database file that it writes. Prints its address
when it is ready; ends with its standard input.
"""

import sys

import duckdb
import duckdb_views
from quack import TOKEN, free_port, load


def main():
    arguments = sys.argv[1:]
    durable = arguments[:1] == ["--file"]
    connection = duckdb.connect(arguments[1] if durable else ":memory:")
    load(connection)
    duckdb_views.create(connection, duckdb_views.arguments(arguments[2 if durable else 0 :]))
    uri = f"quack:127.0.0.1:{free_port()}"
    connection.execute(f"CALL quack_serve('{uri}', token = '{TOKEN}')").fetchall()
    print(uri, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
