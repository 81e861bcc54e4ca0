"""DuckDB's extensions come from their Python packages, and nothing is fetched from elsewhere; clients of its protocol Quack."""

import importlib
import pathlib

TOKEN = "benchmark-token"


def load(connection, *names: str) -> None:
    for name in names:
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = pathlib.Path(next(iter(package.__path__)))
        (path,) = folder.glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")


def connect_to_quack(uri: str):
    import duckdb

    connection = duckdb.connect()
    load(connection, "httpfs", "quack")
    connection.execute(f"CREATE SECRET (TYPE quack, TOKEN '{TOKEN}')")
    connection.execute(f"ATTACH '{uri}' AS remote")
    return connection


def ask_quack(text: str) -> str:
    """The query that asks the server for what `text` says."""
    quoted = text.replace("'", "''")
    return f"FROM quack_query_by_name('remote', '{quoted}')"
