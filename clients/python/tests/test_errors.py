"""Each kind of error as its own exception, with what the server says about it."""

import os
import pathlib
import re

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from conftest import ENDLESS, LONG

import bowshot
from bowshot import _errors

LEAVES = {
    "Syntax": bowshot.SqlSyntaxError,
    "Invalid": bowshot.InvalidError,
    "NotFound": bowshot.NotFoundError,
    "AlreadyExists": bowshot.AlreadyExistsError,
    "Unauthenticated": bowshot.UnauthenticatedError,
    "Denied": bowshot.DeniedError,
    "Unsupported": bowshot.UnsupportedError,
    "Conflict": bowshot.ConflictError,
    "LimitReached": bowshot.LimitReachedError,
    "Timeout": bowshot.StatementTimeoutError,
    "Cancelled": bowshot.QueryCancelledError,
    "Unavailable": bowshot.UnavailableError,
    "Corrupt": bowshot.CorruptError,
    "Internal": bowshot.ServerInternalError,
}


def test_each_kind_has_one_class():
    assert {kind: leaf.kind for kind, leaf in LEAVES.items()} == {kind: kind for kind in LEAVES}


def test_the_kinds_are_those_of_the_server():
    page = pathlib.Path(__file__).parents[3] / "docs/reference/flight-sql.md"
    if not page.exists():
        pytest.skip("outside of the repository")
    rows = re.findall(r"^\| (\w+) \| [A-Z_]+ \|", page.read_text(), re.MULTILINE)
    assert rows == list(LEAVES)


@pytest.mark.parametrize(
    ("sql", "kind", "base"),
    [
        ("SELEC 1", bowshot.SqlSyntaxError, bowshot.ProgrammingError),
        ("", bowshot.SqlSyntaxError, bowshot.ProgrammingError),
        ("SELECT nope FROM nation", bowshot.InvalidError, bowshot.ProgrammingError),
        ("SELECT * FROM nope", bowshot.NotFoundError, bowshot.ProgrammingError),
        ("INSERT INTO nope VALUES (1)", bowshot.NotFoundError, bowshot.ProgrammingError),
        ("CREATE SCHEMA main", bowshot.AlreadyExistsError, bowshot.ProgrammingError),
        ("INSERT INTO nation VALUES (1, 'x')", bowshot.UnsupportedError, bowshot.NotSupportedError),
        ("COPY (SELECT 1) TO 'x.csv'", bowshot.DeniedError, bowshot.ProgrammingError),
        ("SELECT 1 / 0", bowshot.InvalidValueError, bowshot.DataError),
        ("SELECT CAST('x' AS INT)", bowshot.InvalidValueError, bowshot.DataError),
        ("SELECT CAST(300 AS TINYINT)", bowshot.InvalidError, bowshot.DatabaseError),
    ],
)
def test_statements_that_fail(connection, sql, kind, base):
    with pytest.raises(kind) as caught:
        connection.sql(sql).arrow()
    assert isinstance(caught.value, base)
    assert type(caught.value) is kind
    assert "Flight returned" not in str(caught.value)
    assert "context" not in str(caught.value)


def test_keys_and_conditions_are_integrity(connection, table):
    connection.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT NOT NULL, c INT CHECK (c > 0), u INT UNIQUE)")
    connection.sql(f"INSERT INTO {table} VALUES (1, 1, 1, 1)")
    for values, kind in [
        ("1, 1, 1, 2", bowshot.DuplicateKeyError),
        ("2, 1, 1, 1", bowshot.DuplicateKeyError),
        ("2, NULL, 1, 2", bowshot.ConstraintError),
        ("2, 1, -1, 2", bowshot.ConstraintError),
    ]:
        with pytest.raises(bowshot.IntegrityError) as caught:
            connection.sql(f"INSERT INTO {table} VALUES ({values})")
        assert type(caught.value) is kind, caught.value


def test_hint_and_place(connection):
    with pytest.raises(bowshot.NotFoundError) as caught:
        connection.sql("SELECT *\n  FROM nope")
    error = caught.value
    assert "nope" in error.message
    assert error.hint
    assert error.hint not in error.message
    assert str(error) == f"{error.message}; {error.hint}"
    assert (error.line, error.column, error.position) == (2, 8, 17)
    assert not error.retryable


def test_the_place_is_that_in_the_users_text(connection):
    sql = "SELECT :a_long_name, :another_long_name,\n :a_long_name + nope FROM nation"
    with pytest.raises(bowshot.InvalidError) as caught:
        connection.sql(sql, {"a_long_name": 1, "another_long_name": 2})
    assert sql[caught.value.position - 1 :].startswith("nope")
    assert (caught.value.line, caught.value.column) == (2, sql.split("\n")[1].index("nope") + 1)


def test_conflict(shared, table):
    with shared.connect() as one, shared.connect() as two:
        one.sql(f"CREATE TABLE {table} AS SELECT 1 AS a")
        one.commit()
        one.sql(f"UPDATE {table} SET a = 2")
        two.sql(f"UPDATE {table} SET a = 3")
        one.commit()
        with pytest.raises(bowshot.ConflictError) as caught:
            two.commit()
        assert caught.value.retryable
        assert not two.in_transaction
        two.sql(f"UPDATE {table} SET a = 3")
        two.commit()


def test_timeout_of_the_session(shared):
    with shared.connect(autocommit=True, options={"statement_timeout_ms": 200}) as connection:
        with pytest.raises(bowshot.StatementTimeoutError) as caught:
            connection.sql(ENDLESS)
        assert "200" in caught.value.message


def test_limit(folder):
    settings = {"limits.max_sql_bytes": 1000}
    refused = pytest.raises(bowshot.LimitReachedError, match="max_sql_bytes")
    with bowshot.server(folder, settings=settings) as server, server.connect() as connection, refused:
        connection.sql("SELECT 1" + " " * 2000)


def test_nobody_is_there():
    with pytest.raises(bowshot.UnavailableError) as caught:
        bowshot.connect("grpc://127.0.0.1:1")
    assert caught.value.retryable
    assert "last error" in caught.value.message or "onnect" in caught.value.message


def test_an_error_of_the_stream_names_the_query(connection):
    result = connection.sql(LONG)
    result.cancel()
    with pytest.raises(bowshot.QueryCancelledError) as caught:
        next(result.batches())
    assert caught.value.query_id == result.query_id


@pytest.mark.parametrize(
    ("error", "kind", "message", "hint"),
    [
        (
            flight.FlightInternalError("gRPC returned aborted error, with message: a; b. Client context: OK. Detail: Failed"),
            bowshot.ConflictError,
            "a",
            "b",
        ),
        (
            pa.ArrowException("Unknown: Flight returned data loss error, with message: file `a; b` is broken; repair it"),
            bowshot.CorruptError,
            "file `a; b` is broken",
            "repair it",
        ),
        (
            flight.FlightInternalError(
                "Flight returned internal error, with message: internal error, query"
                " 5fabff8c-263c-4ea8-9afb-66ecdc6da386; report it with this reference"
            ),
            bowshot.ServerInternalError,
            "internal error, query 5fabff8c-263c-4ea8-9afb-66ecdc6da386",
            "report it with this reference",
        ),
        (
            flight.FlightCancelledError("Flight cancelled call, with message: the query was cancelled"),
            bowshot.QueryCancelledError,
            "the query was cancelled",
            None,
        ),
        (OSError("broken pipe"), bowshot.OperationalError, "broken pipe", None),
    ],
)
def test_texts_of_arrow(error, kind, message, hint):
    found = _errors.translate(error)
    assert (type(found), found.message, found.hint) == (kind, message, hint)


def test_an_internal_error_has_its_query():
    text = "Flight returned internal error, with message: internal error, query 5fabff8c-263c-4ea8-9afb-66ecdc6da386; report"
    assert _errors.translate(flight.FlightInternalError(text)).query_id == "5fabff8c-263c-4ea8-9afb-66ecdc6da386"


def test_the_environment_is_left_alone():
    assert "GRPC_VERBOSITY" not in os.environ
