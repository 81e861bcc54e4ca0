"""DuckDB's extensions come from their Python packages; nothing is fetched from elsewhere."""

import importlib
import pathlib


def load(connection, name: str) -> None:
    package = importlib.import_module(f"duckdb_extension_{name}")
    folder = pathlib.Path(next(iter(package.__path__)))
    (path,) = folder.glob(f"extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD '{path}'")
