"""Mutated conversations in PostgreSQL's and MySQL's protocols: `hostile_wires.py [--count N] [--seed N]`.

The conversations are those below, of which each message is known, and those of real clients (wire_recordings.py). A few of
their bytes, lengths, messages or turns are changed, and they are sent at once, turn by turn, in small pieces, or up to where
the client goes away; to a server that takes everybody and to one that wants passwords, which are wrong. Whatever a server
makes of it, it has to answer or to end the connection soon, and nothing of it may be left behind: no query, no session, no
connection, no file handle, no thread that has panicked.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import socket
import struct
import sys
import tempfile
import time

import server as servers
import wire_recordings

SECONDS = 20.0 * servers.BUSY_FACTOR
WORKERS = 8
TABLE = "CREATE TABLE wires (a INT, b TEXT)"
# How the bytes of a conversation come, and how often.
DELIVERIES = {"at once": 50, "turn by turn": 25, "in pieces": 5, "gone in the middle": 12, "silent": 8}
PIECES = 200
PIECE_PAUSE = 0.0005
# What one that says nothing more waits for.
SILENCE = 0.02
# File handles and threads that a server opens once, for the first of a kind.
SLACK = 16


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


def length_places(data, is_mysql):
    """Where the lengths of the messages begin, as far as they can be told."""
    places, at = [], 0
    if not is_mysql and data[:2] == b"\0\0":
        places.append(0)
        at = int.from_bytes(data[:4], "big")
    while at < len(data) - 4:
        places.append(at if is_mysql else at + 1)
        at += int.from_bytes(data[at : at + 3], "little") + 4 if is_mysql else int.from_bytes(data[at + 1 : at + 5], "big") + 1
    return places


def with_other_length(data, chance, is_mysql):
    """One length says another number than there are bytes."""
    places = length_places(data, is_mysql)
    if not places:
        return data
    at = chance.choice(places)
    size, order = (3, "little") if is_mysql else (4, "big")
    told = int.from_bytes(data[at : at + size], order)
    number = chance.choice((0, 1, 3, 4, told - 1, told + 1, told * 2, 65536, 0xFFFFFF, 2**31 - 1, 2**32 - 1))
    return data[:at] + (number % 256**size).to_bytes(size, order) + data[at + size :]


def with_other_bytes(data, chance):
    data = bytearray(data)
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
    return bytes(data)


def mutated(turns, chance, is_mysql):
    """The turns of a conversation with some changes."""
    turns = list(turns)
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(turns))
        match chance.randrange(4):
            case 0:
                turns.insert(at, chance.choice(turns))
            case 1:
                del turns[at]
            case 2:
                other = chance.randrange(len(turns))
                turns[at], turns[other] = turns[other], turns[at]
            case 3:
                turns[at] = turns[at][: chance.randrange(len(turns[at]) + 1)]
        if not turns:
            return []
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = chance.randrange(len(turns))
        if turns[at] and chance.random() < 0.3:
            turns[at] = with_other_length(turns[at], chance, is_mysql)
        elif turns[at]:
            turns[at] = with_other_bytes(turns[at], chance)
    return turns


def read_some(client, seconds):
    """Reads until nothing comes for so long; False at the end of the connection."""
    client.settimeout(seconds)
    try:
        while client.recv(65536):
            pass
        return False
    except TimeoutError:
        return True
    finally:
        client.settimeout(SECONDS)


def deliver(client, turns, how, chance):
    """Sends a conversation; True if the client waits for its end then."""
    data = b"".join(turns)
    if how == "turn by turn":
        for turn in turns:
            client.sendall(turn)
            if not read_some(client, SILENCE / 4):
                break
    elif how == "in pieces":
        at = 0
        for _ in range(PIECES):
            piece = data[at : at + chance.randrange(1, 8)]
            client.sendall(piece)
            at += len(piece)
            time.sleep(PIECE_PAUSE)
        client.sendall(data[at:])
    elif how == "gone in the middle":
        client.sendall(data[: chance.randrange(len(data) + 1)])
        if chance.random() < 0.5:
            # Without a farewell.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    else:
        client.sendall(data)
        if how == "silent":
            read_some(client, SILENCE)
            return False
    client.shutdown(socket.SHUT_WR)
    return True


def talk(port, turns, how, chance, reads_first):
    """One conversation. Raises TimeoutError if the server does not end what its client has ended."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        try:
            if reads_first:
                client.recv(4096)
            waits = deliver(client, turns, how, chance)
        except TimeoutError:
            raise
        except OSError:
            return  # the server has ended it before all was sent
        with contextlib.suppress(ConnectionError):
            while waits and client.recv(65536):
                pass


class Wires:
    """Both servers with their conversations."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._running = contextlib.ExitStack()

    def __enter__(self):
        rows = self._folder / "rows.csv"
        rows.write_text("1,a\n2,b\n")
        users = servers.users_file(self._folder, {"ada": "another"})
        doors = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--set", "limits.statement_timeout=10s"]
        with contextlib.ExitStack() as running:
            self.open = running.enter_context(servers.Server(arguments=doors))
            self.locked = running.enter_context(servers.Server(arguments=[*doors, "--users-file", users]))
            self.servers = [self.open, self.locked]
            prepare(self.open)
            recorded = wire_recordings.record(self.open, rows)
            self.conversations = [POSTGRES + recorded["postgres"], MYSQL + recorded["mysql"]]
            self._running = running.pop_all()
        return self

    def __exit__(self, *error):
        return self._running.__exit__(*error)

    def run(self, count, seed, first=0):
        """Runs conversations; gives what was left hanging, and how many were of each kind."""
        kinds = collections.Counter()

        def one(number):
            chance = random.Random(seed * 1_000_003 + number)
            is_mysql = number % 2 == 1
            server = chance.choices(self.servers, (85, 15))[0]
            turns = mutated(chance.choice(self.conversations[is_mysql]), chance, is_mysql)
            how = chance.choices(list(DELIVERIES), DELIVERIES.values())[0]
            name = "mysql" if is_mysql else "postgres"
            port = server.mysql_port if is_mysql else server.pg_port
            kinds[name, how] += 1
            try:
                talk(port, turns, how, chance, is_mysql)
            except TimeoutError:
                return f"{name} {number}: no end after {SECONDS} s, {how}: {b''.join(turns)[:2000]!r}"
            return None

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            failures = [failure for failure in pool.map(one, range(first, first + count)) if failure]
        return failures, kinds

    def held(self):
        """File handles, threads and bytes of memory of both servers."""
        return [
            (len(os.listdir(f"/proc/{server.process.pid}/fd")), len(os.listdir(f"/proc/{server.process.pid}/task")), memory(server))
            for server in self.servers
        ]

    def check(self, count, seed):
        """Runs conversations and gives all that is wrong then, with the counts, and the MiB by which memory has grown."""
        # The first ones open what stays open.
        failures, kinds = self.run(min(count // 4, 2_000), seed)
        failures += self.leftovers()
        before = self.held()
        more, others = self.run(count - kinds.total(), seed, first=kinds.total())
        failures += more + self.leftovers()
        answers(self.open)
        after = self.held()
        for name, was, now in zip(("open", "locked"), before, after, strict=True):
            if now[0] > was[0] + SLACK or now[1] > was[1] + SLACK:
                failures.append(f"{name}: file handles {was[0]} before, {now[0]} after; threads {was[1]} and {now[1]}")
        return failures, kinds + others, [(now[2] - was[2]) / 2**20 for was, now in zip(before, after, strict=True)]

    def leftovers(self):
        return [line for server in self.servers for line in leftovers(server)]


def memory(server):
    return server.metrics()["process_resident_memory_bytes"]


def leftovers(server):
    """What is still there of connections, once the server has had its time."""

    def nothing():
        samples = server.metrics()
        names = ("bowshot_postgres_connections", "bowshot_mysql_connections", "bowshot_sessions", "bowshot_open_transactions")
        held = {name: samples[name] for name in names if samples.get(name)}
        return None if held else True

    assert server.alive(), server.log()[-5000:]
    servers.wait_until(nothing, "no connection, session or transaction is left", 30)
    server.wait_idle(30)
    log = server.log()
    return [line for line in log.splitlines() if "panicked" in line or "internal error" in line]


def prepare(server):
    import psycopg

    with psycopg.connect(**server.postgres(autocommit=True)) as connection:
        connection.execute(TABLE)


def answers(server):
    """Whether both doors still answer."""
    import psycopg
    import pymysql

    with psycopg.connect(**server.postgres()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    connection = pymysql.connect(**server.mysql())
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    connection.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bowshot-wires-") as folder, Wires(folder) as wires:
        failures, kinds, grown = wires.check(chosen.count, chosen.seed)
        recorded = [len(of) for of in wires.conversations]
    for failure in failures[:20]:
        print(failure)
    for (name, how), count in sorted(kinds.items()):
        print(f"{name:10} {how:20} {count:7}")
    print(f"of {recorded[0]} conversations of PostgreSQL's clients and {recorded[1]} of MySQL's, in {time.monotonic() - begun:.0f} s")
    print(f"memory has grown by {grown[0]:.0f} MiB, and by {grown[1]:.0f} MiB where everybody is refused")
    print(f"{chosen.count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
