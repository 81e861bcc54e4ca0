"""The threads of one round: writers, a reader and one that tidies up, from the first statement to the kill."""

import contextlib
import itertools
import random
import threading

from server import BUSY_FACTOR

from . import load
from .load import Client, Gone

# Kind of thing that a thread looks after, what it does, and whether its connection commits by itself.
WRITERS = [
    ("batch", load.ingest, True),
    ("batch", load.ingest, True),
    ("single", load.singles, True),
    ("single", load.singles, True),
    ("counter", load.count, True),
    ("counter", load.count, True),
    ("transfer", load.transfer, True),
    ("transfer", load.transfer, False),
    ("table", load.short_lived, True),
]
# More than a thread writes in one round.
NUMBERS_OF_A_THREAD = 100_000
SUMS = (
    "SELECT (SELECT sum(amount) FROM left_accounts), (SELECT sum(amount) FROM right_accounts), "
    "(SELECT coalesce(sum(amount), 0) FROM transfers)"
)
PARTIAL = (
    "SELECT batch, count(*), count(DISTINCT position), max(position) FROM ingested GROUP BY batch "
    "HAVING count(*) <> max(position) + 1 OR count(DISTINCT position) <> count(*) OR count(DISTINCT payload) <> 1"
)


def sums_complaint(row):
    left, right, moved = row
    whole = load.ACCOUNTS * load.START
    return None if (left, right) == (whole - moved, whole + moved) else f"left {left}, right {right}, transferred {moved}"


def read(client, rng, number, owned):
    """What a reader sees while others write: no transfer by half, no batch by half."""
    while not client.killed.is_set():
        try:
            (row,) = client.rows(SUMS)
            partial = client.rows(PARTIAL)
        except Exception as error:
            client.look(error, "a reader failed")
        if complaint := sums_complaint(row):
            client.ledger.complain(f"a reader saw half of a transfer: {complaint}")
        if partial:
            client.ledger.complain(f"a reader saw half of a batch: {partial}")


def tidy(client, rng, number, owned):
    """OPTIMIZE and VACUUM, which change no row."""
    while not client.killed.is_set():
        table = rng.choice(list(load.TABLES))
        sql = rng.choice([f"OPTIMIZE {table}", f"OPTIMIZE {table}", f"VACUUM {table} RETAIN 0 HOURS"])
        client.ledger.note(event="sent", what=sql)
        try:
            client.run(sql)
        except Exception as error:
            if not load.is_conflict(error):
                client.look(error, sql)
        client.killed.wait(rng.uniform(0.02, 0.3))


class Load:
    """Starts every thread; `end` waits until all have seen that the server is gone."""

    def __init__(self, server, ledger, seed, round_number, tidying=True):
        self.ledger, self.killed = ledger, threading.Event()
        self.threads = []
        roles = [*WRITERS, ("", read, True), *([("", tidy, True)] if tidying else [])]
        ready = threading.Barrier(len(roles) + 1)
        first = round_number * len(roles)
        for index, (kind, role, autocommit) in enumerate(roles):
            alike = [place for place, (other, _, _) in enumerate(roles) if other == kind]
            name = f"{role.__name__}-{index}"
            rng = random.Random(f"{seed}/{round_number}/{name}")
            number = itertools.count((first + index) * NUMBERS_OF_A_THREAD)
            owned = load.inherited(ledger, kind, alike.index(index), len(alike))
            arguments = (server, name, autocommit, role, rng, number, owned, ready)
            self.threads.append(threading.Thread(target=self._run, args=arguments, name=name, daemon=True))
        for thread in self.threads:
            thread.start()
        # Broken by a thread that could not connect; it has said so in the ledger.
        with contextlib.suppress(threading.BrokenBarrierError):
            ready.wait(60)

    def _run(self, server, name, autocommit, role, rng, number, owned, ready):
        client = None
        try:
            client = Client(server, name, self.ledger, self.killed, autocommit)
            client.rows("SELECT 1")
            ready.wait(60)
            role(client, rng, number, owned)
        except (Gone, threading.BrokenBarrierError):
            pass
        except Exception as error:
            ready.abort()
            # What is not a write, such as a rollback or another connection, fails with the server and means nothing.
            if not self.killed.is_set():
                self.ledger.complain(f"{name} ended: {type(error).__name__}: {error}")
        finally:
            if client is not None:
                client.close()

    def end(self, seconds=30 * BUSY_FACTOR):
        for thread in self.threads:
            thread.join(seconds)
            if thread.is_alive():
                self.ledger.complain(f"{thread.name} still waits {seconds:g} s after the server was killed")
