"""`python backups.py`: backups of a server under load, each restored, served and held against what the writers know.

What they know is proof in two ways. A serial writer puts the numbers 0, 1, 2, … into three tables in turn, each when the one
before was acknowledged: of one moment, all tables together have a beginning of that row of numbers without a gap, which has
everything that was acknowledged before the backup began. And every thing that the other threads change (see `crash/`) is in one
of the states that it may have had between the beginning and the end of the backup, transfers never by half.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

from crash.check import Check
from crash.ledger import ABSENT, Ledger
from crash.load import make_tables
from crash.threads import Load
from durable import Database
from program import backup, restore, verify
from server import Server, wait_until

SERIES = 3


class WindowLedger(Ledger):
    """A ledger that, between two moments, remembers every state that each thing may have had."""

    def __init__(self, path):
        super().__init__(path)
        self.window = None
        self.in_flight = {}

    def sent(self, key, what):
        super().sent(key, what)
        with self.lock:
            self.in_flight[threading.get_ident()] = time.monotonic()

    def _change(self, key, event, onto):
        super()._change(key, event, onto)
        with self.lock:
            self.in_flight.pop(threading.get_ident(), None)
            if self.window is not None:
                self.window.setdefault(key, {ABSENT}).update(self.possible[key])

    def refused(self, key, why):
        super().refused(key, why)
        with self.lock:
            self.in_flight.pop(threading.get_ident(), None)

    def open(self):
        with self.lock:
            self.window = {key: set(states) for key, states in self.possible.items()}

    def shut(self):
        """The states of the window. What was sent within it and is not answered yet is waited for: it may be in the backup."""
        end = time.monotonic()
        wait_until(lambda: not self._answers_missing(end), "answers of statements of the window", 60)
        with self.lock:
            window, self.window = self.window, None
            return window

    def _answers_missing(self, end):
        with self.lock:
            return any(began <= end for began in self.in_flight.values())


class Window:
    """What `Check` asks of a ledger, for the states of a window."""

    def __init__(self, states):
        self.states = states

    def settle(self, kind, found):
        complaints = []
        for key, states in self.states.items():
            if key[0] == kind and found.get(key, ABSENT) not in states:
                expected = " or ".join(map(repr, sorted(states, key=repr)))
                complaints.append(f"{key} is {found.get(key, ABSENT)!r}, not {expected}")
        complaints += [f"{key} is {found[key]!r}, and nobody wrote it" for key in found.keys() - self.states.keys()]
        return complaints


class Serial(threading.Thread):
    """Writes 0, 1, 2, … into the tables in turn, one after the other."""

    def __init__(self, server, ended):
        super().__init__(daemon=True)
        self.database, self.ended = Database(server), ended
        for series in range(SERIES):
            self.database.run(f"CREATE TABLE serial_{series} (n BIGINT NOT NULL)")
        self.acknowledged, self.trouble = 0, None

    def run(self):
        try:
            while not self.ended.is_set():
                self.database.run(f"INSERT INTO serial_{self.acknowledged % SERIES} VALUES ({self.acknowledged})")
                self.acknowledged += 1
        except Exception as error:
            self.trouble = None if self.ended.is_set() else error
        finally:
            self.database.close()


def serial_complaints(server, least, most):
    """Whether the tables have the numbers of one moment between two others."""
    tables = " UNION ALL ".join(f"SELECT n FROM serial_{series}" for series in range(SERIES))
    with Database(server) as database:
        ((count, distinct, last),) = database.rows(f"SELECT count(*), count(DISTINCT n), coalesce(max(n) + 1, 0) FROM ({tables})")
    if not count == distinct == last:
        return [f"the serial writer: {count} numbers, {distinct} different ones, the last is {last - 1}: not of one moment"]
    if not least <= last <= most:
        return [f"the serial writer: {last} numbers, {least} were acknowledged before, {most} were sent until the end"]
    return []


class Failed(AssertionError):
    pass


class Rounds:
    def __init__(self, folder, seed, rounds):
        self.folder, self.seed, self.count = folder, seed, rounds
        self.data, self.previous = folder / "data", None
        self.rng = random.Random(seed)
        self.bytes = self.shared = 0

    def run(self, say=lambda text: None):
        ledger = WindowLedger(self.folder / "journal.jsonl")
        with Server(data=self.data) as server:
            make_tables(server, ledger)
            ended = threading.Event()
            serial = Serial(server, ended)
            serial.start()
            # Its threads make no table of the serial writer's, and end like it.
            working = Load(server, ledger, self.seed, 0)
            try:
                for number in range(self.count):
                    time.sleep(self.rng.uniform(0.0, 0.5))
                    self.round(number, ledger, serial)
                    say(f"round {number}: {serial.acknowledged} numbers, {ledger.counts['acknowledged']} acknowledged, "
                        f"{self.bytes >> 20} MiB backed up, {self.shared >> 20} MiB of them shared")  # fmt: skip
            finally:
                ended.set()
                working.killed.set()
                working.end()
                serial.join(30)
        if ledger.complaints or serial.trouble:
            raise Failed(f"the writers: {ledger.complaints[:10]} {serial.trouble}")
        ledger.close()
        return ledger.counts["acknowledged"] + serial.acknowledged

    def round(self, number, ledger, serial):
        into, restored = self.folder / f"backup-{number}", self.folder / "restored"
        how = self.rng.choice([[], ["--link"], ["--since", self.previous]] if self.previous else [[], ["--link"]])
        ledger.open()
        least = serial.acknowledged
        told = backup(self.data, into, *how)
        most = serial.acknowledged + 1
        window = ledger.shut()
        self.bytes, self.shared = self.bytes + told["bytes"], self.shared + told["shared_bytes"]
        found = verify(into)
        complaints = [f"verify: {found['faults']} {found['remarks']}"] if found["remarks"] else []
        restore(into, restored)
        with Server(data=restored) as server:
            complaints += serial_complaints(server, least, most)
            # The serial writer's tables are none that the threads know.
            check = RestoredCheck(server, restored, Window(window))
            complaints += check.run()
        complaints += [str(fault) for fault in verify(restored)["faults"]]
        if complaints:
            what = "\n  ".join(complaints[:20])
            raise Failed(f"round {number} of seed {self.seed}, {how}:\n  {what}\nkept: {self.folder}")
        shutil.rmtree(restored)
        if self.previous:
            shutil.rmtree(self.previous)
        self.previous = into


class RestoredCheck(Check):
    def rows(self, sql):
        rows = super().rows(sql)
        serial = lambda row: isinstance(row[0], str) and row[0].startswith("serial_")
        return [row for row in rows if not serial(row)] if "information_schema" in sql else rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"backups-{given.seed}-"))
    print(f"seed {given.seed}, folder {folder}", file=sys.stderr, flush=True)
    rounds = Rounds(folder, given.seed, given.rounds)
    try:
        acknowledged = rounds.run(lambda text: print(text, file=sys.stderr, flush=True))
    except AssertionError as failure:
        print(failure, file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    print(f"{given.rounds} backups of seed {given.seed} restored and checked while {acknowledged} changes were acknowledged: "
          f"{rounds.bytes >> 20} MiB, {rounds.shared >> 20} MiB of them shared")  # fmt: skip
    print(f"{given.rounds} passed, 0 failed")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
