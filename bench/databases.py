"""Tables of PostgreSQL: rows into an Arrow table at a client, through Bowshot and directly by the ADBC driver that Bowshot uses too;
in turn, each in a process of its own, the first turn not counted.

    cargo build --release -p bowshot
    pip install -r tests/sources/requirements-databases.txt
    python bench/databases.py FOLDER_OF_PROGRAMS [--rows 10000000] [--rounds 5] [--json FILE]

Prints a line for each case and adds one JSON line for each to FILE. `parallel` is Bowshot as it is configured by default; `one connection` has
`parallel = false`, which is what the driver does itself.
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
sys.path[:0] = [str(ROOT / "tests/sources"), str(ROOT / "tests/clients")]

CASES = {
    "numbers": "id, a, b, f",
    "texts": "id, t, u",
    "decimals and days": "id, d, day, at",
    "all columns": "id, a, b, f, t, u, d, day, at",
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, nargs="?")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--fetch", nargs=3, metavar=("HOW", "URI", "SQL"), help="what a contender runs; for the bench itself")
    return parser.parse_args()


def fetch(how, uri, sql):
    """One contender, in a process of its own."""
    if how == "direct":
        import adbc_driver_postgresql.dbapi as dbapi
    else:
        import adbc_driver_flightsql.dbapi as dbapi
    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchall()
        start = time.perf_counter()
        cursor.execute(sql)
        table = cursor.fetch_arrow_table()
        print(json.dumps({"seconds": time.perf_counter() - start, "rows": table.num_rows, "bytes": table.nbytes}))


def run(how, uri, sql):
    words = [sys.executable, __file__, "--fetch", how, uri, sql]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fill(postgres, rows):
    postgres.run(
        "CREATE UNLOGGED TABLE wide (id bigint PRIMARY KEY, a int, b bigint, f float8, t text, u varchar(20), d numeric(12, 2), day date, at timestamp)",
        f"""INSERT INTO wide SELECT g, g % 1000, g * 7919 % 1000003, g * 0.25, 'a text of row ' || g, 'u' || g % 97, (g % 1000000) / 100.0,
            DATE '2020-01-01' + (g % 2000)::int, TIMESTAMP '2020-01-01' + g * interval '1 second' FROM generate_series(1, {rows}) g""",
        "VACUUM ANALYZE wide")


def main():
    given = options()
    if given.fetch:
        return fetch(*given.fetch)
    os.environ["BOWSHOT_BIN"] = str(given.programs)
    import databases

    postgres = databases.Postgres()
    try:
        fill(postgres, given.rows)
        entry = {"uri": f'"{postgres.uri}"', "user": '"owner"'}
        sources = [databases.Source("pg", "postgres", "public", entry, None, []),
                   databases.Source("one", "postgres", "public", {**entry, "parallel": "false"}, None, [])]
        config = "".join(source.config() for source in sources)
        with tempfile.TemporaryDirectory() as folder, databases.Reader(pathlib.Path(folder), config) as server:
            direct = f"postgresql://owner@127.0.0.1:{postgres.port}/postgres"
            for case in given.case or CASES:
                measure(given, case, (server, direct))
    finally:
        postgres.close()


def measure(given, case, places):
    server, direct = places
    contenders = {
        "direct": ("direct", direct, f"SELECT {CASES[case]} FROM wide"),
        "parallel": ("bowshot", server.grpc_tcp, f"SELECT {CASES[case]} FROM pg.public.wide"),
        "one connection": ("bowshot", server.grpc_tcp, f"SELECT {CASES[case]} FROM one.public.wide"),
    }
    load, times, sizes = os.getloadavg()[0], {name: [] for name in contenders}, {}
    for turn in range(given.rounds + 1):
        order = list(contenders)
        for name in order if turn % 2 else reversed(order):
            answer = run(*contenders[name])
            assert answer["rows"] == given.rows, answer
            sizes[name] = answer["bytes"]
            if turn:
                times[name].append(answer["seconds"])
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ratios = {name: medians["direct"] / medians[name] for name in contenders}
    words = ", ".join(f"{name} {medians[name]:.2f} s ({ratios[name]:.2f}×)" for name in contenders)
    print(f"{case}, {given.rows:,} rows: {words}", flush=True)
    if given.json:
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        line = {"scenario": "databases", "case": case, "rows": given.rows, "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "commit": commit, "machine": {"processors": os.cpu_count(), "system": platform.platform()}, "load": load, "times": times,
                "medians": medians, "ratios_to_direct": ratios, "bytes": sizes}
        with open(given.json, "a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
