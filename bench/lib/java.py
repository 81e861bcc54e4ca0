"""JDBC clients: `bench/java`, built once with Maven into the cache folder. As a program it takes the same order as
`client.py`, starts Java with it, and prints the same answer.
"""

import functools
import json
import pathlib
import resource
import shutil
import subprocess
import sys

SCRIPT = pathlib.Path(__file__)
PROJECT = SCRIPT.parents[1] / "java"
# Rows that MariaDB's driver asks for at a time: it streams then, instead of keeping the whole result.
FETCH_ROWS = 10_000


@functools.cache
def command() -> tuple:
    """How the bench starts this client; builds it. Raises `Unavailable` without Java or Maven."""
    from . import places
    from .environments import Unavailable

    for name in ("java", "mvn"):
        if shutil.which(name) is None:
            raise Unavailable(f"there is no `{name}`: `apt-get install default-jdk-headless maven`")
    built = places.CACHE / "bench-java"
    build = ["mvn", "-B", "-ntp", "-q", "compile", f"-Dfolder={built}"]
    done = subprocess.run(build, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-3000:], file=sys.stderr)
        raise Unavailable("the JDBC reader does not build")
    return sys.executable, "-W", "ignore", str(SCRIPT), str(built)


PROGRAMS = {"jdbc-flight": lambda: list(command()), "jdbc-mariadb": lambda: list(command())}


def address(order: dict) -> str:
    if order["kind"] == "jdbc-mariadb":
        return f"jdbc:mariadb://127.0.0.1:{json.loads(order['uri'])['port']}/test?user=root"
    return f"jdbc:arrow-flight-sql://{order['uri'].split('://')[1]}?useEncryption=false"


def main():
    built, order = pathlib.Path(sys.argv[1]), json.load(sys.stdin)
    java = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-Duser.timezone=UTC"]
    java += ["-cp", f"{built}/classes:{built}/jars/*", "bench.Read", address(order), order["query"]]
    last = [str(FETCH_ROWS), str(order["repeats"]), str(order["budget_s"])]
    done = subprocess.run([*java, *last], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({
        **answer, "client_cpu_s": used.ru_utime + used.ru_stime, "client_peak_rss": used.ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
