"""Rows one by one into a durable table, each committed before the next: 1 to 8 clients in processes of their own.

Every client sends the SQL text of an INSERT with its own values. Afterwards the table must have exactly the rows that
were acknowledged.
"""

import contextlib

from .. import measure, places, results
from ..arena import DURABLE, Arena
from ..options import Options

SECONDS = 10
CLIENTS = (1, 2, 4, 8)
LABELS = {
    "bowshot (ADBC)": "bowshot-adbc",
    "bowshot (ADBC, one call)": "bowshot-adbc-update",
    "bowshot (package)": "bowshot-package",
    "PostgreSQL": "postgres",
    "DuckDB Quack": "quack",
}
PEERS = {
    "bowshot (ADBC)": "bowshot", "bowshot (ADBC, one call)": "bowshot", "bowshot (package)": "bowshot",
    "PostgreSQL": "postgres", "DuckDB Quack": "quack",
}


def run(options: Options) -> None:
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, {}, needed_gb=2, starts=DURABLE)
        disk, servers = places.disk(arena.folder()), arena.servers(PEERS)
        for clients in options.size((2,), CLIENTS, CLIENTS):
            case(arena, servers, clients, disk)


def case(arena: Arena, servers: dict, clients: int, disk: dict) -> None:
    options = arena.options
    everyone, seconds = options.at_rest(list(servers.values())), options.size(0.5, 5, SECONDS)

    def once(label):
        return measure.writer(servers[label], LABELS[label], everyone, action="inserts", clients=clients, seconds=seconds)

    answers = measure.in_turn([(label, label) for label in servers], options, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    ratios = {}
    for peer in ("PostgreSQL", "DuckDB Quack"):
        for ours in ("bowshot (ADBC)", "bowshot (ADBC, one call)", "bowshot (package)"):
            if peer in figures and ours in figures:
                ratios[f"inserts per second, {ours} against {peer}"] = results.plain(
                    figures[ours]["inserts_per_second"] / figures[peer]["inserts_per_second"]
                )
    results.record(
        "inserts", f"{clients} client(s)", figures, ratios, options, seconds=seconds, disk=disk,
        missing=arena.missing, peer_versions=arena.versions(),
        axes={"what": "rows one by one", "clients": clients},
    )
