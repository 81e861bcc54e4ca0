"""What access rules cost, in pairs: a server without users beside one with users, roles, rights and policies, over the same
files, and on the latter a row policy beside the same WHERE of an admin. One contender at a time, A B B A.

    python bench/access_costs.py [--rows N] [--rounds N] [--record]

| case | A | B | wanted |
|---|---|---|---|
| wire | `SELECT *` of a table of 20 integers, fetched, without users | the same by a user with a right on it and policies on others | ≤ 1.03 |
| small | `SELECT v FROM small WHERE id = N`, without users | the same by that user | ≤ 0.1 ms more |
| small, policy | the same | of a table with a policy | (told) |
| filter | an aggregate with `WHERE region = 'EU'` by an admin | the same without WHERE by a user with this policy | ≤ 1.05 |

It needs pyarrow, and the program (BOWSHOT_BIN). `--record` adds the line to bench/results/access.jsonl.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as parquet

BENCH = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tests" / "clients"), str(BENCH.parent / "tests" / "access")]

from lib import results  # noqa: E402
from server import Server  # noqa: E402
from world import PASSWORDS, users_file  # noqa: E402

RULES = [
    "CREATE USER ada PASSWORD 'ada''s own' SET region = 'EU'",
    "CREATE ROLE clerk",
    "CREATE ROLE staff",
    "GRANT staff TO clerk",
    "GRANT clerk TO ada",
    *(f"CREATE ROLE role{number}" for number in range(20)),
    "GRANT SELECT ON wide TO staff",
    "GRANT SELECT ON small TO staff",
    "GRANT SELECT ON guarded TO clerk",
    "GRANT SELECT ON facts TO clerk",
    "CREATE ROW POLICY own ON guarded FOR clerk USING (region = user_attribute('region'))",
    "CREATE ROW POLICY own ON facts FOR clerk USING (region = 'EU')",
]


def made(folder, rows):
    random = numpy.random.default_rng(1)
    regions = pa.array(["EU", "US", "AS", "AF"])
    wide = {f"c{at}": random.integers(0, 1 << 40, rows) for at in range(20)}
    parquet.write_table(pa.table(wide), folder / "wide.parquet", compression="none", use_dictionary=False)
    few = pa.table({"id": range(1000), "v": random.integers(0, 1000, 1000), "region": regions.take(pa.array(numpy.arange(1000) % 4))})
    for name in ("small", "guarded"):
        parquet.write_table(few, folder / f"{name}.parquet")
    facts = {"region": regions.take(pa.array(random.integers(0, 4, rows))), "kind": random.integers(0, 100, rows), "v": random.normal(size=rows)}
    parquet.write_table(pa.table(facts), folder / "facts.parquet")


class Asker:
    """One connection; who asks without a name is nobody in particular."""

    def __init__(self, server, user=None):
        self.client = flight.connect(server.grpc_tcp)
        headers = [self.client.authenticate_basic_token(user, PASSWORDS[user])] if user else []
        self.options = flight.FlightCallOptions(headers=headers)

    def ask(self, sql):
        return self.client.do_get(flight.Ticket(sql.encode()), self.options).read_all()


def fetched(asker, sql, times):
    """Seconds of each fetch, and what came."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        answer = asker.ask(sql)
        seconds.append(time.perf_counter() - began)
    return seconds, answer


def small(asker, table, times):
    seconds = []
    for number in range(times):
        began = time.perf_counter()
        asker.ask(f"SELECT v FROM {table} WHERE id = {number * 4 % 1000}")
        seconds.append(time.perf_counter() - began)
    return seconds, None


def paired(contenders, rounds):
    """All seconds of each contender, in turns A B B A; the first turn warms up."""
    seconds = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        order = list(contenders.items())
        for name, run in order if turn % 2 == 0 else reversed(order):
            found = run()[0]
            if turn:
                seconds[name].extend(found)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    # Answers that were computed before are none of this.
    settings = {"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0", "BOWSHOT_JOIN_CACHE_MEMORY_BYTES": "0"}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "files").mkdir()
        made(folder / "files", chosen.rows)
        users = ["--users-file", str(users_file(folder))]
        with Server(folder / "files", environment=settings) as plain, Server(
            folder / "files", data=folder / "data", arguments=users, environment=settings
        ) as guarded:
            open_, root = Asker(plain), Asker(guarded, "root")
            for sql in RULES:
                root.ask(sql)
            ada = Asker(guarded, "ada")
            wide, aggregate = "SELECT * FROM wide", "SELECT kind, count(*), sum(v) FROM facts{} GROUP BY kind ORDER BY kind"
            assert ada.ask(wide).equals(open_.ask(wide)) and ada.ask("SELECT * FROM guarded").num_rows == 250
            where = aggregate.format(" WHERE region = 'EU'")
            same = (ada.ask(aggregate.format("")), root.ask(where))
            assert same[0].column(1).equals(same[1].column(1)) and same[0].num_rows == 100
            cases = {
                "wire": {"without": lambda: fetched(open_, wide, 3), "with": lambda: fetched(ada, wide, 3)},
                "small": {
                    "without": lambda: small(open_, "small", 300), "with": lambda: small(ada, "small", 300),
                    "policy": lambda: small(ada, "guarded", 300),
                },
                "filter": {
                    "where": lambda: fetched(root, where, 5), "policy": lambda: fetched(ada, aggregate.format(""), 5),
                },
            }  # fmt: skip
            line = {
                "scenario": "access", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "commit": results.commit(), "modified": results.modified(), "machine": results.machine(),
                "settings": {"rows": chosen.rows, "rounds": chosen.rounds, **settings},
            }  # fmt: skip
            line["seconds"] = {name: paired(contenders, chosen.rounds) for name, contenders in cases.items()}
    wire, few, rows = (line["seconds"][name] for name in ("wire", "small", "filter"))
    line["costs"] = {
        "wire_ratio": wire["with"] / wire["without"],
        "small_ms_more": (few["with"] - few["without"]) * 1000,
        "small_policy_ms_more": (few["policy"] - few["without"]) * 1000,
        "filter_ratio": rows["policy"] / rows["where"],
    }
    costs = line["costs"]
    line["met"] = {
        "wire": costs["wire_ratio"] <= 1.03, "small": costs["small_ms_more"] <= 0.1, "filter": costs["filter_ratio"] <= 1.05,
    }  # fmt: skip
    text = json.dumps(line)
    print(text)
    if chosen.record:
        with open(results.places.RESULTS / "access.jsonl", "a", encoding="utf-8") as out:
            out.write(text + "\n")


if __name__ == "__main__":
    main()
