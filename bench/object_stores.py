"""Object stores: lineitem from SeaweedFS on this machine against the same file on disk, first and second time, and with the
server's own caches of columns and results off. DuckDB's httpfs is compared where the extension is installed beside DuckDB.

    cargo build --release -p bowshot
    pip install -r bench/requirements/sources.txt
    python bench/object_stores.py FOLDER_OF_PROGRAMS LINEITEM.parquet [--rounds 5] [--json FILE]

`bowshot demo` makes such a file. Prints one JSON line with the median of each query's times, in seconds, and adds it to FILE.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("tests/sources", "tests/clients", "bench")]

QUERIES = {
    "count": "SELECT count(*), sum(l_quantity) FROM lineitem",
    "q1": "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), count(*) FROM lineitem "
          "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2",
    "q6": "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND "
          "l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "comments": "SELECT count(DISTINCT l_comment) FROM lineitem",
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("lineitem", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def timed(rows, sql):
    start = time.perf_counter()
    answer = rows(sql)
    return time.perf_counter() - start, answer


def served(source, environment, data, rounds):
    """Times of a server that has read nothing, and of one that has everything on disk: each round is two servers."""
    from durable import Database
    from server import Server

    arguments = ["--set", "result_cache.memory_bytes=0", "--set", "storage.column_cache_bytes=0"]
    first, second, answers = {}, {}, {}
    for number in range(rounds):
        folder = data / str(number)
        for times in (first, second):
            with Server(source, arguments=arguments, data=folder, environment=environment) as server, Database(server) as database:
                database.rows("SELECT * FROM lineitem LIMIT 1")
                for name, sql in QUERIES.items():
                    taken, answers[name] = timed(database.rows, sql)
                    times.setdefault(name, []).append(taken)
    median = lambda times: {name: round(statistics.median(taken), 4) for name, taken in times.items()}  # noqa: E731
    return median(first), median(second), answers


def duckdb_httpfs(store, rounds):
    """None where the extension cannot be had."""
    import duckdb
    from lib import duckdb_extensions

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    try:
        duckdb_extensions.load(connection, "httpfs")
    except ImportError:
        return None
    import stores

    connection.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{stores.KEY}', SECRET '{stores.SECRET}', REGION 'us-east-1', "
                       f"ENDPOINT '127.0.0.1:{store.port}', URL_STYLE 'path', USE_SSL false)")
    connection.execute("CREATE VIEW lineitem AS FROM 's3://lake/bench/lineitem.parquet'")
    times = {name: [timed(lambda sql: connection.execute(sql).fetchall(), sql)[0] for _ in range(rounds)]
             for name, sql in QUERIES.items()}
    return {name: round(statistics.median(taken), 4) for name, taken in times.items()}


def main():
    chosen = options()
    os.environ["BOWSHOT_BIN"] = str(chosen.programs)
    import stores

    load = os.getloadavg()[0]
    with stores.SeaweedFS() as store, tempfile.TemporaryDirectory() as folder:
        store.write("lake/bench/lineitem.parquet", chosen.lineitem.read_bytes())
        folder = pathlib.Path(folder)
        disk, disk_again, here = served(chosen.lineitem, None, folder / "local", chosen.rounds)
        remote, cached, there = served("s3://lake/bench/lineitem.parquet", store.environment(), folder / "remote", chosen.rounds)
        assert here == there
        line = {"scenario": "object_stores", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "commit": subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip(),
                "machine": {"processors": os.cpu_count(), "system": platform.platform()}, "load": load,
                "bytes": chosen.lineitem.stat().st_size, "rounds": chosen.rounds, "local": disk, "local_again": disk_again,
                "store": remote, "store_again": cached, "duckdb_httpfs": duckdb_httpfs(store, chosen.rounds)}
        print(json.dumps(line))
        if chosen.json:
            with open(chosen.json, "a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
