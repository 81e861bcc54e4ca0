"""Endpoints of nodes that die, stop or end: all rows, or an error that says to ask again; never a part of the rows."""

import concurrent.futures
import time

import endpoints
import nodes
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from endpoints import EVERYTHING, LARGE, ROWS, SPREAD, Client, idle, in_order, places

GONE = (flight.FlightUnavailableError, flight.FlightInternalError, flight.FlightCancelledError)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return endpoints.write(tmp_path_factory.mktemp("endpoints") / "t")


@pytest.fixture(scope="module")
def answers(table):
    return endpoints.answers(table)


def read_all(client, info):
    """What each endpoint gives: its rows, or its error."""

    def read(endpoint):
        try:
            return client.reader(endpoint).read_all().num_rows
        except Exception as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(info.endpoints)) as pool:
        return list(pool.map(read, info.endpoints, timeout=90 * nodes.BUSY_FACTOR))


def test_a_node_that_dies_before_its_rows_were_fetched(table):
    with endpoints.started(table) as members:
        with Client(members[0].grpc_tcp) as client:
            info = client.info(EVERYTHING)
            lost = members[2].grpc_tcp
            members[2].kill()
            at = places(info).index(lost)
            time.sleep(1)
            ends = read_all(client, info)
            assert all(isinstance(end, Exception) for end in ends), ends
            for number, end in enumerate(ends):
                assert isinstance(end, GONE), end
                assert number == at or "run" in str(end) and "again" in str(end), end
            # Through a node that is there, it says what to do.
            with pytest.raises(flight.FlightUnavailableError, match="again"):
                client.reader(info.endpoints[at], at=members[1].grpc_tcp).read_all()
            idle(members[:2])
            # The next one runs on those that are left.
            assert client.parallel(EVERYTHING).num_rows == ROWS
        idle(members[:2])


def test_a_node_that_dies_while_its_rows_are_fetched(table):
    with endpoints.started(table) as members:
        with Client(members[0].grpc_tcp) as client:
            info = client.info(EVERYTHING)
            readers = [client.reader(endpoint) for endpoint in info.endpoints]
            for reader in readers:
                reader.read_chunk()
            members[2].kill()
            failed = 0
            for reader in readers:
                try:
                    reader.read_all()
                except GONE:
                    failed += 1
            assert failed >= 1
        idle(members[:2])


def test_the_node_that_was_asked_dies(table):
    with endpoints.started(table) as members:
        with Client(members[0].grpc_tcp) as client:
            info = client.info(LARGE)
            away = [endpoint for endpoint, place in zip(info.endpoints, places(info)) if place]
            reader = client.reader(away[0])
            reader.read_chunk()
            members[0].kill()
            # More rows are left than were on their way when the others noticed.
            idle(members[1:])
            with pytest.raises(GONE, match="again|lost"):
                reader.read_all()
            for endpoint in away:
                with pytest.raises((flight.FlightError, pa.ArrowException), match="again|lost"):
                    client.reader(endpoint).read_all()


def test_a_node_that_is_stopped_before_the_first_row_is_not_noticed(table, answers):
    with endpoints.started(table) as members:
        members[2].signal(nodes.STOP)
        try:
            with Client(members[0].grpc_tcp) as client:
                for sql in SPREAD:
                    info = client.info(sql)
                    assert members[2].grpc_tcp not in places(info)
                    assert in_order(client.all_of(info)) == answers[sql]
        finally:
            members[2].signal(nodes.CONTINUE)
        nodes.all_alive(members)
        idle(members)


def test_a_node_that_ends_lets_its_rows_be_fetched(table):
    with endpoints.started(table) as members:
        with Client(members[0].grpc_tcp) as client:
            info = client.info(EVERYTHING)
            readers = [client.reader(endpoint) for endpoint in info.endpoints]
            members[2].terminate()
            time.sleep(1)
            assert sum(reader.read_all().num_rows for reader in readers) == ROWS
        nodes.wait_until(lambda: not members[2].alive(), "the end of the node", 40)
