"""Small queries: how long one takes from one client, and how many a second 1 to 64 clients get, by every client that there
is for the protocol. Each line has the percentiles and the queries per second of each contender.

Clients in Python are threads of one process, each with its own connection: with many of them the figure is that of
Python as much as of the server, alike for all sides. Those over JDBC are threads in Java, compared with one another.
`flight_load` is a load generator that costs little itself; it speaks Flight, so that only our figures come from it.
`bowshot sql` is a process for each query, and one client only.
"""

import json
import subprocess

from .. import data, java, measure, places, processes, programs, readers
from ..arena import Arena, Contender
from ..options import Options

QUERY = "SELECT 1"
# Queries of each client before those that are timed: of one, of each of many, of one that is a process for each query.
WARMUP, WARMUP_OF_MANY, WARMUP_PROCESSES = 200, 10, 2
CONTENDERS = [
    Contender("bowshot, SQL ticket", "bowshot", "flight-ticket", "arrow"),
    Contender("bowshot, GetFlightInfo + DoGet", "bowshot", "flight-info", "arrow"),
    Contender("bowshot (ADBC)", "bowshot", "adbc", "arrow"),
    Contender("bowshot (ADBC, prepared)", "bowshot", "adbc-prepared", "arrow"),
    Contender("bowshot (JDBC)", "bowshot", "jdbc-flight", "values"),
    Contender("bowshot, PostgreSQL's protocol (psycopg)", "bowshot-pg", "psycopg", "rows"),
    Contender("bowshot, PostgreSQL's protocol (JDBC)", "bowshot-pg", "jdbc-postgres", "values"),
    Contender("bowshot, MySQL's protocol (PyMySQL)", "bowshot-mysql", "pymysql", "rows"),
    Contender("bowshot, MySQL's protocol (JDBC)", "bowshot-mysql", "jdbc-mariadb", "values"),
    Contender("bowshot sql, a process each", "bowshot", programs.BOWSHOT_SQL, "text"),
    Contender("DuckDB Quack", "quack", "quack", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
    Contender("ROAPI (ADBC)", "roapi", "adbc", "arrow"),
    Contender("PostgreSQL (psycopg)", "postgres", "psycopg", "rows"),
    Contender("PostgreSQL (JDBC)", "postgres", "jdbc-postgres", "values"),
    Contender("MariaDB (PyMySQL)", "mariadb", "pymysql", "rows"),
    Contender("MariaDB (JDBC)", "mariadb", "jdbc-mariadb", "values"),
]
LOAD_MODES = {"bowshot, SQL ticket": "ticket", "bowshot, GetFlightInfo + DoGet": "info"}
# Clients that can be many in one process, by the language of its threads.
THREADS = {"Python": readers.KINDS, "Java": programs.JDBC}


def run(options: Options) -> None:
    with Arena(options, {"one": str(data.parquet("integer", 1))}) as arena:
        chosen = [(label, server, contender.reader) for label, server, contender in arena.choose(CONTENDERS)]
        one_client(chosen, arena)
        for clients in options.size((4,), (1, 8, 64), (1, 4, 16, 32, 64)):
            for language, kinds in THREADS.items():
                many_clients(language, [one for one in chosen if one[-1] in kinds], clients, arena)
            load([one for one in chosen if one[0] in LOAD_MODES], clients, arena)


def one_client(chosen: list, arena: Arena) -> None:
    counts = {label: amounts(kind, arena.options) for label, _, kind in chosen}

    def once(server, kind):
        return measure.client(server, kind, action="latency", query=QUERY, **amounts(kind, arena.options))

    record("one client", chosen, once, arena, {"way": "one client", "clients": 1}, queries=counts)


def amounts(kind: str, options: Options) -> dict:
    """How many queries one client sends in a turn: those that are timed, and those before."""
    if kind == programs.BOWSHOT_SQL:
        return {"repeats": options.size(5, 100, 500), "warmup": WARMUP_PROCESSES}
    warmup = java_warmup(options) if kind in programs.JDBC else WARMUP
    return {"repeats": options.size(100, 1_000, 2_000), "warmup": warmup}


def java_warmup(options: Options) -> int:
    """Of all clients of one process together: Java compiles what has run some thousand times."""
    return options.size(100, 5_000, 5_000)


def many_clients(language: str, chosen: list, clients: int, arena: Arena) -> None:
    seconds = arena.options.size(0.5, 3, 5)
    warmup = max(WARMUP_OF_MANY, java_warmup(arena.options) // clients) if language == "Java" else WARMUP_OF_MANY

    def once(server, kind):
        return measure.client(server, kind, action="concurrent", query=QUERY, clients=clients, seconds=seconds, warmup=warmup)

    axes = {"way": f"threads in {language}", "clients": clients}
    record(f"{clients} clients, {language} threads", chosen, once, arena, axes, seconds=seconds, warmup=warmup)


def load(chosen: list, clients: int, arena: Arena) -> None:
    seconds = arena.options.size(1, 3, 5)

    def once(server, mode):
        return generated(server, mode, clients, seconds)

    axes = {"way": "load generator", "clients": clients}
    modes = [(label, server, LOAD_MODES[label]) for label, server, _ in chosen]
    record(f"{clients} clients, load generator", modes, once, arena, axes, seconds=seconds)


def generated(server: processes.Server, mode: str, clients: int, seconds: int) -> dict:
    """What the load generator says, and the processor time that the server spent meanwhile."""
    command = [places.program("flight_load"), "--uri", server.uri.replace("grpc+tcp://", ""), "--mode", mode]
    command += ["--clients", str(clients), "--seconds", str(seconds), "--sql", QUERY]
    before = server.cpu_seconds()
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {**answer, "p50_ms": answer["median_ms"], "server_cpu_s": server.cpu_seconds() - before}


def record(case: str, chosen: list, once, arena: Arena, axes: dict, **settings) -> None:
    if not chosen or not arena.options.has_case(case):
        return
    answers = measure.in_turn(chosen, arena.options, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    drivers = java.versions() if any("JDBC" in label for label in figures) else {}
    arena.record("latency", case, figures, axes=axes, client_versions=drivers, **settings)
