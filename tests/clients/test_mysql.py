"""MySQL's protocol as its own clients speak it: PyMySQL, mysql-connector-python, and the mariadb shell where it is installed."""

import contextlib
import datetime
import decimal
import shutil
import subprocess

import mysql.connector
import pymysql
import pytest

from data import PASSWORD
from server import ROOT, repeated

D = decimal.Decimal
TLS = ROOT / "tests" / "data" / "tls"

# A SQL type, and values that it has.
VALUES = [
    ("TINYINT", [0, -128, 127]),
    ("SMALLINT", [-32768, 32767]),
    ("INT", [-1, 2147483647]),
    ("BIGINT", [-(2**63), 2**63 - 1]),
    ("BIGINT UNSIGNED", [2**64 - 1]),
    ("FLOAT", [0.5, -1.25]),
    ("DOUBLE", [0.1, 1e300, -2.5e-9]),
    ("DECIMAL(20, 5)", [D("1.50000"), D("-99999999999.00001")]),
    ("BOOLEAN", [1, 0]),
    ("TEXT", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]),
    ("BLOB", [b"", b"\x00\xff\\'"]),
    ("DATE", [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)]),
    ("TIME(6)", [datetime.timedelta(0), datetime.timedelta(seconds=86399, microseconds=999999)]),
    ("DATETIME(6)", [datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(2024, 1, 2, 3, 4, 5)]),
]


def pymysql_to(server, **more):
    return pymysql.connect(**server.mysql(**{"autocommit": True, **more}))


def connector_to(server, **more):
    return mysql.connector.connect(**server.mysql(**{"autocommit": True, "use_pure": True, **more}))


@pytest.fixture
def connection(shop):
    with contextlib.closing(pymysql_to(shop)) as connection:
        yield connection


def rows(connection, sql, values=None):
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall()) if cursor.description else cursor.rowcount


def test_connect(shop, connection):
    assert connection.get_server_info().startswith("8.0.36-Bowshot-")
    assert rows(connection, "SELECT count(*) FROM nation") == [(25,)]
    assert rows(connection, "SELECT CONNECTION_ID(), DATABASE()") == [(connection.thread_id(), "main")]
    connection.ping(reconnect=False)
    connection.select_db("main")
    for refused, number in (
        (lambda: connection.select_db("nowhere"), 1049),
        (lambda: pymysql_to(shop, database="nowhere"), 1049),
        (lambda: rows(connection, "SET NAMES latin1"), 1115),
    ):
        with pytest.raises(pymysql.err.OperationalError) as raised:
            refused()
        assert raised.value.args[0] == number


@pytest.mark.parametrize("sql_type, values", VALUES, ids=[name for name, _ in VALUES])
def test_values_go_there_and_come_back(shop, connection, table, sql_type, values):
    """As literals and text rows, and as parameters and binary rows."""
    rows(connection, f"CREATE TABLE {table} (n INT, v {sql_type})")
    with contextlib.closing(connector_to(shop)) as prepared, contextlib.closing(prepared.cursor(prepared=True)) as cursor:
        for index, value in enumerate(values):
            rows(connection, f"INSERT INTO {table} VALUES (%s, %s), (%s, NULL)", (index, value, -1))
            cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", (index, value))
            assert rows(connection, f"SELECT v FROM {table} WHERE n = %s", (index,)) == [(value,), (value,)]
            cursor.execute(f"SELECT v FROM {table} WHERE n = ?", (index,))
            assert cursor.fetchall() == [(value,), (value,)]
        cursor.execute(f"SELECT v FROM {table} WHERE n = ?", (-1,))
        assert set(cursor.fetchall()) == {(None,)}


@pytest.mark.parametrize(
    "sql_type, value, assigned",
    [
        ("DATE", 20240102, datetime.date(2024, 1, 2)),
        ("DATETIME", 20240102, datetime.datetime(2024, 1, 2)),
        ("DATETIME", 20240102101112, datetime.datetime(2024, 1, 2, 10, 11, 12)),
        ("TIME", 101112, datetime.timedelta(seconds=36672)),
        ("VARBINARY(20)", 5, b"5"),
        ("BIGINT", datetime.datetime(2024, 1, 2, 10, 11, 12), 20240102101112),
        ("INT", datetime.date(2024, 1, 2), 20240102),
    ],
)
def test_digits_are_assigned(shop, connection, table, sql_type, value, assigned):
    """Parameters of a prepared statement, as MariaDB has them."""
    rows(connection, f"CREATE TABLE {table} (n INT, v {sql_type})")
    with contextlib.closing(connector_to(shop)) as prepared, contextlib.closing(prepared.cursor(prepared=True)) as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", (1, value))
        assert rows(connection, f"SELECT v FROM {table}") == [(assigned,)]
        rows(connection, f"UPDATE {table} SET v = NULL")
        cursor.execute(f"UPDATE {table} SET v = ?", (value,))
        assert rows(connection, f"SELECT v FROM {table}") == [(assigned,)]


def test_transactions(shop, connection, table):
    rows(connection, f"CREATE TABLE {table} (a INT)")
    with contextlib.closing(pymysql_to(shop, autocommit=False)) as other:
        rows(other, f"INSERT INTO {table} VALUES (1)")
        assert other.server_status & pymysql.constants.SERVER_STATUS.SERVER_STATUS_IN_TRANS
        assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)]
        other.rollback()
        assert rows(other, f"SELECT count(*) FROM {table}") == [(0,)]
        rows(other, f"INSERT INTO {table} VALUES (1)")
        other.commit()
        other.commit()
    assert rows(connection, f"SELECT a FROM {table}") == [(1,)]
    connection.begin()
    rows(connection, f"INSERT INTO {table} VALUES (2)")
    with pytest.raises(pymysql.err.ProgrammingError):
        rows(connection, "SELECT * FROM missing")
    rows(connection, "SAVEPOINT a")
    rows(connection, f"INSERT INTO {table} VALUES (3)")
    rows(connection, "ROLLBACK TO SAVEPOINT a")
    connection.commit()
    assert rows(connection, f"SELECT a FROM {table} ORDER BY a") == [(1,), (2,)]
    rows(connection, "SET SESSION TRANSACTION READ ONLY")
    with pytest.raises(pymysql.err.OperationalError) as raised:
        rows(connection, f"INSERT INTO {table} VALUES (9)")
    assert raised.value.args[0] == 1792


def test_a_kill_ends_what_runs(shop, connection):
    with contextlib.closing(pymysql_to(shop)) as other:
        kill = f"KILL QUERY {connection.thread_id()}"
        with repeated(lambda: rows(other, kill)), pytest.raises(pymysql.err.OperationalError) as raised:
            rows(connection, "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey")
        assert raised.value.args[0] == 1317
        assert rows(connection, "SELECT 1") == [(1,)]
        other.kill(connection.thread_id())
        with pytest.raises(pymysql.err.OperationalError):
            rows(connection, "SELECT 1")


def test_a_client_that_goes_leaves_nothing(shop):
    connection = pymysql_to(shop, cursorclass=pymysql.cursors.SSCursor)
    cursor = connection.cursor()
    cursor.execute("SELECT * FROM lineitem a, nation b")
    assert cursor.fetchone()
    connection._force_close()
    # They would read the rest of the rows when they are collected.
    cursor._result.unbuffered_active = False
    cursor.connection = None
    shop.wait_idle(5)


def test_many_rows_and_large_values(connection):
    assert len(rows(connection, "SELECT l_orderkey FROM lineitem")) == 60_000
    [(value,)] = rows(connection, "SELECT repeat('x', 20000000)")
    assert len(value) == 20_000_000
    assert rows(connection, "SELECT length(%s)", ("y" * 1_000_000,)) == [(1_000_000,)]


def test_mysql_connector_python(shop, table):
    with contextlib.closing(connector_to(shop)) as connection:
        assert rows(connection, "SELECT n_name FROM nation ORDER BY n_nationkey LIMIT 1") == [("ALGERIA",)]
        rows(connection, f"CREATE TABLE {table} (a INT)")
        connection.cmd_reset_connection()
        assert connection.is_connected() and "Sessions" in connection.cmd_statistics()
        connection.cmd_change_user("bob", "", "main")
        assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)]
        with pytest.raises(mysql.connector.errors.ProgrammingError) as raised:
            rows(connection, "SELECT * FROM missing")
        assert (raised.value.errno, raised.value.sqlstate) == (1146, "42S02")


def mariadb(server, *arguments):
    program = shutil.which("mariadb")
    if program is None:
        pytest.skip("the mariadb shell is not installed")
    return subprocess.run(
        [program, "--no-defaults", "--host=127.0.0.1", f"--port={server.mysql_port}", "--user=ada", *arguments],
        capture_output=True, timeout=60, text=True,
    )  # fmt: skip


def test_mariadb(shop):
    ran = mariadb(shop, "main", "-N", "-B", "-e", "SELECT n_nationkey, n_name FROM nation ORDER BY 1 LIMIT 2; \\s")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("0\tALGERIA\n1\tARGENTINA\n") and "Bowshot" in ran.stdout
    ran = mariadb(shop, "main", "-e", "SELEC")
    assert ran.returncode != 0 and "ERROR 1064 (42000)" in ran.stderr


def test_passwords_go_over_tls_alone(guarded):
    ca = str(TLS / "ca.pem")
    for connect, password, encrypted in (
        # PyMySQL makes Latin-1 of texts.
        (pymysql_to, PASSWORD.encode(), {"ssl": {"ca": ca}, "host": "localhost"}),
        (connector_to, PASSWORD, {"ssl_ca": ca, "ssl_verify_cert": True, "host": "localhost"}),
    ):
        with contextlib.closing(connect(guarded, password=password, **encrypted)) as connection:
            assert rows(connection, "SELECT current_user()") == [("ada",)]
        for options, number in (
            ({"password": "wrong", **encrypted}, 1045),
            ({"password": "", **encrypted}, 1045),
            ({"password": password, "user": "eve", **encrypted}, 1045),
            ({"password": password, "ssl_disabled": True}, 3159),
        ):
            with pytest.raises((pymysql.err.Error, mysql.connector.Error)) as raised:
                connect(guarded, **options)
            assert raised.value.args[0] == number, options
    ran = mariadb(guarded, f"--password={PASSWORD}", "--ssl", "-N", "-B", "-e", "SELECT current_user()")
    assert (ran.returncode, ran.stdout) == (0, "ada\n"), ran.stderr
