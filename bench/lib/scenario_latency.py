"""`SELECT 1`: one round trip (SQL text as ticket), two round trips, and 32 clients at once.

One client at a time is pyarrow (DuckDB for Quack). The 32 clients are measured twice: by `flight_load`, a load
generator that costs little itself, and by threads in Python, where Quack can be compared.
"""

import contextlib
import json
import subprocess

from . import measure, places, processes, results
from .options import Options

REPEATS = 2_000
WARMUP = 200
CLIENTS = 32
SECONDS = 5


def run(options: Options) -> None:
    with contextlib.ExitStack() as stack:
        contenders = []
        if options.chosen("bowshot"):
            server = stack.enter_context(processes.bowshot({}))
            contenders.append(("bowshot, SQL ticket", server, "flight-ticket"))
            contenders.append(("bowshot, GetFlightInfo + DoGet", server, "flight-info"))
        if options.chosen("DuckDB Quack"):
            quack = stack.enter_context(processes.peer("quack", "quack", "quack_server.py", {}))
            contenders.append(("DuckDB Quack", quack, "quack"))
        one_client(contenders, options)
        if options.chosen("bowshot"):
            load(server, options)
        many_clients(contenders, options)


def one_client(contenders: list, options: Options) -> None:
    repeats = options.size(REPEATS, 200)

    def once(server, kind):
        return measure.client(server, kind, action="latency", query="SELECT 1", repeats=repeats, warmup=WARMUP)

    answers = measure.in_turn(contenders, options.rounds, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    wanted = {"bowshot, SQL ticket": 1.0, "bowshot, GetFlightInfo + DoGet": 2.0}
    ratios = {
        f"{label}: median in ms": results.at_most(figures[label]["median_ms"], limit)
        for label, limit in wanted.items()
        if label in figures
    }
    if "DuckDB Quack" in figures and "bowshot, SQL ticket" in figures:
        ratios["Quack against SQL ticket"] = results.plain(
            figures["DuckDB Quack"]["median_ms"] / figures["bowshot, SQL ticket"]["median_ms"]
        )
    results.record("latency", "one client", figures, ratios, options, repeats=repeats)


def load(server: processes.Server, options: Options) -> None:
    seconds = options.size(SECONDS, 1)

    def once(mode):
        uri = server.uri.replace("grpc+tcp://", "")
        command = [places.program("flight_load"), "--uri", uri, "--mode", mode]
        command += ["--clients", str(CLIENTS), "--seconds", str(seconds), "--sql", "SELECT 1"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    contenders = [("bowshot, SQL ticket", "ticket"), ("bowshot, GetFlightInfo + DoGet", "info")]
    answers = measure.in_turn(contenders, options.rounds, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    results.record("latency", f"{CLIENTS} clients, load generator", figures, {}, options, seconds=seconds)


def many_clients(contenders: list, options: Options) -> None:
    seconds = options.size(SECONDS, 1)

    def once(server, kind):
        return measure.client(
            server, kind, action="concurrent", query="SELECT 1", clients=CLIENTS, seconds=seconds
        )

    answers = measure.in_turn(contenders, options.rounds, once)
    figures = {label: measure.medians(answers[label]) for label in answers}
    ratios = {}
    if "DuckDB Quack" in figures and "bowshot, SQL ticket" in figures:
        ratios["queries per second, SQL ticket against Quack"] = results.plain(
            figures["bowshot, SQL ticket"]["queries_per_second"] / figures["DuckDB Quack"]["queries_per_second"]
        )
    results.record("latency", f"{CLIENTS} clients, Python threads", figures, ratios, options, seconds=seconds)
