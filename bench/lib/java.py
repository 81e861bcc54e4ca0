"""JDBC clients: `bench/java`, built once with Maven into the cache folder, and what its programs are told."""

import functools
import json
import pathlib
import re
import subprocess
import sys

from . import locks, places
from .environments import Unavailable, find_program

PROJECT = places.BENCH / "java"
# Rows that the drivers of MariaDB and PostgreSQL ask for at a time: they stream then, instead of keeping the whole result.
FETCH_ROWS = 10_000


@functools.cache
def build() -> pathlib.Path:
    """The folder of classes and drivers. Raises `Unavailable` without Java or Maven."""
    for name in ("java", "mvn"):
        find_program(name, "default-jdk-headless maven")
    built = places.CACHE / "bench-java"
    command = ["mvn", "-B", "-ntp", "-q", "compile", f"-Dfolder={built}"]
    with locks.alone(str(built)):
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-3000:], file=sys.stderr)
        raise Unavailable("the JDBC reader does not build")
    return built


def versions() -> dict:
    """Of the drivers, by the names of their packages."""
    text = (PROJECT / "pom.xml").read_text(encoding="utf-8").split("<dependencies>")[1].split("</dependencies>")[0]
    return dict(re.findall(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>", text))


def address(order: dict) -> str:
    if order["kind"] in ("jdbc-mariadb", "jdbc-mysql"):
        place = json.loads(order["uri"])
        return f"{order['kind'].replace('-', ':')}://127.0.0.1:{place['port']}/{place['database']}?user=root"
    if order["kind"] == "jdbc-postgres":
        return f"jdbc:{order['uri'].replace('postgres@', '')}?user=postgres"
    return f"jdbc:arrow-flight-sql://{order['uri'].split('://')[1]}?useEncryption=false"


def words(order: dict) -> list:
    """The class of `bench/java` that does what the order says, and its arguments."""
    if order["action"] == "fetch":
        return ["bench.Read", address(order), order["query"], FETCH_ROWS, order["repeats"], order["budget_s"]]
    # `latency` has a number of repeats and one client, `concurrent` a number of clients and a time; with `keys` they prepare.
    counts = [order.get("clients", 1), order["warmup"], order.get("repeats", 0), order.get("seconds", 0)]
    return ["bench.Latency", address(order), order["query"], *counts, *([order["keys"]] if "keys" in order else [])]
