"""Before anybody has logged in: guessing keeps nobody else out, and who says nothing takes nothing away."""

import base64
import contextlib
import random
import socket
import struct
import time

import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pymysql
import pytest

import http_sql
from server import BUSY_FACTOR, Server, beside, hash_password, together, users_file, wait_until
from watch import resident

PASSWORD = "right enough"


@pytest.fixture
def users_by_password(tmp_path):
    """Their passwords can only be checked by the slow hash, and none has been yet."""
    file = users_file(tmp_path, dict.fromkeys(["ada", *COMES_IN], PASSWORD))
    file.write_text(file.read_text().replace(hash_password(PASSWORD), hash_password(PASSWORD).split(" ")[0]))
    arguments = ["--users-file", str(file), "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
    with Server(arguments=arguments) as server:
        yield server
        server.wait_idle(5)


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    file = users_file(tmp_path_factory.mktemp("users"), {"ada": PASSWORD, "ben": PASSWORD})
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
    refused = []

    def guess(ended):
        while not ended.is_set():
            try:
                log_in(users, "ada", f"guess {random.random()}")
            except Exception as error:
                refused.append(str(error))

    with beside(*[guess] * 40):
        time.sleep(1)
        for _ in range(20):
            began = time.monotonic()
            assert log_in(users, "ben", PASSWORD)
            assert time.monotonic() - began < 5 * BUSY_FACTOR
        assert log_in(users, "ada", PASSWORD)
    assert refused


def leaves_flight(server):
    with flight.connect(server.grpc_tcp) as client:
        client.authenticate_basic_token("ada", "wrong", flight.FlightCallOptions(timeout=0.01))


def leaves_http(server):
    host, port = server.http.removeprefix("http://").rsplit(":", 1)
    login = base64.b64encode(b"ada:wrong").decode()
    head = f"POST /v1/sql HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"SELECT 1")
        time.sleep(0.01)


def leaves_postgres(server):
    with socket.create_connection(("127.0.0.1", server.pg_port)) as connection:
        begin = struct.pack("!i", 196608) + b"user\0ada\0database\0bowshot\0\0"
        connection.sendall(struct.pack("!i", len(begin) + 4) + begin)
        # The password itself is asked for: the users have no other hash.
        assert connection.recv(9) == b"R" + struct.pack("!ii", 8, 3)
        connection.sendall(b"p" + struct.pack("!i", 10) + b"wrong\0")
        time.sleep(0.01)


def leaves_mysql(server):
    pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="ada", password="wrong", read_timeout=0.01).close()


def in_by_flight(server, user):
    log_in(server, user, PASSWORD)


def in_by_http(server, user):
    assert http_sql.answered(server, "SELECT 1", http_sql.basic(user, PASSWORD))[0] == 200


def in_by_postgres(server, user):
    psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user=user, password=PASSWORD, dbname="bowshot", sslmode="disable", connect_timeout=30
    ).close()


def in_by_mysql(server, user):
    pymysql.connect(host="127.0.0.1", port=server.mysql_port, user=user, password=PASSWORD, read_timeout=30).close()


COMES_IN = {"flight": in_by_flight, "http": in_by_http, "postgres": in_by_postgres, "mysql": in_by_mysql}


def abandoned(server):
    lines = server.get("/metrics")[2].splitlines()
    return sum(float(line.split(" ")[-1]) for line in lines if line.startswith("bowshot_logins_total") and '"abandoned"' in line)


@pytest.mark.parametrize("leaves", [leaves_flight, leaves_http, leaves_postgres, leaves_mysql])
def test_callers_who_disconnect_keep_nobody_out(users_by_password, leaves):
    """Each leaves while its password is checked, or waits for that; its permit must go on to the next one."""

    def leave():
        with contextlib.suppress(OSError, pa.ArrowException, pymysql.Error):
            leaves(users_by_password)

    together(*[leave] * 24)
    # The other front ends answer first, or may not have been shown anything yet.
    if leaves is leaves_http:
        wait_until(lambda: abandoned(users_by_password), "who has left is counted")
    for user, comes_in in COMES_IN.items():
        began = time.monotonic()
        comes_in(users_by_password, user)
        assert time.monotonic() - began < 8 * BUSY_FACTOR, user
    began = time.monotonic()
    in_by_flight(users_by_password, "ada")
    assert time.monotonic() - began < 8 * BUSY_FACTOR, "who was wrong before"


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
    before = resident(users.process.pid)
    with flight.connect(users.grpc_tcp) as client:
        for _ in range(3):
            with pytest.raises(Exception):
                client.authenticate(Large())
    assert resident(users.process.pid) - before < 100 << 20


class Large(flight.ClientAuthHandler):
    def authenticate(self, outgoing, incoming):
        outgoing.write(b"x" * (60 << 20))
        incoming.read()

    def get_token(self):
        return b""


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
            # Far less than a half request may take, which is 15 s.
            assert time.monotonic() - began < 1 * BUSY_FACTOR
    finally:
        for connection in half:
            connection.close()
