"""Statements about the session: settings, named statements, names in force and KILL are a session's own."""

import pytest

from durable import Database, refused
from writing_adbc import Status


@pytest.fixture
def two(store):
    """Two sessions of the same user."""
    with Database(store) as first, Database(store) as second:
        yield first, second


def test_settings_are_a_sessions_own(two):
    first, second = two
    first.run("SET application_name = 'first'")
    first.run("SET TIME ZONE '+05:00'")
    assert first.rows("SHOW application_name") == [("first",)]
    assert second.rows("SHOW application_name") == [("",)]
    assert second.rows("SHOW TIME ZONE") == [("+00:00",)]
    first.run("RESET ALL")
    assert first.rows("SELECT current_setting('application_name'), current_setting('time_zone')") == [("", "+00:00")]


def test_a_list_of_assignments_takes_effect_or_none(two):
    first, _ = two
    refused(first, "SET application_name = 'x', autocommit = 0", "BEGIN", status=Status.INVALID_ARGUMENT)
    assert first.rows("SHOW application_name") == [("",)]


def test_names_in_force_are_a_sessions_own(two):
    first, second = two
    first.run("CREATE SCHEMA named_by_use")
    first.run("USE named_by_use")
    first.run("CREATE TABLE t (a INT)")
    assert first.rows("SHOW TABLES") == [("t",)]
    assert first.rows("SELECT current_schema()") == [("named_by_use",)]
    assert second.rows("SELECT current_schema()") == [("main",)]
    assert ("t",) not in second.rows("SHOW TABLES")
    assert second.rows("SHOW TABLES FROM named_by_use") == [("t",)]
    first.run("USE main")
    first.run("DROP SCHEMA named_by_use CASCADE")


def test_named_statements_are_a_sessions_own(two):
    first, second = two
    first.run("PREPARE p AS SELECT $1 + 1")
    assert first.rows("EXECUTE p(1)") == [(2,)]
    refused(second, "EXECUTE p(1)", "prepared statement `p` not found", status=Status.NOT_FOUND)
    second.run("PREPARE p AS SELECT 'other'")
    assert second.rows("EXECUTE p") == [("other",)]
    assert first.rows("EXECUTE p(2)") == [(3,)]
    first.run("DEALLOCATE p")
    refused(first, "EXECUTE p(1)", "not found", status=Status.NOT_FOUND)


def test_temporary_tables_are_listed_for_their_session(two):
    first, second = two
    first.run("CREATE TEMP TABLE mine (a INT)")
    assert ("mine",) in first.rows("SHOW TABLES")
    assert ("mine",) not in second.rows("SHOW TABLES")
    kinds = first.rows("SELECT table_type FROM information_schema.tables WHERE table_name = 'mine'")
    assert kinds == [("LOCAL TEMPORARY",)]
    first.run("DISCARD TEMP")
    assert ("mine",) not in first.rows("SHOW TABLES")


def test_a_session_is_killed_by_its_number(two):
    first, second = two
    ((number,),) = second.rows("SELECT connection_id()")
    second.run("PREPARE p AS SELECT 1")
    first.run(f"KILL {number}")
    # A client that goes on is told so once, and gets another session, which knows nothing of the first.
    refused(second, "SELECT connection_id()", "session not found", status=Status.NOT_FOUND)
    assert second.rows("SELECT connection_id()") != [(number,)]
    refused(second, "EXECUTE p", "not found", status=Status.NOT_FOUND)
    refused(first, f"KILL {number}", "not found", status=Status.NOT_FOUND)
