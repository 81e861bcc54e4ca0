"""`python isolation.py`: random transactions over three protocols, on servers that are killed, judged by `histories.py`.

A round is one history: its clients work on keys of its own through two servers over one data folder, each of which is killed. What a third
one finds is the end of the history, and must still be there in later rounds. Prints what it has found, and `N passed, N failed`."""

import argparse
import dataclasses
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading

from durable import Database
from histories import complaints
from random_transactions import LISTENERS, TABLES, WIRES, Lists, Worker, is_conflict
from server import BUSY_FACTOR, Server, wait_until

LIVES = 2
KEYS = 2
# Transactions that begin before a server is killed.
FEWEST, MOST = 20, 150
CUTS = 0.03
# Lists of so many earlier rounds are compared again; older ones are deleted.
COMPARED_ROUNDS = 5


class Failed(AssertionError):
    """A history that snapshot isolation does not explain, or a server that did not do what it was told."""


class Life:
    """The clients of one server, from its start until it is killed."""

    def __init__(self, server, lists, seed, name):
        self.server = server
        self.workers = [Worker(server, lists, seed, f"{name}.{number}", wire) for number, wire in enumerate(WIRES)]
        for worker in self.workers:
            worker.cuts = CUTS
        self.killed, self.errors = threading.Event(), []
        work = [*(worker.run for worker in self.workers), self.maintain]
        self.threads = [threading.Thread(target=self.watch, args=(one,), daemon=True) for one in work]
        for thread in self.threads:
            thread.start()

    def watch(self, work):
        try:
            work()
        except Exception as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    def maintain(self):
        """Rows that move from the catalog to files, and from file to file, are the same rows; so are those of old snapshots."""
        with Database(self.server) as db:
            while not self.killed.wait(0.1):
                for name in TABLES:
                    for sql in (f"OPTIMIZE t_{name}", f"VACUUM t_{name} RETAIN 0 HOURS"):
                        try:
                            db.run(sql)
                        except Exception as error:
                            if not is_conflict(error) and not self.killed.is_set():
                                raise

    def wait(self, transactions):
        """Until so many have begun, or something is wrong."""
        wait_until(
            lambda: self.errors or sum(len(worker.done) for worker in self.workers) >= transactions, f"{transactions} transactions", 120
        )

    def kill(self):
        """Kills the server, waits for the clients, and gives what was wrong."""
        # Errors from here on are the kill's; earlier ones are the server's own.
        for event in (self.killed, *(worker.stop for worker in self.workers)):
            event.set()
        ended = not self.server.alive()
        log = self.server.kill()
        for thread in self.threads:
            thread.join(60 * BUSY_FACTOR)
        hanging = sum(thread.is_alive() for thread in self.threads)
        found = [*self.errors, *(["the server ended by itself"] if ended else []), *([f"{hanging} clients hang"] if hanging else [])]
        return [*found, log[-5000:]] if found or "panicked" in log else []


class Run:
    def __init__(self, seed, first=0, quiet=False):
        self.seed, self.first, self.quiet = seed, first, quiet
        # Not pytest's: the folder of a failure is kept until somebody has looked at it.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"isolation-{seed}-"))
        self.counts = dict.fromkeys(("transactions", "committed", "serializable", "conflicts", "unknown"), 0)
        self.earlier, self.server = {}, None

    def start(self):
        self.server = Server(data=self.folder / "data", arguments=LISTENERS)

    def rounds(self, count):
        """Runs rounds, and gives how many transactions were committed."""
        self.start()
        try:
            with Database(self.server) as db:
                db.run(*Lists("t", []).create())
            for number in range(self.first, self.first + count):
                self.round(number)
        except Exception as error:
            if not isinstance(error, Failed) and not self.server.killed:
                ended = self.server.process.poll()
                error.add_note(f"the server ended with {ended}; kept: {self.folder}; its log:\n{self.server.log()[-5000:]}")
            raise
        finally:
            if not self.server.killed:
                self.server.kill()
        shutil.rmtree(self.folder)
        return self.counts["committed"]

    def round(self, number):
        rng = random.Random(f"{self.seed}/{number}")
        lists, workers, found = Lists("t", [number * KEYS + key for key in range(KEYS)]), [], []
        with Database(self.server) as db:
            db.run(*lists.fill())
        for life in range(LIVES):
            living = Life(self.server, lists, self.seed, f"r{number}.{life}")
            living.wait(rng.randrange(FEWEST, MOST))
            found += living.kill()
            workers += living.workers
            self.start()
        done = [transaction for worker in workers for transaction in worker.done]
        with Database(self.server) as db:
            self.earlier[number] = lists, lists.read(db.rows)
            for before, (others, final) in self.earlier.items():
                if others.read(db.rows) != final:
                    found.append(f"lists of round {before} have changed since")
            if len(self.earlier) > COMPARED_ROUNDS:
                old, _ = self.earlier.pop(min(self.earlier))
                db.run(*(f"DELETE FROM t_{name} WHERE k IN ({', '.join(map(str, old.keys))})" for name in TABLES))
        unknown = sum(worker.unknown for worker in workers)
        found += complaints(done, self.earlier[number][1])
        self.count(done, workers, unknown)
        if found:
            self.fail(number, done, found)

    def count(self, done, workers, unknown):
        self.counts["transactions"] += len(done)
        self.counts["committed"] += sum(transaction.committed for transaction in done)
        self.counts["serializable"] += sum(transaction.committed and transaction.serializable for transaction in done)
        self.counts["conflicts"] += sum(worker.conflicts for worker in workers)
        self.counts["unknown"] += unknown
        if not self.quiet:
            print(self.counts, file=sys.stderr, flush=True)

    def fail(self, number, done, found):
        history = self.folder / "history.jsonl"
        lines = (json.dumps(dataclasses.asdict(one), default=lambda value: sorted(map(str, value))) for one in done)
        history.write_text("".join(f"{line}\n" for line in lines))
        what = "\n  ".join(found[:20])
        raise Failed(
            f"round {number} of seed {self.seed}:\n  {what}\nkept: {self.folder} (data, history.jsonl)\n"
            f"again: python isolation.py --seed {self.seed} --first {number} --rounds 1"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="the round to begin with, to see a failure again")
    given = parser.parse_args()
    run = Run(given.seed, given.first)
    print(f"seed {given.seed}, folder {run.folder}", file=sys.stderr, flush=True)
    try:
        run.rounds(given.rounds)
    except Failed as failure:
        print(failure)
        print("0 passed, 1 failed")
        return 1
    counts = ", ".join(f"{count} {name}" for name, count in run.counts.items())
    print(f"{given.rounds} rounds of seed {given.seed}: {counts}")
    print(f"{given.rounds} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
