"""Mutated conversations in PostgreSQL's and MySQL's protocols: `hostile_wires.py [--count N] [--seed N]`.

A conversation is a list of messages that a client could send. A few of its bytes, lengths or messages are changed, all of it is
sent at once, and the client stops sending. Whatever the server makes of it, it has to answer or to end the connection soon, and
nothing of it may be left behind: no query, no session, no connection, no thread that has panicked.
"""

import argparse
import concurrent.futures
import random
import socket
import struct
import sys

import server as servers

SECONDS = 20.0
WORKERS = 8
TABLE = "CREATE TABLE wires (a INT, b TEXT)"


# --- PostgreSQL


def pg(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def pg_startup():
    body = struct.pack("!I", 196608) + b"user\0ada\0database\0bowshot\0application_name\0hostile\0\0"
    return struct.pack("!I", len(body) + 4) + body


def pg_bind(portal, statement, *values, formats=(0,)):
    body = portal + b"\0" + statement + b"\0" + struct.pack("!H", len(formats)) + b"".join(struct.pack("!H", f) for f in formats)
    body += struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!I", len(value)) + value
    return pg(b"B", body + struct.pack("!HH", 1, 1))


def pg_query(text):
    return pg(b"Q", text + b"\0")


SYNC, END = pg(b"S"), pg(b"X")
EXECUTE = pg(b"E", b"\0" + struct.pack("!I", 3))

POSTGRES = [
    [pg_startup(), pg_query(b"SELECT 1; SELECT 'x' AS a, 2.5; SHOW search_path"), END],
    [
        pg_startup(), pg(b"P", b"s\0SELECT $1::int + 1, $2::text, $3::bytea\0" + struct.pack("!HIII", 3, 23, 25, 17)),
        pg(b"D", b"Ss\0"), pg_bind(b"", b"s", b"41", None, b"\\x00ff"), pg(b"D", b"P\0"), EXECUTE, SYNC,
        pg_bind(b"p", b"s", struct.pack("!i", 7), b"ab", b"\0\1", formats=(1, 0, 1)), pg(b"E", b"p\0" + struct.pack("!I", 0)),
        pg(b"C", b"Pp\0"), pg(b"C", b"Ss\0"), SYNC, END,
    ],
    [pg_startup(), pg_query(b"COPY wires FROM STDIN"), pg(b"d", b"1\tx\n2\t\\N\n"), pg(b"d", b"3\ty"), pg(b"c"), pg_query(b"SELECT 1"), END],
    [pg_startup(), pg_query(b"COPY wires FROM STDIN (FORMAT binary)"),
     pg(b"d", b"PGCOPY\n\xff\r\n\0" + struct.pack("!IIHiiii", 0, 0, 2, 4, 5, 1, 65) + struct.pack("!h", -1)), pg(b"c"), END],
    [pg_startup(), pg_query(b"COPY (SELECT 1, 'a') TO STDOUT (FORMAT csv)"), pg(b"f", b"no\0"), END],
    [pg_startup(), pg_query(b"BEGIN; INSERT INTO wires VALUES (1, 'a'); SAVEPOINT s"), pg_query(b"ROLLBACK TO s; ROLLBACK"), END],
    [pg_startup(), pg_query(b"BEGIN; DECLARE c CURSOR FOR SELECT * FROM range(100)"), pg_query(b"FETCH 3 FROM c; CLOSE c; COMMIT"), END],
    [struct.pack("!II", 8, 80877103)],  # SSLRequest
    [struct.pack("!IIII", 16, 80877102, 1, 2)],  # CancelRequest
    [pg_startup(), pg(b"F", struct.pack("!IHHIH", 1, 0, 0, 0, 0)), pg(b"H"), SYNC, pg(b"p", b"secret\0"), END],
]


# --- MySQL


def my(number, body):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def my_hello(capabilities=0x018FA20F):
    body = struct.pack("<IIB23x", capabilities & ~0x800, 1 << 24, 45) + b"ada\0" + b"\0" + b"main\0" + b"caching_sha2_password\0"
    return my(1, body)


def my_command(code, body=b""):
    return my(0, bytes([code]) + body)


def my_execute(statement, types, values, nulls=b"\0"):
    return my_command(0x17, struct.pack("<IBI", statement, 0, 1) + nulls + b"\1" + types + values)


MYSQL = [
    [my_hello(), my_command(0x03, b"SELECT 1, 'x', 2.5"), my_command(0x0E), my_command(0x01)],
    [
        my_hello(), my_command(0x16, b"SELECT ? + 1, ?"), my_execute(1, b"\3\0\xfd\0", struct.pack("<i", 41) + b"\2ab"),
        my_command(0x18, struct.pack("<IH", 1, 1) + b"long"), my_execute(1, b"\x0c\0\xfc\0", b"\x0b\xe8\x07\1\2\3\4\5\6\0\0\0"),
        my_command(0x1A, struct.pack("<I", 1)), my_command(0x19, struct.pack("<I", 1)), my_command(0x01),
    ],
    [my_hello(), my_command(0x16, b"SELECT * FROM range(100)"), my_command(0x17, struct.pack("<IBI", 1, 1, 1)),
     my_command(0x1C, struct.pack("<II", 1, 5)), my_command(0x01)],
    [my_hello(), my_command(0x02, b"main"), my_command(0x04, b"wires\0%"), my_command(0x09), my_command(0x1F), my_command(0x01)],
    [my_hello(), my_command(0x03, b"SET autocommit = 0"), my_command(0x03, b"INSERT INTO wires VALUES (1, _binary'a\\0')"), my_command(0x03, b"ROLLBACK")],
    [my_hello(), my_command(0x03, b"/*!40101 SET NAMES utf8 */"), my_command(0x03, b"SHOW VARIABLES LIKE 'a%'"), my_command(0x1B, b"\0\0"),
     my_command(0x03, b"SELECT 1; SELECT @@version")],
    [my_hello(), my_command(0x11, b"bob\0\0main\0\x2d\0caching_sha2_password\0"), my_command(0x0C, struct.pack("<I", 999999)), my_command(0x0E)],
    [my(1, struct.pack("<IIB23x", 0x018FAA0F, 1 << 24, 45))],  # asks for TLS, which is not there
]  # fmt: skip


def mutated(messages, chance):
    """The bytes of a conversation with some changes."""
    messages = list(messages)
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(messages))
        match chance.randrange(4):
            case 0:
                messages.insert(at, chance.choice(messages))
            case 1:
                del messages[at]
            case 2:
                other = chance.randrange(len(messages))
                messages[at], messages[other] = messages[other], messages[at]
            case 3:
                messages[at] = messages[at][: chance.randrange(len(messages[at]) + 1)]
        if not messages:
            return b""
    data = bytearray(b"".join(messages))
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        if not data:
            break
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
            case 2:
                del data[at : at + chance.randrange(1, 9)]
            case 3:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 4:
                data[at : at + 4] = struct.pack("!i", chance.choice((-1, 0, 3, 4, 2**31 - 1, 65536)))
    return bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.1 else data)


def talk(port, data, reads_first):
    """Sends all, and reads until the server ends. Raises TimeoutError if it does not."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        try:
            if reads_first:
                client.recv(4096)
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass  # the server has ended it before all was sent


def check(server, count, seed):
    """Runs `count` conversations and gives the number of those that the server left hanging."""
    wires = [("postgres", server.pg_port, POSTGRES, False), ("mysql", server.mysql_port, MYSQL, True)]

    def one(number):
        chance = random.Random(seed * 1_000_003 + number)
        name, port, conversations, reads_first = wires[number % 2]
        data = mutated(chance.choice(conversations), chance)
        try:
            talk(port, data, reads_first)
        except TimeoutError:
            return f"{name} {number}: no end after {SECONDS} s: {data!r}"
        return None

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return [failure for failure in pool.map(one, range(count)) if failure]


def leftovers(server):
    """What is still there of connections, once the server has had its time."""

    def nothing():
        samples = server.metrics()
        names = ("bowshot_postgres_connections", "bowshot_mysql_connections", "bowshot_sessions", "bowshot_open_transactions")
        held = {name: samples[name] for name in names if samples.get(name)}
        return None if held else True

    servers.wait_until(nothing, "no connection, session or transaction is left", 30)
    server.wait_idle(30)
    log = server.log()
    return [line for line in log.splitlines() if "panicked" in line or "internal error" in line]


def prepare(server):
    import psycopg

    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="ada", dbname="bowshot", autocommit=True) as connection:
        connection.execute(TABLE)


def answers(server):
    """Whether both doors still answer."""
    import psycopg
    import pymysql

    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="ada", dbname="bowshot") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="ada", database="main")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    connection.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    with servers.Server(arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]) as server:
        prepare(server)
        memory = server.metrics()["process_resident_memory_bytes"]
        failures = check(server, chosen.count, chosen.seed)
        answers(server)
        failures += leftovers(server)
        grown = server.metrics()["process_resident_memory_bytes"] - memory
    for failure in failures[:20]:
        print(failure)
    print(f"memory has grown by {grown / 2**20:.0f} MiB")
    print(f"{chosen.count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
