"""Connections that wait for the locks of one another, for the tests of row locks."""

import contextlib
import threading

import psycopg
import pymysql
import pytest


class Client:
    """One connection by either protocol, at READ COMMITTED."""

    def __init__(self, server, protocol):
        self.protocol = protocol
        if protocol == "postgres":
            self.connection = psycopg.connect(**server.postgres(autocommit=True))
        else:
            self.connection = pymysql.connect(**server.mysql(autocommit=True))
            self.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def run(self, *statements):
        """The rows of the last statement, if it has some."""
        with self.connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def one(self, sql):
        return self.run(sql)[0][0]

    def code(self, sql):
        """What is wrong with a statement."""
        with pytest.raises((psycopg.Error, pymysql.err.Error)) as caught:
            self.run(sql)
        return caught.value.sqlstate if self.protocol == "postgres" else caught.value.args[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


@contextlib.contextmanager
def clients(server, protocol, count=2):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Client(server, protocol)) for _ in range(count)]


def in_background(function):
    """Runs it, gives its thread, and sees that it waits."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive(), "it does not wait"
    return thread


def joined(thread):
    thread.join(30)
    assert not thread.is_alive(), "it waits for ever"
