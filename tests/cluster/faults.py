"""Faults by the hundred under mixed queries: nodes are killed, stopped and cut off, whoever was asked; every answer is right or an
error that says to run the statement again, nothing hangs, and at the end nothing is left.

    faults.py [--faults 500] [--seed N] [--seconds-between 1.5]

Four nodes on this machine; their internal ports are reached through wires that can be cut. Clients ask any of them: queries that go through
the node that was asked, queries whose rows the nodes hand out, read at once, one after another, or at another node than their own,
some that are left or cancelled in the middle, and tables that are made of queries. Prints a line now and then, then `N passed, N failed`: faults after which all
was well, and those after which something was not.
"""

import argparse
import collections
import pathlib
import random
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

import endpoints  # noqa: E402
import nodes  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.flight as flight  # noqa: E402
from relay import Relay  # noqa: E402

NODES = 4
CLIENTS = 3
# No statement here takes more than seconds; a node that is stopped is noticed after seven.
HANGS_AFTER = 90
QUERIES = [
    endpoints.EVERYTHING,
    "SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g",
    "SELECT x FROM t WHERE x % 3 = 0",
    "SELECT count(*) AS n, sum(x) AS s, count(DISTINCT g) AS d FROM t",
    "SELECT count(*) AS n, sum(a.x) AS s FROM t a JOIN t b ON a.x = b.x WHERE b.g < 5000",
    "SELECT x, g FROM t WHERE g < 1000 ORDER BY x",
]
# What a client is told when a node is lost: the statement's own word, or that of the connection to the node.
LOST = (flight.FlightUnavailableError, flight.FlightCancelledError, pa.ArrowCancelled, ConnectionError)  # fmt: skip
LOST_WORDS = (
    "again", "lost", "unavailable", "connection", "Connection", "Socket closed", "transport", "stopping", "cancelled", "handshake",
    "session", "not found", "Broken pipe", "draining", "starting", "RST_STREAM", "GOAWAY", "Stream removed",
)  # fmt: skip


class Wire(Relay):
    """Between nodes: their internal ports are reached through it."""

    def sever(self, silent):
        """Silent: nothing passes any more, and nobody is told. Else connections end. New ones are refused."""
        self.to = None
        if silent:
            self.requests.clear()
            self.answers.clear()
        else:
            self.cut()

    def mend(self, port):
        # What was cut in silence would wait for bytes that are gone.
        self.cut()
        self.to = port
        self.requests.set()
        self.answers.set()


class Members:
    """The nodes, which come back at the same addresses."""

    def __init__(self, table):
        self.proof, self.table = nodes.secret(), table
        self.wires = [Wire() for _ in range(NODES)]
        self.flights = [None] * NODES
        self.all = [None] * NODES
        for number in range(NODES):
            self.start(number)
        self.until_alive()

    def start(self, number):
        more = [*endpoints.settings(limits__result_timeout="10s"), "--advertise", address(self.wires[number])]  # fmt: skip
        join = [address(wire) for wire in self.wires[:number] + self.wires[number + 1 :] if wire.to]
        flight_at = self.flights[number] or "127.0.0.1:0"
        node = nodes.Node(self.proof, join=join, more=more, sources=[f"t={self.table}"], flight=flight_at)
        self.flights[number] = f"{node.host}:{node.port}"
        self.wires[number].to = internal_port(node)
        self.all[number] = node

    def until_alive(self):
        expected = set(map(address, self.wires))
        for node in self.all:
            nodes.wait_until(lambda node=node: takes_work(node) >= expected, "all nodes alive", 60)

    def uri(self, number):
        return f"grpc+tcp://{self.flights[number]}"


def address(wire):
    return f"127.0.0.1:{wire.port}"


def internal_port(node):
    return int(node.cluster.rsplit(":", 1)[1])


def takes_work(node):
    return {address for address, takes in node.rows("SELECT address, takes_work FROM system.nodes") if takes}


class Load:
    """Clients that ask any node, and count what they get."""

    def __init__(self, members, answers, seed):
        self.members, self.answers = members, answers
        self.counts, self.wrong = collections.Counter(), []
        self.stopped, self.since = threading.Event(), [time.monotonic()] * CLIENTS
        self.threads = [
            threading.Thread(target=self._ask, args=(number, random.Random(seed + number)), daemon=True) for number in range(CLIENTS)
        ]
        for thread in self.threads:
            thread.start()

    def _ask(self, number, chance):
        while not self.stopped.is_set():
            self.since[number] = time.monotonic()
            way = chance.choice(["one", "parallel", "parallel", "sequence", "elsewhere", "left", "cancelled", "write"])
            sql = chance.choice(QUERIES)
            try:
                self._one(way, sql, chance)
                self.counts[way] += 1
            except AssertionError as error:
                self.wrong.append(f"{way}, {sql}: {error}")
            except Exception as error:
                if isinstance(error, LOST) or any(word in str(error) for word in LOST_WORDS):
                    self.counts["told"] += 1
                    time.sleep(0.1)
                else:
                    self.wrong.append(f"{way}, {sql}: {error!r}")

    def _one(self, way, sql, chance):
        uri = self.members.uri(chance.randrange(NODES))
        with endpoints.Client(uri, None if way in ("one", "write") else "auto", seconds=60) as client:
            if way == "write":
                name = f"made_{chance.getrandbits(48):x}"
                client.run(f"CREATE TABLE {name} AS SELECT x, g FROM t WHERE x % 2 = 0")
                found = client.run(f"SELECT count(*) AS n, sum(x) AS s FROM {name}").to_pylist()
                client.run(f"DROP TABLE {name}")
                evens = range(0, endpoints.ROWS, 2)
                assert found == [{"n": len(evens), "s": sum(evens)}], found
                return
            info = client.info(sql)
            if way in ("left", "cancelled"):
                reader = client.reader(chance.choice(info.endpoints))
                reader.read_chunk()
                client.cancel(info) if way == "cancelled" else reader.cancel()
                return
            if way == "sequence":
                rows = pa.concat_tables([client.reader(endpoint).read_all() for endpoint in info.endpoints])
            elif way == "elsewhere" and endpoints.places(info) != [None]:
                at = self.members.uri(chance.randrange(NODES))
                rows = pa.concat_tables([client.reader(endpoint, at).read_all() for endpoint in info.endpoints])
            else:
                rows = client.all_of(info)
            expected = self.answers[sql]
            assert rows.num_rows == expected.num_rows, f"{rows.num_rows} rows instead of {expected.num_rows}"
            rows = rows if "ORDER BY" in sql else endpoints.in_order(rows)
            assert rows.equals(expected), "other rows"

    def hung(self):
        return [number for number, since in enumerate(self.since) if time.monotonic() - since > HANGS_AFTER]

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(HANGS_AFTER)
        return [thread for thread in self.threads if thread.is_alive()]


def fault(members, kind, number, chance):
    """Does it, and takes it back."""
    node, wire = members.all[number], members.wires[number]
    if kind == "kill":
        node.kill()
        time.sleep(chance.uniform(0, 1))
        members.start(number)
    elif kind in ("stop", "stop for long"):
        node.signal(nodes.STOP)
        time.sleep(chance.uniform(0.1, 2) if kind == "stop" else chance.uniform(6, 12))
        node.signal(nodes.CONTINUE)
    else:
        wire.sever(silent=kind == "cut in silence")
        time.sleep(chance.uniform(0.1, 4))
        wire.mend(internal_port(node))


KINDS = ["kill", "kill", "stop", "stop", "cut", "cut in silence", "stop for long"]


def run(chosen, table):
    chance = random.Random(chosen.seed)
    members = Members(table)
    with endpoints.Client(members.uri(0), None) as client:
        answers = {sql: client.run(sql) for sql in QUERIES}
        answers = {sql: rows if "ORDER BY" in sql else endpoints.in_order(rows) for sql, rows in answers.items()}
    load, kinds, failed, bad = Load(members, answers, chosen.seed), collections.Counter(), 0, 0
    try:
        for done in range(1, chosen.faults + 1):
            kind, number = chance.choice(KINDS), chance.randrange(NODES)
            fault(members, kind, number, chance)
            kinds[kind] += 1
            time.sleep(chosen.seconds_between)
            if load.wrong[bad:] or load.hung():
                failed += 1
                print(f"after fault {done}, {kind} of node {number}: {load.wrong[bad:][:3]}, hung: {load.hung()}", flush=True)
                bad = len(load.wrong)
                if load.hung():
                    break
            if done % 20 == 0:
                print(f"{done} faults {dict(kinds)}; answers {dict(load.counts)}", flush=True)
    finally:
        still = load.stop()
    try:
        assert not still, "a client hangs"
        members.until_alive()
        endpoints.idle(members.all, 30)
        with endpoints.Client(members.uri(1)) as client:
            assert endpoints.in_order(client.parallel(endpoints.EVERYTHING)).equals(answers[endpoints.EVERYTHING])
    except AssertionError as error:
        print(f"at the end: {error}")
        failed += 1
    for node in members.all:
        node.kill()
    total = sum(kinds.values())
    print(f"faults {dict(kinds)}; answers {dict(load.counts)}; wrong {len(load.wrong)}")
    print(f"{max(total - failed, 0)} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds-between", type=float, default=1.5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(1 if run(chosen, endpoints.write(pathlib.Path(folder) / "t")) else 0)


if __name__ == "__main__":
    main()
