"""`python system_faults.py`: one call of the system fails under a server that writes, one that starts, or a backup.

For each kind of call, each error, and N = 1, 2, … the N-th such call fails, until so many are not made: by strace, which counts those
of each thread, and below the data folder by `faults.c`, which counts those of all. Every statement ends, with success or an error that says
why; what is there then, and after a start without faults, is what was acknowledged, and of what failed all or nothing. No panic, none that
hangs. Prints what it has found, and `N passed, N failed`."""

import argparse
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

import faults
from durable import Database
from fault_workload import STATEMENTS, attempt, check, make_tables, observe
from program import bowshot, restore, verify
from server import BUSY_FACTOR, Server, binaries, clean_environment, wait_until

CALLS = {
    "fsync": ["EIO", "ENOSPC"],
    "fdatasync": ["EIO", "ENOSPC"],
    "pwrite64": ["EIO", "ENOSPC"],
    "write": ["EIO", "ENOSPC"],
    "rename,renameat,renameat2": ["EIO", "ENOSPC"],
    "openat": ["EIO", "ENOSPC"],
    "ftruncate": ["EIO", "ENOSPC"],
    "unlink,unlinkat": ["EIO"],
    "mmap": ["ENOMEM"],
}
# What `faults.c` makes fail.
BELOW = {
    "sync": (faults.SYNC, ["EIO"]),
    "any write": (faults.WRITE, ["EIO", "ENOSPC"]),
    "half a write": (faults.SHORT_WRITE, ["ENOSPC"]),
    "open": (faults.OPEN, ["EIO", "EMFILE"]),
    "read": (faults.READ, ["EIO"]),
}
# Writes are also how threads wake one another, and mappings their memory: of these only those of the catalog's files fail.
OF_THE_CATALOG = {"write", "mmap"}
CATALOG = ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "bowshot.lock"]
SECONDS = 60


class Case:
    """The N-th call of a kind, over a copy of a folder with tables."""

    calls = CALLS

    def __init__(self, folder, call, error, number):
        self.folder, self.data, self.log = folder, folder / "data", folder / "strace"
        folder.mkdir()
        shutil.copytree(folder.parent / "template", self.data)
        self.call, self.error, self.number = call, error, number
        # Half of the servers end as they should: what a failing disk does to the end itself must not matter either.
        self.killed = number % 2 == 0
        self.refused = False

    def strace(self, files=()):
        """The command without what it is to watch; only calls on some files of the data folder fail, or all."""
        paths = [word for name in files for word in ("-P", self.data / name)]
        inject = f"inject={self.call}:error={self.error}:when={self.number}"
        return ["strace", "-f", "-qq", "-o", self.log, *paths, "-e", f"trace={self.call}", "-e", inject]

    def files(self):
        return CATALOG if self.call in OF_THE_CATALOG else []

    def hits(self):
        """Calls that failed."""
        return self.log.read_text(errors="replace").count("(INJECTED)") if self.log.exists() else 0

    def restarted(self, errors, seen):
        """What is there after a start without faults, and what `verify` says of it."""
        with Server(data=self.data) as server, Database(server) as db:
            after = observe(db)
            check(after, errors, unsure=True)
            for name, state in seen.items():
                assert state == STATEMENTS[name][0] or after[name] == state, f"{name} was seen and is lost"
            db.run("INSERT INTO many VALUES (-1, 'a new start')")
        assert verify(self.data)["faults"] == []


class ServerCase(Case):
    """Statements of a server that was started without faults."""

    environment = None

    @contextlib.contextmanager
    def failing(self, server):
        strace = subprocess.Popen([*map(str, self.strace(self.files())), "-p", str(server.process.pid)], stdin=subprocess.DEVNULL)
        tasks = pathlib.Path(f"/proc/{server.process.pid}/task")
        traced = lambda: all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks.iterdir())
        try:
            wait_until(traced, "strace has attached itself")
            yield
        finally:
            strace.terminate()
            strace.wait(SECONDS)

    def run(self):
        server = Server(data=self.data, environment=self.environment)
        try:
            with self.failing(server):
                errors = self.work(server)
                if not self.killed:
                    server.terminate()
                    server.process.wait(SECONDS * BUSY_FACTOR)
            seen = self.look(server, errors)
        finally:
            log = server.kill()
        assert "panicked" not in log, log[-5000:]
        self.restarted(errors, seen)

    def work(self, server):
        """Errors of the statements, by a thread that must end."""
        found = []

        def work():
            try:
                with Database(server) as db:
                    found.append(attempt(db))
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(SECONDS * BUSY_FACTOR)
        assert found, f"a statement hangs\n{server.log()[-5000:]}"
        if isinstance(found[0], Exception):
            raise found[0]
        self.refused = any(found[0].values())
        return found[0]

    def look(self, server, errors):
        """What a server that lives shows when the faults are over."""
        if not server.alive():
            assert not self.killed and server.process.returncode in (0, 1), f"ended by itself\n{server.log()[-5000:]}"
            return {}
        with Database(server) as db:
            seen = observe(db)
        check(seen, errors, unsure=True)
        return seen


class BelowCase(ServerCase):
    """The same, with the calls of all threads on files below the data folder counted together."""

    calls = {call: errors for call, (_, errors) in BELOW.items()}

    def __init__(self, folder, *which):
        super().__init__(folder, *which)
        self.disk = faults.Faults(folder.parent / "faults.so", folder, self.data)
        self.environment = self.disk.environment

    @contextlib.contextmanager
    def failing(self, server):
        self.disk.set(BELOW[self.call][0], getattr(errno, self.error), skip=self.number - 1, times=1)
        yield
        self.disk.clear()

    def hits(self):
        return self.disk.hits


class StartCase(Case):
    """A server that starts over tables: it is ready, or says why not."""

    def files(self):
        return CATALOG

    def run(self):
        ports, said = self.folder / "ports.json", self.folder / "log"
        serve = [binaries() / "bowshot", "serve", "--data", self.data, "--flight", "127.0.0.1:0", "--http", "off", "--ports-file", ports]
        words = list(map(str, [*self.strace(self.files()), "--seccomp-bpf", "--", *serve]))
        with open(said, "wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment())
        wait_until(lambda: process.poll() is not None or ports.exists() and ports.read_text(), "ready, or not")
        if process.poll() is None:
            os.kill(json.loads(ports.read_text())["pid"], signal.SIGTERM)
        code, text = process.wait(SECONDS * BUSY_FACTOR), said.read_text()
        assert code in (0, 1) and text.strip() and "panicked" not in text, f"exit code {code}\n{text[-5000:]}"
        self.refused = code == 1
        untouched = {name: "never sent" for name in STATEMENTS}
        self.restarted(untouched, {name: states[0] for name, states in STATEMENTS.items()})


class BackupCase(Case):
    """A backup that fails says so and is in nobody's way; one that does not can be restored."""

    def run(self):
        into = self.folder / "backup"
        prefix = [*self.strace(self.files()), "--seccomp-bpf", "--"]
        code, _, err = bowshot("backup", into, "--data", self.data, prefix=prefix, seconds=SECONDS)
        if code != 0:
            assert code == 1 and err.strip(), f"exit code {code}: {err}"
            self.refused, into = True, self.folder / "again"
            code, _, err = bowshot("backup", into, "--data", self.data)
            assert code == 0, f"a backup after one that failed: {err}"
        assert verify(into)["faults"] == []
        restore(into, self.folder / "restored")
        with Server(data=self.folder / "restored") as server, Database(server) as db:
            assert observe(db) == {name: states[0] for name, states in STATEMENTS.items()}


CASES = {"server": ServerCase, "below": BelowCase, "start": StartCase, "backup": BackupCase}


class Run:
    def __init__(self, given):
        self.most, self.first, self.failures, self.passed = given.most, given.first, [], 0
        self.kinds, self.calls = given.only or list(CASES), given.call
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="system-faults-"))

    def run(self):
        faults.compile_into(self.folder)
        with Server(data=self.folder / "template") as server:
            with Database(server) as db:
                make_tables(db)
            server.kill()
        for kind in self.kinds:
            for call, errors in CASES[kind].calls.items():
                for error in errors:
                    if not self.calls or call in self.calls:
                        self.sweep(kind, call, error)
        if not self.failures:
            shutil.rmtree(self.folder)

    def sweep(self, kind, call, error):
        """One kind of call and error, with every N."""
        hits = refused = misses = 0
        number = self.first - 1
        # What a thread does differs from run to run: one number that is not reached is not the end yet.
        while number < self.most and misses < 2:
            number += 1
            case = CASES[kind](self.folder / f"{kind}-{call.split(',')[0].replace(' ', '-')}-{error}-{number}", call, error, number)
            try:
                case.run()
            except Exception as failure:
                again = f"python system_faults.py --only {kind} --call '{call}' --first {number} --most {number}"
                self.failures.append(f"{error} of {call} {number}: {failure}\nkept: {case.folder}\nagain: {again}")
                print(self.failures[-1], file=sys.stderr)
            else:
                self.passed += 1
            hits, refused, misses = hits + case.hits(), refused + case.refused, 0 if case.hits() else misses + 1
            if not self.failures or case.folder.name not in self.failures[-1]:
                shutil.rmtree(case.folder)
        said = f"N up to {number}, {hits} calls failed, {refused} times with an error"
        print(f"{kind}, {error} of {call}: {said}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1, help="the smallest N")
    parser.add_argument("--most", type=int, default=16, help="the largest N")
    parser.add_argument("--call", action="append", choices=[*CALLS, *BELOW])
    parser.add_argument("--only", action="append", choices=CASES)
    run = Run(parser.parse_args())
    run.run()
    for failure in run.failures:
        print(f"FAILED {failure}")
    print(f"{run.passed} passed, {len(run.failures)} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
