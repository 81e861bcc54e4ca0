"""What the nodes of a cluster say to one another: bytes, segments and processor time of each, at rest and for each kind of query.

    pip install -r tests/cluster/requirements.txt
    python bench/cluster_traffic.py FOLDER_OF_PROGRAMS [--scale 1] [--nodes 1,2,4,6] [--seconds 20] [--no-tpch]

Each node is a process on this machine with two threads for queries; bytes are those that the kernel counts on the connections of the
internal ports (`ss`, so Linux and root), which are not encrypted here. The machine's speed does not enter into them. Appends one JSON line to
bench/results/cluster_traffic.jsonl and prints it; docs/internals/cluster.md reckons with it.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/cluster"), str(ROOT / "tests/tpch"), str(ROOT / "tests/clients")]

QUERIES = {
    # All rows are read, hardly any are handed on: what a plan costs on its way.
    "filter_and_count": "SELECT count(*) AS n FROM lineitem WHERE l_quantity > 10",
    "few_groups": "SELECT l_returnflag, sum(l_extendedprice) AS s FROM lineitem GROUP BY l_returnflag",
    # As many groups as a quarter of the rows: a shuffle.
    "many_groups": "SELECT l_orderkey, sum(l_extendedprice) AS s FROM lineitem GROUP BY l_orderkey",
    "join": "SELECT count(*) AS n, sum(l_extendedprice) AS s FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
    "sort": "SELECT l_orderkey, l_extendedprice FROM lineitem ORDER BY l_extendedprice, l_orderkey",
    "everything": "SELECT * FROM lineitem",
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--nodes", default="1,2,4,6")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--no-tpch", action="store_true")
    return parser.parse_args()


class Meter:
    """Counters of all nodes: bytes and segments on the internal connections, and processor time."""

    def __init__(self, members):
        self.ports = {member.cluster.rsplit(":", 1)[1] for member in members}
        self.pids = [member.process.pid for member in members]
        self.tick = os.sysconf("SC_CLK_TCK")

    def now(self):
        """Bytes and segments sent over each connection, by both its ends, and ticks of each process."""
        listed = subprocess.run(["ss", "-tinH", "state", "established"], capture_output=True, text=True, check=True).stdout
        sent = {}
        for ends, told in re.findall(r"^\S.*?(\S+:\d+\s+\S+:\d+).*\n\s+(.*)$", listed, re.MULTILINE):
            if self.ports & {end.rsplit(":", 1)[1] for end in ends.split()}:
                counts = dict(re.findall(r"\b(bytes_sent|data_segs_out):(\d+)", told))
                sent[ends] = (int(counts.get("bytes_sent", 0)), int(counts.get("data_segs_out", 0)))
        ticks = []
        for pid in self.pids:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks.append(int(fields[11]) + int(fields[12]))
        return sent, ticks

    def during(self, work):
        """What one run of `work` costs."""
        before, ticks = self.now()
        began = time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        after, later = self.now()
        grown = [(one - before.get(ends, (0, 0))[0], two - before.get(ends, (0, 0))[1]) for ends, (one, two) in after.items()]
        cpu = [round((then - first) / self.tick, 2) for first, then in zip(ticks, later)]
        return {
            "bytes": sum(size for size, _ in grown), "segments": sum(count for _, count in grown),
            "connections": len(after) // 2, "cpu_s": cpu, "seconds": round(seconds, 3),
        }  # fmt: skip


def measured(number, data, texts, chosen):
    import endpoints
    import nodes
    from run import TABLES

    more = ["--set", "result_cache.memory_bytes=0", "--set", "engine.threads=2", "--set", "cluster.suspect_after=20s",
            "--set", "cluster.dead_after=60s", "--set", "cluster.heartbeat=1s", "--set", "cluster.bytes_per_thread=1048576"]
    sources = [f"{name}={data / name}" for name in TABLES]
    with nodes.cluster(number, more=more, sources=sources) as members:
        meter = Meter(members)
        with endpoints.Client(members[0].grpc_tcp, None, seconds=3600) as one:
            with endpoints.Client(members[0].grpc_tcp, "auto", seconds=3600) as spread:
                found = {"nodes": number, "at_rest": meter.during(lambda: time.sleep(chosen.seconds))}
                for name, sql in QUERIES.items():
                    one.run(sql)  # warms columns and connections
                    found[name] = meter.during(lambda sql=sql: one.run(sql))
                spread.parallel(QUERIES["everything"])
                found["everything_from_all"] = meter.during(lambda: spread.parallel(QUERIES["everything"]))
                if texts:
                    found["tpch"] = meter.during(lambda: [one.run(sql) for sql in texts])
        return found


def main():
    chosen = options()
    os.environ["BOWSHOT_BIN"] = str(chosen.programs.resolve())
    import run

    data = run.make_data(chosen.scale)
    _, queries = run.reference(data)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    line = {
        "scenario": "cluster_traffic", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load_before": os.getloadavg()[0]},
        "settings": {"scale": chosen.scale, "threads": 2, "heartbeat_s": 1, "at_rest_s": chosen.seconds, "proof": "secret"},
        "figures": [measured(int(number), data, [] if chosen.no_tpch else list(queries.values()), chosen) for number in chosen.nodes.split(",")],
    }  # fmt: skip
    with open(ROOT / "bench/results/cluster_traffic.jsonl", "a", encoding="utf-8") as results:
        results.write(json.dumps(line) + "\n")
    print(json.dumps(line, indent=1))


if __name__ == "__main__":
    main()
