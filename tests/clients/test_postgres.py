"""PostgreSQL's protocol as its own clients speak it: psycopg, asyncpg, and psql where it is installed."""

import asyncio
import datetime
import decimal
import io
import shutil
import subprocess

import asyncpg
import psycopg
import pytest

from server import repeated

D = decimal.Decimal
UTC = datetime.timezone.utc

# A SQL type, and values that it has.
VALUES = [
    ("smallint", [0, -32768, 32767]),
    ("integer", [-1, 2147483647]),
    ("bigint", [-(2**63), 2**63 - 1]),
    ("real", [0.5, -1.25]),
    ("double precision", [0.1, 1e300, -0.0]),
    ("numeric(20, 5)", [D("1.50000"), D("-99999999999.00001")]),
    ("boolean", [True, False]),
    ("text", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]),
    ("bytea", [b"", b"\x00\xff\\'"]),
    ("date", [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)]),
    ("time", [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)]),
    ("timestamp", [datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(2024, 1, 2, 3, 4, 5, 6)]),
    ("timestamptz", [datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)]),
    ("interval", [datetime.timedelta(days=3, seconds=4, microseconds=5), datetime.timedelta(seconds=-1)]),
    ("integer[]", [[1, None, 3], []]),
    ("text[]", [["a b", "", "null", None, '"\\']]),
]


@pytest.fixture
def connection(shop):
    with psycopg.connect(**shop.postgres(), autocommit=True) as connection:
        yield connection


def run(shop, work):
    """Does something with a connection of asyncpg."""

    async def connected():
        parameters = shop.postgres()
        connection = await asyncpg.connect(database=parameters.pop("dbname"), timeout=20, **parameters)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(connected())


def test_connect(connection):
    assert connection.info.server_version // 10000 == 16
    assert connection.info.encoding == "utf-8"
    assert connection.execute("SELECT count(*) FROM nation").fetchone() == (25,)
    assert connection.execute("SHOW server_version").fetchone()[0].startswith("16.0")
    assert connection.execute("SELECT current_setting('application_name')").fetchone() == ("",)


@pytest.mark.parametrize("options", [{"dbname": "nowhere"}, {"options": "-c colour=red"}, {"options": "-x"}, {"replication": "true"}])
def test_sessions_that_cannot_be_had(shop, options):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(**shop.postgres(**options))


def test_options_of_the_start_up(shop):
    with psycopg.connect(**shop.postgres(application_name="suite", options="-c statement_timeout=7s")) as connection:
        assert connection.execute("SHOW application_name").fetchone() == ("suite",)
        assert connection.execute("SHOW dialect").fetchone() == ("postgres",)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("sql_type, values", VALUES, ids=[name for name, _ in VALUES])
def test_values_go_there_and_come_back(connection, sql_type, values, binary):
    for value in values:
        for placeholder in ("%t", "%b"):
            with connection.cursor(binary=binary) as cursor:
                cursor.execute(f"SELECT {placeholder}::{sql_type} AS v, NULL::{sql_type} AS n", (value,))
                assert cursor.fetchall() == [(value, None)]


def test_asyncpg(shop):
    async def work(connection):
        assert await connection.fetchval("SELECT count(*) FROM nation") == 25
        rows = await connection.fetch("SELECT n_name FROM nation WHERE n_nationkey < $1::bigint ORDER BY n_nationkey", 2)
        assert [row["n_name"] for row in rows] == ["ALGERIA", "ARGENTINA"]
        for sql_type, values in VALUES:
            for value in values:
                assert await connection.fetchval(f"SELECT $1::{sql_type}", value) == value, sql_type
        statement = await connection.prepare("SELECT l_orderkey FROM lineitem")
        async with connection.transaction():
            cursor = await statement.cursor()
            assert len(await cursor.fetch(10)) == 10
            assert len(await cursor.fetch(100_000)) == 59_990
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("SELECT * FROM missing")
        return True

    assert run(shop, work)


def test_errors_of_syntax_have_their_place(connection):
    with pytest.raises(psycopg.errors.SyntaxError) as raised:
        connection.execute("SELECT a b c")
    assert raised.value.diag.statement_position is not None
    with pytest.raises(psycopg.DatabaseError):
        connection.execute("COMMIT PREPARED 'x'")


def test_transactions(shop, table):
    status = psycopg.pq.TransactionStatus
    with psycopg.connect(**shop.postgres()) as connection:
        connection.execute(f"CREATE TABLE {table} (a INT)")
        assert connection.info.transaction_status == status.INTRANS
        connection.commit()
        assert connection.info.transaction_status == status.IDLE
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0").fetchall()
        assert connection.info.transaction_status == status.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        with connection.transaction():
            connection.execute(f"INSERT INTO {table} VALUES (1)")
            with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
                connection.execute(f"INSERT INTO {table} VALUES (2)")
                connection.execute("SELECT 1 / 0").fetchall()
        assert connection.execute(f"SELECT a FROM {table}").fetchall() == [(1,)]


def test_a_cancel_ends_what_runs(connection):
    with repeated(connection.cancel), pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_goes_leaves_nothing(shop):
    connection = psycopg.connect(**shop.postgres(), autocommit=True)
    cursor = connection.cursor()
    for _ in cursor.stream("SELECT * FROM lineitem a, nation b"):
        break
    connection.pgconn.finish()
    shop.wait_idle(5)


COPIED = [
    (1, "plain", D("1.50"), datetime.date(2024, 1, 2)),
    (2, None, None, None),
    (3, "tab\tnewline\nback\\slash \"quote\" , \\N", D("-1.00"), datetime.date(1, 1, 1)),
    (4, "", D("0.00"), datetime.date(9999, 12, 31)),
]


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_copy(connection, table, form):
    connection.execute(f"CREATE TABLE {table} (a INT, b TEXT, c NUMERIC(10, 2), d DATE)")
    connection.execute(f"CREATE TABLE {table}_2 (a INT, b TEXT, c NUMERIC(10, 2), d DATE)")
    for row in COPIED:
        connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY (SELECT * FROM {table} ORDER BY a) TO STDOUT (FORMAT {form})") as copy:
            data = b"".join(map(bytes, copy))
        with cursor.copy(f"COPY {table}_2 FROM STDIN (FORMAT {form})") as copy:
            # In pieces that end anywhere.
            for start in range(0, len(data), 7):
                copy.write(data[start : start + 7])
        assert cursor.statusmessage == "COPY 4"
    assert connection.execute(f"SELECT * FROM {table}_2 ORDER BY a").fetchall() == COPIED


def test_copy_of_some_columns_and_of_many_rows(connection, table):
    connection.execute(f"CREATE TABLE {table} (a BIGINT, b TEXT DEFAULT 'none')")
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {table} (a) FROM STDIN") as copy:
            for number in range(100_000):
                copy.write_row((number,))
        assert cursor.rowcount == 100_000
    assert connection.execute(f"SELECT sum(a), min(b), max(b) FROM {table}").fetchone() == (4_999_950_000, "none", "none")


def test_copy_with_asyncpg(shop, table):
    async def work(connection):
        await connection.execute(f"CREATE TABLE {table} (a BIGINT, b TEXT)")
        done = await connection.copy_records_to_table(table, records=[(1, "a"), (2, None)], columns=["a", "b"])
        assert done == "COPY 2"
        out = io.BytesIO()
        done = await connection.copy_from_query(f"SELECT * FROM {table} ORDER BY a", output=out, format="csv")
        assert (done, out.getvalue()) == ("COPY 2", b"1,a\n2,\n")
        return True

    assert run(shop, work)


def psql(server, *arguments, stdin=None, **environment):
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    uri = f"postgresql://ada@127.0.0.1:{server.pg_port}/bowshot"
    return subprocess.run(
        [program, "-X", uri, "-v", "ON_ERROR_STOP=1", *arguments],
        capture_output=True, timeout=60, text=True, input=stdin, env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def test_psql(shop, table):
    ran = psql(shop, "-At", "-c", "SELECT n_nationkey, n_name FROM nation ORDER BY 1 LIMIT 2")
    assert (ran.returncode, ran.stdout) == (0, "0|ALGERIA\n1|ARGENTINA\n"), ran.stderr
    script = f"""
        CREATE TABLE {table} (a INT, b TEXT);
        \\copy {table} FROM pstdin WITH (FORMAT csv)
        SELECT * FROM {table} ORDER BY a;
    """.replace("pstdin", "stdin").replace("csv)\n", "csv)\n1,x\n2,\n\\.\n")
    ran = psql(shop, "-At", stdin="\n".join(line.strip() for line in script.splitlines()))
    assert ran.stdout == "CREATE TABLE\nCOPY 2\n1|x\n2|\n", ran.stderr
    ran = psql(shop, "-c", "SELECT FROM WHERE")
    assert ran.returncode != 0 and "ERROR:" in ran.stderr and "^" in ran.stderr
