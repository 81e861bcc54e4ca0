"""Parameters over ADBC and HTTP keep their own types: what stands beside them tells the type of those alone that have none. The values are
those of PostgreSQL 15 (`test_postgres_parameters.py`)."""

import datetime
import decimal

import adbc_driver_flightsql.dbapi as flightsql
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import http_sql
from server import Server

DECIMAL = decimal.Decimal
HELD = """SELECT CAST(1.25 AS NUMERIC(8,2)) AS n, CAST(7 AS INT) AS i, DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 12:00:00' AS ts, 'a' AS t"""


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


@pytest.mark.parametrize("sql, values, expected", [
    ("SELECT n * $1 FROM held", [DECIMAL("0.001")], DECIMAL("0.00125")),
    ("SELECT count(*) FROM held WHERE n = $1", [DECIMAL("1.254")], 0),
    ("SELECT count(*) FROM held WHERE n BETWEEN $1 AND $2", [DECIMAL("1.246"), DECIMAL("1.249")], 0),
    ("SELECT count(*) FROM held WHERE i < $1", [2**40], 1),
    ("SELECT count(*) FROM held WHERE i IN ($1)", [7.4], 0),
    ("SELECT i / $1 FROM held", [2.0], 3.5),
    ("SELECT count(*) FROM held WHERE d >= $1", [datetime.datetime(2024, 1, 1, 6)], 0),
    ("SELECT d + $1 FROM held", [datetime.timedelta(hours=1)], datetime.datetime(2024, 1, 1, 1)),
    ("SELECT ts + $1 FROM held", [datetime.timedelta(hours=1)], datetime.datetime(2024, 1, 1, 13)),
    ("SELECT ts - $1 FROM held", [datetime.timedelta(minutes=5)], datetime.datetime(2024, 1, 1, 11, 55)),
    ("SELECT count(*) FROM held WHERE ts < now() - $1", [datetime.timedelta(days=1)], 1),
    ("SELECT $1 || $2", ["a", "b"], "ab"),
    ("SELECT count(*) FROM (VALUES (1), (2)) v(x) WHERE x > $1", [DECIMAL("1.5")], 1),
    ("SELECT coalesce($1, 1)", [4], 4),
    ("SELECT CASE WHEN $1 THEN i ELSE $2 END FROM held", [False, 5], 5),
    ("SELECT count(*) FROM generate_series(1, $1)", [3], 3),
])
def test_adbc(server, sql, values, expected):
    with flightsql.connect(server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"WITH held AS ({HELD}) {sql}", values)
        assert cursor.fetchone()[0] == expected


@pytest.mark.parametrize("sql, values, expected", [
    ("SELECT n * $1 FROM held", [0.001], "0.00125"),
    ("SELECT n * $1 FROM held", ["0.001"], "0.00125"),
    ("SELECT count(*) FROM held WHERE n = $1", [1.254], 0),
    ("SELECT count(*) FROM held WHERE n = $1", ["1.254"], 0),
    ("SELECT count(*) FROM held WHERE n = $1", [1.25], 1),
    ("SELECT count(*) FROM held WHERE i < $1", [2**40], 1),
    ("SELECT count(*) FROM held WHERE d >= $1", ["2024-01-01"], 1),
    ("SELECT coalesce($1, 1)", [4], 4),
    ("SELECT count(*) FROM generate_series(1, $1)", [3], 3),
])
def test_http(server, sql, values, expected):
    rows = http_sql.order(server, f"WITH held AS ({HELD}) {sql}", *values).rows()
    assert str(rows[0][0]) == str(expected)


def test_every_statement_of_a_script_runs(server):
    """Queries before the last one too: they may call functions that change something."""
    client = flight.connect(server.grpc_tcp)

    def rows(script):
        info = client.get_flight_info(flight.FlightDescriptor.for_command(script.encode()))
        return client.do_get(info.endpoints[0].ticket).read_all().to_pylist()

    script = "SELECT set_config('application_name', 'of a script', false); SELECT current_setting('application_name') AS name"
    assert rows(script) == [{"name": "of a script"}]
    with pytest.raises(pa.ArrowInvalid, match="division by zero"):
        rows("SELECT 1 / n FROM (VALUES (0)) v(n); SELECT 2")
    client.close()


def test_a_cursor_takes_values_in_the_transaction_of_its_driver(server):
    with flightsql.connect(server.grpc_tcp) as connection, connection.cursor() as cursor:
        query = "SELECT n, CAST($1 AS VARCHAR) AS t FROM generate_series(1, 3) AS g(n) WHERE n > $2 ORDER BY n"
        cursor.execute(f"DECLARE c CURSOR FOR {query}", ["x", 1])
        cursor.execute("FETCH NEXT FROM c")
        assert cursor.fetchall() == [(2, "x")]
        cursor.execute("FETCH ALL FROM c")
        assert cursor.fetchall() == [(3, "x")]
        connection.commit()
        with pytest.raises(Exception, match="cursor `c` does not exist"):
            cursor.execute("FETCH NEXT FROM c")
