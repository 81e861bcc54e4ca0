"""Logins over MySQL's protocol: the password itself at first, then what `caching_sha2_password` makes of it and a challenge."""

import contextlib
import socket
import struct
import time

import mysql.connector
import mysql.connector.network
import pymysql
import pytest

from server import ROOT, Server, users_file

TLS = ROOT / "tests" / "data" / "tls"
CA = str(TLS / "ca.pem")
# "AuthMoreData" of caching_sha2_password.
FAST, FULL = b"\x01\x03", b"\x01\x04"


@pytest.fixture
def guarded(tmp_path):
    """A server with a certificate and an admin, whose other users SQL makes."""
    arguments = ["--mysql", "127.0.0.1:0", "--users-file", users_file(tmp_path, {"root": "root"}, admins=["root"])]
    arguments += ["--tls-certificate", str(TLS / "first.pem"), "--tls-key", str(TLS / "first.key")]
    with Server(arguments=arguments, data=tmp_path / "data") as server:
        yield server
        server.wait_idle(5)


def pymysql_to(server, user, password, monkeypatch, **more):
    """A connection, and the messages of the server up to the end of its login."""
    told, read = [], pymysql.connections.Connection._read_packet

    def noted(self, *arguments):
        packet = read(self, *arguments)
        told.append(packet.get_all_data())
        return packet

    with monkeypatch.context() as patch:
        patch.setattr(pymysql.connections.Connection, "_read_packet", noted)
        options = {"ssl": {"ca": CA}, "host": "localhost", **more}
        return pymysql.connect(port=server.mysql_port, user=user, password=password, **options), told


def connector_to(server, user, password, monkeypatch):
    told, read = [], mysql.connector.network.MySQLSocket.recv

    def noted(self, *arguments):
        packet = read(self, *arguments)
        told.append(bytes(packet[4:]))
        return packet

    with monkeypatch.context() as patch:
        patch.setattr(mysql.connector.network.MySQLSocket, "recv", noted)
        options = {"host": "localhost", "ssl_ca": CA, "ssl_verify_cert": True, "use_pure": True}
        return mysql.connector.connect(port=server.mysql_port, user=user, password=password, **options), told


def who(connection):
    with contextlib.closing(connection), contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SELECT current_user()")
        return cursor.fetchone()[0]


@contextlib.contextmanager
def admin(server):
    ways = {"ssl": {"ca": CA}, "host": "localhost", "autocommit": True}
    with pymysql.connect(port=server.mysql_port, user="root", password="root", **ways) as connection:
        with connection.cursor() as cursor:
            yield cursor


@pytest.mark.parametrize("connect", [pymysql_to, connector_to])
def test_the_second_login_is_short(guarded, connect, monkeypatch):
    def login(password):
        connection, told = connect(guarded, "bob", password, monkeypatch)
        assert who(connection) == "bob"
        return [message for message in told if message in (FAST, FULL)]

    def refused(password):
        with pytest.raises((pymysql.err.Error, mysql.connector.Error)) as raised:
            connect(guarded, "bob", password, monkeypatch)
        assert raised.value.args[0] == 1045

    with admin(guarded) as cursor:
        cursor.execute("CREATE USER bob PASSWORD 'one'")
        assert [login("one"), login("one"), login("one")] == [[FULL], [FAST], [FAST]]
        refused("two")
        assert login("one") == [FAST]
        cursor.execute("ALTER USER bob PASSWORD 'two'")
        refused("one")
        assert [login("two"), login("two")] == [[FULL], [FAST]]
        refused("one")
        cursor.execute("ALTER USER bob PASSWORD 'one'")
        refused("two")
        assert login("one") == [FULL]
        cursor.execute("DROP USER bob")
        refused("one")
        cursor.execute("CREATE USER bob PASSWORD 'one'")
        assert [login("one"), login("one")] == [[FULL], [FAST]]
        cursor.execute("DROP USER bob")


def test_without_tls_the_second_login_is_short_too(tmp_path, monkeypatch):
    """From the same machine; the password itself goes over `mysql_clear_password`."""
    with Server(arguments=["--mysql", "127.0.0.1:0", "--users-file", users_file(tmp_path, {"ada": "pw"})]) as server:
        seen = []
        for _ in range(2):
            connection, told = pymysql_to(server, "ada", "pw", monkeypatch, ssl_disabled=True, host="127.0.0.1")
            assert who(connection) == "ada"
            seen.append([FAST in told, any(message.startswith(b"\xfemysql_clear_password\0") for message in told)])
        assert seen == [[False, True], [True, False]]


def scrambled(server, user, scramble):
    """What the server says to a bare scramble, without TLS; and its challenge, if the scramble is a function of that."""
    with socket.create_connection(("127.0.0.1", server.mysql_port), timeout=20) as connection:
        greeting = message(connection)
        end = greeting.index(b"\0", 1)
        challenge = greeting[end + 5 : end + 13] + greeting[end + 32 : end + 44]
        shown = scramble(challenge)
        # PROTOCOL_41, PLUGIN_AUTH.
        body = struct.pack("<IIB23x", 0x200 | 0x80000, 1 << 24, 45) + user + b"\0" + bytes([len(shown)]) + shown
        body += b"caching_sha2_password\0"
        connection.sendall(struct.pack("<I", len(body))[:3] + b"\x01" + body)
        return message(connection)


def message(connection):
    length = int.from_bytes(received(connection, 4)[:3], "little")
    return received(connection, length)


def received(connection, length):
    found = b""
    while len(found) < length:
        more = connection.recv(length - len(found))
        assert more, "the server has ended the connection"
        found += more
    return found


def test_scrambles_are_no_way_to_guess(tmp_path, monkeypatch):
    """After a few wrong ones the right one is not told from them; and a name that nobody has is answered as any."""
    right = lambda challenge: pymysql._auth.scramble_caching_sha2(b"pw", challenge)
    wrong = lambda challenge: pymysql._auth.scramble_caching_sha2(b"no", challenge)
    with Server(arguments=["--mysql", "127.0.0.1:0", "--users-file", users_file(tmp_path, {"ada": "pw"})]) as server:
        asked = b"\xfemysql_clear_password\0"
        assert scrambled(server, b"ada", right) == asked, "nobody has shown the password"
        login = lambda: who(pymysql_to(server, "ada", "pw", monkeypatch, ssl_disabled=True, host="127.0.0.1")[0])
        assert login() == "ada"
        assert scrambled(server, b"ada", right) == FAST
        recorded = []
        assert scrambled(server, b"ada", lambda challenge: recorded.append(right(challenge)) or recorded[0]) == FAST
        assert scrambled(server, b"ada", lambda _: recorded[0]) == asked, "another connection has another challenge"
        assert scrambled(server, b"ada", right) == FAST
        for shown in (wrong, lambda _: bytes(32), lambda _: b"x", wrong):
            assert scrambled(server, b"ada", shown) == asked
        assert scrambled(server, b"ada", right) == asked, "too many were wrong"
        assert scrambled(server, b"eve", right) == asked
        assert login() == "ada", "the password itself is still taken"


@pytest.mark.timed
def test_how_late_a_refusal_is_tells_nobody_who_logs_in_often(guarded, monkeypatch):
    def refusals(user):
        begun = time.monotonic()
        for _ in range(4):
            with pytest.raises(pymysql.err.Error):
                pymysql_to(guarded, user, "wrong", monkeypatch)
        return time.monotonic() - begun

    with admin(guarded) as cursor:
        cursor.execute("CREATE USER ann PASSWORD 'one'")
        for _ in range(2):
            assert who(pymysql_to(guarded, "ann", "one", monkeypatch)[0]) == "ann"
        # If each wrong attempt counted twice at first, the answers would wait 700 ms instead of 100.
        assert refusals("ann") < refusals("nobody") + 0.4
        cursor.execute("DROP USER ann")


def test_a_refusal_is_counted_once(guarded, monkeypatch):
    with admin(guarded) as cursor:
        cursor.execute("CREATE USER ann PASSWORD 'one'")
        for _ in range(2):
            assert who(pymysql_to(guarded, "ann", "one", monkeypatch)[0]) == "ann"
        for user in ["ann", "another"] * 4:
            with pytest.raises(pymysql.err.Error):
                pymysql_to(guarded, user, "wrong", monkeypatch)
        told = guarded.get("/metrics")[2]
        logins = [line for line in told.splitlines() if line.startswith("bowshot_logins_total")]
        assert any('"scramble"' in line and '"accepted"' in line and line.endswith(" 1") for line in logins), logins
        assert any('"password"' in line and '"refused"' in line and line.endswith(" 8") for line in logins), logins
        assert not any('"none"' in line for line in logins), "who has shown nothing has not been refused"
        cursor.execute("DROP USER ann")
