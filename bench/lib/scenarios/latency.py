"""Small queries: how long one takes from one client, and how many a second 1 to 64 clients get.

Clients in Python are threads of one process, each with its own connection: with many of them the figure is that of
Python as much as of the server, alike for all sides. `flight_load` is a load generator that costs little itself; it
speaks Flight, so that only our figures come from it.
"""

import contextlib
import json
import subprocess

from .. import data, measure, places, processes, results
from ..arena import Arena
from ..contest import Contender, missing_reader
from ..options import Options

QUERY = "SELECT 1"
WARMUP = 200
CONTENDERS = [
    Contender("bowshot, SQL ticket", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot, GetFlightInfo + DoGet", "bowshot", "flight-info", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender("DuckDB Quack", "quack", "quack", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
    Contender("ROAPI (ADBC)", "roapi", "adbc", "arrow"),
    Contender("PostgreSQL (psycopg)", "postgres", "psycopg", "rows"),
    Contender("MariaDB (PyMySQL)", "mariadb", "pymysql", "rows"),
]
WANTED_MS = {"bowshot, SQL ticket": 1.0, "bowshot, GetFlightInfo + DoGet": 2.0}
LOAD_MODES = {"bowshot, SQL ticket": "ticket", "bowshot, GetFlightInfo + DoGet": "info"}


def run(options: Options) -> None:
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, {"one": str(data.parquet_integer(1))})
        chosen = [
            (contender.label, arena.server(contender.peer), contender.reader) for contender in CONTENDERS
            if options.chosen(contender.label) and not missing_reader(contender, arena) and arena.server(contender.peer)
        ]
        one_client(chosen, arena)
        for clients in options.size((4,), (1, 8, 64), (1, 4, 16, 32, 64)):
            many_clients(chosen, clients, arena)
            if any(label in LOAD_MODES for label, *_ in chosen):
                load(arena.server("bowshot"), clients, arena)


def one_client(chosen: list, arena: Arena) -> None:
    repeats = arena.options.size(100, 1_000, 2_000)

    def once(server, kind):
        return measure.client(server, kind, action="latency", query=QUERY, repeats=repeats, warmup=WARMUP)

    record("one client", chosen, once, arena, {"way": "one client"}, WANTED_MS, repeats=repeats)


def many_clients(chosen: list, clients: int, arena: Arena) -> None:
    seconds = arena.options.size(0.5, 3, 5)

    def once(server, kind):
        return measure.client(server, kind, action="concurrent", query=QUERY, clients=clients, seconds=seconds)

    axes = {"way": "threads in Python", "clients": clients}
    record(f"{clients} clients, Python threads", chosen, once, arena, axes, seconds=seconds)


def load(server: processes.Server, clients: int, arena: Arena) -> None:
    seconds = arena.options.size(1, 3, 5)

    def once(mode):
        uri = server.uri.replace("grpc+tcp://", "")
        command = [places.program("flight_load"), "--uri", uri, "--mode", mode]
        command += ["--clients", str(clients), "--seconds", str(seconds), "--sql", QUERY]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {**answer, "p50_ms": answer["median_ms"]}

    axes = {"way": "load generator", "clients": clients}
    record(f"{clients} clients, load generator", list(LOAD_MODES.items()), once, arena, axes, seconds=seconds)


def record(case: str, chosen: list, once, arena: Arena, axes: dict, wanted_ms=None, **settings) -> None:
    answers = measure.in_turn(chosen, arena.options, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    wanted = {
        f"{label}: median in ms": results.at_most(figures[label]["median_ms"], limit)
        for label, limit in (wanted_ms or {}).items() if label in figures
    }
    results.record(
        "latency", case, figures, wanted, arena.options, axes=axes, missing=arena.missing, peer_versions=arena.versions(),
        **settings,
    )
