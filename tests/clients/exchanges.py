"""What tests of DoExchange do with a connection."""

import contextlib
import json
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pytest

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])


def rows(*ids):
    columns = [pa.array(ids, pa.int64()), pa.array([f"n{i % 5}" for i in ids]), pa.array([i / 2 for i in ids])]
    return pa.record_batch(columns, schema=SCHEMA)


def command(sql, **options):
    text = json.dumps({"sql": sql, **options}) if options else sql
    return flight.FlightDescriptor.for_command(text.encode())


def exchange(client, sql, table, *, chunk=None, call=None, **options):
    """Sends a table along with a statement; gives the answer."""
    return exchanged(client, command(sql, **options), table, chunk, call)


# What the connection takes without anybody who reads.
SMALL = 16 * 1024


def exchanged(client, descriptor, table, chunk=None, call=None):
    """Sends a table, a large one from a thread of its own; gives the answer."""
    writer, reader = client.do_exchange(descriptor, call or flight.FlightCallOptions())

    def send():
        with contextlib.suppress(Exception):  # The answer tells more: it may have ended before the rows did.
            writer.begin(table.schema)
            writer.write_table(table, chunk) if chunk else writer.write_table(table)
            writer.done_writing()

    sender = threading.Thread(target=send)
    if table.nbytes <= SMALL:
        # gRPC ends the process if the rows end in one thread at the moment in which another reads that the call has failed.
        send()
    else:
        sender.start()
    try:
        # `read_all` would take a call that the server has cancelled for an interrupt of its own, and end the run.
        batches = [chunk.data for chunk in reader if chunk.data is not None]
        return pa.Table.from_batches(batches, reader.schema)
    finally:
        if sender.ident:
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
