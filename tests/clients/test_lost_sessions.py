"""A client whose connection is cut, or whose server starts again, is told that its session is gone: its next INSERT would go to the
default schema."""

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pytest

from cutting_proxy import CuttingProxy
from server import Server

COOKIES = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}


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
        proxy = CuttingProxy(server.port)
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
        proxy = CuttingProxy(server.port)
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
        proxy = CuttingProxy(server.port)
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
        proxy = CuttingProxy(server.port)
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
