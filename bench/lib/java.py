"""JDBC clients: `bench/java`, built once with Maven into the cache folder. As a program it takes the same order as
`client.py`, starts Java with it, and prints the same answer: of a result that is read whole, or of small queries.
"""

import functools
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys

SCRIPT = pathlib.Path(__file__)
PROJECT = SCRIPT.parents[1] / "java"
# Rows that the drivers of MariaDB and PostgreSQL ask for at a time: they stream then, instead of keeping the whole result.
FETCH_ROWS = 10_000


@functools.cache
def command() -> tuple:
    """How the bench starts this client; builds it. Raises `Unavailable` without Java or Maven."""
    from . import locks, places
    from .environments import Unavailable

    for name in ("java", "mvn"):
        if shutil.which(name) is None:
            raise Unavailable(f"there is no `{name}`: `apt-get install default-jdk-headless maven`")
    built = places.CACHE / "bench-java"
    build = ["mvn", "-B", "-ntp", "-q", "compile", f"-Dfolder={built}"]
    with locks.alone(str(built)):
        done = subprocess.run(build, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-3000:], file=sys.stderr)
        raise Unavailable("the JDBC reader does not build")
    return sys.executable, "-W", "ignore", str(SCRIPT), str(built)


PROGRAMS = {kind: lambda: list(command()) for kind in ("jdbc-flight", "jdbc-mariadb", "jdbc-postgres")}


def versions() -> dict:
    """Of the drivers, by the names of their packages."""
    text = (PROJECT / "pom.xml").read_text(encoding="utf-8").split("<dependencies>")[1].split("</dependencies>")[0]
    return dict(re.findall(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>", text))


def address(order: dict) -> str:
    if order["kind"] == "jdbc-mariadb":
        place = json.loads(order["uri"])
        return f"jdbc:mariadb://127.0.0.1:{place['port']}/{place['database']}?user=root"
    if order["kind"] == "jdbc-postgres":
        return f"jdbc:{order['uri'].replace('postgres@', '')}?user=postgres"
    return f"jdbc:arrow-flight-sql://{order['uri'].split('://')[1]}?useEncryption=false"


def words(order: dict) -> list:
    """The class of `bench/java` that does what the order says, and its arguments."""
    if order["action"] == "fetch":
        return ["bench.Read", address(order), order["query"], FETCH_ROWS, order["repeats"], order["budget_s"]]
    # `latency` has a number of repeats and one client, `concurrent` a number of clients and a time.
    counts = [order.get("clients", 1), order["warmup"], order.get("repeats", 0), order.get("seconds", 0)]
    return ["bench.Latency", address(order), order["query"], *counts]


def told(answer: dict) -> dict:
    """The answer in the words of `client.py`."""
    if "times_ns" not in answer:
        return answer
    sys.path.insert(0, str(SCRIPT.resolve().parents[1]))
    from lib import latencies

    return latencies.figures([time / 1e9 for time in answer["times_ns"]], answer["seconds"])


def main():
    built, order = pathlib.Path(sys.argv[1]), json.load(sys.stdin)
    java = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-Duser.timezone=UTC"]
    java += ["-cp", f"{built}/classes:{built}/jars/*", *map(str, words(order))]
    done = subprocess.run(java, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = told(json.loads(done.stdout.splitlines()[-1]))
    print(json.dumps({
        **answer, "client_cpu_s": used.ru_utime + used.ru_stime, "client_peak_rss": used.ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
