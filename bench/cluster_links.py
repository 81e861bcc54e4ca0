"""Nodes of a cluster with a slow link each: how much faster a table comes from all of them than from one.

    cargo build --release -p bowshot
    pip install -r tests/cluster/requirements.txt
    python bench/cluster_links.py FOLDER_OF_PROGRAMS [--scale 1] [--mbit 200] [--rounds 3] [--nodes 4]

Each node runs in a network namespace of its own, whose only way out is a link of `--mbit` in each direction (tc's token bucket, so
Linux and root); the client has no limit. Nodes prove themselves by certificates, as they do between machines. Measured is `SELECT *` of
lineitem: from the endpoints of all nodes at once, by pyarrow and by our package for Python, and through the node that was asked, which
gets the parts of the others over its link and hands them on over the same. Appends one JSON line to bench/results/cluster_links.jsonl
and prints it.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("tests/cluster", "tests/tpch", "tests/clients", "clients/python/src")]

from cluster import EVERYTHING, seconds  # noqa: E402

NETWORK = "10.231"
# What may pass at once before the rate holds, and how long a packet may wait for its turn.
BURST, WAIT = "256kb", "200ms"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--mbit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=4)
    return parser.parse_args()


def run(*words):
    subprocess.run(words, check=True)


class Link:
    """A namespace with one link to this machine, limited in both directions."""

    def __init__(self, number, mbit):
        self.name, self.near, self.far = f"bowshot{number}", f"bowshot{number}n", f"bowshot{number}f"
        self.address, gateway = f"{NETWORK}.{number}.2", f"{NETWORK}.{number}.1"
        run("ip", "netns", "add", self.name)
        inside = ("ip", "netns", "exec", self.name)
        run("ip", "link", "add", self.near, "type", "veth", "peer", "name", self.far)
        run("ip", "link", "set", self.far, "netns", self.name)
        run("ip", "addr", "add", f"{gateway}/24", "dev", self.near)
        run("ip", "link", "set", self.near, "up")
        run(*inside, "ip", "addr", "add", f"{self.address}/24", "dev", self.far)
        run(*inside, "ip", "link", "set", self.far, "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "route", "add", "default", "via", gateway)
        rate = ("root", "tbf", "rate", f"{mbit}mbit", "burst", BURST, "latency", WAIT)
        run("tc", "qdisc", "add", "dev", self.near, *rate)
        run(*inside, "tc", "qdisc", "add", "dev", self.far, *rate)

    def program(self, folder, bowshot):
        """A program that is the server, within the namespace."""
        path = folder / self.name
        path.write_text(f'#!/bin/sh\nexec ip netns exec {self.name} {bowshot} "$@"\n')
        path.chmod(0o755)
        return path

    def remove(self):
        subprocess.run(["ip", "link", "del", self.near], check=False)
        subprocess.run(["ip", "netns", "del", self.name], check=False)


@contextlib.contextmanager
def linked(number, mbit):
    """Links whose namespaces reach one another by way of this machine."""
    forward = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
    before, links = forward.read_text(), []
    try:
        forward.write_text("1")
        for index in range(number):
            links.append(Link(index + 1, mbit))
        yield links
    finally:
        for link in links:
            link.remove()
        forward.write_text(before)


@contextlib.contextmanager
def cluster(links, sources):
    import nodes

    more = ["--set", "result_cache.memory_bytes=0", "--set", "engine.threads=2", "--set", "cluster.suspect_after=20s",
            "--set", "cluster.dead_after=60s", "--set", "cluster.heartbeat=1s", "--set", "cluster.bytes_per_thread=1048576", "--insecure"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder, members = pathlib.Path(folder), []
        for index, link in enumerate(links):
            proof, _ = nodes.certificate(folder / "authority", link.name, hosts=(link.address,), first=index == 0)
            join = ["--join", members[0].ports["cluster"]] if members else []
            members.append(stack.enter_context(nodes.Server(
                *sources, arguments=["--cluster", f"{link.address}:0", *join, *proof, *more], flight=f"{link.address}:0",
                program=link.program(folder, nodes.binaries().resolve() / "bowshot"),
            )))
        yield members


def until_alive(client, number):
    deadline = time.monotonic() + 60
    while client.run("SELECT count(*) AS n FROM system.nodes WHERE state = 'alive'")["n"][0].as_py() < number:
        if time.monotonic() > deadline:
            raise TimeoutError("the nodes do not see one another")
        time.sleep(0.2)


def measured(members, chosen):
    import bowshot
    import endpoints

    asked = members[0].grpc_tcp
    with endpoints.Client(asked, "auto", seconds=3600) as spread, endpoints.Client(asked, None, seconds=3600) as one, \
            bowshot.connect(asked, options={"endpoints": "auto"}, same_host=False, autocommit=True) as package:
        until_alive(one, len(members))
        info = spread.info(EVERYTHING)
        rows = spread.all_of(info)
        found = {"nodes": len(members), "endpoints": len(info.endpoints), "rows": rows.num_rows, "bytes": rows.nbytes}
        del rows
        found["all_endpoints_s"] = seconds(chosen.rounds, lambda: spread.parallel(EVERYTHING))
        found["package_all_endpoints_s"] = seconds(chosen.rounds, lambda: package.sql(EVERYTHING).arrow())
        found["one_endpoint_s"] = seconds(chosen.rounds, lambda: one.run(EVERYTHING))
    return found


def main():
    chosen = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end and namespaces go
    os.environ["BOWSHOT_BIN"] = str(chosen.programs.resolve())
    import run as tpch

    data = tpch.make_data(chosen.scale)
    sources = [f"lineitem={data / 'lineitem'}"]
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    load, figures = os.getloadavg()[0], []
    for number in (1, chosen.nodes):
        with linked(number, chosen.mbit) as links, cluster(links, sources) as members:
            figures.append(measured(members, chosen))
    alone, all_of_them = figures
    line = {
        "scenario": "cluster_links", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load_before": load},
        "settings": {"scale": chosen.scale, "mbit_each": chosen.mbit, "rounds": chosen.rounds, "threads": 2},
        "figures": figures,
        "faster": {
            "all endpoints against one node": round(alone["one_endpoint_s"] / all_of_them["all_endpoints_s"], 2),
            "by the package": round(alone["one_endpoint_s"] / all_of_them["package_all_endpoints_s"], 2),
            "all endpoints against one endpoint of all nodes": round(all_of_them["one_endpoint_s"] / all_of_them["all_endpoints_s"], 2),
        },
    }
    with open(ROOT / "bench/results/cluster_links.jsonl", "a", encoding="utf-8") as results:
        results.write(json.dumps(line) + "\n")
    print(json.dumps(line, indent=1))


if __name__ == "__main__":
    main()
