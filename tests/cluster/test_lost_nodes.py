"""Nodes that are lost while queries run on them: right answers or an error that says so, never a short or doubled one."""

import threading
import time

import endpoints
import nodes
import pyarrow.flight as flight
import pytest

ROWS = 400_000
# The last two learn while they run which rows they need not look at: a second run must not know it.
QUERIES = [
    "SELECT count(*), sum(x), count(DISTINCT g) FROM t",
    "SELECT g, count(*), sum(x) FROM t GROUP BY g ORDER BY g",
    "SELECT count(*), sum(a.x) FROM t a JOIN t b ON a.x = b.x WHERE b.g < 50",
    "SELECT x, g FROM t WHERE x % 3 = 0 ORDER BY x",
    "SELECT g FROM t ORDER BY g LIMIT 10",
    "SELECT min(g), max(x) FROM t WHERE x % 2 = 0",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return endpoints.write(tmp_path_factory.mktemp("lost") / "t", ROWS, groups=997)


def started(count, table, **other):
    given = {"cluster.bytes_per_thread": 1, "result_cache.memory_bytes": 0, "engine.threads": 2}
    given |= {name.replace("__", "."): value for name, value in other.items()}
    more = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    return nodes.cluster(count, more=more, sources=[f"t={table}"])


def ask(node, sql):
    with endpoints.Client(node.grpc_tcp, None) as client:
        return client.run(sql)


class Load:
    """Clients that ask one node for known answers, one query after another."""

    def __init__(self, node, answers, clients=3):
        self.node, self.answers = node, answers
        self.right, self.told, self.wrong = 0, [], []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]

    def _ask(self, number):
        queries = list(self.answers)
        while not self.stopped.is_set():
            number += 1
            sql = queries[number % len(queries)]
            try:
                found = ask(self.node, sql)
            except flight.FlightUnavailableError as error:
                self.told.append(str(error))
                continue
            except Exception as error:
                self.wrong.append(f"{sql}: {error!r}")
                continue
            if found.equals(self.answers[sql]):
                self.right += 1
            else:
                self.wrong.append(f"{sql}: {found.num_rows} rows instead of {self.answers[sql].num_rows}, or others")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(90 * nodes.BUSY_FACTOR)
            assert not thread.is_alive(), "a query hangs"


def known(node):
    return {sql: ask(node, sql) for sql in QUERIES}


def test_queries_run_on_all_nodes(table):
    with started(3, table, **endpoints.STEADY) as members:
        for member in members:
            lines = [line for _, line in member.rows("EXPLAIN SELECT g, count(*) FROM t GROUP BY g")]
            assert any("Stage" in line and "tasks=3" in line for line in lines), lines
        assert known(members[0]) == known(members[1]) == known(members[2])
        [[rows]] = members[1].rows("SELECT count(*) FROM t")
        assert rows == ROWS


def test_nodes_that_are_killed(table):
    with started(4, table) as members:
        answers = known(members[0])
        with Load(members[0], answers) as load:
            time.sleep(1)
            members[3].kill()
            time.sleep(2)
            members[2].kill()
            time.sleep(3)
            nodes.wait_until(lambda: load.right > 5 or load.wrong, "answers of the nodes that are left")
        assert not load.wrong, load.wrong[:3]
        assert load.right > 5, (load.right, load.told[:3])
        assert known(members[1]) == answers


def test_a_node_that_is_stopped(table):
    with started(3, table) as members:
        answers = known(members[0])
        members[2].signal(nodes.STOP)
        try:
            with Load(members[0], answers) as load:
                time.sleep(12)
                nodes.wait_until(lambda: load.right > 0 or load.wrong, "an answer without the node")
        finally:
            members[2].signal(nodes.CONTINUE)
        assert not load.wrong, load.wrong[:3]
        assert load.right > 0, load.told[:3]
        nodes.all_alive(members)
        assert known(members[0]) == answers


def test_a_query_that_runs_again_has_all_its_rows(table):
    with started(3, table) as members:
        answers = known(members[0])
        for sql in QUERIES[-2:]:
            members[2].signal(nodes.STOP)
            try:
                assert ask(members[0], sql).equals(answers[sql]), sql
            finally:
                members[2].signal(nodes.CONTINUE)
            nodes.all_alive(members)


def test_a_node_that_ends(table):
    with started(3, table, **endpoints.STEADY) as members:
        answers = known(members[0])
        with Load(members[0], answers) as load:
            time.sleep(1)
            members[2].terminate()
            nodes.wait_until(lambda: not members[2].alive(), "the end of the node", 40)
            time.sleep(1)
            nodes.wait_until(lambda: load.right > 3 or load.wrong or load.told, "answers")
        assert not load.wrong and not load.told, (load.wrong[:3], load.told[:3])
        assert load.right > 3


def test_nothing_is_held_after_a_cancel(table):
    with started(3, table) as members:
        with flight.connect(members[0].grpc_tcp) as client:
            sql = "SELECT a.x, b.x FROM t a JOIN t b ON a.g = b.g"
            info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
            reader = client.do_get(info.endpoints[0].ticket)
            reader.read_chunk()
            reader.cancel()
        for member in members:
            member.wait_idle(20)
