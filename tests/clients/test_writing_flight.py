"""Writing through pyarrow.flight: whole datasets by path, and what becomes of streams that break."""

import contextlib
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import data
import protobuf
from server import Server

SCHEMA = pa.schema([("id", pa.int64())])


def path(*names):
    return flight.FlightDescriptor.for_path(*names)


def batch(*ids):
    return pa.record_batch([pa.array(ids, pa.int64())], schema=SCHEMA)


def put(client, descriptor, table, chunk=None):
    """Writes a table; returns how many rows the server has written."""
    writer, reader = client.do_put(descriptor, table.schema)
    with writer:
        writer.write_table(table, chunk)
        writer.done_writing()
        answer = reader.read()
    return protobuf.fields(answer.to_pybytes()).get(1, [0])[0]


def get(client, *names):
    info = client.get_flight_info(path(*names))
    return client.do_get(info.endpoints[0].ticket).read_all()


def ingest(name, if_missing=1, if_exists=2, **others):
    """A descriptor of CommandStatementIngest."""
    body = protobuf.field(1, protobuf.field(1, if_missing) + protobuf.field(2, if_exists)) + protobuf.field(2, name)
    for number, value in others.items():
        body += protobuf.field(int(number[1:]), value)
    return flight.FlightDescriptor.for_command(protobuf.any_of("CommandStatementIngest", body))


def act(client, name, message, body):
    results = list(client.do_action(flight.Action(name, protobuf.any_of(message, body))))
    return protobuf.unwrap(bytes(results[0].body))[1] if results else b""


def test_a_dataset_is_stored_and_read_by_its_path(client, table):
    expected = data.plain_types()
    for names in ([table], ["main", table], ["bowshot", "main", table]):
        assert put(client, path(*names), expected) == 3
        got = get(client, *names)
        assert got.schema.equals(expected.schema)
        assert [repr(row) for row in got.to_pylist()] == [repr(row) for row in expected.to_pylist()]
    assert put(client, path(table), pa.table({"other": ["x"]})) == 1
    assert get(client, table).to_pydict() == {"other": ["x"]}


def test_a_writer_that_reads_no_answer_closes_cleanly(client, table):
    writer, _ = client.do_put(path(table), SCHEMA)
    writer.write_batch(batch(1, 2))
    writer.close()
    assert sorted(get(client, table)["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], ["a", ""]])
def test_paths_that_are_no_tables(client, names):
    with pytest.raises(pa.ArrowInvalid, match="path"):
        put(client, path(*names), SCHEMA.empty_table())


def test_two_hundred_batches(client, store, table):
    ids = pa.table({"id": pa.array(range(200 * 5_000), pa.int64()), "text": ["some text"] * (200 * 5_000)})
    assert put(client, path(table), ids, 5_000) == 1_000_000
    got = get(client, table)
    assert got.num_rows == 1_000_000
    # The parts of a table are read side by side: nobody has asked for an order.
    assert sorted(got["id"].to_pylist()) == list(range(1_000_000))
    store.wait_idle(5.0)


def test_messages_far_above_the_limit_of_grpc(client, table):
    # One message of 64 MiB: pyarrow cuts nothing.
    ids = pa.table({"id": pa.array(range(8 << 20), pa.int64())})
    assert put(client, path(table), ids) == 8 << 20
    assert get(client, table).num_rows == 8 << 20


def test_messages_above_the_limit_of_the_server_say_so(data_folder, table):
    with Server(data_folder, arguments=["--set", "limits.max_message_bytes=1000000"]) as server:
        with flight.connect(server.grpc_tcp) as client:
            with pytest.raises((pa.ArrowException, flight.FlightError), match="limits.max_message_bytes"):
                put(client, path(table), pa.table({"id": pa.array(range(1_000_000), pa.int64())}))
            with pytest.raises(pa.ArrowKeyError, match="not found"):
                get(client, table)
            assert put(client, path(table), pa.table({"id": pa.array(range(1_000_000), pa.int64())}), 50_000) == 1_000_000


CUT = """
import sys, os, pyarrow as pa, pyarrow.flight as flight
client = flight.connect(sys.argv[1])
schema = pa.schema([("id", pa.int64())])
writer, reader = client.do_put(flight.FlightDescriptor.for_path(sys.argv[2]), schema)
for number in range(20):
    writer.write_batch(pa.record_batch([pa.array(range(100_000), pa.int64())], schema=schema))
print("written", flush=True)
sys.stdin.read()
"""


def test_a_client_that_dies_in_the_middle_writes_nothing(client, store, table):
    put(client, path(table), pa.Table.from_batches([batch(1)]))
    dying = subprocess.Popen([sys.executable, "-c", CUT, store.grpc_tcp, table], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert dying.stdout.readline() == "written\n"
    dying.kill()
    dying.communicate()
    store.wait_idle(5.0)
    assert get(client, table)["id"].to_pylist() == [1]


def test_a_client_that_cancels_in_the_middle_writes_nothing(client, store, table):
    put(client, path(table), pa.Table.from_batches([batch(1)]))
    # The deadline ends the call as a cancel does: with a reset of the stream, not of the connection.
    options = flight.FlightCallOptions(timeout=0.5)
    writer, reader = client.do_put(path(table), SCHEMA, options)
    with contextlib.suppress(flight.FlightTimedOutError):
        writer.write_batch(batch(2, 3))
    time.sleep(1)
    with contextlib.suppress(flight.FlightTimedOutError):
        reader.read()
    with contextlib.suppress(flight.FlightTimedOutError):
        writer.close()
    store.wait_idle(5.0)
    assert get(client, table)["id"].to_pylist() == [1]


def test_ingest_commands(client, table):
    rows = pa.Table.from_batches([batch(1, 2)])
    assert put(client, ingest(table, if_missing=1, if_exists=1), rows) == 2
    assert put(client, ingest(table, if_missing=2, if_exists=2), rows) == 2
    assert sorted(get(client, table)["id"].to_pylist()) == [1, 1, 2, 2]
    assert put(client, ingest(table, if_missing=2, if_exists=3), rows) == 2
    assert sorted(get(client, table)["id"].to_pylist()) == [1, 2]


def test_an_ingest_in_a_transaction_with_a_savepoint(client, table):
    rows = pa.Table.from_batches([batch(1, 2)])
    transaction = protobuf.fields(act(client, "BeginTransaction", "ActionBeginTransactionRequest", b""))[1][0]
    assert put(client, ingest(table, _6=transaction), rows) == 2
    save = protobuf.field(1, transaction) + protobuf.field(2, "before")
    savepoint = protobuf.fields(act(client, "BeginSavepoint", "ActionBeginSavepointRequest", save))[1][0]
    assert put(client, ingest(table, _6=transaction), rows) == 2
    with pytest.raises(pa.ArrowKeyError, match="not found"):
        get(client, table)
    query = protobuf.field(1, f"SELECT count(*) AS n FROM {table}") + protobuf.field(2, transaction)
    within = flight.Ticket(protobuf.any_of("CommandStatementQuery", query))
    assert client.do_get(within).read_all().to_pylist() == [{"n": 4}]
    act(client, "EndSavepoint", "ActionEndSavepointRequest", protobuf.field(1, savepoint) + protobuf.field(2, 2))
    assert client.do_get(within).read_all().to_pylist() == [{"n": 2}]
    end = protobuf.field(1, transaction) + protobuf.field(2, 1)
    act(client, "EndTransaction", "ActionEndTransactionRequest", end)
    assert sorted(get(client, table)["id"].to_pylist()) == [1, 2]
    with pytest.raises(pa.ArrowKeyError, match="transaction.*not found|not found.*transaction"):
        act(client, "EndTransaction", "ActionEndTransactionRequest", end)


def test_savepoints_by_sql_and_by_action_are_of_one_transaction(client, table):
    """A savepoint that one of the two has set is there for the other, and not for another transaction."""

    def run(sql, of):
        command = protobuf.any_of("CommandStatementUpdate", protobuf.field(1, sql) + protobuf.field(2, of))
        writer, reader = client.do_put(flight.FlightDescriptor.for_command(command), pa.schema([]))
        reader.read()
        writer.close()

    def begin():
        return protobuf.fields(act(client, "BeginTransaction", "ActionBeginTransactionRequest", b""))[1][0]

    def count(of):
        query = protobuf.field(1, f"SELECT count(*) AS n FROM {table}") + protobuf.field(2, of)
        return client.do_get(flight.Ticket(protobuf.any_of("CommandStatementQuery", query))).read_all()["n"][0].as_py()

    put(client, path(table), pa.Table.from_batches([batch(1)]))
    first, second = begin(), begin()
    save = protobuf.field(1, first) + protobuf.field(2, "s")
    savepoint = protobuf.fields(act(client, "BeginSavepoint", "ActionBeginSavepointRequest", save))[1][0]
    run(f"DELETE FROM {table}", first)
    with pytest.raises(pa.ArrowKeyError, match="savepoint `s` not found"):
        run("ROLLBACK TO SAVEPOINT s", second)
    run("ROLLBACK TO SAVEPOINT s", first)
    assert (count(first), count(second)) == (1, 1)
    run("SAVEPOINT t", first)
    run(f"INSERT INTO {table} SELECT * FROM {table}", first)
    assert count(first) == 2
    # What comes after a savepoint goes with it.
    act(client, "EndSavepoint", "ActionEndSavepointRequest", protobuf.field(1, savepoint) + protobuf.field(2, 2))
    assert count(first) == 1
    with pytest.raises(pa.ArrowKeyError, match="savepoint `t` not found"):
        run("RELEASE SAVEPOINT t", first)
    for of in (first, second):
        act(client, "EndTransaction", "ActionEndTransactionRequest", protobuf.field(1, of) + protobuf.field(2, 1))
    with pytest.raises(pa.ArrowKeyError, match="transaction.*not found"):
        run("SAVEPOINT s", first)
