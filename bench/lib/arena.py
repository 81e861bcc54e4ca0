"""The servers of a scenario, ours and the peers', by name: each is started at most once, on the same tables, and ended
with the scenario. A peer that cannot run on this machine is left out, and the results say why.
"""

import contextlib
import dataclasses
import json
import pathlib
import sys

from . import environments, mariadb, measure, places, postgres, processes, readers, results
from .environments import Unavailable
from .options import OURS, Options


@dataclasses.dataclass(frozen=True)
class Contender:
    """`label` stands in the report; `peer` is the server, `reader` the kind of client (`readers.KINDS`, or `databases.KINDS` of those
    that write). `most_rows` is set where a client keeps so much for each row that the machine's memory would not do for more.
    """

    label: str
    peer: str
    reader: str
    into: str = ""
    most_rows: int | None = None


@dataclasses.dataclass
class Arena:
    """`tables` are names and Parquet paths; `keys` are columns to index where a database has indexes; `starts` tells how
    a server is started, by name. Servers end with the block in which it is used.
    """

    options: Options
    tables: dict
    needed_gb: float = 1.0
    keys: dict = dataclasses.field(default_factory=dict)
    starts: dict = dataclasses.field(default_factory=lambda: STARTS)
    missing: dict = dataclasses.field(default_factory=dict)
    running: dict = dataclasses.field(default_factory=dict)
    disk: pathlib.Path | None = None
    stack: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return self.stack.__exit__(*failure)

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

    def choose(self, contenders: list) -> list:
        """Label, server and contender of those that were asked for and can run."""
        return [
            (contender.label, server, contender) for contender in contenders
            if self.options.chosen(contender.label) and self.has_reader(contender) and (server := self.server(contender.peer))
        ]

    def has_reader(self, contender: Contender) -> bool:
        """Whether the reader itself was asked for and can run on this machine; the results say why not."""
        wanted = {contender.peer, readers.ENVIRONMENTS.get(contender.reader)} & set(PEERS)
        if not all(self.options.has_peer(name) for name in wanted):
            return False
        if contender.label not in self.missing:
            try:
                measure.program(contender.reader)
            except Unavailable as reason:
                self.leave_out(contender.label, str(reason))
        return contender.label not in self.missing

    def write(self, chosen: list, order) -> dict:
        """Answers by label of clients that write, in turn; each begins when all servers have come to rest, but at the small scale,
        where nobody looks at the times. `order(label)` is what one of them is asked for."""
        everyone = [] if self.options.small else [server for _, server, _ in chosen]

        def once(server, contender):
            return measure.writer(server, contender.reader, everyone, **order(contender.label))

        return measure.in_turn(chosen, self.options, once)

    def record(self, scenario: str, case: str, figures: dict, **settings) -> None:
        """One line of the results, with what could not run."""
        missing = {**self.missing, **settings.pop("missing", {})}
        results.record(scenario, case, figures, self.options, missing=missing, peer_versions=self.versions(), **settings)

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
        return {peer: VERSIONS[peer]() for peer in self.running if peer in VERSIONS}


def same_server(arena: Arena, protocol: str):
    """The server of this arena that is ours, by another protocol."""
    return contextlib.nullcontext(processes.choose_protocol(arena.server("bowshot"), protocol))


def in_process(peer: str, environment: str, uri: str):
    """No server: the client has the database in its process."""
    environments.python(environment)
    return contextlib.nullcontext(processes.Server(peer, peer, uri, 0))


# Servers over Parquet files, or tables that were made of them.
STARTS = {
    "bowshot": lambda arena: processes.bowshot(arena.tables),
    "bowshot-pg": lambda arena: same_server(arena, "pg"),
    "bowshot-mysql": lambda arena: same_server(arena, "mysql"),
    # Keeps no columns of what it streams.
    "bowshot-streaming": lambda arena: processes.bowshot(arena.tables, "--set", "storage.column_cache_bytes=0"),
    # Gives no rows through memory that it shares with clients.
    "bowshot-socket": lambda arena: processes.bowshot(arena.tables, "--local-socket", "none"),
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
    **{name: STARTS[name] for name in ("bowshot", "duckdb")},
    "polars": lambda arena: in_process("polars", "polars", arena.over_files()),
}

# Of scenarios that write: every server keeps its tables in a folder of its own.
DURABLE = {
    "bowshot": lambda arena: processes.bowshot(arena.tables, data=str(arena.folder() / "bowshot")),
    "duckdb": lambda arena: in_process("duckdb", "duckdb2", str(arena.folder() / "duckdb.db")),
    "quack": lambda arena: processes.peer(
        "quack", "quack", "quack_server.py", {}, "--file", str(arena.folder() / "quack.db")
    ),
    **{name: STARTS[name] for name in ("bowshot-pg", "bowshot-mysql", "postgres", "mariadb")},
}

# Arrow IPC files, or nothing at all, over Flight alone.
TRANSPORT = {
    "bowshot": STARTS["bowshot"],
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

# What `--peers` may name; `iperf3` and `memcpy` are no servers.
PEERS = sorted({*STARTS, *FILES, *DURABLE, *TRANSPORT, "iperf3", "memcpy"} - set(OURS))
