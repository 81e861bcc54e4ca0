"""The servers of a scenario, ours and the peers', by name: each is started at most once, on the same tables, and ended
with the scenario. A peer that cannot run on this machine is left out, and the results say why.
"""

import contextlib
import dataclasses
import json
import pathlib
import sys

from . import environments, mariadb, places, postgres, processes
from .environments import Unavailable
from .options import OURS, Options


@dataclasses.dataclass
class Arena:
    """`tables` are names and Parquet paths; `keys` are columns to index where a database has indexes; `starts` tells how
    a server is started, by name.
    """

    stack: contextlib.ExitStack
    options: Options
    tables: dict
    needed_gb: float = 1.0
    keys: dict = dataclasses.field(default_factory=dict)
    starts: dict = dataclasses.field(default_factory=lambda: STARTS)
    missing: dict = dataclasses.field(default_factory=dict)
    running: dict = dataclasses.field(default_factory=dict)
    disk: pathlib.Path | None = None

    def server(self, peer: str) -> processes.Server | None:
        """The server of that name; None when it was not asked for or cannot run."""
        if not self.options.has_peer(peer):
            return None
        if peer not in self.running and peer not in self.missing:
            try:
                self.running[peer] = self.stack.enter_context(self.starts[peer](self))
            except Unavailable as reason:
                self.leave_out(peer, str(reason))
        return self.running.get(peer)

    def servers(self, peers: dict) -> dict:
        """Servers by label, of those that were asked for and run. `peers` are labels and names."""
        chosen = {label: peer for label, peer in peers.items() if self.options.chosen(label)}
        return {label: server for label, peer in chosen.items() if (server := self.server(peer))}

    def leave_out(self, peer: str, reason: str) -> None:
        print(f"NOT RUN: {peer}: {reason}", file=sys.stderr)
        self.missing[peer] = reason

    def folder(self) -> pathlib.Path:
        """A folder on a disk for the databases that keep files of their own."""
        if self.disk is None:
            self.disk = self.stack.enter_context(places.disk_folder(self.needed_gb))
        return self.disk

    def over_files(self) -> str:
        """The tables as databases take them that run in the client's process."""
        return json.dumps({name: str(path) for name, path in self.tables.items()})

    def versions(self) -> dict:
        """Of the peers that have run and are not packages of the main environment."""
        found = {}
        for peer in self.running:
            if peer in VERSIONS:
                found[peer] = VERSIONS[peer]()
        return found


def other_door(arena: Arena, protocol: str):
    """The server of this arena that is ours, by another protocol."""
    return contextlib.nullcontext(processes.other_door(arena.server("bowshot"), protocol))


def in_process(peer: str, environment: str, uri: str):
    """No server: the client has the database in its process."""
    environments.python(environment)
    return contextlib.nullcontext(processes.InProcess(peer, peer, uri))


# Servers over Parquet files, or tables that were made of them.
STARTS = {
    "bowshot": lambda arena: processes.bowshot(arena.tables),
    "bowshot-pg": lambda arena: other_door(arena, "pg"),
    "bowshot-mysql": lambda arena: other_door(arena, "mysql"),
    # Keeps no columns of what it streams.
    "bowshot-streaming": lambda arena: processes.bowshot(arena.tables, "--set", "storage.column_cache_bytes=0"),
    "quack": lambda arena: processes.peer("quack", "quack", "quack_server.py", arena.tables),
    "duckdb-flight": lambda arena: processes.peer(
        "duckdb-flight", "flight-ticket", "duckdb_flight_server.py", arena.tables, environment="duckdb2"
    ),
    "duckdb": lambda arena: in_process("duckdb", "duckdb2", arena.over_files()),
    "chdb": lambda arena: in_process("chdb", "chdb", arena.over_files()),
    "roapi": lambda arena: processes.roapi(arena.tables),
    "postgres": lambda arena: postgres.server(arena.folder(), arena.tables, arena.keys),
    "mariadb": lambda arena: mariadb.server(arena.folder(), arena.tables),
}

# Text files, each read anew by every query.
FILES = {
    "bowshot": lambda arena: processes.bowshot(arena.tables),
    "duckdb": lambda arena: in_process("duckdb", "duckdb2", arena.over_files()),
    "polars": lambda arena: in_process("polars", "polars", arena.over_files()),
}

# Of scenarios that write: every server keeps its tables in a folder of its own.
DURABLE = {
    "bowshot": lambda arena: processes.bowshot({}, data=str(arena.folder() / "bowshot")),
    "duckdb": lambda arena: in_process("duckdb", "duckdb2", str(arena.folder() / "duckdb.db")),
    "quack": lambda arena: processes.peer(
        "quack", "quack", "quack_server.py", {}, "--file", str(arena.folder() / "quack.db")
    ),
    "postgres": lambda arena: postgres.server(arena.folder()),
}

# Arrow IPC files, or nothing at all, over Flight alone.
TRANSPORT = {
    "bowshot": lambda arena: processes.bowshot(arena.tables),
    "arrow-cpp-flight": lambda arena: processes.peer(
        "arrow-cpp-flight", "flight-ticket", "arrow_flight_server.py", arena.tables
    ),
    "stock-arrow-flight": lambda arena: processes.stock_flight(arena.tables),
}

# The same with encryption, each with the same certificate.
ENCRYPTED = {
    "bowshot": lambda arena: processes.bowshot(
        arena.tables, "--tls-certificate", str(places.TLS_CERTIFICATE), "--tls-key", str(places.TLS_KEY)
    ),
    "arrow-cpp-flight": lambda arena: processes.peer(
        "arrow-cpp-flight", "flight-ticket", "arrow_flight_server.py", arena.tables,
        "--tls", str(places.TLS_CERTIFICATE), str(places.TLS_KEY),
    ),
}

VERSIONS = {
    "duckdb-flight": lambda: environments.pinned("duckdb2")["duckdb"],
    "duckdb": lambda: environments.pinned("duckdb2")["duckdb"],
    "chdb": lambda: environments.pinned("chdb")["chdb"],
    "polars": lambda: environments.pinned("polars")["polars"],
    "roapi": lambda: environments.pinned("roapi")["roapi"],
    "postgres": postgres.version,
    "mariadb": mariadb.version,
}

# What `--peers` may name; the last three are no servers.
PEERS = sorted({*STARTS, *FILES, *DURABLE, *TRANSPORT, "iperf3", "memcpy", "turbodbc"} - set(OURS))
