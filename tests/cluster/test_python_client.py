"""The package for Python at several nodes: it goes to each for its part of a result, and gets all of it where it reaches one alone."""

import concurrent.futures
import contextlib
import pathlib
import pickle
import sys

import endpoints
import nodes
import pyarrow as pa
import pyarrow.flight
import pytest
from endpoints import EVERYTHING, ROWS, in_order

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python/src"))

import bowshot  # noqa: E402
from bowshot._nodes import config_at  # noqa: E402

# As test_endpoints has it: at rest, a metric grows by what probes cost.
LEAST = 1 << 20


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return endpoints.write(tmp_path_factory.mktemp("python-client") / "t")


@pytest.fixture(scope="module")
def members(table):
    # A part that its node makes after its cancel has come stays so long.
    with endpoints.started(table, limits__result_timeout="5s", **endpoints.STEADY) as members:
        yield members


@pytest.fixture(scope="module")
def answer(table):
    with nodes.Server(f"t={table}") as server, endpoints.Client(server.grpc_tcp, endpoints=None) as client:
        return in_order(client.run(EVERYTHING))


def connect(member, **more):
    return bowshot.connect(member.grpc_tcp, options={"endpoints": "auto"}, same_host=False, autocommit=True, **more)


def sent(members):
    return [member.metrics()["bowshot_flight_sent_bytes_total"] for member in members]


@contextlib.contextmanager
def grown(members):
    """What each node has sent meanwhile."""
    before, found = sent(members), []
    yield found
    found.extend(after - first for first, after in zip(before, sent(members)))


def read(part):
    return pickle.loads(part).arrow()


def test_each_node_hands_out_its_part(members, answer):
    for asked in members:
        with connect(asked) as connection, grown(members) as bytes_of:
            assert in_order(connection.sql(EVERYTHING).arrow()) == answer
        assert min(bytes_of) > LEAST, bytes_of
        with connect(asked) as connection, grown(members) as bytes_of:
            batches = list(connection.sql(EVERYTHING).batches())
        assert in_order(pa.Table.from_batches(batches)) == answer
        assert min(bytes_of) > LEAST, bytes_of
    endpoints.idle(members)


def test_in_shared_memory_of_each(members, answer):
    with bowshot.connect(members[0].grpc_tcp, options={"endpoints": "auto"}, autocommit=True) as connection:
        result = connection.sql(EVERYTHING)
        assert in_order(result.arrow()) == answer
        assert result.transport == "memory" and result.transport_note is None
    endpoints.idle(members)


def test_partitions_are_read_by_other_processes(members, answer):
    options = {"endpoints": "auto", "retryable_results": False}
    with bowshot.connect(members[1].grpc_tcp, options=options, same_host=False, autocommit=True) as connection:
        parts = [pickle.dumps(part) for part in connection.partitions(EVERYTHING)]
    assert len(parts) == 3
    with grown(members) as bytes_of, concurrent.futures.ProcessPoolExecutor(3, mp_context=spawning()) as pool:
        assert in_order(pa.concat_tables(pool.map(read, parts))) == answer
    assert min(bytes_of) > LEAST, bytes_of
    endpoints.idle(members)


def test_partitions_of_a_kept_result_are_read_again(members, answer):
    with connect(members[1]) as connection:
        parts = connection.partitions(EVERYTHING)
    for _ in range(2):
        assert in_order(pa.concat_tables([part.arrow() for part in parts])) == answer


def spawning():
    import multiprocessing

    return multiprocessing.get_context("spawn")


def test_results_that_are_given_up_leave_nothing(members):
    with connect(members[0]) as connection:
        for _ in range(10):
            result = connection.sql(EVERYTHING)
            next(result.batches())
            result.close()
    endpoints.idle(members)


def test_who_reaches_one_node_alone_gets_all_rows(table, answer):
    more = ["--set", "cluster.public=grpc+tcp://127.0.0.1:1"]
    with endpoints.started(table, more=more, **endpoints.STEADY) as members, connect(members[0]) as connection:
        with grown(members) as bytes_of:
            result = connection.sql(EVERYTHING)
            assert in_order(result.arrow()) == answer
        assert "127.0.0.1:1 cannot be asked" in result.transport_note
        assert max(bytes_of[1:]) < LEAST < bytes_of[0], bytes_of
        parts = connection.partitions(EVERYTHING)
        assert sum(part.arrow().num_rows for part in parts) == ROWS


@pytest.mark.parametrize(("asked", "node", "goes"), [
    ("grpc://127.0.0.1:1", "grpc+tcp://127.0.0.1:2", True),
    ("grpc://127.0.0.1:1", "grpc+tcp://127.0.0.1:1", False),
    # The near end of a tunnel: behind it the network is somebody else's.
    ("grpc://ada:x@localhost:1", "grpc+tcp://10.0.0.2:2", False),
    ("grpc://ada:x@[::1]:1", "grpc+tcp://node.example.org:2", False),
    ("grpc://localhost:1?token=x", "grpc+tcp://10.0.0.2:2", False),
    ("grpc://localhost:1", "grpc+tcp://10.0.0.2:2", True),
    ("grpc://ada:x@10.0.0.1:1", "grpc+tcp://10.0.0.2:2", True),
    ("grpc+tls://ada:x@localhost:1", "grpc+tls://10.0.0.2:2", True),
    ("grpc+tls://10.0.0.1:1", "grpc+tcp://10.0.0.2:2", False),
    ("grpc://10.0.0.1:1", "grpc+tls://10.0.0.2:2", False),
    ("grpc://10.0.0.1:1", "arrow-flight-reuse-connection://?", False),
    ("grpc://10.0.0.1:1", "http://10.0.0.2:2", False),
])
def test_where_credentials_may_go(asked, node, goes):
    config = bowshot.configure(asked)
    found = config_at(config, pa.flight.FlightEndpoint(b"ticket", [node]))
    assert (found is not None) == goes
    assert found is None or (found.location == node and found.password == config.password)


def test_each_node_asks_for_credentials(table, answer, tmp_path):
    user = {"user": "ada", "password": nodes.PASSWORD}
    more = nodes.users_file(tmp_path, ada=False)
    with endpoints.started(table, more=more, user=tuple(user.values()), **endpoints.STEADY) as members:
        with connect(members[0], **user) as connection, grown(members) as bytes_of:
            assert in_order(connection.sql(EVERYTHING).arrow()) == answer
        assert min(bytes_of) > LEAST, bytes_of
