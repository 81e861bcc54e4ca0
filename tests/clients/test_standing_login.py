"""Before anybody has logged in: guessing keeps nobody else out, and who says nothing takes nothing away."""

import socket
import subprocess
import threading
import time

import pyarrow.flight as flight
import pytest

from server import Server, binaries, wait_until

pytestmark = pytest.mark.alone

PASSWORD = "right enough"


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    run = subprocess.run(
        [str(binaries() / "bowshot"), "hash-password"], input=PASSWORD.encode(), capture_output=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    file = tmp_path_factory.mktemp("users") / "users.toml"
    entries = [f'[[users]]\nname = "{name}"\npassword_hash = "{run.stdout.decode().strip()}"\n' for name in ("ada", "ben")]
    file.write_text("".join(entries))
    with Server(arguments=["--users-file", str(file)], environment={"BOWSHOT_LIMITS_MAX_CONNECTIONS": "64"}) as server:
        yield server
        server.wait_idle(5)


def log_in(server, user, password):
    with flight.connect(server.grpc_tcp) as client:
        return client.authenticate_basic_token(user, password)


def gets_in(server):
    try:
        return log_in(server, "ben", PASSWORD)
    except Exception:
        return False


def test_guessing_keeps_nobody_else_out(users):
    stop, refused = threading.Event(), []

    def guess(number):
        while not stop.is_set():
            try:
                log_in(users, "ada", f"guess {number} {time.monotonic()}")
            except Exception as error:
                refused.append(str(error))

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        for _ in range(20):
            began = time.monotonic()
            assert log_in(users, "ben", PASSWORD)
            assert time.monotonic() - began < 5
        assert log_in(users, "ada", PASSWORD)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert refused


def test_connections_that_say_nothing_give_way(users):
    silent = []
    try:
        for _ in range(200):
            connection = socket.create_connection((users.host, users.port))
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            silent.append(connection)
        # Those that still wait for the place of another are taken in first, which a busy machine takes its time for.
        wait_until(lambda: gets_in(users), "somebody gets in", 5)
        for _ in range(10):
            # The place of a silent one is free a moment after somebody has asked for it.
            wait_until(lambda: gets_in(users), "somebody gets in again", 5)
    finally:
        for connection in silent:
            connection.close()


def test_a_handshake_is_small(users):
    before = memory(users)
    with flight.connect(users.grpc_tcp) as client:
        for _ in range(3):
            with pytest.raises(Exception):
                client.authenticate(Large())
    assert memory(users) - before < 100 << 20


class Large(flight.ClientAuthHandler):
    def authenticate(self, outgoing, incoming):
        outgoing.write(b"x" * (60 << 20))
        incoming.read()

    def get_token(self):
        return b""


def memory(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        line = next(line for line in file if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


def test_half_requests_leave_health_alone(users):
    host, port = users.http.removeprefix("http://").rsplit(":", 1)
    half = []
    try:
        for _ in range(700):
            connection = socket.create_connection((host, int(port)))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            half.append(connection)
        for _ in range(5):
            began = time.monotonic()
            assert users.get("/health")[0] == 200
            assert time.monotonic() - began < 1
    finally:
        for connection in half:
            connection.close()
