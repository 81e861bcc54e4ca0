"""Types of parameters: those that clients declare, and those that the statement tells. What PostgreSQL 15 answers, checked there with the
same file."""

import datetime
import decimal

import psycopg
import pytest

from server import Server

DECIMAL = decimal.Decimal


@pytest.fixture(scope="module")
def connection():
    with Server(arguments=["--pg", "127.0.0.1:0"]) as server:
        with psycopg.connect(**server.postgres(autocommit=True)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("CREATE TABLE held (n NUMERIC(8,2), i INT, d DATE, ts TIMESTAMP, t TEXT, f DOUBLE PRECISION)")
            connection.execute("INSERT INTO held VALUES (1.25, 7, '2024-01-01', '2024-01-01 12:00', 'a', 0.5)")
            yield connection


# Values keep their own types.
@pytest.mark.parametrize("sql, values, expected", [
    ("SELECT n * %s FROM held", [DECIMAL("0.001")], DECIMAL("0.00125")),
    ("SELECT count(*) FROM held WHERE n = %s", [DECIMAL("1.254")], 0),
    ("SELECT count(*) FROM held WHERE n < %s", [DECIMAL("1.254")], 1),
    ("SELECT count(*) FROM held WHERE n IN (%s, %s)", [DECIMAL("1.254"), DECIMAL("1.246")], 0),
    ("SELECT count(*) FROM held WHERE n = ANY (%s)", [[DECIMAL("1.254"), DECIMAL("1.2")]], 0),
    ("SELECT count(*) FROM held WHERE n <> ALL (%s)", [[DECIMAL("1.254"), DECIMAL("1.246")]], 1),
    ("SELECT count(*) FROM held WHERE i = ANY (%s)", [[7.5, 6.5]], 0),
    ("SELECT count(*) FROM held WHERE n BETWEEN %s AND %s", [DECIMAL("1.246"), DECIMAL("1.249")], 0),
    ("SELECT count(*) FROM held WHERE i < %s", [2**40], 1),
    ("SELECT count(*) FROM held WHERE i = %s", [DECIMAL("7.4")], 0),
    ("SELECT i / %s FROM held", [2.0], 3.5),
    ("SELECT i / %s FROM held", [2], 3),
    ("SELECT f * %s FROM held", [3], 1.5),
    ("SELECT count(*) FROM held WHERE d >= %s", [datetime.datetime(2024, 1, 1, 6)], 0),
    ("SELECT count(*) FROM held WHERE d >= %s", [datetime.date(2024, 1, 1)], 1),
    ("SELECT count(*) FROM held WHERE ts > %s", [datetime.date(2024, 1, 1)], 1),
    ("SELECT d + %s FROM held", [7], datetime.date(2024, 1, 8)),
    ("SELECT d + %s FROM held", [datetime.timedelta(hours=1)], datetime.datetime(2024, 1, 1, 1)),
    ("SELECT d - %s FROM held", [datetime.date(2023, 12, 31)], 1),
    ("SELECT ts + %s FROM held", [datetime.timedelta(minutes=5)], datetime.datetime(2024, 1, 1, 12, 5)),
    ("SELECT ts - %s FROM held", [datetime.timedelta(minutes=5)], datetime.datetime(2024, 1, 1, 11, 55)),
    ("SELECT ts - %s FROM held", [datetime.datetime(2024, 1, 1)], datetime.timedelta(hours=12)),
    ("SELECT count(*) FROM held WHERE ts < now() - %s", [datetime.timedelta(days=1)], 1),
    ("SELECT %s || %s", ["a", "b"], "ab"),
    ("SELECT t || %s FROM held", ["b"], "ab"),
    ("SELECT i || %s FROM held", ["b"], "7b"),
    ("SELECT %s || d FROM held", ["on "], "on 2024-01-01"),
    ("SELECT count(*) FROM (VALUES (1), (2)) v(x) WHERE x > %s", [DECIMAL("1.5")], 1),
    ("SELECT count(*) FROM (SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u) v WHERE u = %s", ["{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"], 1),
    ("SELECT interval '1 day' * %s", [2], datetime.timedelta(days=2)),
    ("SELECT sum(x) FROM (VALUES (%s), (%s)) v(x)", [1, 2], 3),
    ("SELECT substr('abcdef', %s, %s)", [2, 3], "bcd"),
    ("SELECT count(*) FROM generate_series(1, 10) LIMIT %s", [1], 10),
    ("SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN %s PRECEDING AND %s FOLLOWING) FROM (VALUES (1), (2), (3)) v(x) ORDER BY 1 DESC", [1, 1], 6),
    ("SELECT count(*) OVER (ORDER BY d RANGE %s PRECEDING) FROM held", [datetime.timedelta(days=7)], 1),
])
def test_values_keep_their_types(connection, sql, values, expected):
    for binary in [False, True]:
        assert connection.cursor(binary=binary).execute(sql, values).fetchone()[0] == expected


# Without a declaration: the OIDs that the statement tells.
@pytest.mark.parametrize("sql, oids", [
    ("SELECT coalesce($1, 1.5::float8)", [701]),
    ("SELECT count(*) OVER (ORDER BY i ROWS $1 PRECEDING) FROM held", [20]),
    ("SELECT coalesce($1, n) FROM held", [1700]),
    ("SELECT CASE WHEN $1 THEN t ELSE $2 END FROM held", [16, 25]),
    ("SELECT CASE d WHEN $1 THEN 1 END FROM held", [1082]),
    ("SELECT 1 FROM held WHERE $1", [16]),
    ("SELECT 1 FROM held WHERE $1 AND NOT $2", [16, 16]),
    ("SELECT 1 FROM held WHERE i = $1 AND n < $2 AND d >= $3 AND ts = $4 AND t = $5 AND f <> $6", [23, 1700, 1082, 1114, 25, 701]),
    ("SELECT 1 FROM held WHERE i IN ($1, $2) OR d BETWEEN $3 AND $4", [23, 23, 1082, 1082]),
    ("SELECT 1 FROM held WHERE t LIKE $1", [25]),
    ("SELECT $1 || t FROM held", [25]),
    ("SELECT ts + $1, interval '1 day' * $2 FROM held", [1186, 701]),
    ("SELECT ts - $1 FROM held", [1114]),
    ("SELECT nullif(d, $1) FROM held", [1082]),
    ("SELECT $1", [25]),
    ("INSERT INTO held (n, d) VALUES ($1, $2)", [1700, 1082]),
    ("UPDATE held SET d = $1 WHERE i = $2", [1082, 23]),
])
def test_types_come_from_the_statement(connection, sql, oids):
    prepared = connection.pgconn.prepare(b"", sql.encode())
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, prepared.error_message
    described = connection.pgconn.describe_prepared(b"")
    assert [described.param_type(at) for at in range(described.nparams)] == oids


@pytest.mark.parametrize("sql, values, expected", [
    ("SELECT generate_series(1, $1)", [b"3"], [b"1", b"2", b"3"]),
    ("SELECT * FROM generate_series(1, $1) AS g(n)", [b"3"], [b"1", b"2", b"3"]),
    ("SELECT g.v FROM generate_series(1, $1) AS g(v) JOIN held ON i > g.v ORDER BY 1", [b"2"], [b"1", b"2"]),
    ("SELECT coalesce($1, 1)", [b"4"], [b"4"]),
    ("SELECT CASE WHEN false THEN 1 ELSE $1 END", [b"5"], [b"5"]),
    ("SELECT i FROM held WHERE $1", [b"t"], [b"7"]),
    ("SELECT count(*) FROM held WHERE n = $1", [b"1.254"], [b"0"]),
    ("SELECT count(*) FROM held WHERE n = ANY ($1)", [b"{1.254,1.2460}"], [b"0"]),
    ("SELECT count(*) FROM held WHERE n = ANY ($1)", [b"{1,1.2500}"], [b"1"]),
    ("SELECT n * $1 FROM held", [b"0.001"], [b"0.00125"]),
    ("SELECT ts + $1 FROM held", [b"5 minutes"], [b"2024-01-01 12:05:00"]),
    ("SELECT $1 || $2", [b"a", b"b"], [b"ab"]),
])
def test_values_without_a_type_are_read_as_the_statement_tells(connection, sql, values, expected):
    result = connection.pgconn.exec_params(sql.encode(), values)
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    assert [result.get_value(row, 0) for row in range(result.ntuples)] == expected


def test_a_whole_number_that_is_told_is_one(connection):
    for sql, value, code in [
        ("SELECT 1 FROM held WHERE i < $1", b"1099511627776", b"22003"),
        ("SELECT 1 FROM held WHERE i < $1", b"1.5", b"22P02"),
    ]:
        result = connection.pgconn.exec_params(sql.encode(), [value])
        assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == code, sql


def test_a_label_of_an_enumerated_type_comes_in_binary(connection):
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    (oid,) = connection.execute("SELECT oid FROM pg_type WHERE typname = 'mood'").fetchone()
    result = connection.pgconn.exec_params(b"SELECT $1::mood < 'happy'", [b"ok"], param_types=[oid], param_formats=[1])
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    assert result.get_value(0, 0) == b"t"


def test_instants_without_a_time_zone_are_in_that_of_the_session(connection):
    connection.execute("CREATE TABLE moments (at TIMESTAMPTZ, clock TIMESTAMP)")
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    with connection.cursor() as cursor, cursor.copy("COPY moments FROM STDIN") as copy:
        copy.write("2024-07-01 10:00\t2024-07-01 10:00:00+05\n")
    values = [b"2024-07-01 10:00", b"2024-07-01 10:00+05"]
    result = connection.pgconn.exec_params(b"INSERT INTO moments VALUES ($1, $2)", values)
    assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message
    rows = connection.execute("SELECT at::text, clock::text FROM moments").fetchall()
    connection.execute("SET TimeZone = 'UTC'")
    assert rows == [("2024-07-01 10:00:00+02", "2024-07-01 10:00:00")] * 2


@pytest.mark.parametrize("type_, value", [("VARCHAR(2)", "abc"), ("CHAR(2)", "abc")])
def test_a_text_that_is_too_long_has_a_state_of_its_own(connection, type_, value):
    connection.execute(f"CREATE TEMPORARY TABLE short (t {type_})")
    with pytest.raises(psycopg.errors.StringDataRightTruncation):
        connection.execute("INSERT INTO short VALUES (%s)", [value])
    connection.execute("DROP TABLE short")


@pytest.mark.parametrize("sql, state", [
    ("UPDATE held SET i = 3000000000", "22003"),
    ("INSERT INTO held (i) SELECT 3000000000", "22003"),
    ("SELECT '1e400'::double precision", "22003"),
    ("SELECT 20240229::date", "42846"),
    ("SELECT '\\xabc'::bytea", "22023"),
    ("INSERT INTO computed (twice) VALUES (1)", "428C9"),
    ("UPDATE computed SET twice = 1", "428C9"),
    ("INSERT INTO held (i, n) VALUES (1, 2), (3)", "42601"),
    ("VALUES (1, 2), (3)", "42601"),
])
def test_mistakes_have_the_states_of_postgresql(connection, sql, state):
    connection.execute("CREATE TABLE IF NOT EXISTS computed (i INT, twice INT GENERATED ALWAYS AS (i * 2) STORED)")
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(sql)
    assert refused.value.sqlstate == state
