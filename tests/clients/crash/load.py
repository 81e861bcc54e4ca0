"""The load: what client threads do until the server under them is killed. Every choice comes from the thread's own random
numbers, so that a seed gives the same statements; only how far each thread gets is left to the clock."""

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa

from durable import Database, cursor_of

from .ledger import ABSENT

ACCOUNTS = 8
START = 1_000_000
COUNTERS = 4
# The counter that several threads raise at once.
SHARED = 0
# At most so many for each thread, so that a long run has about as much at its end as in its middle.
BATCHES_KEPT = 15
SINGLES_KEPT = 300
SHORT_KINDS = ("empty", "filled", "renamed", "pair", "memory", "temporary", "rolled back")

TABLES = {
    "ingested": "(batch BIGINT NOT NULL, position BIGINT NOT NULL, payload VARCHAR)",
    "singles": "(id BIGINT NOT NULL, thread VARCHAR, amount DECIMAL(12, 2), moment TIMESTAMP)",
    "counters": "(id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
    "left_accounts": "(id BIGINT NOT NULL, amount BIGINT NOT NULL)",
    "right_accounts": "(id BIGINT NOT NULL, amount BIGINT NOT NULL)",
    "transfers": "(id BIGINT NOT NULL, amount BIGINT NOT NULL)",
}


class Gone(Exception):
    """The server was killed; the thread ends."""


class Client(Database):
    """One connection of one thread; writes what it does into the ledger."""

    def __init__(self, server, name, ledger, killed, autocommit=True):
        self.name, self.ledger, self.killed = name, ledger, killed
        self.open = lambda: dbapi.connect(server.grpc_tcp, autocommit=autocommit)
        self.connection = self.open()

    def reconnect(self):
        self.close()
        self.connection = self.open()

    def write(self, key, what, change, action):
        """Does `action`, which changes the thing `key` from a state to `change(state)`. True if it was acknowledged,
        False if another writer was first."""
        self.ledger.sent(key, what)
        try:
            action()
        except Exception as error:
            return self._failed(key, what, change, error)
        self.ledger.acknowledged(key, change)
        return True

    def _failed(self, key, what, change, error):
        if is_conflict(error):
            self.ledger.refused(key, str(error))
            return False
        self.ledger.unknown(key, change)
        self.look(error, what)

    def look(self, error, what):
        """Errors belong to a server that is gone; any other is worth a complaint."""
        if not self.killed.is_set():
            self.ledger.complain(f"{self.name}: {what}: {error}")
        raise Gone from error


def is_conflict(error):
    text = str(error)
    return any(word in text for word in ("by another transaction", "conflicted with other writers", "deadlock detected"))


def inherited(ledger, kind, index, of):
    """Things of earlier rounds that this one of some threads looks after."""
    keys = [key for key, states in ledger.states(kind).items() if states != {ABSENT}]
    return [key for place, key in enumerate(keys) if place % of == index]


def make_tables(server, ledger):
    """The tables that live through all rounds."""
    with dbapi.connect(server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        for name, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {name} {columns}")
        for side in ("left", "right"):
            rows = ", ".join(f"({account}, {START})" for account in range(ACCOUNTS))
            cursor.execute(f"INSERT INTO {side}_accounts VALUES {rows}")
        cursor.execute("INSERT INTO counters VALUES " + ", ".join(f"({number}, 0)" for number in range(COUNTERS)))
    for number in range(COUNTERS):
        ledger.add(("counter", number), 0)


def ingest(client, rng, number, owned):
    """Bulk ingest of whole batches, and deletes of old ones."""
    while not client.killed.is_set():
        batch, count = next(number), rng.choice([1, 50, 3_000, 20_000, 100_000])
        key = ("batch", batch)
        client.ledger.add(key)
        rows = pa.table({
            "batch": pa.array([batch], pa.int64()).take(pa.array([0] * count)),
            "position": pa.array(range(count), pa.int64()),
            "payload": pa.array([f"{batch}:{rng.random()}"]).take(pa.array([0] * count)),
        })

        def send():
            with cursor_of(client.connection) as cursor:
                told = cursor.adbc_ingest("ingested", rows, mode="append")
            assert told == count, f"the server took {told} of {count} rows"

        if client.write(key, f"ingest {count}", lambda _, count=count: count, send):
            owned.append(key)
        if len(owned) > BATCHES_KEPT or owned and rng.random() < 0.3:
            key = owned.pop(rng.randrange(len(owned)))
            sql = f"DELETE FROM ingested WHERE batch = {key[1]}"
            client.write(key, sql, lambda _: ABSENT, lambda: client.run(sql))


def singles(client, rng, number, owned):
    """Rows one by one; some are deleted again, some changed."""
    while not client.killed.is_set():
        kind = rng.random()
        if not owned or kind < 0.7 and len(owned) < SINGLES_KEPT:
            key = ("single", next(number))
            client.ledger.add(key)
            sql = f"INSERT INTO singles VALUES ({key[1]}, '{client.name}', 0.01, TIMESTAMP '2026-01-02 03:04:05')"
            change = lambda _: (1, 1)
            owned.append(key)
        else:
            key = rng.choice(owned)
            if kind < 0.85:
                sql = f"DELETE FROM singles WHERE id = {key[1]}"
                change = lambda _: ABSENT
                owned.remove(key)
            else:
                sql = f"UPDATE singles SET amount = amount + 0.01 WHERE id = {key[1]}"
                change = lambda state: (1, state[1] + 1) if state else ABSENT
        client.write(key, sql, change, lambda: client.run(sql))


def count(client, rng, number, owned):
    """Raises a counter of its own and one that others raise too."""
    own = 1 + int(client.name.rsplit("-", 1)[1]) % (COUNTERS - 1)
    while not client.killed.is_set():
        counter = rng.choice([own, SHARED])
        sql = f"UPDATE counters SET n = n + 1 WHERE id = {counter}"
        client.write(("counter", counter), sql, lambda n: n + 1, lambda: client.run(sql))


def transfer(client, rng, number, owned):
    """Moves money between two tables and writes it down in a third, in one transaction: SQL text or the driver's."""
    with_text = client.connection._autocommit
    while not client.killed.is_set():
        key, amount = ("transfer", next(number)), rng.randrange(1, 100)
        client.ledger.add(key)
        statements = [
            f"UPDATE left_accounts SET amount = amount - {amount} WHERE id = {rng.randrange(ACCOUNTS)}",
            f"UPDATE right_accounts SET amount = amount + {amount} WHERE id = {rng.randrange(ACCOUNTS)}",
            f"INSERT INTO transfers VALUES ({key[1]}, {amount})",
        ]
        rng.shuffle(statements)
        gives_up = rng.random() < 0.1
        try:
            if with_text:
                client.run("BEGIN")
            for sql in statements:
                client.run(sql)
            if gives_up:
                client.run("ROLLBACK") if with_text else client.connection.rollback()
                continue
        except Exception as error:
            if not is_conflict(error):
                client.look(error, f"transfer {key[1]}")
            client.ledger.refused(key, str(error))
            client.run("ROLLBACK") if with_text else client.connection.rollback()
            continue
        commit = (lambda: client.run("COMMIT")) if with_text else client.connection.commit
        if not client.write(key, f"commit of {amount}", lambda _, amount=amount: amount, commit) and not with_text:
            # The driver has no transaction after a commit that failed.
            client.reconnect()


def short_lived(client, rng, number, owned):
    """Makes tables and drops them again."""
    while not client.killed.is_set():
        name, kind = f"short_{next(number)}", rng.choice(SHORT_KINDS)
        count = rng.choice([1, 10, 30_000])
        rows = f"AS SELECT value AS x, 'row ' || value AS y FROM generate_series(1, {count}) AS s(value)"
        steps = {
            "empty": [(f"CREATE TABLE {name} (x BIGINT)", 0), (f"INSERT INTO {name} VALUES (1), (2)", 2)],
            "filled": [(f"CREATE TABLE {name} {rows}", count), (f"DELETE FROM {name} WHERE x > 5", min(count, 5))],
            "renamed": [(f"CREATE TABLE {name}_old {rows}", "old"), (f"ALTER TABLE {name}_old RENAME TO {name}", count)],
            "pair": [(f"CREATE TABLE {name} {rows}; CREATE TABLE {name}_b AS SELECT * FROM {name}", "pair")],
            "memory": [(f"CREATE TABLE {name} (x BIGINT) WITH (storage = 'memory')", ABSENT)],
            "temporary": [(f"CREATE TEMPORARY TABLE {name} (x BIGINT)", ABSENT)],
            "rolled back": [(f"CREATE TABLE {name} {rows}; CREATE TABLE {name}_b (x BIGINT)", ABSENT)],
        }[kind]
        key = ("table", name)
        client.ledger.add(key)
        for sql, after in steps:
            if kind in ("pair", "rolled back"):
                end = "COMMIT" if kind == "pair" else "ROLLBACK"
                action = lambda: [client.run(part) for part in ["BEGIN", *sql.split("; "), end]]
                after = (count, count) if kind == "pair" else ABSENT
            else:
                action = lambda: client.run(sql)
                after = ("old", count) if after == "old" else after
            if not client.write(key, sql, lambda _: after, action):
                break
        if kind in ("memory", "temporary"):
            client.write(key, "drop it", lambda _: ABSENT, lambda: client.run(f"DROP TABLE {name}"))
        if client.ledger.only(key) is not ABSENT:
            owned.append(key)
        if len(owned) > 6 or owned and rng.random() < 0.5:
            drop(client, owned.pop(rng.randrange(len(owned))))


def drop(client, key):
    """Drops what stands under a name: a table, the same with its other name, or a pair at once."""
    name, state = key[1], client.ledger.only(key)
    statements = [f"DROP TABLE {name}"]
    if isinstance(state, tuple):
        old = state[0] == "old"
        statements = [f"DROP TABLE {name}_old"] if old else ["BEGIN", f"DROP TABLE {name}", f"DROP TABLE {name}_b", "COMMIT"]
    client.write(key, statements, lambda _: ABSENT, lambda: [client.run(sql) for sql in statements])
