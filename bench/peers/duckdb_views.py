"""Views over Parquet files, for DuckDB wherever it runs: a file, or a folder of files, for each name."""

import os


def create(connection, tables):
    for name, path in tables.items():
        files = f"{path}/*.parquet" if os.path.isdir(path) else path
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{files}')")


def arguments(words):
    """`NAME=PATH` words as a dictionary."""
    return dict(word.split("=", 1) for word in words)
