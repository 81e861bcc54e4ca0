"""DuckDB's extensions from their packages: nothing is fetched while a test runs."""

import importlib
import pathlib


def load(connection, *names):
    for name in names:
        (folder,) = importlib.import_module(f"duckdb_extension_{name}").__path__
        (extension,) = pathlib.Path(folder).rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
