"""TPC-H's 22 and TPC-DS's 99 queries, and forms that are hard to spread, on one server and on a cluster: the same answers.

    same_answers.py [--nodes N] [--tpch SCALE] [--tpcds SCALE] [--every N] [--only TEXT]

Every query runs on a server that is alone and on each node of the cluster in turn, over the same Parquet files; the placement
is set so that every scan is worth all nodes. Answers are compared as tests/tpch/answers.py says. Prints what did not leave its
node and why, and `N passed, N failed`; a suite in which too few queries leave their node fails.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import pathlib
import re
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tpch"), str(HERE.parent / "clients")]

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.flight as flight  # noqa: E402

import answers  # noqa: E402
import duckdb_extensions  # noqa: E402
import run as tpch  # noqa: E402

from nodes import cluster  # noqa: E402
from server import Server  # noqa: E402

FILES = 5  # of each table

SHAPES = tomllib.loads((HERE / "shapes.toml").read_text())


def generated(name, scale, folder):
    """Tables and query texts of a benchmark: its tables as Parquet files of several row groups in a folder."""
    folder.mkdir()
    connection = duckdb.connect(str(folder / "generated.db"))
    duckdb_extensions.load(connection, name)
    connection.execute(f"CALL {'dbgen' if name == 'tpch' else 'dsdgen'}(sf={scale})")
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        # Several files, as a table has that is worth several nodes: what is one partition is read by one of them.
        size, part = max(2048, rows // 6), rows // FILES + 1
        (folder / table).mkdir()
        for number in range(FILES):
            some = f"SELECT * FROM {table} WHERE rowid >= {number * part} AND rowid < {(number + 1) * part}"
            path = folder / table / f"part-{number}.parquet"
            connection.execute(f"COPY ({some}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {size})")
    queries = connection.execute(f"SELECT query_nr, query FROM {name}_queries() ORDER BY query_nr").fetchall()
    connection.close()
    (folder / "generated.db").unlink()
    return {f"{name} q{number:02}": text.strip().rstrip(";") for number, text in queries}


def answer(uri, query):
    """The answer to a query, all endpoints together."""
    with flight.connect(uri) as client:
        options = flight.FlightCallOptions(timeout=120)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(query.encode()), options)
        parts = [client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints]
        return pa.concat_tables(parts)


def placed(node, query):
    """`None` if the query runs on several nodes, else why it does not."""
    lines = [row[1] for row in node.rows("EXPLAIN " + query)]
    (line,) = [line for line in lines if line.startswith("Nodes:")]
    return None if "Stage" in line else line.removeprefix("Nodes: this one alone, since ")


def keys(name):
    """The columns that an answer is in order of, as far as they are known."""
    if name.startswith("tpch"):
        return tpch.ORDER.get(int(name.removeprefix("tpch q")), [])
    return {"top": [0, 1, 2], "sorted": [0, 1], "intersect": [0], "texts": [0], "times": [0], "limit of a limit": [0], "offset of a limit": [0]}.get(name, [])


def compare(name, query, alone, nodes):
    """What is wrong, and why the query stayed where it was asked, if it did."""
    try:
        expected = answer(alone.grpc_tcp, query)
    except Exception as error:
        return f"alone: {error}", None
    node = nodes[hash(name) % len(nodes)]
    try:
        reason = placed(node, query)
        found = answer(node.grpc_tcp, query)
    except Exception as error:
        return str(error), None
    wrong = answers.difference(keys(name), found, expected)
    return (wrong and wrong.replace("DuckDB", "alone")), reason


SPREAD = ["--set", "cluster.bytes_per_thread=1", "--set", "engine.threads=2", "--set", "result_cache.memory_bytes=0"]


def compared(queries, sources, arguments):
    passed = failed = spread = 0
    reasons = collections.Counter()
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(Server(*sources, environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0"}))
        nodes = stack.enter_context(cluster(arguments.nodes, more=SPREAD, sources=sources))
        chosen = {name: text for name, text in queries.items() if arguments.only in name}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = pool.map(lambda item: (item[0], *compare(*item, alone, nodes)), chosen.items())
            for name, wrong, reason in results:
                passed, failed = passed + (not wrong), failed + bool(wrong)
                spread += not wrong and reason is None
                if wrong:
                    print(f"{name}: {wrong}", flush=True)
                elif reason:
                    reasons[re.sub(r"[0-9]+", "N", reason)[:200]] += 1
                    print(f"{name}: stays, since {reason}", flush=True)
    for reason, count in reasons.most_common():
        print(f"{count:4} stay, since {reason}")
    print(f"{spread} of {len(chosen)} ran on {arguments.nodes} nodes")
    return passed, failed, spread, len(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--tpch", type=float, default=0.05)
    parser.add_argument("--tpcds", type=float, default=0.01)
    parser.add_argument("--every", type=int, default=1, help="each how many of the queries of TPC-DS are asked")
    parser.add_argument("--only", default="", help="queries whose names have this in them")
    arguments = parser.parse_args()
    passed = failed = spread = every = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, scale, more in [("tpch", arguments.tpch, SHAPES), ("tpcds", arguments.tpcds, {})]:
            data = pathlib.Path(folder) / name
            queries = generated(name, scale, data)
            # TPC-DS has the longest queries to plan; those of continuous integration are the same each time.
            queries = dict(list(queries.items())[:: arguments.every if name == "tpcds" else 1]) | more
            counts = compared(queries, sorted(f"{path.name}={path}" for path in data.iterdir()), arguments)
            passed, failed = passed + counts[0], failed + counts[1]
            spread, every = spread + counts[2], every + counts[3]
    if not arguments.only and spread < every * 0.8:
        print(f"only {spread} of {every} queries ran on several nodes")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
