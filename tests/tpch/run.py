"""TPC-H's 22 queries through the built server and in DuckDB over the same Parquet files; the answers must be the same.

Reads `bowshot` from the folder in BOWSHOT_BIN. The query texts are those that DuckDB's `tpch` extension brings along.
Each query goes over the ADBC driver and, as SQL text in the descriptor, over pyarrow.flight. Prints a line for each
query, times as information only, and `N passed, N failed`.

[answers.py](answers.py) says how answers are compared.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import adbc_driver_flightsql.dbapi as dbapi
import duckdb
import pyarrow as pa
import pyarrow.flight as flight

import answers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import duckdb_extensions  # noqa: E402
from server import Server, binaries  # noqa: E402

CACHE = pathlib.Path(os.environ.get("BOWSHOT_CACHE", pathlib.Path.home() / ".cache" / "bowshot"))
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
# The columns that each query orders by, by position in its answer; rows that agree in them may come in any order.
ORDER = {
    1: [0, 1], 2: [0, 2, 1, 3], 3: [1, 2], 4: [0], 5: [1], 7: [0, 1, 2], 8: [0], 9: [0, 1], 10: [2], 11: [1],
    12: [0], 13: [1, 0], 15: [0], 16: [3, 0, 1, 2], 18: [4, 3], 20: [0], 21: [1, 0], 22: [0],
}


def make_data(scale: float) -> pathlib.Path:
    """The folder of tables that `bowshot demo` makes."""
    folder = CACHE / "tpch" / f"scale-{scale:g}"
    command = [str(binaries() / "bowshot"), "demo", "--only-data", "--scale", f"{scale:g}", "--data-dir", str(folder)]
    subprocess.run(command, check=True)
    return folder


def reference(data: pathlib.Path) -> tuple:
    """DuckDB over the same files, and the query texts."""
    connection = duckdb.connect()
    duckdb_extensions.load(connection, "tpch")
    queries = dict(connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{data / name}/*.parquet')")
    return connection, {number: text.strip().rstrip(";") for number, text in sorted(queries.items())}


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def over_pyarrow(client: flight.FlightClient, query: str) -> pa.Table:
    info = client.get_flight_info(flight.FlightDescriptor.for_command(query.encode()))
    return pa.concat_tables([client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints])


def over_adbc(connection, query: str) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def check(number: int, run, theirs: pa.Table) -> tuple:
    """Runs one query; the time and what is wrong."""
    try:
        ours, seconds = timed(run)
    except Exception as error:
        return 0.0, str(error)
    return seconds, answers.difference(ORDER.get(number, []), ours, theirs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    data = make_data(scale)
    peer, queries = reference(data)
    passed = failed = 0
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(*[f"{name}={data / name}" for name in TABLES]))
        adbc = stack.enter_context(dbapi.connect(server.grpc_tcp, autocommit=True))
        client = stack.enter_context(flight.connect(server.grpc_tcp))
        for number, query in queries.items():
            theirs, their_seconds = timed(lambda: peer.execute(query).to_arrow_table())
            clients = {"adbc": lambda: over_adbc(adbc, query), "pyarrow": lambda: over_pyarrow(client, query)}
            for name, run in clients.items():
                seconds, wrong = check(number, run, theirs)
                verdict = "FAILED" if wrong else "ok"
                times = f"{seconds:6.2f} s, DuckDB in process {their_seconds:6.2f} s"
                print(f"q{number:02} {name:8} {theirs.num_rows:6} rows  {times}  {verdict}", flush=True)
                if wrong:
                    print(f"    {wrong}")
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
