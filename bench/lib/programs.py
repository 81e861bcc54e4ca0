"""Clients that are programs: Java with a driver of JDBC (`bench/java`), `mysql --quick`, and `bowshot sql`. As a program this takes
the same order as `client.py` and prints the same answer; its only argument is the program, or the folder of Java's classes.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(SCRIPT.parents[1]))

from lib import java, latencies, places, transaction_tools

BOWSHOT_SQL = "bowshot-sql"
BLOCK_BYTES = 1 << 26


def run_java(built: str, order: dict) -> dict:
    command = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-Duser.timezone=UTC"]
    command += ["-cp", f"{built}/classes:{built}/jars/*", *map(str, java.words(order))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout.splitlines()[-1])
    if "times_ns" in answer:
        return latencies.figures([time / 1e9 for time in answer["times_ns"]], answer["seconds"])
    return answer


def run_bowshot_sql(program: str, order: dict) -> dict:
    """Every query is a process of its own, as in a script for the shell: its time is that of the start of the program, of a
    connection, and of the query."""
    times = []
    for _ in range(order["warmup"] + order["repeats"]):
        started = time.perf_counter()
        command = [program, "sql", "--uri", order["uri"], "--format", "csv", order["query"]]
        done = subprocess.run(command, capture_output=True, text=True)
        times.append(time.perf_counter() - started)
        if done.returncode != 0 or len(done.stdout.splitlines()) != 2:  # a header and a row
            sys.exit(f"{done.returncode}: {done.stdout}{done.stderr}")
    times = times[order["warmup"] :]
    return latencies.figures(times, sum(times))


def run_mysql_quick(program: str, order: dict) -> dict:
    """Output goes to a file in memory that nobody reads, as in the published measurement; of the run that is checked it is parsed
    afterwards."""
    address = json.loads(order["uri"])
    command = [program, "--no-defaults", "--quick", "--batch", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(address["port"])]
    command += ["-u", "root", "--skip-column-names", address["database"], "-e", order["query"]]
    runs, found = [], None
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = pathlib.Path(folder) / "rows"
        for index in range(order["repeats"]):
            if sum(run["seconds"] for run in runs) > order["budget_s"]:
                break
            with open(path, "wb") as out:
                started = time.perf_counter()
                subprocess.run(command, check=True, stdout=out)
                seconds = time.perf_counter() - started
            if index == 0 and order.get("check"):
                found = parse_rows(path)
            with open(path, "rb") as file:
                rows = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 24), b""))
            runs.append({"seconds": seconds, "bytes": 0, "rows": rows})
    return {"runs": runs, "digest": found}


def parse_rows(path: pathlib.Path) -> dict:
    """The digest of tab-separated rows, of which some are in memory at a time; a column's type is that of its first ones."""
    import pyarrow.csv as csv

    from lib import digest

    with csv.open_csv(
        path, csv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK_BYTES),
        csv.ParseOptions(delimiter="\t", quote_char=False),
        csv.ConvertOptions(null_values=["NULL"], strings_can_be_null=True),
    ) as batches:
        return digest.of_batches(batches)


def find_mysql() -> str:
    from lib import mariadb  # which imports what would only slow down the others

    return mariadb.program("mariadb")


JDBC = dict.fromkeys(("jdbc-flight", "jdbc-mariadb", "jdbc-mysql", "jdbc-postgres"), (java.build, run_java))
# By kind: what finds or builds the program, or raises `Unavailable`, and what runs it.
KINDS = {
    **JDBC, BOWSHOT_SQL: (lambda: places.program("bowshot"), run_bowshot_sql),
    "mysql-quick": (find_mysql, run_mysql_quick), **transaction_tools.KINDS,
}


def command(kind: str) -> list:
    """How the bench starts a client of that kind."""
    find, _ = KINDS[kind]
    return [sys.executable, "-W", "ignore", str(SCRIPT), str(find())]


def main():
    order = json.load(sys.stdin)
    _, run = KINDS[order["kind"]]
    answer = run(sys.argv[1], order)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({**answer, "client_cpu_s": used.ru_utime + used.ru_stime, "client_peak_rss": used.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
