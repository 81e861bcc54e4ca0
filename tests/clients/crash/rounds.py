"""Round after round over one data folder: start, load, kill, start again, check."""

import contextlib
import dataclasses
import pathlib
import random
import sys
import time

from server import Server

from . import disk
from .check import Check, Stranger
from .ledger import Ledger
from .load import make_tables
from .threads import Load

SHORTEST, LONGEST = 0.05, 1.5
RESTART_SECONDS = 10
# How often the tables are compared with what a reader of the files sees, in rounds.
STRANGER_EVERY = 10
# Of so many restarts one is killed itself, while it puts right what was left.
KILLED_RESTARTS = 0.2
ABSENT_KEPT = 200


class Failed(AssertionError):
    """A round found something wrong; its text says what, and how to see it again."""


@dataclasses.dataclass
class Options:
    folder: pathlib.Path
    seed: int
    rounds: int
    program: pathlib.Path | None = None
    seconds: float | None = None
    quiet: bool = False
    tidying: bool = True
    restart_seconds: float = RESTART_SECONDS


class Run:
    """The state of a run: its folder has `data`, the journal, and the log of each server."""

    def __init__(self, options):
        self.options = options
        self.data = options.folder / "data"
        options.folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(options.folder / "journal.jsonl")
        self.round = 0
        self.slowest_restart = 0.0
        self.servers = 0

    def start(self):
        started = time.monotonic()
        self.servers += 1
        try:
            server = Server(data=self.data, program=self.options.program)
        except AssertionError as error:
            self.keep_log(str(error))
            self.fail([f"the server did not start: {error}"])
        return server, time.monotonic() - started

    def keep_log(self, log):
        (self.options.folder / f"server-{self.servers:04}.log").write_text(log)

    def kill(self, server):
        log = server.kill()
        self.keep_log(log)
        if "panicked" in log:
            self.fail([f"the server panicked:\n{log[-5000:]}"])

    def fail(self, complaints):
        what = "\n  ".join(complaints[:20])
        raise Failed(
            f"round {self.round} of seed {self.options.seed}:\n  {what}\n"
            f"kept: {self.options.folder} (data, journal.jsonl, server-*.log)\n"
            f"again: python -m crash --seed {self.options.seed} --rounds {self.round + 1}"
        )

    def prepare(self):
        """A first server makes the tables; its clean end is the first restart."""
        server, _ = self.start()
        try:
            make_tables(server, self.ledger)
            server.stop()
        except Exception as error:
            self.kill(server)
            self.fail([f"the tables could not be made: {error}"])

    def one_round(self):
        rng = random.Random(f"{self.options.seed}/{self.round}")
        server, _ = self.start()
        self.ledger.note(event="round", round=self.round)
        try:
            working = Load(server, self.ledger, self.options.seed, self.round, self.options.tidying)
            time.sleep(rng.uniform(SHORTEST, LONGEST))
            alive = server.alive()
            # Errors from here on are the kill's; earlier ones are the server's own.
            working.killed.set()
        finally:
            self.kill(server)
        working.end()
        if not alive:
            self.ledger.complain("the server ended by itself")
        if self.ledger.complaints:
            self.fail(self.ledger.complaints)
        if rng.random() < KILLED_RESTARTS:
            self.kill_a_restart(rng.uniform(0.0, 0.3))
        self.check()

    def kill_a_restart(self, seconds):
        """Kills a server while it starts, or shortly after."""
        self.servers += 1
        self.ledger.note(event="restart killed", after=seconds)
        try:
            server = Starting(self.data, self.options.program, seconds)
        except AssertionError as error:
            self.fail([f"the restart after the kill failed: {error}"])
        self.kill(server)

    def check(self):
        server, took = self.start()
        self.slowest_restart = max(self.slowest_restart, took)
        complaints = [f"the restart took {took:.1f} s"] if took > self.options.restart_seconds else []
        try:
            complaints += Check(server, self.data, self.ledger).run()
            last = self.round + 1 == self.options.rounds
            if not complaints and (last or (self.round + 1) % STRANGER_EVERY == 0):
                complaints += Stranger(server, self.data, self.ledger).run()
        finally:
            # By another kill: what was checked is there still.
            self.kill(server)
        if complaints:
            self.fail(complaints)
        for kind in ("batch", "single", "transfer", "table"):
            self.ledger.forget(kind, ABSENT_KEPT)

    def say(self, text):
        if not self.options.quiet:
            print(text, file=sys.stderr, flush=True)

    def run(self):
        started = time.monotonic()
        with contextlib.closing(self.ledger):
            self.prepare()
            for self.round in range(self.options.rounds):
                self.one_round()
                files = disk.sizes(self.data)
                self.say(
                    f"round {self.round}: {self.ledger.counts['acknowledged']} acknowledged, "
                    f"{self.ledger.counts['unknown']} unknown, {self.ledger.counts['refused']} refused so far; "
                    f"{len(files)} files, {sum(files.values()) >> 20} MiB; slowest restart {self.slowest_restart:.2f} s"
                )
                if self.options.seconds and time.monotonic() - started > self.options.seconds:
                    break
        return self.round + 1


class Starting(Server):
    """A server that is not waited for."""

    def __init__(self, data, program, seconds):
        self.deadline = time.monotonic() + seconds
        super().__init__(data=data, program=program)

    def _ready(self):
        return "given up" if time.monotonic() > self.deadline else None
