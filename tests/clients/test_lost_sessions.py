"""A client whose connection is cut, or whose server starts again, is told that its session is gone: its next INSERT would go to the
default schema."""

import contextlib
import socket
import threading

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pytest

from server import BUSY_FACTOR, Server

COOKIES = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}


class Proxy:
    """Hands connections on to a port, and can cut them."""

    def __init__(self, port):
        self.port, self.clients = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"grpc+tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            pumps = [threading.Thread(target=self.pump, args=ends, daemon=True) for ends in [(client, server), (server, client)]]
            for pump in pumps:
                pump.start()
            self.clients.append((client, pumps[0]))

    @staticmethod
    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # ends the other pump, too
            end.close()

    def cut(self):
        """Ends the connections, and waits until the client has noticed, which closes its own end."""
        for client, pump in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            pump.join(10 * BUSY_FACTOR)
        self.clients.clear()

    def close(self):
        self.listener.close()
        self.cut()


def run(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def refusal(connection, sql):
    with pytest.raises(adbc_driver_manager.Error) as refused:
        run(connection, sql)
    return str(refused.value)


def test_a_session_that_was_cut_off_is_missed_once():
    with Server() as server:
        proxy = Proxy(server.port)
        with flightsql.connect(proxy.uri, autocommit=True) as connection:
            run(connection, "CREATE SCHEMA other")
            for schema in ["main", "other"]:
                run(connection, f"CREATE TABLE {schema}.t (n INT)")
            run(connection, "USE other")
            run(connection, "INSERT INTO t VALUES (1)")
            proxy.cut()
            told = refusal(connection, "INSERT INTO t VALUES (2)")
            assert "session not found" in told and "with_cookie_middleware" in told
            run(connection, "USE other")
            run(connection, "INSERT INTO t VALUES (3)")
            assert run(connection, "SELECT n FROM other.t ORDER BY n") == [(1,), (3,)]
            assert run(connection, "SELECT n FROM main.t") == []
        proxy.close()


def test_sessions_with_cookies_are_found_again():
    with Server() as server:
        proxy = Proxy(server.port)
        with flightsql.connect(proxy.uri, db_kwargs=COOKIES, autocommit=True) as connection:
            run(connection, "CREATE SCHEMA other")
            run(connection, "USE other")
            run(connection, "CREATE TABLE t (n INT)")
            proxy.cut()
            run(connection, "INSERT INTO t VALUES (1)")
            assert run(connection, "SELECT n FROM other.t") == [(1,)]
        proxy.close()


def test_a_new_client_begins_with_the_defaults():
    with Server() as server:
        proxy = Proxy(server.port)
        with flightsql.connect(proxy.uri, autocommit=True) as connection:
            run(connection, "CREATE SCHEMA other")
            run(connection, "USE other")
            proxy.cut()
            with flightsql.connect(proxy.uri, autocommit=True) as other:
                assert run(other, "SELECT current_schema()") == [("main",)]
        proxy.close()


def test_a_server_that_starts_again_has_no_sessions(tmp_path):
    data = str(tmp_path / "data")
    with Server(data=data) as server:
        proxy = Proxy(server.port)
        connection = flightsql.connect(proxy.uri, autocommit=True)
        run(connection, "CREATE SCHEMA other")
        for schema in ["main", "other"]:
            run(connection, f"CREATE TABLE {schema}.t (n INT)")
        run(connection, "USE other")
        proxy.cut()
    with Server(data=data) as server:
        proxy.port = server.port
        assert "session not found" in refusal(connection, "INSERT INTO t VALUES (2)")
        assert run(connection, "SELECT count(*) FROM main.t") == [(0,)]
        connection.close()
        proxy.close()
