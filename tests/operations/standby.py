"""`python standby.py`: take-overs under load. A writer puts the numbers 0, 1, 2, … into a table, each when the one before was acknowledged, while
`bowshot standby` follows. The server is killed, the standby takes over, and the next round goes on with what it has made.

With the old folder at hand (`--from`) every acknowledged number is there. In each third round the old folder is gone with its disk: then the
numbers have no gap, and how many of the last ones are missing, and for how long they were acknowledged, is told."""

import argparse
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

from durable import Database
from program import bowshot
from server import BUSY_FACTOR, Server, binaries, clean_environment, wait_until

#: Seconds between two looks of the standby.
EVERY = 1


class Writer(threading.Thread):
    """Goes on with the numbers until the server is gone; knows when each was acknowledged."""

    def __init__(self, server, first):
        super().__init__(daemon=True)
        self.database, self.number, self.times = Database(server), first, []

    def run(self):
        try:
            while True:
                self.database.run(f"INSERT INTO numbers VALUES ({self.number})")
                self.times.append(time.monotonic())
                self.number += 1
        except Exception:
            # The server was killed.
            return
        finally:
            self.database.close()


class Standby:
    """`bowshot standby`, until the block ends."""

    def __init__(self, copy, data):
        self.copy, self.command = copy, [binaries() / "bowshot", "standby", copy, "--data", data, "--every", str(EVERY)]

    def __enter__(self):
        self.process = subprocess.Popen(
            list(map(str, self.command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=clean_environment()
        )
        wait_until(lambda: list(self.copy.glob("state-*")), "the first state", 60)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        _, told = self.process.communicate(timeout=60 * BUSY_FACTOR)
        assert self.process.returncode == 0 and not told, told


class Rounds:
    def __init__(self, folder, seed):
        self.folder, self.rng = folder, random.Random(seed)
        self.data, self.copy = folder / "data-0", folder / "copy"
        self.lost, self.seconds_lost, self.seconds = [], [], []
        with Server(data=self.data) as server, Database(server) as database:
            database.run("CREATE TABLE numbers (n BIGINT NOT NULL)")

    def round(self, number):
        data = self.folder / f"data-{number + 1}"
        with_disk = number % 3 != 2
        with Server(data=self.data) as server:
            with Database(server) as database:
                first = database.one("SELECT count(*) FROM numbers")
            with Standby(self.copy, self.data):
                writer = Writer(server, first)
                writer.start()
                time.sleep(self.rng.uniform(0.5, 3.0))
                killed = time.monotonic()
                server.kill()
                writer.join(30)
        if not with_disk:
            shutil.rmtree(self.data)
        code, _, err = bowshot("take-over", self.copy, "--data", data, *(["--from", self.data] if with_disk else []))
        assert code == 0, err
        with Server(data=data) as server, Database(server) as database:
            ((count, last),) = database.rows("SELECT count(DISTINCT n), coalesce(max(n) + 1, 0) FROM numbers")
            self.seconds.append(time.monotonic() - killed)
            rows = database.one("SELECT count(*) FROM numbers")
        assert rows == count == last, f"{rows} rows, {count} numbers, the last is {last - 1}: not of one moment"
        lost = writer.number - last
        # The last number was perhaps committed and not acknowledged.
        assert lost >= -1 and (lost <= 0 or not with_disk), f"{lost} acknowledged numbers are lost"
        if not with_disk:
            self.lost.append(max(lost, 0))
            self.seconds_lost.append(killed - writer.times[last - first] if 0 <= last - first < len(writer.times) else 0.0)
        shutil.rmtree(self.data, ignore_errors=True)
        self.data = data


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"standby-{given.seed}-"))
    print(f"seed {given.seed}, folder {folder}", file=sys.stderr, flush=True)
    rounds = Rounds(folder, given.seed)
    for number in range(given.rounds):
        try:
            rounds.round(number)
        except AssertionError as failure:
            print(f"round {number}: {failure}\nkept: {folder}", file=sys.stderr)
            print(f"{number} passed, 1 failed")
            return 1
    seconds = sorted(rounds.seconds)
    print(f"{given.rounds} take-overs of seed {given.seed}: from the kill to the first answer {seconds[len(seconds) // 2]:.2f} s, at most "
          f"{seconds[-1]:.2f} s; without the old disk {sum(rounds.lost)} numbers lost, of at most the last {max(rounds.seconds_lost, default=0):.2f} s")  # fmt: skip
    print(f"{given.rounds} passed, 0 failed")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
