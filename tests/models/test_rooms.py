"""Rooms: workers exchange tensors in rounds; late, lost and malicious members."""

import functools
import threading

import numpy
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import federated
from federated import Room, tensors, weights_of
from server import together


@pytest.fixture
def name(request):
    return request.node.name


def tensor(*values):
    return tensors({"t": numpy.array(values, numpy.float32).reshape(1, -1)})


def numbers(batch):
    return weights_of(batch)["t"].ravel().tolist()


class Members:
    """Members of one room, each with a connection and a thread of its own."""

    def __init__(self, served, name, count, **options):
        self.clients = [flight.connect(served.server.grpc_tcp) for _ in range(count)]
        self.rooms = [Room(client, name, tensor(0, 0), members=count, **options) for client in self.clients]

    def round(self, *given):
        """What each member gets for what it gives, or the error; None gives nothing."""
        got = [None] * len(given)

        def send(at):
            try:
                got[at] = numbers(self.rooms[at].combined(given[at]))
            except Exception as error:
                got[at] = str(error)

        together(*(functools.partial(send, at) for at in range(len(given)) if given[at] is not None))
        return got

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()


def test_rounds(served, name):
    for combine, expected in (("mean", [2, 4]), ("sum", [6, 12])):
        with Members(served, name + combine, 3, combine=combine) as members:
            for factor in (1, 10):
                answers = members.round(*(tensor(factor * one, factor * 2 * one) for one in (1, 2, 3)))
                assert answers == [[factor * x for x in expected]] * 3


def test_weighted_mean_keeps_types(served, name):
    schema = pa.schema([("t", pa.list_(pa.float64(), 2)), ("x", pa.float32()), ("weight", pa.float64())])
    rows = [pa.record_batch([[[1.0, 2.0]], [4.0], [1.0]], schema=schema), pa.record_batch([[[5.0, 6.0]], [8.0], [3.0]], schema=schema)]
    got = [None, None]

    def member(at):
        with flight.connect(served.server.grpc_tcp) as client:
            room = Room(client, name, rows[at], members=2, combine="weighted_mean")
            got[at] = room.combined(rows[at])
            room.leave()

    together(lambda: member(0), lambda: member(1))
    for batch in got:
        assert batch.to_pylist() == [{"t": [4.0, 5.0], "x": 7.0}] and batch.schema.types == schema.types[:2]


def test_lost_and_late_members(served, name):
    with Members(served, name, 3, minimum=2, timeout_ms=3000) as members:
        # One is lost: the two others are enough once the time is over.
        assert members.round(tensor(1, 1), tensor(3, 3), None) == [[2, 2], [2, 2], None]
        # It comes late: it gets what the others have made, and takes part from then on.
        assert members.round(None, None, tensor(100, 100))[2] == [2, 2]
        assert members.round(tensor(1, 1), tensor(3, 3), tensor(5, 5)) == [[3, 3]] * 3
    with Members(served, name + "few", 3, minimum=2, timeout_ms=300) as members:
        answers = members.round(tensor(1, 1), None, None)
        assert "timed out: 1 members have sent, and 2 are needed" in answers[0]


def test_malicious_members(served, name):
    with Members(served, name, 2, timeout_ms=20000) as members:
        with flight.connect(served.server.grpc_tcp) as client:
            for first, options, word in (
                (tensor(1, 1, 1), {"members": 2, "timeout_ms": 20000}, "do not match those of room"),
                (tensor(1, 1), {"members": 3, "timeout_ms": 20000}, "other options"),
                (tensor(1, 1), {"members": 2, "timeout_ms": 20000}, "has all its 2 members"),
                (tensor(1, 1), {"members": 2, "combine": "weighted_mean"}, "other options"),
                (pa.record_batch({"t": ["x"]}), {"members": 2}, "other options"),
                (tensor(1, 1), {"members": "two"}, "unknown option"),
            ):
                with pytest.raises(Exception, match=word):
                    Room(client, name, first, **options).combined(first)
            with pytest.raises(Exception, match="expected a tensor of floats"):
                Room(client, name + "texts", pa.record_batch({"t": ["x"]}), members=1).combined(pa.record_batch({"t": ["x"]}))
        # A number that is none does not count, and another member may come in its place.
        other = {}
        honest = threading.Thread(target=lambda: other.update(got=members.round(tensor(1, 1))))
        honest.start()
        with pytest.raises(Exception, match="NULL, NaN or infinity"):
            members.rooms[1].combined(tensor(float("nan"), 1))
        with flight.connect(served.server.grpc_tcp) as client:
            room = Room(client, name, tensor(3, 3), members=2, timeout_ms=20000)
            assert numbers(room.combined(tensor(3, 3))) == [2, 2]
            honest.join()
            assert other["got"] == [[2, 2]]
            two = pa.Table.from_batches([tensor(1, 1), tensor(2, 2)]).combine_chunks().to_batches()[0]
            with pytest.raises(Exception, match="one row"):
                room.combined(two)


def test_no_one_takes_all_rooms(served, name):
    within = []

    def enter(at, schema):
        client = flight.connect(served.server.grpc_tcp)
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_path("room", f"{name}{at}", "members=1"))
        writer.begin(schema)
        within.append((client, writer))
        return reader.schema  # It comes when the room is entered.

    def leave():
        for client, writer in within:
            writer.done_writing()
            writer.close()
            client.close()
        within.clear()

    for at in range(8):
        assert enter(at, tensor(1, 1).schema).names == ["t"]
    with pytest.raises(Exception, match="you have 8 rooms, which is the limit"):
        enter(8, tensor(1, 1).schema)
    within.pop()[0].close()
    leave()
    # A third of this size is more than all rooms together may have.
    large = pa.schema([("t", pa.list_(pa.float32(), 1 << 25))])
    for at in ("first", "second"):
        enter(at, large)
    with pytest.raises(Exception, match="all rooms together have 67108864 numbers"):
        enter("third", tensor(1, 1).schema)
    within.pop()[0].close()
    leave()
    assert enter("after", large).names == ["t"]
    leave()


def test_federated_digits(served):
    """As good as training on all rows."""
    test = federated.digits()[1]
    trained = federated.federated(served.server.grpc_tcp)
    assert all((network["hidden"] == trained[0]["hidden"]).all() for network in trained)
    apart = federated.accuracy(federated.alone(), *test)
    assert apart > 0.93 and federated.accuracy(trained[0], *test) >= apart - 0.02
