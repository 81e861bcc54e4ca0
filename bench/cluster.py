"""Nodes of a cluster with a part of a processor each: how much faster two and four are than one.

    cargo build --release -p bowshot
    pip install -r tests/cluster/requirements.txt
    python bench/cluster.py FOLDER_OF_PROGRAMS [--scale 1] [--share 0.25] [--rounds 3] [--nodes 1,2,4] [--only tpch]

Each node is a process that the kernel gives `--share` of one processor (a cgroup of the cpu controller, so Linux and root), with
two threads for queries (a plan for one thread has one partition, and stays on one node); `--share 0` limits nothing. Measured are
`SELECT *` of lineitem, read from all endpoints at once and, for comparison, through the node that was asked, by pyarrow and by our package
for Python (`package`, which has four endpoints of one node, too); a sort of lineitem within
its orders, for which every node sends rows to every other, read from all endpoints; and the 22 queries of TPC-H one after another.
Of each there is the processor time of the nodes. The client is not limited: on a machine with few processors, keep nodes times share
below what is left to it. Appends one JSON line to bench/results/cluster.jsonl and prints it.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
import time

from lib import processes as kernel, results

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("tests/cluster", "tests/tpch", "tests/clients", "clients/python/src")]

CONTROLLERS = [pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")]
PERIOD_US = 20_000
EVERYTHING = "SELECT * FROM lineitem"
ALL_TO_ALL = "SELECT *, row_number() OVER (PARTITION BY l_orderkey ORDER BY l_shipdate, l_linenumber) AS place FROM lineitem"
WORKS = ["all_endpoints", "one_endpoint", "package_all_endpoints", "package_one_endpoint", "all_to_all", "tpch"]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", default="1,2,4")
    parser.add_argument("--only", action="append", choices=WORKS, help="leave out the others")
    return parser.parse_args()


@contextlib.contextmanager
def limited(processes, share):
    """The processes, each with a share of one processor."""
    if not share:
        yield
        return
    old = (CONTROLLERS[0] / "cpu.shares").exists()
    base, groups = CONTROLLERS[0 if old else 1], []
    try:
        for process in processes:
            group = base / f"bowshot-bench-{process.pid}"
            group.mkdir()
            groups.append(group)
            quota = int(PERIOD_US * share)
            if old:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        for process, group in zip(processes, groups):
            (base / "cgroup.procs").write_text(str(process.pid))
            group.rmdir()


def seconds(rounds, work):
    """Median time; the first turn warms up."""
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken[1:]), 3)


def processor_seconds(processes):
    """What the processes have taken so far."""
    return sum(kernel.tree_ticks(process.pid) for process in processes) / kernel.TICKS


def figures_of(name, rounds, work, processes):
    before = processor_seconds(processes)
    taken = seconds(rounds, work)
    return {f"{name}_s": taken, f"{name}_cpu_s": round((processor_seconds(processes) - before) / (rounds + 1), 2)}


def by_package(member, endpoints):
    """Reads a statement by our package over sockets."""
    import bowshot

    options = {"endpoints": str(endpoints)}
    return bowshot.connect(member.grpc_tcp, options=options, same_host=False, autocommit=True)


def measured(number, data, queries, chosen):
    import endpoints
    import nodes
    from run import TABLES

    # The files are all on one disk; what is to be seen is the work of the nodes.
    more = ["--set", "result_cache.memory_bytes=0", "--set", "engine.threads=2", "--set", "cluster.suspect_after=20s",
            "--set", "cluster.dead_after=60s", "--set", "cluster.heartbeat=1s", "--set", "cluster.bytes_per_thread=1048576"]
    sources = [f"{name}={data / name}" for name in TABLES]
    with nodes.cluster(number, more=more, sources=sources) as members:
        processes = [member.process for member in members]
        with limited(processes, chosen.share):
            with endpoints.Client(members[0].grpc_tcp, "auto", seconds=3600) as spread, \
                    endpoints.Client(members[0].grpc_tcp, None, seconds=3600) as together, \
                    by_package(members[0], "auto" if number > 1 else 4) as package, by_package(members[0], 1) as single:
                info = spread.info(EVERYTHING)
                rows = spread.all_of(info)
                found = {"nodes": number, "endpoints": len(info.endpoints), "rows": rows.num_rows, "bytes": rows.nbytes}
                del rows
                works = {
                    "all_endpoints": (chosen.rounds, lambda: spread.parallel(EVERYTHING)),
                    "one_endpoint": (chosen.rounds, lambda: together.run(EVERYTHING)),
                    "package_all_endpoints": (chosen.rounds, lambda: package.sql(EVERYTHING).arrow()),
                    "package_one_endpoint": (chosen.rounds, lambda: single.sql(EVERYTHING).arrow()),
                    "all_to_all": (chosen.rounds, lambda: spread.parallel(ALL_TO_ALL)),
                    "tpch": (1, lambda: [together.run(sql) for sql in queries]),
                }
                for name, (rounds, work) in works.items():
                    if name in (chosen.only or WORKS):
                        found |= figures_of(name, rounds, work, processes)
                return found


def main():
    chosen = options()
    os.environ["BOWSHOT_BIN"] = str(chosen.programs.resolve())
    import run

    data = run.make_data(chosen.scale)
    _, queries = run.reference(data)
    texts = list(queries.values())
    load = os.getloadavg()[0]
    figures = [measured(int(number), data, texts, chosen) for number in chosen.nodes.split(",")]
    first = figures[0]
    for figure in figures:
        for name in chosen.only or WORKS:
            figure[f"{name}_faster"] = round(first[f"{name}_s"] / figure[f"{name}_s"], 2)
    line = {
        "scenario": "cluster", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": results.commit(),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load_before": load},
        "settings": {"scale": chosen.scale, "share_of_a_processor": chosen.share, "rounds": chosen.rounds, "threads": 2},
        "figures": figures,
    }
    with open(ROOT / "bench/results/cluster.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(json.dumps(line, indent=1))


if __name__ == "__main__":
    main()
