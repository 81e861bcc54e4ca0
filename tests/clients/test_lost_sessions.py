"""A client whose connection is cut, or whose server starts again, is told that its session is gone: its next INSERT would go to the
default schema."""

import pytest

from durable import Database
from relay import Relay
from server import Server

COOKIES = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}
OTHER = ("CREATE SCHEMA other", "CREATE TABLE main.t (n INT)", "CREATE TABLE other.t (n INT)", "USE other")


def test_a_session_that_was_cut_off_is_missed_once():
    with Server() as server, Relay(server.port) as proxy, Database(proxy) as db:
        db.run(*OTHER, "INSERT INTO t VALUES (1)")
        proxy.cut(gently=True)
        with pytest.raises(Exception, match="session not found.*with_cookie_middleware"):
            db.run("INSERT INTO t VALUES (2)")
        db.run("USE other", "INSERT INTO t VALUES (3)")
        assert db.rows("SELECT n FROM other.t ORDER BY n") == [(1,), (3,)]
        assert db.rows("SELECT n FROM main.t") == []


def test_sessions_with_cookies_are_found_again():
    with Server() as server, Relay(server.port) as proxy, Database(proxy, options=COOKIES) as db:
        db.run(*OTHER)
        proxy.cut(gently=True)
        db.run("INSERT INTO t VALUES (1)")
        assert db.rows("SELECT n FROM other.t") == [(1,)]


def test_a_new_client_begins_with_the_defaults():
    with Server() as server, Relay(server.port) as proxy, Database(proxy) as db:
        db.run(*OTHER)
        proxy.cut(gently=True)
        with Database(proxy) as other:
            assert other.one("SELECT current_schema()") == "main"


def test_a_server_that_starts_again_has_no_sessions(tmp_path):
    with Relay() as proxy:
        with Server(data=tmp_path / "data") as server:
            proxy.to = server.port
            db = Database(proxy)
            db.run(*OTHER)
            proxy.cut(gently=True)
        with Server(data=tmp_path / "data") as server, db:
            proxy.to = server.port
            with pytest.raises(Exception, match="session not found"):
                db.run("INSERT INTO t VALUES (2)")
            assert db.one("SELECT count(*) FROM main.t") == 0
