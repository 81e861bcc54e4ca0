"""DuckDB's own Quack server over Parquet files, or with `--file` over a database file that it writes. Prints its address
when it is ready; ends with its standard input.
"""

import os
import sys

import duckdb
from quack import TOKEN, free_port, load


def main():
    arguments = sys.argv[1:]
    durable = arguments[:1] == ["--file"]
    connection = duckdb.connect(arguments[1] if durable else ":memory:")
    load(connection)
    for argument in arguments[2 if durable else 0 :]:
        name, _, path = argument.partition("=")
        files = f"{path}/*.parquet" if os.path.isdir(path) else path
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{files}')")
    uri = f"quack:127.0.0.1:{free_port()}"
    connection.execute(f"CALL quack_serve('{uri}', token = '{TOKEN}')").fetchall()
    print(uri, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
