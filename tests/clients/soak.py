"""The load of 50 ordinary clients, first alone and then beside one who attacks: no statement of theirs fails, and 99 of 100 take
at most three times as long as without him.

    python soak.py [--minutes 20] [--clients 50]

Runs the built server with its default limits but for time. Prints what it has found, and `N passed, N failed`."""

import argparse
import functools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import types

import hostile
import hostile_texts
from durable import Database
from server import Server, beside, together, users_file
from watch import resident

PROCESSES = 5
LIMITS = {"BOWSHOT_LIMITS_STATEMENT_TIMEOUT": "10s"}
MEMORY = 6 << 30
RATIO = 3.0
# What a client is told who meets a limit that the documents name.
DOCUMENTED = ("RESOURCE_EXHAUSTED", "more queries than", "try again")


def statements(client, random):
    """What an ordinary client does, one after another: look things up, count, read rows, write some of its own."""
    own = f"own_{client}"
    yield f"CREATE TABLE {own} (k BIGINT, v VARCHAR)"
    while True:
        key = random.randrange(1_000_000)
        yield f"SELECT k, g, v FROM facts WHERE k = {key}"
        yield "SELECT 1"
        yield f"SELECT g, count(*), sum(v), max(k) FROM facts WHERE k < {key} GROUP BY g ORDER BY g LIMIT 20"
        yield f"INSERT INTO {own} VALUES ({key}, 'x'), ({key + 1}, 'y')"
        yield f"SELECT f.g, n.name, count(*) FROM facts f JOIN names n ON n.g = f.g WHERE f.k % 100 = {key % 100} GROUP BY 1, 2"
        yield f"SELECT * FROM facts WHERE k BETWEEN {key} AND {key + 20_000}"
        yield f"SELECT count(*) FROM {own}"


def kind_of(sql):
    """A statement without what differs from one to the next."""
    return re.sub(r"\d+", "N", sql)[:60]


def work(uri, token, first, count, seconds):
    """One process of clients. Prints a line for each statement: how long it took, and what went wrong."""
    until, done, lock = time.monotonic() + seconds, [], threading.Lock()

    def client(number):
        chance = random.Random(number)
        with Database(types.SimpleNamespace(grpc_tcp=uri), token=token) as db:
            try:
                db.run(f"DROP TABLE IF EXISTS own_{number}")
            except Exception:
                pass
            for sql in statements(number, chance):
                if time.monotonic() > until:
                    return
                began, said = time.monotonic(), ""
                try:
                    db.arrow(sql) if sql.startswith("SELECT") else db.run(sql)
                except Exception as error:
                    said = f"{sql}: {error}"
                with lock:
                    done.append((kind_of(sql), time.monotonic() - began, said))
                time.sleep(chance.uniform(0.5, 1.5))

    together(*(functools.partial(client, first + number) for number in range(count)))
    json.dump(done, sys.stdout)


def load(server, token, clients, seconds):
    """What every statement of the ordinary clients took, and the errors."""
    each = clients // PROCESSES
    command = [sys.executable, __file__, "--work", server.grpc_tcp, token]
    running = [
        subprocess.Popen([*command, str(number * each), str(each), str(seconds)], stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    done = [one for process in running for one in json.loads(process.communicate()[0])]
    return [(kind, seconds) for kind, seconds, _ in done], [said for _, _, said in done if said]


def slowest(done):
    """The 99th percentile of each kind of statement."""
    kinds = sorted({kind for kind, _ in done})
    return {kind: round(percentile([seconds for other, seconds in done if other == kind]), 3) for kind in kinds}


def percentile(times, part=0.99):
    return sorted(times)[int(len(times) * part)]


def attack(server, token, done, stop):
    """Every hostile statement, again and again, until the others are ready."""
    groups = (hostile.planning, hostile.memory, hostile.loops, hostile.statements, *hostile_texts.GROUPS)
    inputs = [(name, sql) for group in groups for name, sql in group()]
    while not stop.is_set():
        random.shuffle(inputs)
        for name, sql in inputs:
            if stop.is_set():
                return
            ATTACK[0] = name
            try:
                with Database(server, token=token) as db:
                    for text in [sql] if isinstance(sql, str) else sql:
                        db.rows(text)
            except Exception:
                pass
            done.append(name)


def run(minutes, clients):
    tokens = {name: f"token-of-{name}" for name in ("ada", "eve")}
    failures, peak, during = [], 0, ""
    with tempfile.TemporaryDirectory() as folder:
        users = users_file(folder, tokens=tokens)
        environment = {**LIMITS, "BOWSHOT_LIMITS_MEMORY_BYTES": str(MEMORY)}
        data = pathlib.Path(folder) / "data"
        with Server(data=data, arguments=["--users-file", str(users)], environment=environment) as server:
            with Database(server, token=tokens["ada"]) as db:
                db.run(
                    "CREATE TABLE facts AS SELECT value AS k, value % 97 AS g, value * 0.5::DOUBLE AS v FROM generate_series(1, 1000000) AS s(value)",
                    "CREATE TABLE names AS SELECT value AS g, 'name ' || value AS name FROM generate_series(0, 96) AS s(value)",
                    "CREATE TABLE numbers AS SELECT value AS a, value * 2 AS b FROM generate_series(1, 10) AS s(value)",
                    "CREATE TABLE many AS SELECT value AS a FROM generate_series(1, 8192) AS s(value)",
                    "CREATE TABLE sink (a BIGINT)",
                )
            alone, wrong = load(server, tokens["ada"], clients, minutes * 60 / 4)
            failures += wrong
            done = []
            with beside(functools.partial(attack, server, tokens["eve"], done), functools.partial(watch, server)):
                attacked, wrong = load(server, tokens["ada"], clients, minutes * 60)
            failures += wrong
            peak, during = PEAK
            server.wait_idle(15)
    limits = [said for said in failures if any(word in said for word in DOCUMENTED)]
    failures = [said for said in failures if said not in limits]
    times = [[seconds for _, seconds in phase] for phase in (alone, attacked)]
    median, p99 = [percentile(phase, 0.5) for phase in times], [percentile(phase) for phase in times]
    print(f"alone: {len(alone)} statements, median {median[0]:.3f} s, p99 {p99[0]:.3f} s; by kind {slowest(alone)}")
    print(f"beside {len(done)} hostile statements: {len(attacked)}, median {median[1]:.3f} s, p99 {p99[1]:.3f} s; by kind {slowest(attacked)}")
    print(f"p99 {p99[1] / p99[0]:.2f} times; memory {peak >> 20} MiB in `{during}`; {len(limits)} met a limit; {len(failures)} failed")
    if p99[1] > RATIO * p99[0]:
        failures.append("too slow beside an attacker")
    if peak > MEMORY * 1.25:
        failures.append("too much memory")
    for failure in failures[:20]:
        print(f"FAILED {failure[:500]}")
    print(f"{len(alone) + len(attacked) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


# The largest memory so far, and which hostile statement ran then.
PEAK = [0, ""]
ATTACK = [""]


def watch(server, stop):
    while not stop.is_set():
        now = resident(server.process.pid)
        if now > PEAK[0]:
            PEAK[:] = now, ATTACK[0]
        time.sleep(0.1)


def main():
    if sys.argv[1:2] == ["--work"]:
        uri, token, first, count, seconds = sys.argv[2:]
        return work(uri, token, int(first), int(count), float(seconds))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--clients", type=int, default=50)
    given = parser.parse_args()
    return run(given.minutes, given.clients)


if __name__ == "__main__":
    sys.exit(main())
