"""Small statements and transactions over durable tables, from PostgreSQL and MariaDB and from our front ends for their protocols:
`SELECT 1` and a row by its primary key by drivers, pgbench, sysbench, and TPC-C of go-tpc. Every server syncs what it commits.
"""

import dataclasses

from .. import data, java, measure, places, processes, readers
from ..arena import DURABLE, Arena, Contender
from ..options import OURS, Options
from . import latency

# By protocol: what labels of ours and of the database begin with, and their servers.
PROTOCOLS = {
    "PostgreSQL's protocol": (("bowshot, PostgreSQL's protocol", "bowshot-pg"), ("PostgreSQL", "postgres")),
    "MySQL's protocol": (("bowshot, MySQL's protocol", "bowshot-mysql"), ("MariaDB", "mariadb")),
}
# Of lookups: by the client's name its protocol and reader.
CLIENTS = {
    "JDBC, prepared": ("PostgreSQL's protocol", "jdbc-postgres"), "Connector/J": ("MySQL's protocol", "jdbc-mysql"),
    "PyMySQL": ("MySQL's protocol", "pymysql"),
}
# The same on every server: a table of its own with a key, from the rows that it was started with.
LOOKUPS = ("CREATE TABLE lookups AS SELECT * FROM accounts", "ALTER TABLE lookups ADD PRIMARY KEY (id)")
SELECT_1, BY_KEY = "SELECT 1", "a row by its primary key"
MANY = 8


@dataclasses.dataclass(frozen=True)
class Load:
    """What a tool prepares once on each server, and by their names the orders of the cases that run over it."""

    tool: str
    protocol: str
    prepared: dict
    cases: dict


def loads(small: bool) -> list:
    """At the small scale TPC-C comes by MySQL's protocol alone, since its warehouse is as large as ever."""
    rows, scale = (1_000, 1) if small else (1_000_000, 10)
    pgbench = {
        "pgbench -S -M prepared": (MANY, "-S", "-M", "prepared"), "pgbench -S -M simple": (1, "-S", "-M", "simple"),
        "pgbench -M prepared (TPC-B)": (MANY, "-M", "prepared"), "pgbench -N -M prepared": (MANY, "-N", "-M", "prepared"),
    }
    sysbench = {f"sysbench {name}": {"workload": name, "clients": MANY, "rows": rows} for name in ("oltp_point_select", "oltp_read_write")}
    return [
        Load("pgbench", "PostgreSQL's protocol", {"scale": scale}, {
            name: {"clients": clients, "words": words} for name, (clients, *words) in pgbench.items()
        }),
        *(
            Load(tool, protocol, prepared, {f"{name}, {protocol}": order for name, order in cases.items()})
            for tool, prepared, cases in (("sysbench", {"rows": rows}, sysbench), ("go-tpc", {}, {"TPC-C": {"clients": 4}}))
            for protocol in PROTOCOLS if not (small and tool == "go-tpc" and protocol.startswith("PostgreSQL"))
        ),
    ]


def contenders(protocol: str, client: str, reader: str) -> list:
    return [Contender(f"{label} ({client})", server, reader) for label, server in PROTOCOLS[protocol]]


def run(options: Options) -> None:
    rows = options.size(10_000, 1_000_000, 1_000_000)
    tables = {"accounts": str(data.parquet("accounts", rows))}
    with Arena(options, tables, needed_gb=options.size(2, 10, 10), starts=DURABLE) as arena:
        disk = places.disk(arena.folder())
        look_up(arena, rows, disk)
        for load in loads(options.small):
            compare(arena, load, disk)


def look_up(arena: Arena, rows: int, disk: dict) -> None:
    questions = {SELECT_1: (SELECT_1, 0), BY_KEY: ("SELECT id, quantity, amount, name FROM lookups WHERE id = ?", rows)}
    cases = {
        (what, clients): f"{what}, {clients} client(s)" for what in questions for clients in (1, 64)
        if arena.options.has_case(f"{what}, {clients} client(s)")
    }
    chosen = arena.choose([one for client, (protocol, reader) in CLIENTS.items() for one in contenders(protocol, client, reader)])
    make_lookups(chosen if cases else [])
    for (what, clients), case in cases.items():
        query, keys = questions[what]
        warmup = max(latency.WARMUP_OF_MANY, latency.java_warmup(arena.options) // clients)
        order = {"action": "concurrent", "query": query, "keys": keys, "clients": clients, "warmup": warmup}
        record(arena, case, chosen, {**order, "seconds": arena.options.size(0.5, 3, 5)}, what, disk)


def make_lookups(chosen: list) -> None:
    """Once on each server; ours has one for both protocols."""
    for server in {server.pid: server for _, server, _ in chosen}.values():
        client = readers.KINDS["pymysql" if server.uri.startswith("{") else "psycopg"](server.uri)
        for statement in LOOKUPS:
            with client.connection.cursor() as cursor:
                cursor.execute(statement)


def compare(arena: Arena, load: Load, disk: dict) -> None:
    cases = {name: order for name, order in load.cases.items() if arena.options.has_case(name)}
    chosen = arena.choose(contenders(load.protocol, load.tool, load.tool)) if cases else []
    for _, server, contender in chosen:
        measure.client(server, contender.reader, action="prepare", **load.prepared)
    # TPC-C has several kinds of transactions, of which some are seldom.
    seconds = arena.options.size(1, 5, 10) if load.tool != "go-tpc" else arena.options.size(2, 30, 30)
    for name, order in cases.items():
        record(arena, name, chosen, {"action": "run", "seconds": seconds, **order}, name, disk)


def record(arena: Arena, case: str, chosen: list, order: dict, what: str, disk: dict) -> None:
    """Each turn begins when all servers have come to rest, but at the small scale, where nobody looks at the times."""
    if not chosen:
        return
    everyone = [] if arena.options.small else [server for _, server, _ in chosen]

    def once(server, contender):
        processes.settle(everyone)
        return measure.client(server, contender.reader, ours=contender.peer in OURS, **order)

    answers = measure.in_turn(chosen, arena.options, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    drivers = java.versions() if order["action"] == "concurrent" else {}
    axes = {"what": what, "clients": order["clients"]}
    arena.record("transactions", case, figures, axes=axes, seconds=order["seconds"], disk=disk, client_versions=drivers)
