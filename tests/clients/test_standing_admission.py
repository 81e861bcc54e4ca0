"""Who waits for a client holds no slot. Limits for each session and user are in bowshot-session, admission.rs."""

import contextlib

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from durable import Database
from server import Server, wait_until

LIMITS = {
    "BOWSHOT_LIMITS_MAX_RUNNING_QUERIES": "4",
    "BOWSHOT_LIMITS_MAX_RUNNING_QUERIES_PER_USER": "3",
    "BOWSHOT_LIMITS_MAX_RUNNING_QUERIES_PER_SESSION": "2",
    "BOWSHOT_LIMITS_MAX_QUEUED_QUERIES": "8",
    "BOWSHOT_LIMITS_MAX_QUEUED_QUERIES_PER_USER": "4",
    "BOWSHOT_LIMITS_RESULT_BUFFER_BYTES": "64KiB",
}
LONG = "SELECT value AS x, repeat('x', 100) AS y FROM generate_series(1, 2000000) AS s(value)"


@pytest.fixture(scope="module")
def shared(data_folder):
    with Server(data_folder, environment=LIMITS) as server:
        yield server


def test_unread_results_hold_no_slot(shared):
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            client = stack.enter_context(flight.connect(shared.grpc_tcp))
            reader = client.do_get(flight.Ticket(LONG.encode()))
            reader.read_chunk()
            stack.callback(reader.cancel)
        with Database(shared) as db:
            assert db.one("SELECT 1") == 1
            # So it has waited for none of them: that many still lie unread.
            waiting = "SELECT count(*) FROM system.queries WHERE waits_for = 'its client to read rows'"
            wait_until(lambda: db.one(waiting) >= 8, "results that nobody reads")
    shared.wait_idle(5)


def test_uploads_that_send_nothing_hold_no_slot(shared):
    with Database(shared) as db:
        db.run("CREATE TABLE quiet (a BIGINT)")
    schema = pa.schema([("a", pa.int64())])
    with contextlib.ExitStack() as stack:
        writers = []
        for _ in range(6):
            client = stack.enter_context(flight.connect(shared.grpc_tcp))
            writer, _ = client.do_put(flight.FlightDescriptor.for_path("quiet"), schema)
            writer.write_table(pa.table({"a": [1]}))
            writers.append(writer)
        with Database(shared) as db:
            wait_until(
                lambda: db.one("SELECT count(*) FROM system.queries WHERE waits_for = 'its client to send rows'") >= 5,
                "they wait",
                10,
            )
            assert db.one("SELECT 1") == 1
        for writer in writers:
            with contextlib.suppress(Exception):
                writer.close()
    shared.wait_idle(5)
