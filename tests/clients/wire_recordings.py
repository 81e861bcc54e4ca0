"""What real clients send over PostgreSQL's and MySQL's protocols, written down by a proxy between them and the server. A
conversation is a list of turns: what a client sends until the server answers."""

import asyncio
import contextlib
import threading

import adbc_driver_postgresql.dbapi
import asyncpg
import mysql.connector
import psycopg
import pyarrow
import pymysql
import pymysql.cursors

from relay import Relay

ROWS = [(1, "a"), (2, None), (3, "größe")]


class Recorder(Relay):
    """Keeps what clients have sent, by connection."""

    def __init__(self, port):
        self.turns, self.lock = {}, threading.Lock()
        super().__init__(port)

    def passes(self, pair, data, is_client):
        """An empty turn at the end says that the server has answered since the last one."""
        with self.lock:
            turns = self.turns.setdefault(pair, [])
            if is_client and turns:
                turns[-1] += data
            elif is_client:
                turns.append(data)
            elif turns and turns[-1]:
                turns.append(b"")

    def recorded(self):
        """The conversations, once all of them have ended."""
        for thread in list(self.pairs.values()):
            thread.join()
        return [[turn for turn in turns if turn] for turns in self.turns.values() if any(turns)]


def psycopg_speaks(port):
    place = {"host": "127.0.0.1", "port": port, "user": "ada", "password": "secret", "dbname": "bowshot"}
    with psycopg.connect(**place, autocommit=True) as connection:
        connection.execute("SELECT 1; SELECT 'x' AS a, 2.5")
        connection.execute("SELECT %s::int, %s::text, %b::bytea", (41, None, b"\0\xff"), prepare=True)
        connection.execute("SELECT %b::int, %b::float8", (41, 0.5), binary=True)
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO wires VALUES (%s, %s)", ROWS)
            with cursor.copy("COPY wires FROM STDIN") as copy:
                for row in ROWS:
                    copy.write_row(row)
            with cursor.copy("COPY wires FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "text"])
                for row in ROWS:
                    copy.write_row(row)
            with cursor.copy("COPY (SELECT * FROM wires LIMIT 5) TO STDOUT (FORMAT csv)") as copy:
                list(copy)
        with contextlib.suppress(psycopg.Error):
            connection.execute("SELECT * FROM nowhere")
        with connection.pipeline():
            for number in range(3):
                connection.execute("SELECT %s::int", (number,))
        connection.execute("DISCARD ALL")
    with psycopg.connect(**place) as connection:
        with connection.transaction(), connection.cursor("named") as cursor:
            cursor.execute("SELECT * FROM range(100)")
            cursor.fetchmany(3)
        with contextlib.suppress(psycopg.Error), connection.transaction(), connection.transaction():
            connection.execute("DELETE FROM wires")
            connection.execute("SELECT 1 / 0 FROM wires")
        connection.rollback()


async def asyncpg_speaks(port):
    connection = await asyncpg.connect(host="127.0.0.1", port=port, user="ada", password="secret", database="bowshot")
    await connection.fetch("SELECT $1::int + 1, $2::text[], $3::timestamp", 41, ["a", None], None)
    await connection.executemany("INSERT INTO wires VALUES ($1, $2)", ROWS)
    async with connection.transaction():
        async for _ in connection.cursor("SELECT * FROM range(100)", prefetch=30):
            pass
    await connection.copy_records_to_table("wires", records=ROWS)
    statement = await connection.prepare("SELECT * FROM wires WHERE a = $1 LIMIT 3")
    for number in range(3):
        await statement.fetch(number)
    with contextlib.suppress(asyncpg.PostgresError):
        await connection.fetch("SELECT $1::int", 1, timeout=5)
        await connection.execute("SELEC 1")
    await connection.reset()
    await connection.close()


def adbc_speaks(port):
    uri = f"postgresql://ada:secret@127.0.0.1:{port}/bowshot"
    with adbc_driver_postgresql.dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM wires LIMIT 5")
        cursor.fetch_arrow_table()
        cursor.adbc_ingest("wires", pyarrow.table({"a": pyarrow.array([1], pyarrow.int32()), "b": ["x"]}), mode="append")


def pymysql_speaks(port, file):
    place = {"host": "127.0.0.1", "port": port, "user": "ada", "password": "", "database": "main"}
    connection = pymysql.connect(**place, autocommit=True, local_infile=True, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1, 'x', 2.5, NULL, NOW()")
        cursor.executemany("INSERT INTO wires VALUES (%s, %s)", ROWS)
        cursor.execute("SHOW VARIABLES LIKE 'a%'")
        cursor.execute("SELECT 1; SELECT @@version")
        while cursor.nextset():
            pass
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE wires FIELDS TERMINATED BY ','")
        with contextlib.suppress(pymysql.Error):
            cursor.execute("SELECT * FROM nowhere")
    connection.ping()
    connection.select_db("main")
    connection.begin()
    connection.rollback()
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute("SELECT * FROM range(1000)")
        cursor.fetchone()
    with contextlib.suppress(pymysql.Error):
        connection.kill(999_999)
    connection.close()


def connector_speaks(port):
    place = {"host": "127.0.0.1", "port": port, "user": "ada", "password": "", "database": "main", "use_pure": True}
    for compress in (False, True):
        connection = mysql.connector.connect(**place, compress=compress, ssl_disabled=True)
        with connection.cursor(prepared=True) as cursor:
            for row in ROWS:
                cursor.execute("SELECT ? + 1, ?", row)
                cursor.fetchall()
            cursor.execute("SELECT ?", (b"x" * 10_000,))
            cursor.fetchall()
        connection.cmd_reset_connection()
        connection.cmd_statistics()
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM range(3000)")
            cursor.fetchall()
        with contextlib.suppress(mysql.connector.Error):
            connection.cmd_change_user("bob", "", "main")
        connection.close()


def record(server, file):
    """The conversations of all clients with a server that takes everybody, by protocol."""
    with Recorder(server.pg_port) as postgres, Recorder(server.mysql_port) as mine:
        psycopg_speaks(postgres.port)
        asyncio.run(asyncpg_speaks(postgres.port))
        adbc_speaks(postgres.port)
        pymysql_speaks(mine.port, file)
        connector_speaks(mine.port)
        return {"postgres": postgres.recorded(), "mysql": mine.recorded()}
