"""DoExchange: statements over the rows that the client sends while they run. Each answer is held against that of the same
statement over a stored table; streams break, stall and lie; and whatever a client does, nothing of it stays."""

import contextlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import h2.connection
import h2.events
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import protobuf
from server import Server, binaries, wait_until

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])


@pytest.fixture
def client(store):
    with flight.connect(store.grpc_tcp) as client:
        yield client


def rows(*ids):
    columns = [pa.array(ids, pa.int64()), pa.array([f"n{i % 5}" for i in ids]), pa.array([i / 2 for i in ids])]
    return pa.record_batch(columns, schema=SCHEMA)


def command(sql, **options):
    text = json.dumps({"sql": sql, **options}) if options else sql
    return flight.FlightDescriptor.for_command(text.encode())


def exchange(client, sql, table, *, chunk=None, call=None, **options):
    """Sends a table along with a statement, from a thread of its own; gives the answer."""
    writer, reader = client.do_exchange(command(sql, **options), call or flight.FlightCallOptions())
    refused = []

    def send():
        try:
            writer.begin(table.schema)
            writer.write_table(table, chunk) if chunk else writer.write_table(table)
            writer.done_writing()
        except Exception as error:  # The answer tells more: it may have ended before the rows did.
            refused.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        return reader.read_all()
    finally:
        sender.join()
        with contextlib.suppress(Exception):
            writer.close()


def run(client, sql):
    info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
    return pa.concat_tables(client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints)


def one(client, sql):
    return run(client, sql).to_pydict()


def store_table(client, name, table):
    writer, reader = client.do_put(flight.FlightDescriptor.for_path(name), table.schema)
    with writer:
        writer.write_table(table)
        writer.done_writing()
        reader.read()


@contextlib.contextmanager
def open_exchange(client, sql, schema=SCHEMA, **options):
    writer, reader = client.do_exchange(command(sql, **options))
    writer.begin(schema)
    try:
        yield writer, reader
    finally:
        with contextlib.suppress(Exception):
            writer.close()


def fails(client, sql, words, table=None, kind=Exception, **options):
    with pytest.raises(kind) as caught:
        exchange(client, sql, pa.table(rows(1, 2, 3)) if table is None else table, **options)
    assert words in str(caught.value), str(caught.value)


# Rows while rows come


def test_rows_come_back_one_by_one_while_rows_go_in(client, table):
    store_table(client, table, pa.table({"key": [f"n{i}" for i in range(5)], "label": [f"label {i}" for i in range(5)]}))
    for sql, expected in (
        ("SELECT id + 1 AS a FROM input", lambda i: {"a": i + 1}),
        ("SELECT id FROM input WHERE id >= 0 AND name LIKE 'n%'", lambda i: {"id": i}),
        (
            f"SELECT id, label FROM input JOIN {table} ON name = key WHERE value >= 0",
            lambda i: {"id": i, "label": f"label {i % 5}"},
        ),
        (f"SELECT id FROM input LEFT JOIN {table} ON name = key", lambda i: {"id": i}),
        (f"SELECT id FROM input WHERE name IN (SELECT key FROM {table})", lambda i: {"id": i}),
    ):
        with open_exchange(client, sql, batch_rows=1) as (writer, reader):
            # The columns are there before any row is.
            assert reader.schema.names == list(expected(0))
            for i in range(20):
                writer.write_batch(rows(i))
                assert reader.read_chunk().data.to_pylist() == [expected(i)], sql
            writer.done_writing()
            with pytest.raises(StopIteration):
                reader.read_chunk()


def test_a_filter_gives_rows_at_once_without_options(client):
    with open_exchange(client, "SELECT id FROM input WHERE id % 2 = 0") as (writer, reader):
        for i in range(10):
            writer.write_batch(rows(2 * i, 2 * i + 1))
            assert reader.read_chunk().data.column(0).to_pylist() == [2 * i]
        writer.done_writing()


def test_rows_keep_their_order(client):
    sent = pa.Table.from_batches([rows(*range(n * 1000, n * 1000 + 1000)) for n in range(100)])
    got = exchange(client, "SELECT id FROM input WHERE value >= 0", sent)
    assert got["id"].to_pylist() == list(range(100_000))
    got = exchange(client, "SELECT id FROM input", sent, ordered=False)
    assert sorted(got["id"].to_pylist()) == list(range(100_000))


def test_who_must_see_all_answers_at_the_half_close(client):
    with open_exchange(client, "SELECT count(*) AS n, sum(id) AS s FROM input") as (writer, reader):
        for i in range(5):
            writer.write_batch(rows(i, i))
        writer.done_writing()
        assert reader.read_all().to_pylist() == [{"n": 10, "s": 20}]
    sent = pa.Table.from_batches([rows(3, 1, 2)])
    assert exchange(client, "SELECT id FROM input ORDER BY id DESC", sent)["id"].to_pylist() == [3, 2, 1]


def test_more_than_any_buffer_holds_goes_through(store, client):
    # 400 MB each way; a server that gathered them would show it.
    wide = pa.record_batch([pa.array(range(100_000), pa.int64())] * 5, names=list("abcde"))
    before = resident(store)
    peak, count = 0, 0
    writer, reader = client.do_exchange(command("SELECT * FROM input WHERE a >= 0"))
    writer.begin(wide.schema)

    def send():
        for _ in range(100):
            writer.write_batch(wide)
        writer.done_writing()

    sender = threading.Thread(target=send)
    sender.start()
    for chunk in reader:
        count += chunk.data.num_rows
        peak = max(peak, resident(store))
    sender.join()
    writer.close()
    assert count == 10_000_000
    assert peak - before < 300 << 20, (peak - before) >> 20


def resident(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def test_a_client_that_does_not_read_must_wait_with_its_rows(client):
    wide = pa.record_batch([pa.array(range(100_000), pa.int64())] * 5, names=list("abcde"))
    with open_exchange(client, "SELECT * FROM input", wide.schema) as (writer, reader):
        sent = []

        def send():
            for number in range(200):
                writer.write_batch(wide)
                sent.append(number)
            writer.done_writing()

        sender = threading.Thread(target=send)
        sender.start()
        seen = -1
        while seen != len(sent):
            seen = len(sent)
            time.sleep(0.5)
        assert len(sent) < 150, "800 MB were taken in although nobody read"
        assert sum(chunk.data.num_rows for chunk in reader) == 20_000_000
        sender.join()


def test_an_answer_may_end_before_the_rows(store, client):
    with open_exchange(client, "SELECT id FROM input LIMIT 10") as (writer, reader):
        writer.write_batch(rows(*range(1000)))
        assert reader.read_all().num_rows == 10
        # pyarrow ends the call as soon as a row cannot be sent.
        with pytest.raises(Exception):
            for _ in range(10_000):
                writer.write_batch(rows(*range(1000)))
    with open_exchange(client, "EXPLAIN SELECT id FROM input WHERE id > 1") as (_, reader):
        assert "InputScan: table=input, columns=[id], condition=id@0 > 1" in str(reader.read_all().to_pylist())
    store.wait_idle(5.0)


# What the stream may be


def test_empty_streams_and_streams_without_rows(client):
    empty = SCHEMA.empty_table()
    assert exchange(client, "SELECT id FROM input", empty).num_rows == 0
    assert exchange(client, "SELECT id FROM input", empty).schema.names == ["id"]
    assert exchange(client, "SELECT count(*) AS n FROM input", empty).to_pylist() == [{"n": 0}]
    with open_exchange(client, "SELECT id FROM input") as (writer, reader):
        writer.write_batch(rows())
        writer.write_batch(rows(7))
        writer.write_batch(rows())
        writer.done_writing()
        assert reader.read_all()["id"].to_pylist() == [7]
    writer, reader = client.do_exchange(command("SELECT id FROM input"))
    writer.done_writing()
    with pytest.raises(pa.ArrowInvalid, match="the stream has no schema"):
        reader.read_all()
    with contextlib.suppress(Exception):
        writer.close()


def test_types_go_through_unchanged(client):
    decimals = pa.array([1, None, 3], pa.int32()).cast(pa.decimal128(12, 2))
    sent = pa.table(
        {
            "small": pa.array([1, None, 3], pa.int8()),
            "words": pa.array(["a", "b", None]).dictionary_encode(),
            "list": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
            "row": pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int64())])),
            "when": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
            "bytes": pa.array([b"\0", None, b"ab"]),
            "money": decimals,
            "nothing": pa.nulls(3),
        }
    )
    got = exchange(client, "SELECT * FROM input", sent)
    assert got.to_pydict() == sent.to_pydict()
    assert exchange(client, "SELECT words, count(*) AS n FROM input GROUP BY words", sent).num_rows == 3
    # Dictionaries that change from batch to batch.
    batches = [pa.record_batch({"w": pa.array([f"w{n}", f"x{n}"]).dictionary_encode()}) for n in range(5)]
    with open_exchange(client, "SELECT w FROM input WHERE w LIKE 'w%'", batches[0].schema) as (writer, reader):
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        assert reader.read_all()["w"].to_pylist() == [f"w{n}" for n in range(5)]


def test_names_of_the_rows(client, table):
    sent = pa.Table.from_batches([rows(1)])
    assert exchange(client, "SELECT id FROM events", sent, input="events").num_rows == 1
    # The rows hide a table of their name, and views do not mean them.
    store_table(client, table, pa.table({"id": [1, 2, 3]}))
    assert exchange(client, f"SELECT id FROM {table}", sent, input=table).num_rows == 1
    one(client, f"CREATE VIEW {table}_view AS SELECT id FROM {table}")
    got = exchange(client, f"SELECT (SELECT count(*) FROM {table}_view) AS n, id FROM {table}", sent, input=table)
    assert got.to_pylist() == [{"n": 3, "id": 1}]
    one(client, f"DROP VIEW {table}_view")
    # Whose rows are meant is not guessed.
    fails(client, f"INSERT INTO {table} SELECT id FROM {table}", "are the rows that come with", sent, input=table)
    got = exchange(client, f"INSERT INTO main.{table} SELECT id FROM {table}", sent, input=table)
    assert got.to_pydict() == {"count": [1]}


def test_commands_of_flight_sql(client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    for name in ("CommandStatementQuery", "CommandStatementUpdate"):
        body = protobuf.field(1, f"INSERT INTO {table} SELECT id FROM input")
        descriptor = flight.FlightDescriptor.for_command(protobuf.any_of(name, body))
        writer, reader = client.do_exchange(descriptor)
        writer.begin(SCHEMA)
        writer.write_batch(rows(1, 2))
        writer.done_writing()
        assert reader.read_all().to_pydict() == {"count": [2]}
        writer.close()
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [4]}


def test_rows_that_are_read_more_than_once_are_kept(client):
    sent = pa.Table.from_batches([rows(1, 2), rows(3)])
    got = exchange(client, "SELECT a.id, b.id AS other FROM input a JOIN input b ON a.id = b.id + 1", sent)
    assert sorted(got.to_pydict()["id"]) == [2, 3]
    got = exchange(client, "WITH w AS (SELECT id FROM input) SELECT * FROM w UNION ALL SELECT id * 10 FROM w", sent)
    assert sorted(got["id"].to_pylist()) == [1, 2, 3, 10, 20, 30]
    got = exchange(client, "SELECT id, (SELECT sum(id) FROM input) AS s FROM input ORDER BY id", sent)
    assert got.to_pydict() == {"id": [1, 2, 3], "s": [6, 6, 6]}


# Writing


def test_inserts_are_atomic_and_counted(client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR, value DOUBLE)")
    sent = pa.Table.from_batches([rows(*range(1000)), rows(*range(1000, 2000))])
    assert exchange(client, f"INSERT INTO {table} SELECT * FROM input", sent).to_pydict() == {"count": [2000]}
    # The last row is there already.
    again = pa.Table.from_batches([rows(*range(5000, 6000)), rows(0)])
    fails(client, f"INSERT INTO {table} SELECT * FROM input", "", again)
    fails(client, f"INSERT INTO {table} (id) SELECT CAST(name AS BIGINT) FROM input", "rows 1 to 1000 of `input`", sent)
    assert one(client, f"SELECT count(*) AS n, sum(id) AS s FROM {table}") == {"n": [2000], "s": [1999000]}
    got = exchange(client, f"INSERT INTO {table} SELECT id + 9000, name, value FROM input RETURNING id", sent)
    assert got.num_rows == 2000
    one(client, f"DROP TABLE {table}")
    made = exchange(client, f"CREATE TABLE {table} AS SELECT id, name FROM input WHERE id < 10", sent)
    assert made.to_pydict() == {"count": [10]}


def test_upserts_updates_and_deletes(client, table):
    one(client, f"CREATE TABLE {table} AS SELECT value AS id, 'old' AS name FROM generate_series(1, 1000) AS g(value)")
    merge = (
        f"MERGE INTO {table} t USING input i ON t.id = i.id WHEN MATCHED THEN UPDATE SET name = i.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (i.id, i.name)"
    )
    sent = pa.Table.from_batches([rows(*range(991, 1000)), rows(1000, 1001, 1002)])
    assert exchange(client, merge, sent).to_pydict() == {"count": [12]}
    assert one(client, f"SELECT count(*) AS n FROM {table} WHERE name = 'old'") == {"n": [990]}
    update = f"UPDATE {table} SET name = 'u' || input.name FROM input WHERE {table}.id = input.id"
    assert exchange(client, update, sent).to_pydict() == {"count": [12]}
    delete = f"DELETE FROM {table} USING input WHERE {table}.id = input.id"
    assert exchange(client, delete, sent).to_pydict() == {"count": [12]}
    delete = f"DELETE FROM {table} WHERE id NOT IN (SELECT id FROM input)"
    assert exchange(client, delete, pa.Table.from_batches([rows(1, 2)])).to_pydict() == {"count": [988]}
    assert sorted(one(client, f"SELECT id FROM {table}")["id"]) == [1, 2]


def test_a_transaction_of_the_session(store, client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    sent = pa.Table.from_batches([rows(1, 2)])
    one(client, "BEGIN")
    exchange(client, f"INSERT INTO {table} SELECT id FROM input", sent)
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [2]}
    with flight.connect(store.grpc_tcp) as other:
        assert one(other, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}
    # The statement after it does not see its rows any more.
    with pytest.raises(Exception, match="not found"):
        one(client, "SELECT * FROM input")
    one(client, "ROLLBACK")
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}


def test_nothing_is_written_by_a_stream_that_breaks(store, client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    dying = subprocess.Popen(
        [sys.executable, "-c", CUT, store.grpc_tcp, f"INSERT INTO {table} SELECT id FROM input"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert dying.stdout.readline() == "written\n"
    state = "SELECT waits_for, rows_in FROM system.queries WHERE statement LIKE 'INSERT%input' AND outcome = 'waiting'"
    with flight.connect(store.grpc_tcp) as other:
        wait_until(lambda: one(other, state)["rows_in"] == [2_000_000], "the rows have been read")
        assert one(other, state)["waits_for"] == ["its client to send rows"]
    dying.kill()
    dying.communicate()
    store.wait_idle(5.0)
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}


CUT = """
import sys, pyarrow as pa, pyarrow.flight as flight
client = flight.connect(sys.argv[1])
schema = pa.schema([("id", pa.int64())])
writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(sys.argv[2].encode()))
writer.begin(schema)
for number in range(20):
    writer.write_batch(pa.record_batch([pa.array(range(100_000), pa.int64())], schema=schema))
print("written", flush=True)
sys.stdin.read()
"""


# Errors


def test_statements_that_are_refused(client, table):
    store_table(client, table, pa.table({"id": [1]}))
    for sql, words in (
        ("SELECT 1 AS a", "does not read `input`"),
        (f"INSERT INTO {table} SELECT 1", "does not read `input`"),
        ("SELECT nothing FROM input", "nothing"),
        ("SELECT FROM WHERE input", ""),
        ("SELECT id FROM input; SELECT id FROM input", "more than one statement"),
        (f"CREATE VIEW {table}_v AS SELECT id FROM input", ""),
        (f"CREATE TEMPORARY VIEW {table}_v AS SELECT id FROM input", ""),
        (f"CREATE MATERIALIZED VIEW {table}_v AS SELECT id FROM input", ""),
        ("DELETE FROM input", "are the rows that come with"),
        ("UPDATE input SET id = 1", "are the rows that come with"),
        ("SELECT id FROM input WHERE id = $1", "parameter"),
    ):
        fails(client, sql, words)
    for options in ({"input": 1}, {"rows": 5}, {"batch_rows": 0}, {"ordered": "no"}):
        fails(client, "SELECT id FROM input", next(iter(options)), **options)
    for descriptor in (
        flight.FlightDescriptor.for_path("score", "model"),
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


def grpc_message(payload):
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def ipc_messages(*batches, schema=None):
    """Header and body of each message of an Arrow stream: the schema first."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema or batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    return [(message.metadata.to_pybytes(), message.body.to_pybytes() if message.body else b"") for message in reader]


def flight_data(header, body=b"", descriptor=None):
    message = protobuf.field(1, descriptor) if descriptor else b""
    message += protobuf.field(2, header) if header else b""
    return grpc_message(message + (protobuf.field(1000, body) if body else b""))


class Raw:
    """An exchange over a bare connection, for what pyarrow does not send."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, server.port))
        self.socket.settimeout(20)
        self.h2 = h2.connection.H2Connection()
        self.h2.initiate_connection()
        self.stream = self.h2.get_next_available_stream_id()
        names = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/arrow.flight.protocol.FlightService/DoExchange"),
            (":authority", "x"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        self.h2.send_headers(self.stream, names)
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def send(self, data, end=False):
        for at in range(0, max(len(data), 1), 10_000):
            part = data[at : at + 10_000]
            self.h2.send_data(self.stream, part, end_stream=end and at + 10_000 >= len(data))
            self.flush()

    def status(self):
        """Code and message that the call ends with."""
        while True:
            received = self.socket.recv(65536)
            assert received, "the connection was closed without a status"
            for event in self.h2.receive_data(received):
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                headers = dict(getattr(event, "headers", None) or [])
                headers = {as_text(name): as_text(value) for name, value in headers.items()}
                if "grpc-status" in headers:
                    self.socket.close()
                    return int(headers["grpc-status"]), urllib.parse.unquote(headers.get("grpc-message", ""))
            self.flush()


def as_text(value):
    return value.decode() if isinstance(value, bytes) else value


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
        writer, reader = client.do_exchange(command(sql), flight.FlightCallOptions(timeout=0.5))
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


# Rights


def test_rights_policies_and_masks_hold_for_all_other_tables(data_folder, tmp_path):
    hashed = subprocess.run([binaries() / "bowshot", "hash-password"], input=b"secret", capture_output=True, check=True)
    users = tmp_path / "users.toml"
    entry = '[[users]]\nname = "{}"\npassword_hash = "' + hashed.stdout.decode().strip() + '"\n'
    users.write_text(entry.format("root") + "admin = true\n" + entry.format("ann"))
    with Server(data_folder, data=tmp_path / "data", arguments=["--users-file", str(users)]) as server:

        def connect(name):
            client = flight.connect(server.grpc_tcp)
            token = client.authenticate_basic_token(name, "secret")
            return client, flight.FlightCallOptions(headers=[token])

        (root, as_root), (ann, as_ann) = connect("root"), connect("ann")

        def ask(client, call, sql):
            info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()), call)
            return client.do_get(info.endpoints[0].ticket, call).read_all()

        for sql in (
            "CREATE TABLE part AS SELECT value AS id, 's' || value AS secret FROM generate_series(1, 10) AS g(value)",
            "CREATE TABLE hidden AS SELECT 1 AS id",
            "GRANT SELECT ON part TO ann",
            "CREATE ROW POLICY few ON part FOR ann USING (id <= 3)",
            "CREATE MASK none ON part (secret) FOR ann USING ('x')",
        ):
            ask(root, as_root, sql)
        sent = pa.Table.from_batches([rows(*range(10))])
        sql = "SELECT input.id, secret FROM input JOIN part ON input.id = part.id ORDER BY 1"
        assert exchange(root, sql, sent, call=as_root).num_rows == 9
        got = exchange(ann, sql, sent, call=as_ann)
        assert got.to_pydict() == {"id": [1, 2, 3], "secret": ["x"] * 3}
        for sql in (
            "SELECT * FROM input JOIN hidden ON input.id = hidden.id",
            "INSERT INTO part SELECT id, name FROM input",
            "DELETE FROM part USING input WHERE part.id = input.id",
            "MERGE INTO part USING input ON part.id = input.id WHEN MATCHED THEN DELETE",
        ):
            fails(ann, sql, "", sent, call=as_ann)
        assert ask(root, as_root, "SELECT count(*) AS n FROM part").to_pylist() == [{"n": 10}]
        server.wait_idle(5.0)


# The same statement over a stored table


def random_table(draw):
    count = draw.choice([0, 1, 2, 7, 50, 300])
    values = lambda make: [None if draw.random() < 0.15 else make() for _ in range(count)]
    columns = {
        "k": pa.array(values(lambda: draw.randint(0, 20)), pa.int64()),
        "s": pa.array(values(lambda: draw.choice(["a", "b", "ccc", "", "é"])), pa.string()),
        "f": pa.array(values(lambda: draw.choice([0.0, -1.5, 2.25, 1e9])), pa.float64()),
        "d": pa.array(values(lambda: draw.randint(0, 9)), pa.int32()),
    }
    if draw.random() < 0.3:
        columns["s"] = columns["s"].dictionary_encode()
    return pa.table(columns)


def random_statement(draw, stored, other):
    """A query with `{0}` in the place of the rows."""
    condition = draw.choice(
        ["k > 10", "s LIKE 'a%'", "f IS NULL", "k IN (1, 2, 3) OR d = 4", "NOT (k = d)", "k IS NOT NULL AND f < 1", "TRUE"]
    )
    return draw.choice(
        [
            "SELECT * FROM {0} WHERE " + condition,
            "SELECT k + 1 AS a, upper(s) AS b FROM {0} WHERE " + condition,
            "SELECT s, count(*) AS n, sum(k) AS x, min(f) AS y FROM {0} WHERE " + condition + " GROUP BY s",
            "SELECT DISTINCT s, d FROM {0} WHERE " + condition,
            f"SELECT i.k, o.label FROM {{0}} i JOIN {other} o ON i.k = o.k WHERE i." + "d >= 0",
            f"SELECT i.k, o.label FROM {{0}} i LEFT JOIN {other} o ON i.k = o.k AND o.label <> 'l3'",
            f"SELECT i.k, o.label FROM {{0}} i FULL JOIN {other} o ON i.k = o.k",
            f"SELECT o.label, i.s FROM {other} o RIGHT JOIN {{0}} i ON i.k = o.k",
            f"SELECT k, s FROM {{0}} WHERE k IN (SELECT k FROM {other} WHERE label < 'l5')",
            f"SELECT k, s FROM {{0}} i WHERE NOT EXISTS (SELECT 1 FROM {other} o WHERE o.k = i.k)",
            f"SELECT k, (SELECT max(label) FROM {other} o WHERE o.k = i.k) AS m FROM {{0}} i",
            f"SELECT label FROM {other} WHERE k NOT IN (SELECT k FROM {{0}} WHERE k IS NOT NULL)",
            "SELECT k, row_number() OVER (PARTITION BY s ORDER BY k, d, f) AS r FROM {0}",
            "SELECT a.k, b.d FROM {0} a JOIN {0} b ON a.k = b.d",
            "SELECT k FROM {0} WHERE k > (SELECT avg(d) FROM {0})",
            "SELECT k FROM {0} UNION ALL SELECT d FROM {0} WHERE " + condition,
            "SELECT k, s FROM {0} WHERE " + condition + " EXCEPT SELECT k, s FROM {0} WHERE d = 1",
            "WITH w AS (SELECT s, max(k) AS m FROM {0} GROUP BY s) SELECT * FROM {0} t JOIN w ON t.s = w.s AND t.k = w.m",
        ]
    )


def sorted_rows(table):
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_answer_as_stored_tables_do(client, table, seed):
    draw = random.Random(seed)
    labels = pa.table({"k": list(range(0, 30, 2)), "label": [f"l{i}" for i in range(15)]})
    store_table(client, f"{table}_labels".replace("[", "_"), labels)
    for number in range(100):
        stored = f"{table}_{number}"
        sent = random_table(draw)
        store_table(client, stored, sent)
        statement = random_statement(draw, stored, f"{table}_labels")
        expected = run(client, statement.format(stored))
        options = {}
        if draw.random() < 0.5:
            options = {"ordered": draw.random() < 0.5, "batch_rows": draw.choice([1, 3, 100, 8192])}
        got = exchange(client, statement.format("input"), sent, chunk=draw.choice([None, 1, 7, 100]), **options)
        assert sorted_rows(got) == sorted_rows(expected), (seed, number, statement, options)
        assert got.schema.names == expected.schema.names, statement
        one(client, f"DROP TABLE {stored}")
    one(client, f"DROP TABLE {table}_labels")
