"""Views over files, for DuckDB wherever it runs: a file, or a folder of files, for each name."""

import os

READERS = {".csv": "read_csv", ".jsonl": "read_json", ".parquet": "read_parquet"}


def create(connection, tables):
    for name, path in tables.items():
        ending = ending_of(path)
        files = f"{path}/*{ending}" if os.path.isdir(path) else path
        connection.execute(f"CREATE VIEW {name} AS FROM {READERS[ending]}('{files}')")


def ending_of(path):
    """What the file, or the files of the folder, end with."""
    names = os.listdir(path) if os.path.isdir(path) else [path]
    found = {os.path.splitext(name)[1] for name in names}
    return next((ending for ending in READERS if ending in found), ".parquet")


def arguments(words):
    """`NAME=PATH` words as a dictionary."""
    return dict(word.split("=", 1) for word in words)
