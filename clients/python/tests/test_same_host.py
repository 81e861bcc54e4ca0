"""Rows in memory that the server shares: the same rows as over the network, within limits, and gone when either side is."""

import contextlib
import gc
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import weakref

import pyarrow as pa
import pytest
from conftest import wait_for
from test_stopping import later

import bowshot
from bowshot._wire import translated

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shares memory in this way")

MIB = 1 << 20
# 16 bytes and more in each row.
MANY = "SELECT a.n, a.n * 2 AS twice, a.text FROM numbers a, (SELECT n AS k FROM numbers WHERE n < 8) b"
TYPES = """
SELECT n, n % 2 = 0 AS truth, CAST(n % 100 AS TINYINT) AS small, CAST(n AS REAL) AS real, CAST(n AS DECIMAL(20, 3)) AS exact,
    CASE WHEN n % 3 = 0 THEN NULL ELSE text END AS text, CAST(text AS BYTEA) AS bytes,
    DATE '2024-01-01' + CAST(n % 9 AS INT) AS day,
    TIMESTAMP '2024-01-01 00:00:00' AS moment, INTERVAL '1 day' AS span, NULL AS nothing, [n, NULL, n + 1] AS list,
    named_struct('a', n, 'b', text) AS pair, MAP {'k': n} AS map, arrow_cast(text, 'Dictionary(Int32, Utf8)') AS word
FROM numbers ORDER BY n
"""


def path_of(connection):
    return connection._wire.same_host._offer[1]


def metric(server, name):
    with urllib.request.urlopen(f"{server.http}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def memories(server):
    """Descriptors of shared memory that a server has open."""
    folder = f"/proc/{server.process.pid}/fd"
    found = 0
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(f"{folder}/{name}").startswith("/memfd:bowshot")
    return found


def plain(table):
    """Dictionaries that are cut elsewhere say the same in other words."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[at].cast(field.type.value_type))
    return table


@pytest.fixture(scope="module")
def alone(folder):
    """A server whose memory no other test uses."""
    with bowshot.server(folder, settings={"result_cache.memory_bytes": 0}) as server:
        yield server


@pytest.mark.parametrize("options", [{}, {"views": True, "dictionaries": True}, {"compression": "zstd"}, {"endpoints": "4"}])
@pytest.mark.parametrize("sql", [TYPES, f"{TYPES} LIMIT 5", f"{TYPES} LIMIT 0", "SELECT 1 AS one"])
def test_rows_are_those_of_the_network(shared, sql, options):
    with (
        shared.connect(autocommit=True, options=options, same_host=True) as near,
        shared.connect(autocommit=True, options=options, same_host=False) as far,
    ):
        assert (near.transport, far.transport) == ("memory", "socket")
        for read in (lambda result: result.arrow(), lambda result: pa.Table.from_batches(result.batches(), result.schema)):
            ours, theirs = near.sql(sql), far.sql(sql)
            assert ours.transport is None
            rows = read(ours)
            rows.validate(full=True)
            assert plain(rows).equals(plain(read(theirs)))
            assert rows.schema.equals(theirs.schema, check_metadata=True)
            assert (ours.transport, ours.transport_note) == ("memory", None)
            assert theirs.transport == "socket"
            assert "same_host=False" in theirs.transport_note


def test_rows_without_an_order_come_from_all_endpoints(shared):
    with shared.connect(autocommit=True, options={"endpoints": "4"}, same_host=True) as connection:
        result = connection.sql(MANY)
        rows = result.arrow()
        assert (rows.num_rows, result.transport) == (1_600_000, "memory")
        assert sum(batch.num_rows for batch in connection.sql(MANY).batches()) == 1_600_000


def test_memory_goes_back_when_nobody_has_it(alone):
    with alone.connect(autocommit=True, same_host=True) as connection:
        rows = connection.sql(MANY).arrow()
        size = rows.nbytes
        assert metric(alone, "bowshot_same_host_held_bytes") >= size
        # What is left of the rows keeps the memory that it lies in, and no other.
        part = rows.slice(0, 10)
        del rows
        gc.collect()
        wait_for(lambda: metric(alone, "bowshot_same_host_held_bytes") <= 32 * MIB)
        assert part.num_rows == len(part.to_pylist()) == 10
        del part
        gc.collect()
        wait_for(lambda: metric(alone, "bowshot_same_host_held_bytes") == 0)
        assert memories(alone) == 0


def test_a_connection_that_is_forgotten_is_closed_behind_its_last_memory(shared):
    connection = shared.connect(autocommit=True, same_host=True)
    rows = connection.sql(MANY).arrow()
    sockets = [weakref.ref(socket) for socket in connection._wire.same_host._idle]
    assert sockets
    del connection
    gc.collect()
    del rows
    wait_for(lambda: not any(socket() for socket in sockets))


def test_what_is_mapped_outlives_connection_and_server(folder):
    with bowshot.server(folder) as server:
        connection = server.connect(autocommit=True, same_host=True)
        rows = connection.sql(MANY).arrow()
        total = sum(rows["n"].slice(0, 1000).to_pylist())
        half = connection.sql(MANY.replace("< 8", "< 2000")).batches()
        kept = next(half)
        server.process.kill()
        server.process.wait()
        with pytest.raises(bowshot.OperationalError):
            for _ in half:
                pass
        with pytest.raises(bowshot.OperationalError):
            connection.sql("SELECT 1").arrow()
        connection.close()
        assert sum(rows["n"].slice(0, 1000).to_pylist()) == total
        rows.validate(full=True)
        kept.validate(full=True)


HOLDS = """
import sys, time, bowshot
connection = bowshot.connect(sys.argv[1], autocommit=True, same_host=True)
rows = connection.sql(sys.argv[2]).arrow()
print("mapped", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("same_host", [True, False])
def test_an_interpreter_may_end_behind_the_last_row(shared, same_host):
    """The thread that has read them still gives the last ones back then."""
    code = f"""
import sys
import bowshot
connection = bowshot.connect(sys.argv[1], same_host={same_host})
print(sum(batch.num_rows for batch in connection.sql({MANY!r}).batches()))
"""
    for _ in range(15):
        done = subprocess.run([sys.executable, "-c", code, shared.uri], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), done


def test_a_client_that_dies_leaves_nothing(alone):
    command = [sys.executable, "-c", HOLDS, alone.uri, MANY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mapped\n"
        assert memories(alone) > 1
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: memories(alone) == 0)
    assert metric(alone, "bowshot_same_host_held_bytes") == 0
    assert metric(alone, "bowshot_same_host_connections") == 0


def test_beyond_the_limit_rows_come_through_the_socket(folder):
    with (
        bowshot.server(folder, settings={"same_host.connection_bytes": "40MiB"}) as server,
        server.connect(autocommit=True, same_host=True) as connection,
        server.connect(autocommit=True, same_host=False) as far,
    ):
        result = connection.sql(f"{MANY} ORDER BY k, n")
        rows = result.arrow()
        assert result.transport == "memory"
        assert "limit on shared memory" in result.transport_note
        assert metric(server, "bowshot_same_host_held_bytes") <= 40 * MIB
        assert rows.equals(far.sql(f"{MANY} ORDER BY k, n").arrow())
        del rows
        gc.collect()
        # Who gives memory back while reading needs little.
        result = connection.sql(MANY)
        assert sum(batch.num_rows for batch in result.batches()) == 1_600_000
        assert metric(server, "bowshot_same_host_held_bytes") <= 40 * MIB


def test_a_server_without_a_socket_is_seen(folder):
    with bowshot.server(folder, arguments=["--local-socket", "none"]) as server:
        with server.connect(autocommit=True) as connection:
            result = connection.sql("SELECT 1 AS one")
            assert result.arrow().to_pylist() == [{"one": 1}]
            assert (result.transport, connection.transport) == ("socket", "socket")
            assert "no socket" in result.transport_note
        with pytest.raises(bowshot.InterfaceError, match="no socket"):
            server.connect(same_host=True)


def test_a_socket_that_is_gone_is_seen(folder):
    with bowshot.server(folder) as server:
        with server.connect(autocommit=True) as connection:
            os.unlink(path_of(connection))
        with server.connect(autocommit=True) as connection:
            assert (connection.transport, connection.sql(MANY).arrow().num_rows) == ("socket", 1_600_000)
            assert "No such file" in connection.transport_note
        with pytest.raises(bowshot.OperationalError, match="No such file"):
            server.connect(same_host=True)


def test_another_program_at_the_path_gets_no_credentials(folder, tmp_path):
    with bowshot.server(folder) as server:
        with server.connect(autocommit=True) as connection:
            path = path_of(connection)
        os.unlink(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(path)
            other.listen()
            hello = b"BOWSHOT\x01" + bytes(16)

            def answer():
                with other.accept()[0] as stream:
                    stream.sendall(b"\x10" + len(hello).to_bytes(4, "little") + hello)
                    # Whoever shows credentials says more than nothing.
                    heard.append(stream.recv(1000))

            heard = []
            answering = later(answer, seconds=0)
            with server.connect(autocommit=True) as connection:
                assert connection.transport == "socket"
                assert "another server" in connection.transport_note
            answering.join()
            assert heard == [b""]


def test_the_socket_is_the_users_alone(shared, connection):
    assert os.stat(path_of(connection)).st_mode & 0o777 == 0o600


@pytest.fixture(scope="module")
def with_users(folder, tmp_path_factory):
    users = tmp_path_factory.mktemp("users") / "users.toml"
    hashed = subprocess.run(
        [os.environ["BOWSHOT_PROGRAM"], "hash-password"], input="secret", capture_output=True, text=True, check=True
    ).stdout.strip()
    users.write_text("".join(f'[[users]]\nname = "{name}"\npassword_hash = "{hashed}"\n' for name in ("ada", "bob")))
    users.chmod(0o600)
    with bowshot.server(folder, arguments=["--users-file", str(users)]) as server:
        yield server


def test_users_see_what_is_theirs(with_users):
    with (
        with_users.connect(user="ada", password="secret", autocommit=True, same_host=True) as ada,
        with_users.connect(user="bob", password="secret", autocommit=True) as bob,
    ):
        result = ada.sql(MANY)
        assert result.arrow().num_rows == 1_600_000
        assert result.transport == "memory"
        other = ada.sql("SELECT * FROM numbers")
        ticket = other._stream.release().endpoints[0].ticket
        assert bob.transport == "memory"
        with pytest.raises(bowshot.NotFoundError):
            bob._wire.same_host.read(ticket.ticket, None, None)
        table = pa.Table.from_batches([chunk.data for chunk in ada._wire.same_host.read(ticket.ticket, None, None)])
        assert table.num_rows == 200_000
        # Without credentials the socket gives nothing, and the client goes by the network, where it gets nothing either.
        bob._wire._headers._fixed.clear()
        with pytest.raises(bowshot.UnauthenticatedError), translated():
            bob._wire.get(ticket, 0, None).read_chunk()
        assert "cannot be used" in bob.transport_note


def test_hostile_bytes_do_no_harm(alone):
    rng = random.Random(5)
    with alone.connect(autocommit=True, same_host=True) as connection:
        path, held = path_of(connection), []
        for _ in range(200):
            stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            stream.connect(path)
            kind, length = rng.choice([0, 1, 2, 3, 4, 5, 6, 17, 255]), rng.choice([0, 1, 5, 300, 0xFFFFFFFF])
            body = rng.randbytes(min(length, 300))[: rng.choice([0, 1, 300])]
            frame = bytes([kind]) + length.to_bytes(4, "little") + body
            with contextlib.suppress(OSError):
                socket.send_fds(stream, [frame], [0] * rng.choice([0, 0, 1, 4]))
                stream.sendall(rng.randbytes(rng.randrange(50)))
            held.append(stream)
        assert connection.sql("SELECT count(*) AS n FROM numbers").arrow().to_pylist() == [{"n": 200_000}]
        for stream in held:
            stream.close()
        wait_for(lambda: metric(alone, "bowshot_same_host_connections") == 1)


def test_uploads_are_those_of_the_network(shared, table):
    rows = pa.table({"n": range(2_000_000), "text": [f"number {n % 1000}" for n in range(2_000_000)]})
    words = rows.set_column(1, "text", rows["text"].dictionary_encode())
    with shared.connect(autocommit=True, same_host=True) as connection:
        for data, mode in ((rows, "create"), (words, "append"), (rows.schema.empty_table(), "append"), (rows[:5], "append")):
            assert connection.ingest(table, data, mode) == data.num_rows
        back = connection.sql(f"SELECT * FROM {table} WHERE n >= 0").arrow()
        assert back.num_rows == 4_000_005
        found = connection.sql(f"SELECT sum(n) AS n, count(DISTINCT text) AS texts FROM {table}").arrow().to_pylist()
        assert found == [{"n": 2 * sum(range(2_000_000)) + 10, "texts": 1000}]
        connection.sql(f"DROP TABLE {table}")


def test_an_upload_that_fails_writes_nothing(shared, table):
    batch = pa.record_batch({"n": range(1_000_000)})

    def breaking():
        for _ in range(12):
            yield batch
        raise RuntimeError("no more")

    with shared.connect(autocommit=True, same_host=True) as connection:
        with pytest.raises(RuntimeError):
            connection.ingest(table, breaking())
        with pytest.raises(bowshot.NotFoundError):
            connection.table(table).count()
        connection.ingest(table, [batch])
        # Refused before all rows have been sent.
        with pytest.raises(bowshot.AlreadyExistsError):
            connection.ingest(table, (batch for _ in range(200)))
        assert connection.table(table).count() == 1_000_000
        connection.sql(f"DROP TABLE {table}")


def hostile_memories():
    import fcntl

    def memory(content, seals, holes=0):
        descriptor = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
        os.write(descriptor, content)
        if holes:
            os.ftruncate(descriptor, len(content) + holes)
        fcntl.fcntl(descriptor, 1033, seals)
        return descriptor

    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"n": range(1000), "text": [f"text {n}" for n in range(1000)]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    good, rng = sink.getvalue().to_pybytes(), random.Random(7)
    whole = 2 | 4 | 8
    yield "shared memory", memory(good, 2 | 4)
    yield "shared memory", memory(good, 2 | 4 | 16)
    yield "shared memory", memory(good, 8)
    yield "shared memory", memory(good, whole, holes=MIB)
    yield "shared memory", os.open(sys.executable, os.O_RDONLY)
    yield "malformed", memory(good[: len(good) // 2], whole)
    yield "malformed", memory(b"nonsense " * 1000, whole)
    for _ in range(40):
        broken = bytearray(good)
        for _ in range(3):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        yield None, memory(bytes(broken), whole)


def test_broken_memory_is_refused(alone, table):
    from bowshot import _local_socket as local
    from bowshot import _messages as messages
    from bowshot._same_host import _Upload

    with alone.connect(autocommit=True, same_host=True) as connection:
        wire = connection._wire
        for expected, descriptor in hostile_memories():
            stream = wire.same_host._connect()
            stream.send_memory = lambda *_, d=descriptor, s=stream: socket.send_fds(s._socket, [b"\x05\0\0\0\0"], [d])
            command = messages.ingest(table, mode="replace", schema=None, catalog=None, temporary=False, transaction=None)
            batch = pa.record_batch({"n": [1]})
            upload = _Upload(stream, time.monotonic() + 20)
            try:
                upload.run(wire.same_host._headers(), command, batch.schema, [batch])
                # Some changed bytes are no less valid.
                assert expected is None
            except bowshot.Error as error:
                assert expected is None or expected in str(error), error  # noqa: PT017
            except (OSError, local.GoneError):
                assert expected is None
            finally:
                os.close(descriptor)
                stream.close()
        assert alone.running
        wait_for(lambda: metric(alone, "bowshot_same_host_connections") == 1)
        assert connection.sql("SELECT 1 AS one").arrow().num_rows == 1
