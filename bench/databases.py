"""Tables of PostgreSQL: rows into an Arrow table at a client, through Bowshot and directly by the ADBC driver that Bowshot uses too; and joins of
one with a Parquet file, through Bowshot and by DuckDB with its extension for PostgreSQL; in turn, each in a process of its own, the
first turn not counted.

    cargo build --release -p bowshot
    pip install -r bench/requirements/sources.txt
    python bench/databases.py FOLDER_OF_PROGRAMS [--rows 10000000] [--rounds 5] [--case NAME] [--json FILE]

Prints a line for each case and adds one JSON line for each to FILE. `parallel` is Bowshot as it is configured by default; `one connection` has
`parallel = false`, which is what the driver does itself. Connections and views are made before the clock starts.
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

CASES = {
    "numbers": "id, a, b, f",
    "texts": "id, t, u",
    "decimals and days": "id, d, day, at",
    "all columns": "id, a, b, f, t, u, d, day, at",
}

# Tables of PostgreSQL joined with the Parquet file `weights` (a million rows): one that needs a part of the table, and one that needs it whole.
JOINS = {
    "join, a tenth of the table": "SELECT w.u, count(*) AS n, sum(p.weight) AS weight FROM {wide} w JOIN {weights} p ON p.id = w.id "
                                  "WHERE w.a < 100 GROUP BY w.u ORDER BY w.u",
    "join, the whole table": "SELECT p.kind, count(*) AS n, sum(w.b) AS b FROM {wide} w JOIN {weights} p ON p.id = w.id GROUP BY p.kind ORDER BY p.kind",
}
WEIGHTS = 1_000_000


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, nargs="?")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append", choices=[*CASES, *JOINS])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--fetch", nargs=3, metavar=("HOW", "URI", "SQL"), help="what a contender runs; for the bench itself")
    return parser.parse_args()


def fetch(how, uri, sql):
    """One contender, in a process of its own."""
    if how == "duckdb":
        return duckdb_fetch(json.loads(uri), sql)
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
        taken = time.perf_counter() - start
        answer = texts(table) if table.num_rows < 1000 else None
        print(json.dumps({"seconds": taken, "rows": table.num_rows, "bytes": table.nbytes, "answer": answer}))


def duckdb_fetch(places, sql):
    """DuckDB in this process, with the database attached by its extension."""
    import duckdb
    from lib import duckdb_extensions

    connection = duckdb.connect()
    duckdb_extensions.load(connection, "postgres_scanner")
    connection.execute(f"ATTACH '{places['postgres']}' AS pg (TYPE postgres, READ_ONLY)")
    connection.execute(f"CREATE VIEW weights AS FROM '{places['weights']}'")
    connection.execute("SELECT count(*) FROM pg.public.wide WHERE id < 0").fetchall()
    start = time.perf_counter()
    table = connection.sql(sql).to_arrow_table()
    print(json.dumps({"seconds": time.perf_counter() - start, "rows": table.num_rows, "bytes": table.nbytes, "answer": texts(table)}))


def texts(table):
    """A small answer as text, whatever types count and sum have."""
    return [[str(value) for value in row.values()] for row in table.to_pylist()]


def run(how, uri, sql):
    words = [sys.executable, __file__, "--fetch", how, uri, sql]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fill(postgres, rows):
    postgres.run(
        "CREATE UNLOGGED TABLE wide (id bigint PRIMARY KEY, a int, b bigint, f float8, t text, u varchar(20), d numeric(12, 2), day date, at timestamp)",
        f"""INSERT INTO wide SELECT g, g % 1000, g::bigint * 7919 % 1000003, g * 0.25, 'a text of row ' || g, 'u' || g % 97, (g % 1000000) / 100.0,
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
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            weights = write_weights(folder / "weights.parquet", given.rows)
            with databases.Reader(folder, config, arguments=[f"weights={weights}"]) as server:
                direct = f"postgresql://owner@127.0.0.1:{postgres.port}/postgres"
                places = {"postgres": f"host=127.0.0.1 port={postgres.port} user=owner dbname=postgres", "weights": str(weights)}
                for case in given.case or [*CASES, *JOINS]:
                    contenders = joins(case, server, places) if case in JOINS else reads(case, server, direct)
                    measure(given, case, contenders)
    finally:
        postgres.close()


def write_weights(path, rows):
    """A million rows whose ids lie all over the table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    step = max(1, rows // WEIGHTS)
    ids = range(1, rows + 1, step)
    pq.write_table(pa.table({"id": ids, "kind": [f"kind {id // step % 23}" for id in ids], "weight": [id % 1009 for id in ids]}), path)
    return path


def reads(case, server, direct):
    return {
        "direct": ("direct", direct, f"SELECT {CASES[case]} FROM wide"),
        "parallel": ("bowshot", server.grpc_tcp, f"SELECT {CASES[case]} FROM pg.public.wide"),
        "one connection": ("bowshot", server.grpc_tcp, f"SELECT {CASES[case]} FROM one.public.wide"),
    }


def joins(case, server, places):
    tables = {"wide": "pg.public.wide", "weights": "weights"}
    return {
        "duckdb": ("duckdb", json.dumps(places), JOINS[case].format(**tables)),
        "bowshot": ("bowshot", server.grpc_tcp, JOINS[case].format(**tables)),
    }


def measure(given, case, contenders):
    """All contenders in turn; ratios are against the first."""
    answers = []
    load, times, sizes = os.getloadavg()[0], {name: [] for name in contenders}, {}
    for turn in range(given.rounds + 1):
        order = list(contenders)
        for name in order if turn % 2 else reversed(order):
            answer = run(*contenders[name])
            assert case in JOINS or answer["rows"] == given.rows, answer
            answers.append(answer["answer"])
            sizes[name] = answer["bytes"]
            if turn:
                times[name].append(answer["seconds"])
    assert all(answer == answers[0] for answer in answers), answers[:2]
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    first = next(iter(contenders))
    ratios = {name: medians[first] / medians[name] for name in contenders}
    words = ", ".join(f"{name} {medians[name]:.2f} s ({ratios[name]:.2f}×)" for name in contenders)
    print(f"{case}, {given.rows:,} rows: {words}", flush=True)
    if given.json:
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        line = {"scenario": "databases", "case": case, "rows": given.rows, "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "commit": commit, "machine": {"processors": os.cpu_count(), "system": platform.platform()}, "load": load, "times": times,
                "medians": medians, f"ratios_to_{first}": ratios, "bytes": sizes}
        with open(given.json, "a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
