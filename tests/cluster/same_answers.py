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
import importlib
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tpch"), str(HERE.parent / "clients")]

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.flight as flight  # noqa: E402

import answers  # noqa: E402
import run as tpch  # noqa: E402

from nodes import Node, secret  # noqa: E402
from server import Server, wait_until  # noqa: E402

FILES = 5  # of each table

# Shapes of joins that other engines have answered wrongly when a side of them was cut into tasks, and their kin.
SHAPES = {
    "semi": "SELECT count(*) FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_acctbal > 0)",
    "anti": "SELECT count(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)",
    "anti of none": "SELECT count(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)",
    "full": "SELECT count(*), count(c_custkey), count(o_orderkey), sum(o_totalprice) FROM customer FULL JOIN orders ON c_custkey = o_custkey + 1",
    "full with a loop": "SELECT count(*), count(a.n_name), count(b.n_name) FROM nation a FULL JOIN nation b ON a.n_nationkey < b.n_regionkey",
    "left with a loop": "SELECT count(*), count(r_name) FROM nation LEFT JOIN region ON n_nationkey < r_regionkey",
    "cross": "SELECT count(*), sum(n_nationkey * r_regionkey) FROM nation, region",
    "limit of the smaller side": "SELECT count(*) FROM orders JOIN (SELECT c_custkey FROM customer ORDER BY c_custkey LIMIT 7) AS few ON o_custkey = c_custkey",
    "limit below a union": "SELECT count(*) FROM ((SELECT c_custkey FROM customer LIMIT 11) UNION ALL (SELECT o_custkey FROM orders LIMIT 13)) AS few",
    "limit below an aggregate": "SELECT count(*) FROM (SELECT o_orderkey FROM orders LIMIT 5000) AS few",
    "limit of a filter": "SELECT count(*) FROM (SELECT o_orderkey FROM orders WHERE o_custkey > 10 LIMIT 5000) AS few",
    "limit of a sort below an aggregate": "SELECT count(*), max(k) FROM (SELECT o_orderkey AS k FROM orders ORDER BY o_orderkey LIMIT 5000) AS few",
    "right": "SELECT count(*), count(o_orderkey) FROM orders RIGHT JOIN customer ON o_custkey = c_custkey AND o_totalprice > 300000",
    "in or": "SELECT count(*) FROM orders WHERE o_orderkey < 100 OR o_custkey IN (SELECT c_custkey FROM customer WHERE c_nationkey = 3)",
    "one value": "SELECT count(*) FROM orders WHERE o_totalprice > (SELECT avg(o_totalprice) FROM orders)",
    "values of values": "SELECT count(*) FROM orders WHERE o_totalprice > (SELECT avg(o_totalprice) FROM orders WHERE o_orderkey > (SELECT min(l_orderkey) FROM lineitem))",
    "one row of a side": "SELECT count(*), max(m) FROM orders, (SELECT max(c_custkey) AS m FROM customer) AS s WHERE o_custkey < m",
    "one row of each side": "SELECT a.n, b.n, c.n FROM (SELECT count(*) AS n FROM orders WHERE o_custkey > 9) AS a, (SELECT count(*) AS n FROM customer WHERE c_custkey > 9) AS b, (SELECT sum(l_quantity) AS n FROM lineitem) AS c",
    "groups of a side": "SELECT count(*), sum(n) FROM customer JOIN (SELECT o_custkey, count(*) AS n FROM orders GROUP BY o_custkey) AS g ON o_custkey = c_custkey",
    "groups of a small side": "SELECT count(*), sum(n) FROM lineitem JOIN (SELECT n_regionkey, count(*) AS n FROM nation GROUP BY n_regionkey) AS g ON l_linenumber = n_regionkey",
    "numbered rows of a side": "SELECT count(*), sum(r) FROM orders JOIN (SELECT c_custkey, row_number() OVER (ORDER BY c_custkey) AS r FROM customer) AS n ON r = o_custkey",
    "numbered rows of all": "SELECT max(r), count(DISTINCT r) FROM (SELECT row_number() OVER () AS r FROM orders) AS n",
    "distinct rows of a side": "SELECT count(*) FROM orders JOIN (SELECT DISTINCT c_nationkey FROM customer) AS d ON c_nationkey = o_custkey",
    "distinct rows of unions": "SELECT count(*) FROM (SELECT c_nationkey AS k FROM customer UNION SELECT n_nationkey FROM nation UNION SELECT o_custkey FROM orders) AS u",
    "groups of unions of groups": "SELECT k, sum(n) FROM (SELECT o_custkey AS k, count(*) AS n FROM orders GROUP BY 1 UNION ALL SELECT c_custkey, count(*) FROM customer GROUP BY 1) AS u GROUP BY k",
    "joins of unions of groups": "SELECT count(*), sum(n), sum(s) FROM (SELECT o_custkey AS k, count(*) AS n FROM orders GROUP BY 1 UNION ALL SELECT c_custkey, count(*) FROM customer GROUP BY 1) AS u JOIN (SELECT o_custkey AS k, sum(o_totalprice) AS s FROM orders GROUP BY 1) AS t USING (k)",
    "limit of a limit": "SELECT k FROM (SELECT o_orderkey AS k FROM orders ORDER BY o_totalprice, o_orderkey LIMIT 40) AS few ORDER BY k LIMIT 7",
    "offset of a limit": "SELECT k FROM (SELECT o_orderkey AS k FROM orders ORDER BY o_totalprice, o_orderkey LIMIT 40 OFFSET 9) AS few ORDER BY k DESC LIMIT 7 OFFSET 3",
    "limit of unions": "SELECT count(*), sum(k) FROM (SELECT k FROM (SELECT o_orderkey AS k FROM orders UNION ALL SELECT c_custkey FROM customer) AS u ORDER BY k LIMIT 30) AS few",
    "first of each": "SELECT count(*), sum(o_orderkey) FROM (SELECT DISTINCT ON (o_custkey) o_custkey, o_orderkey FROM orders ORDER BY o_custkey, o_orderkey) AS d",
    "the same rows twice": "SELECT count(*) FROM (SELECT o_custkey, sum(o_totalprice) AS s FROM orders GROUP BY 1) AS a JOIN (SELECT o_custkey, max(o_totalprice) AS m FROM orders GROUP BY 1) AS b USING (o_custkey) WHERE s > m",
    "full of groups": "SELECT count(*), count(a.k), count(b.k) FROM (SELECT c_nationkey AS k, count(*) FROM customer GROUP BY 1) AS a FULL JOIN (SELECT o_custkey AS k, count(*) FROM orders GROUP BY 1) AS b ON a.k = b.k",
    "exists in a list": "SELECT count(*) FILTER (WHERE e) FROM (SELECT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_totalprice > 200000) AS e FROM customer) AS x",
    "values beside rows": "SELECT n_nationkey, (SELECT max(o_totalprice) FROM orders) AS m FROM nation",
    "windows": "SELECT o_custkey, o_orderkey, rank() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS r, sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS s FROM orders ORDER BY 2 LIMIT 100",
    "distinct": "SELECT count(DISTINCT l_partkey), count(DISTINCT l_comment), approx_distinct(l_suppkey) > 0 FROM lineitem",
    "grouping sets": "SELECT l_returnflag, l_linestatus, count(*) FROM lineitem GROUP BY ROLLUP (l_returnflag, l_linestatus)",
    "top": "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem ORDER BY l_extendedprice DESC, 1, 2 LIMIT 25 OFFSET 10",
    "sorted": "SELECT o_orderkey, o_orderdate FROM orders ORDER BY o_orderdate, o_orderkey",
    "all rows": "SELECT * FROM customer",
    "doubles": "SELECT max(CAST(l_quantity AS DOUBLE)), min(CAST(l_tax AS DOUBLE)), l_shipmode FROM lineitem GROUP BY l_shipmode",
    "texts": "SELECT upper(substr(c_name, 1, 10)) AS n, count(*), string_agg(c_phone, ',' ORDER BY c_custkey) FROM customer GROUP BY 1 ORDER BY 1",
    "recursive": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20) SELECT count(*), sum(o_totalprice) FROM t JOIN orders ON o_orderkey = n",
    "intersect": "SELECT c_custkey FROM customer INTERSECT SELECT o_custkey FROM orders ORDER BY 1 LIMIT 50",
    "except": "SELECT count(*) FROM (SELECT c_custkey FROM customer EXCEPT SELECT o_custkey FROM orders) AS none",
    "lateral": "SELECT c_custkey, o.k FROM customer, LATERAL (SELECT max(o_orderkey) AS k FROM orders WHERE o_custkey = c_custkey) AS o ORDER BY 1 LIMIT 40",
    "times": "SELECT date_trunc('month', o_orderdate) AS m, count(*), min(o_orderdate + INTERVAL '1' DAY) FROM orders GROUP BY 1 ORDER BY 1",
}


def extension(connection, name):
    """DuckDB's extension from its package."""
    package = importlib.import_module(f"duckdb_extension_{name}")
    (path,) = pathlib.Path(next(iter(package.__path__))).glob(f"extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD '{path}'")


def generated(name, scale, folder):
    """Tables and query texts of a benchmark: its tables as Parquet files of several row groups in a folder."""
    folder.mkdir()
    connection = duckdb.connect(str(folder / "generated.db"))
    extension(connection, name)
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


def cluster(stack, sources, count):
    proof = secret()
    more = ["--set", "cluster.bytes_per_thread=1", "--set", "engine.threads=2"]
    nodes = []
    for _ in range(count):
        join = [nodes[0].cluster] if nodes else []
        nodes.append(stack.enter_context(Node(proof, join=join, more=[*more, "--set", "result_cache.memory_bytes=0"], sources=sources)))
    seen = f'bowshot_cluster_members{{state="alive"}} {count}'
    for node in nodes:
        wait_until(lambda: seen in node.get("/metrics")[2], seen, 60)
    return nodes


def compared(queries, sources, arguments):
    passed = failed = spread = 0
    reasons = collections.Counter()
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(Server(*sources, environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0"}))
        nodes = cluster(stack, sources, arguments.nodes)
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
