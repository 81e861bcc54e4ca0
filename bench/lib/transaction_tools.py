"""Tools that send transactions by the protocols of PostgreSQL and MySQL: pgbench, sysbench, and TPC-C of go-tpc. The action of an order
is `prepare`, which makes the tables anew, or `run`, which checks afterwards that what they hold is what the transactions have left.
"""

import json
import os
import re
import subprocess
import sys
import urllib.parse

from . import locks, places
from .environments import Unavailable, find_program

# How often pgbench runs a transaction that was refused because another one had changed the same rows.
MAX_TRIES = 100
GO_TPC = "v1.0.12"
BALANCES = "SELECT (SELECT count(*) FROM pgbench_history), " + ", ".join(
    f"(SELECT coalesce(sum({column}), 0) FROM pgbench_{table})" for table, column in
    (("history", "delta"), ("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"))
)


def build_go_tpc() -> str:
    """Built by Go from its module proxy into the cache folder, once."""
    folder, go = places.CACHE / f"go-tpc-{GO_TPC}", find_program("go", "golang-go")
    with locks.alone(str(folder)):
        if not (folder / "go-tpc").exists():
            environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-trimpath -buildvcs=false"}
            command = [go, "install", f"github.com/pingcap/go-tpc/cmd/go-tpc@{GO_TPC}"]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                print(done.stderr[-3000:], file=sys.stderr)
                raise Unavailable(f"go-tpc {GO_TPC} does not build")
    return str(folder / "go-tpc")


def address(uri: str) -> tuple:
    """Protocol, port, user and database."""
    if uri.startswith("{"):
        place = json.loads(uri)
        return "mysql", place["port"], "root", place["database"]
    parts = urllib.parse.urlsplit(uri)
    return "postgres", parts.port, parts.username, parts.path[1:]


def first_row(uri: str, query: str) -> tuple:
    from . import readers  # which imports what would only slow down other programs

    return readers.KINDS["pymysql" if uri.startswith("{") else "psycopg"](uri).rows(query)[0]


def output(command: list) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"no `{pattern}` in what the tool says:\n{text[-3000:]}")
    return float(found[1])


def expect(what: str, found, wanted) -> None:
    if found != wanted:
        sys.exit(f"{what}: {found} and not {wanted}")


def run_pgbench(program: str, order: dict) -> dict:
    _, port, user, database = address(order["uri"])
    command = [program, "-h", "127.0.0.1", "-p", port, "-U", user]
    if order["action"] == "prepare":
        output([*command, "-i", "-q", "-s", order["scale"], database])
        return {}
    before = first_row(order["uri"], BALANCES)
    command += ["-n", "-c", order["clients"], "-T", order["seconds"], f"--max-tries={MAX_TRIES}", *order["words"], database]
    told = output(command)
    rows, delta, *balances = (new - old for new, old in zip(first_row(order["uri"], BALANCES), before))
    processed = number(r"actually processed: (\d+)", told)
    # `-S` changes nothing, `-N` neither tellers nor branches.
    expect("rows of pgbench_history", rows, 0 if "-S" in order["words"] else processed)
    expect("sums of accounts, tellers, branches", balances, [delta, 0, 0] if "-N" in order["words"] else [delta] * 3)
    return {
        "transactions_per_second": number(r"tps = ([\d.]+)", told), "mean_ms": number(r"latency average = ([\d.]+)", told),
        "failed": number(r"failed transactions: (\d+)", told), "retries": sum(map(int, re.findall(r"number of retries: (\d+)", told))),
    }


def run_sysbench(program: str, order: dict) -> dict:
    protocol, port, user, database = address(order["uri"])
    driver = {"mysql": "mysql", "postgres": "pgsql"}[protocol]
    command = [program, order.get("workload", "oltp_read_write"), f"--db-driver={driver}"]
    command += [f"--{driver}-{name}={value}" for name, value in (("host", "127.0.0.1"), ("port", port), ("user", user), ("db", database))]
    command += ["--tables=1", f"--table-size={order['rows']}"]
    if order["action"] == "prepare":
        output([*command, "cleanup"])
        output([*command, "prepare"])
        return {}
    told = output([*command, f"--threads={order['clients']}", f"--time={order['seconds']}", "run"])
    # Each transaction that deletes a row inserts one with the same id.
    expect("rows and ids of sbtest1", first_row(order["uri"], "SELECT count(*), count(DISTINCT id) FROM sbtest1"), (order["rows"],) * 2)
    return {
        "transactions_per_second": number(r"transactions: +\d+ +\(([\d.]+) per sec", told), "mean_ms": number(r"avg: +([\d.]+)", told),
        "p95_ms": number(r"95th percentile: +([\d.]+)", told), "failed": number(r"ignored errors: +(\d+)", told),
    }


def run_go_tpc(program: str, order: dict) -> dict:
    protocol, port, user, database = address(order["uri"])
    where = ["-d", protocol, "-H", "127.0.0.1", "-P", port, "-U", user, "-D", database, "--warehouses", 1]
    where += ["--conn-params", "sslmode=disable"] if protocol == "postgres" else []
    if order["action"] == "prepare":
        output([program, "tpcc", "prepare", *where, "--dropdata", "--no-check", "-T", 4])
        return {}
    told = output([program, "tpcc", "run", *where, "-T", order["clients"], "--time", f"{order['seconds']}s", "--ignore-error", "--silence"])
    if order["ours"]:  # MariaDB takes minutes for condition 3.3.2.10
        checked = output([program, "tpcc", "check", *where])
        expect("what `check` says of failures", re.findall(r".*failed.*", checked), [])
    return {
        "transactions_per_second": number(r"tpmTotal: ([\d.]+)", told) / 60, "new_orders_per_minute": number(r"tpmC: ([\d.]+)", told),
        "failed": sum(map(int, re.findall(r"Summary\] \w+_ERR .*?Count: (\d+)", told))),
    }


# By kind, as `programs.KINDS`: what finds or builds the program, and what runs it.
KINDS = {
    "pgbench": (lambda: find_program("pgbench", "postgresql"), run_pgbench),
    "sysbench": (lambda: find_program("sysbench", "sysbench"), run_sysbench),
    "go-tpc": (build_go_tpc, run_go_tpc),
}
