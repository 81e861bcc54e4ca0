"""Rows one by one into a durable table, each committed before the next: 1 client, and 8 in processes of their own.

Every client sends the SQL text of an INSERT with its own values. Afterwards the table must have exactly the rows that
were acknowledged.
"""

import contextlib

from . import measure, places, postgres, processes, results
from .options import Options

SECONDS = 10
CLIENTS = (1, 8)
LABELS = {
    "bowshot (ADBC)": "bowshot-adbc",
    "bowshot (ADBC, one call)": "bowshot-adbc-update",
    "PostgreSQL": "postgres",
    "DuckDB Quack": "quack",
}


def run(options: Options) -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(places.disk_folder(2))
        disk = places.disk(folder)
        servers = start(stack, folder, options)
        for clients in CLIENTS:
            case(servers, clients, options, disk)


def start(stack: contextlib.ExitStack, folder, options: Options) -> dict:
    servers = {}
    if ours := [label for label in LABELS if label.startswith("bowshot") and options.chosen(label)]:
        server = stack.enter_context(processes.bowshot({}, data=str(folder / "bowshot")))
        servers.update((label, server) for label in ours)
    if options.chosen("PostgreSQL"):
        servers["PostgreSQL"] = stack.enter_context(postgres.server(folder))
    if options.chosen("DuckDB Quack"):
        file = str(folder / "quack.db")
        quack = processes.peer("quack", "quack", "quack_server.py", {}, "--file", file)
        servers["DuckDB Quack"] = stack.enter_context(quack)
    return servers


def case(servers: dict, clients: int, options: Options, disk: dict) -> None:
    everyone, seconds = list(servers.values()), options.size(SECONDS, 2)

    def once(label):
        return measure.writer(servers[label], LABELS[label], everyone, action="inserts", clients=clients, seconds=seconds)

    answers = measure.in_turn([(label, label) for label in servers], options.rounds, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    ratios = {}
    for peer in ("PostgreSQL", "DuckDB Quack"):
        for ours in ("bowshot (ADBC)", "bowshot (ADBC, one call)"):
            if peer in figures and ours in figures:
                ratios[f"inserts per second, {ours} against {peer}"] = results.plain(
                    figures[ours]["inserts_per_second"] / figures[peer]["inserts_per_second"]
                )
    version = postgres.version() if "PostgreSQL" in servers else None
    results.record("inserts", f"{clients} client(s)", figures, ratios, options, seconds=seconds, disk=disk, postgres=version)
