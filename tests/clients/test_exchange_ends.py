"""How exchanges end: errors that say which rows, streams that break, stall and lie, cancels, deadlines, a server that drains.
Whatever a client does, nothing of it stays."""

import contextlib

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import protobuf
from exchange_wire import Raw, flight_data, ipc_messages
from exchanges import SCHEMA, command, exchange, fails, one, open_exchange, rows, store_table
from server import Server, wait_until


def test_statements_that_are_refused(client, table):
    store_table(client, table, pa.table({"id": [1]}))
    for sql, words in (
        ("SELECT 1 AS a", "does not read `input`"),
        (f"INSERT INTO {table} SELECT 1", "does not read `input`"),
        ("SELECT nothing FROM input", "nothing"),
        ("SELECT FROM WHERE input", ""),
        ("SELECT id FROM input; SELECT id FROM input", "only one statement"),
        (f"CREATE VIEW {table}_v AS SELECT id FROM input", ""),
        (f"CREATE TEMPORARY VIEW {table}_v AS SELECT id FROM input", ""),
        (f"CREATE MATERIALIZED VIEW {table}_v AS SELECT id FROM input", ""),
        ("DELETE FROM input", "is the input stream of the statement"),
        ("UPDATE input SET id = 1", "is the input stream of the statement"),
        ("SELECT id FROM input WHERE id = $1", "parameter"),
    ):
        fails(client, sql, words)
    for options in ({"input": 1}, {"rows": 5}, {"batch_rows": 0}, {"ordered": "no"}):
        fails(client, "SELECT id FROM input", next(iter(options)), **options)
    for descriptor in (
        flight.FlightDescriptor.for_path("elsewhere", "model"),
        flight.FlightDescriptor.for_command(b""),
        flight.FlightDescriptor.for_command(b"{sql"),
        flight.FlightDescriptor.for_command(protobuf.any_of("CommandGetCatalogs", b"")),
    ):
        writer, reader = client.do_exchange(descriptor)
        with contextlib.suppress(Exception):
            writer.begin(SCHEMA)
        with pytest.raises(Exception, match="exchange|command"):
            reader.read_all()
        with contextlib.suppress(Exception):
            writer.close()


def test_errors_say_which_rows(client):
    with open_exchange(client, "SELECT CAST(name AS BIGINT) AS n FROM input", batch_rows=1) as (writer, reader):
        for i in range(3):
            row = pa.record_batch([pa.array([i]), pa.array([str(i)]), pa.array([0.0])], schema=SCHEMA)
            writer.write_batch(row)
            assert reader.read_chunk().data.column(0).to_pylist() == [i]
        writer.write_batch(rows(9))
        with pytest.raises(pa.ArrowInvalid, match="at row 4 of `input`"):
            reader.read_chunk()


def test_names_that_nobody_could_tell_apart(client):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    fails(client, "SELECT 1 FROM input", "two columns `a`", twice)
    fails(client, "SELECT 1 FROM input", "reserved", pa.table({"__bowshot_address": [1]}))


def test_streams_that_lie(store):
    descriptor = protobuf.field(1, 2) + protobuf.field(2, "SELECT id FROM input")
    (schema, _), (header, body), *_ = ipc_messages(rows(1, 2, 3))
    (other, _), (other_header, other_body), *_ = ipc_messages(pa.record_batch({"id": ["text"]}))
    begin = flight_data(schema, descriptor=descriptor)
    good = flight_data(header, body)
    for sent, code, words in (
        (begin + good + flight_data(other), 3, "after row 3 of `input`"),
        (begin + good + flight_data(other_header, other_body), 3, "after row 3 of `input`"),
        (begin + good + flight_data(header, body[:-9]), 3, "after row 3 of `input`"),
        (begin + good + flight_data(b"nonsense" * 5, b""), 3, "after row 3 of `input`"),
        (begin + good + flight_data(header, body)[:50], None, "after row 3 of `input`"),
        (begin + good + b"\1" + good[1:], None, "after row 3 of `input`"),
        (flight_data(header, body, descriptor), 3, ""),
        (flight_data(schema), 3, "no descriptor"),
        (flight_data(b"", descriptor=descriptor), 3, "no schema"),
        (b"", 3, "the stream is empty"),
    ):
        raw = Raw(store)
        raw.send(sent, end=True)
        got, message = raw.status()
        assert got != 0 and words in message, (got, message, words)
        assert code is None or got == code, (got, message)
    store.wait_idle(5.0)


def test_a_stream_that_stalls_is_ended(data_folder):
    with Server(data_folder, arguments=["--set", "limits.reader_timeout=1s"]) as server:
        with flight.connect(server.grpc_tcp) as client:
            for sql in ("SELECT id FROM input", "SELECT count(*) FROM input"):
                with open_exchange(client, sql) as (writer, reader):
                    writer.write_batch(rows(1, 2))
                    with pytest.raises(flight.FlightTimedOutError, match="no message came for 1 s.*after row 2"):
                        reader.read_all()
            # It sends no schema.
            writer, reader = client.do_exchange(command("SELECT id FROM input"))
            server.wait_idle(5.0)
        server.wait_idle(5.0)


def test_the_deadline_of_a_statement_counts(client):
    one(client, "SET statement_timeout_ms = 700")
    with open_exchange(client, "SELECT id FROM input") as (writer, reader):
        writer.write_batch(rows(1))
        with pytest.raises(flight.FlightTimedOutError, match="ran longer than 700 ms"):
            reader.read_all()


def test_cancel_by_either_side(store, client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    for sql in ("SELECT id FROM input", "SELECT count(*) AS n FROM input", f"INSERT INTO {table} SELECT id FROM input"):
        # The client's deadline resets the call.
        writer, reader = client.do_exchange(command(sql), flight.FlightCallOptions(timeout=2))
        writer.begin(SCHEMA)
        writer.write_batch(rows(1))
        with pytest.raises(flight.FlightTimedOutError):
            reader.read_all()
        with contextlib.suppress(Exception):
            writer.close()
        store.wait_idle(5.0)
        # Somebody ends the statement.
        with open_exchange(client, sql) as (writer, reader), flight.connect(store.grpc_tcp) as other:
            writer.write_batch(rows(1))
            find = "SELECT query_id FROM system.queries WHERE waits_for = 'its client to send rows'"
            found = wait_until(lambda: one(other, find)["query_id"], "it waits for rows")
            one(other, f"KILL QUERY '{found[0]}'")
            # `read_all` would take it for an interrupt of its own.
            with pytest.raises(flight.FlightCancelledError):
                for _ in reader:
                    pass
        store.wait_idle(5.0)
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}


def test_waiting_streams_leave_their_places_to_others(data_folder):
    with Server(data_folder, arguments=["--set", "limits.max_running_queries=1"]) as server:
        with contextlib.ExitStack() as stack:
            streams = []
            for _ in range(3):
                client = stack.enter_context(flight.connect(server.grpc_tcp))
                streams.append(stack.enter_context(open_exchange(client, "SELECT id FROM input")))
            other = stack.enter_context(flight.connect(server.grpc_tcp))
            assert one(other, "SELECT 1 AS a") == {"a": [1]}
            for writer, reader in streams:
                writer.write_batch(rows(1))
                assert reader.read_chunk().data.num_rows == 1
                writer.done_writing()
        server.wait_idle(5.0)


def test_a_server_that_drains_ends_what_has_begun(data_folder):
    server = Server(data_folder)
    with server, flight.connect(server.grpc_tcp) as client:
        with open_exchange(client, "SELECT id FROM input") as (writer, reader):
            writer.write_batch(rows(1))
            assert reader.read_chunk().data.num_rows == 1
            server.terminate()
            wait_until(lambda: server.get("/ready")[0] != 200, "it drains")
            writer.write_batch(rows(2))
            assert reader.read_chunk().data.column(0).to_pylist() == [2]
            writer.done_writing()
            with pytest.raises(StopIteration):
                reader.read_chunk()


def test_the_log_tells_rows_in_and_out(client, table):
    sql = f"SELECT id AS {table} FROM input WHERE id < 10"
    assert exchange(client, sql, pa.Table.from_batches([rows(*range(100))])).num_rows == 10
    find = f"SELECT outcome, rows, rows_in FROM system.queries WHERE statement = '{sql.replace(chr(39), chr(39) * 2)}'"
    wait_until(lambda: one(client, find)["outcome"] == ["finished"], "it is in the log")
    assert one(client, find) == {"outcome": ["finished"], "rows": [10], "rows_in": [100]}
