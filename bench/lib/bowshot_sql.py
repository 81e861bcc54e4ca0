"""`bowshot sql`, as a client of the bench: takes the same order as `client.py` and prints the same answer.

Every query is a process of its own, as in a script for the shell: its time is that of the start of the program, of a
connection, and of the query.
"""

import json
import pathlib
import resource
import subprocess
import sys
import time

SCRIPT = pathlib.Path(__file__)
KIND = "bowshot-sql"


def command() -> list:
    """How the bench starts this client."""
    from . import places

    return [sys.executable, "-W", "ignore", str(SCRIPT), places.program("bowshot")]


PROGRAMS = {KIND: command}


def main():
    sys.path.insert(0, str(SCRIPT.resolve().parents[1]))
    from lib import latencies

    program, order = sys.argv[1], json.load(sys.stdin)
    times = [asked(program, order) for _ in range(order["warmup"] + order["repeats"])][order["warmup"] :]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({
        **latencies.figures(times, sum(times)), "client_cpu_s": used.ru_utime + used.ru_stime,
        "client_peak_rss": used.ru_maxrss * 1024,
    }))


def asked(program: str, order: dict) -> float:
    """Seconds of one query."""
    started = time.perf_counter()
    done = subprocess.run(
        [program, "sql", "--uri", order["uri"], "--format", "csv", order["query"]], capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0 or len(done.stdout.splitlines()) != 2:  # a header and a row
        sys.exit(f"{done.returncode}: {done.stdout}{done.stderr}")
    return seconds


if __name__ == "__main__":
    main()
