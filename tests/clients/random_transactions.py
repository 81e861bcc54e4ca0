"""Random transactions over Flight SQL, PostgreSQL's protocol and MySQL's at once, written down for `histories.py`: appends and reads on a
few keys, savepoints, rollbacks, connections that are cut. `python isolation.py` runs many, on servers that are killed."""

import contextlib
import random
import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import psycopg
import pymysql

from relay import Relay
from durable import Database, let_go
from histories import Rows, Transaction

LISTENERS = ("--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0")
# There are few rows, so that their writers conflict. An append makes a text longer, or adds a row.
LISTS, ROWS = ("one", "two", "three"), "rows"
TABLES = {**{name: "(k BIGINT, items VARCHAR)" for name in LISTS}, ROWS: "(k BIGINT, items VARCHAR)"}
SERIALIZABLE, SNAPSHOT = "ISOLATION LEVEL SERIALIZABLE", "ISOLATION LEVEL REPEATABLE READ"


def is_conflict(error):
    words = ("by another transaction", "conflicted with other writers", "could not serialize access", "deadlock detected")
    return any(word in str(error) for word in words)


class Wire:
    """One connection, through a proxy that can cut it; transactions are SQL text."""

    commits_alone = True

    def __init__(self, server):
        self.proxy = Relay(self.port_of(server))
        self.connection, self.was_cut = None, False
        self.connect()

    def connect(self):
        if self.connection:
            let_go(self.connection)
        self.connection, self.was_cut = self.open(), False

    def cut(self):
        self.was_cut = True
        self.proxy.cut()

    def close(self):
        if self.connection:
            let_go(self.connection)
        self.proxy.close()

    def begin(self, serializable):
        self.run(f"BEGIN {SERIALIZABLE if serializable else SNAPSHOT}")

    def commit(self):
        self.run("COMMIT")

    def rollback(self):
        self.run("ROLLBACK")

    def run(self, sql):
        with contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(sql)

    def rows(self, sql):
        with contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(sql)
            return cursor.fetchall()


class Flight(Wire):
    run, rows = Database.run, Database.rows

    @staticmethod
    def port_of(server):
        return server.port

    def open(self):
        return dbapi.connect(f"grpc+tcp://127.0.0.1:{self.proxy.port}", autocommit=self.commits_alone)


class FlightDriver(Flight):
    """Transactions of the driver."""

    commits_alone = False

    def begin(self, serializable):
        if serializable:
            self.run(f"SET TRANSACTION {SERIALIZABLE}")

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()


class Postgres(Wire):
    @staticmethod
    def port_of(server):
        return server.pg_port

    def open(self):
        address = {"host": "127.0.0.1", "port": self.proxy.port, "user": "ada", "dbname": "bowshot"}
        return psycopg.connect(**address, autocommit=True)


class MySql(Wire):
    @staticmethod
    def port_of(server):
        return server.mysql_port

    def open(self):
        return pymysql.connect(host="127.0.0.1", port=self.proxy.port, user="ada", database="main", autocommit=True)

    def begin(self, serializable):
        if serializable:
            self.run(f"SET TRANSACTION {SERIALIZABLE}")
        self.run("START TRANSACTION")


WIRES = (Flight, FlightDriver, Postgres, MySql, Postgres, MySql)


class Lists:
    """The lists of one history: some keys of each table."""

    def __init__(self, prefix, keys):
        self.prefix, self.keys = prefix, keys

    def create(self):
        return [f"CREATE TABLE {self.prefix}_{name} {columns}" for name, columns in TABLES.items()]

    def fill(self):
        values = ", ".join(f"({key}, '')" for key in self.keys)
        return [f"INSERT INTO {self.prefix}_{name} VALUES {values}" for name in LISTS]

    def append(self, name, key, element):
        table = f"{self.prefix}_{name}"
        if name == ROWS:
            return f"INSERT INTO {table} VALUES ({key}, '{element}')"
        return f"UPDATE {table} SET items = concat(items, ' {element}') WHERE k = {key}"

    def read(self, rows, names=(*LISTS, ROWS), keys=None):
        """Keys and lists of some tables; `rows` runs a query."""
        keys = keys or self.keys
        sql = " UNION ALL ".join(
            f"SELECT '{name}', k, items FROM {self.prefix}_{name} WHERE k IN ({', '.join(map(str, keys))})" for name in names
        )
        found = {(name, key): [] for name in names for key in keys}
        for name, key, items in rows(sql):
            found[name, key].append(items)
        return {of: self.elements(of, items) for of, items in found.items()}

    @staticmethod
    def elements(of, items):
        if of[0] == ROWS:
            return Rows(items)
        assert len(items) == 1, f"{of} is there {len(items)} times"
        return tuple(items[0].split())


class Worker:
    """One connection that runs random transactions and writes them down, until `stop` is set or it has run enough."""

    # How often a client loses its connection, and how often at the commit.
    cuts = 0.0

    def __init__(self, server, lists, seed, name, wire):
        self.lists, self.name = lists, name
        self.random = random.Random(f"{seed}/{name}")
        self.wire = wire(server)
        self.done, self.conflicts, self.unknown = [], 0, 0
        self.stop = threading.Event()

    def run(self, transactions=10**9):
        try:
            for number in range(transactions):
                if self.stop.is_set():
                    break
                self.transaction(number)
                if self.wire.was_cut:
                    self.reconnect()
        finally:
            self.wire.close()

    def reconnect(self):
        try:
            self.wire.connect()
        except Exception:
            if not self.stop.is_set():
                raise

    def transaction(self, number):
        log = Transaction(f"{self.name}.{number}", began=time.monotonic())
        # At once: what a server that is killed leaves open is history, too.
        self.done.append(log)
        if self.wire.commits_alone and self.random.random() < 0.2:
            log.committed = self.outcome(lambda: self.step(log))
        else:
            log.serializable = self.random.random() < 0.4
            # A store may see before the end that a transaction cannot be committed any more.
            good = self.outcome(lambda: self.steps(log))
            log.committed = False if good is None else self.end(good)
        self.unknown += log.committed is None
        if log.committed is not None:
            log.ended = time.monotonic()

    def outcome(self, action):
        """True if the server did it, False if another writer was first, None if the connection ended before the answer."""
        try:
            action()
        except AssertionError:
            raise
        except Exception as error:
            if self.wire.was_cut or self.stop.is_set():
                return None
            if not is_conflict(error):
                raise
            self.conflicts += 1
            return False
        return True

    def steps(self, log):
        self.wire.begin(log.serializable)
        for _ in range(self.random.randrange(1, 5)):
            if self.random.random() < self.cuts:
                self.wire.cut()
            if self.random.random() < 0.2:
                self.savepoint(log)
            else:
                self.step(log)

    def savepoint(self, log):
        self.wire.run("SAVEPOINT here")
        length = len(log.steps)
        for _ in range(self.random.randrange(1, 3)):
            self.step(log)
        if self.random.random() < 0.3:
            self.wire.run("RELEASE SAVEPOINT here")
            return
        self.wire.run("ROLLBACK TO SAVEPOINT here")
        log.undo(length)

    def step(self, log):
        choice, name = self.random.random(), self.random.choice([*LISTS, ROWS])
        key = self.random.choice(self.lists.keys)
        if choice < 0.45:
            element = f"{log.name}.{len(log.steps)}"
            log.append((name, key), element)
            self.wire.run(self.lists.append(name, key, element))
            return
        found = self.lists.read(self.wire.rows, [name], [key]) if choice < 0.75 else self.lists.read(self.wire.rows)
        for of, elements in found.items():
            log.read(of, elements)

    def end(self, good):
        commit = good and self.random.random() < 0.8
        cutter = threading.Timer(self.random.random() * 0.005, self.wire.cut) if self.random.random() < self.cuts else None
        if cutter:
            cutter.start()
        kept = self.outcome(self.wire.commit if commit else self.wire.rollback)
        if cutter:
            cutter.join()
        if kept is False and isinstance(self.wire, FlightDriver):
            # The driver has no transaction after a commit that failed.
            self.reconnect()
        return kept if commit else False
