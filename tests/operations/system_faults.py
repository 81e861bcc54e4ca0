"""`python system_faults.py`: the system itself fails one call of a server that writes, or of a backup, made so by strace.

For each kind of call, each error, and N = 1, 2, … the N-th such call of each thread fails, until no thread makes so many. Every
statement ends, with success or an error that says why; what is there then, and after a start without faults, is what was acknowledged, and
of what failed all or nothing. No panic, none that hangs. Prints what it has found, and `N passed, N failed`."""

import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

from durable import Database
from fault_workload import STATEMENTS, attempt, check, make_tables, observe
from program import bowshot, restore, verify
from server import BUSY_FACTOR, Server, wait_until

CALLS = {
    "fsync": ["EIO", "ENOSPC"],
    "fdatasync": ["EIO", "ENOSPC"],
    "pwrite64": ["EIO", "ENOSPC"],
    "write": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "openat": ["EIO", "ENOSPC"],
    "ftruncate": ["EIO", "ENOSPC"],
    "unlink": ["EIO"],
    "mmap": ["ENOMEM"],
}
# Those of one name are made by another one, too.
ALIKE = {"rename": "rename,renameat,renameat2", "unlink": "unlink,unlinkat", "write": "write,writev"}
# Writes are also how threads wake one another: only those to these files fail.
CATALOG = ["catalog.sqlite", "catalog.sqlite-wal"]
SECONDS = 60


def command(call, error, number, folder, log):
    """strace without what it is to watch."""
    calls = ALIKE.get(call, call)
    paths = [word for name in CATALOG for word in ("-P", folder / name)] if call == "write" else []
    return ["strace", "-f", "-qq", "-o", log, *paths, "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}:when={number}"]


def injected(log):
    return log.read_text(errors="replace").count("(INJECTED)")


@contextlib.contextmanager
def attached(server, words):
    """Beside a server that is ready; gone from it at the end."""
    strace = subprocess.Popen([*map(str, words), "-p", str(server.process.pid)], stdin=subprocess.DEVNULL)
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task")
    traced = lambda: all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks.iterdir())
    try:
        wait_until(traced, "strace has attached itself")
        yield
    finally:
        strace.terminate()
        strace.wait(SECONDS)


class Case:
    """One call that fails, over a copy of a folder with tables."""

    def __init__(self, template, folder, call, error, number):
        self.data, self.log, self.folder = folder / "data", folder / "strace", folder
        shutil.copytree(template, self.data)
        self.words = command(call, error, number, self.data, self.log)
        # Half of the servers end as they should: what a failing disk does to the end itself must not matter either.
        self.killed = number % 2 == 0
        self.refused = self.ended = 0

    def run(self):
        """Calls that failed."""
        server = Server(data=self.data)
        try:
            with attached(server, self.words):
                errors = self.work(server)
                if not self.killed:
                    server.terminate()
                    server.process.wait(SECONDS * BUSY_FACTOR)
            seen = self.look(server, errors)
        finally:
            log = server.kill()
        assert "panicked" not in log, log[-5000:]
        self.restarted(errors, seen)
        return injected(self.log)

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
        self.refused = sum(error is not None for error in found[0].values())
        return found[0]

    def look(self, server, errors):
        """What a server that lives shows when the faults are over."""
        if not server.alive():
            self.ended = self.killed or server.process.returncode not in (0, 1)
            # Without memory a program has no other way.
            assert not self.ended or "memory allocation of" in server.log(), f"ended by itself\n{server.log()[-5000:]}"
            return {}
        with Database(server) as db:
            seen = observe(db)
        check(seen, errors, unsure=True)
        return seen

    def restarted(self, errors, seen):
        with Server(data=self.data) as server, Database(server) as db:
            after = observe(db)
            check(after, errors, unsure=True)
            for name, state in seen.items():
                assert state == STATEMENTS[name][0] or after[name] == state, f"{name} was seen and is lost"
            db.run("INSERT INTO many VALUES (-1, 'a new start')")
        assert verify(self.data)["faults"] == []


class BackupCase(Case):
    """A backup whose call fails either says so, or can be restored."""

    def run(self):
        into, again = self.folder / "backup", self.folder / "again"
        code, _, err = bowshot("backup", into, "--data", self.data, prefix=[*self.words, "--seccomp-bpf", "--"], seconds=SECONDS)
        if code != 0:
            assert err.strip(), f"exit code {code}, and nothing was said"
            self.refused, into = 1, again
            code, _, err = bowshot("backup", into, "--data", self.data)
            assert code == 0, f"a backup after one that failed: {err}"
        assert verify(into)["faults"] == []
        restore(into, self.folder / "restored")
        with Server(data=self.folder / "restored") as server, Database(server) as db:
            assert observe(db) == {name: states[0] for name, states in STATEMENTS.items()}
        return injected(self.log)


def run(most, kinds, calls, say):
    """Failures, and how many cases there were."""
    failures, cases = [], 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="system-faults-"))
    with Server(data=folder / "template") as server:
        with Database(server) as db:
            make_tables(db)
        server.kill()
    for kind, call, error in ((kind, call, error) for kind in kinds for call in calls for error in CALLS[call]):
        hits = refused = ended = misses = number = 0
        # What a thread does differs from run to run: one number that no thread has reached is not the end yet.
        while number < most and misses < 2:
            number += 1
            name = f"{kind}-{call}-{error}-{number}"
            (folder / name).mkdir()
            case = {"server": Case, "backup": BackupCase}[kind](folder / "template", folder / name, call, error, number)
            try:
                hit = case.run()
            except Exception as failure:
                hit = injected(case.log)
                failures.append(f"{name}: {failure}\nkept: {case.folder}\nagain: python system_faults.py --only {kind} --call {call}")
                say(failures[-1])
            else:
                shutil.rmtree(case.folder)
            cases += 1
            hits, refused, ended, misses = hits + hit, refused + case.refused, ended + case.ended, 0 if hit else misses + 1
        say(f"{kind} {call} {error}: N up to {number}, {hits} calls failed, {refused} refused, {ended} servers ended")
    if not failures:
        shutil.rmtree(folder)
    return failures, cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=12, help="the largest N")
    parser.add_argument("--call", action="append", choices=CALLS)
    parser.add_argument("--only", action="append", choices=["server", "backup"])
    given = parser.parse_args()
    failures, cases = run(
        given.most, given.only or ["server", "backup"], given.call or CALLS, lambda text: print(text, file=sys.stderr, flush=True)
    )
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{cases - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
