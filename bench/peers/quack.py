"""What the Quack server and client share: the extensions that the Python packages bring along, the token."""

import importlib
import pathlib
import socket

TOKEN = "benchmark-token"


def load(connection):
    """Loads the extensions from their packages; nothing is fetched from elsewhere."""
    for name in ("httpfs", "quack"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = pathlib.Path(next(iter(package.__path__)))
        (path,) = folder.glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")


def free_port() -> int:
    """A port that was free just now: the Quack server cannot pick one itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
