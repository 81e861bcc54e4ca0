"""Another client, who asks small questions all the time, in a process of its own: what the attackers of a test compute holds
the interpreter's lock, which would count as the server's time. Ends with its input, and prints what it has measured."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import types
import urllib.request

from durable import Database


def resident(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) << 10


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_quiet(server):
    """Whether it computes nothing for half a second, or next to nothing."""
    before = cpu_seconds(server.process.pid)
    time.sleep(0.5)
    return cpu_seconds(server.process.pid) - before < 0.25


class Watch:
    """Runs while the block does; then `waits` and `health` are seconds, `peak` is bytes."""

    def __init__(self, server):
        self.arguments = [server.grpc_tcp, server.http, str(server.process.pid)]
        self.waits, self.health, self.peak, self.failures = [], [], 0, []

    def __enter__(self):
        program = [sys.executable, str(pathlib.Path(__file__).resolve()), *self.arguments]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        measured, _ = self.process.communicate("", timeout=60)
        for name, value in json.loads(measured).items():
            setattr(self, name, value)


def main(uri, http, pid):
    stop, found = threading.Event(), {"waits": [], "health": [], "peak": 0, "failures": []}

    def repeat(ask, pause, times):
        while not stop.is_set():
            began = time.monotonic()
            try:
                ask()
            except Exception as error:
                found["failures"].append(str(error))
                return
            times.append(time.monotonic() - began)
            found["peak"] = max(found["peak"], resident(pid))
            time.sleep(pause)

    def asks():
        db = Database(types.SimpleNamespace(grpc_tcp=uri))

        def ask():
            assert db.one("SELECT 1") == 1

        repeat(ask, 0.02, found["waits"])

    def looks():
        def look():
            with urllib.request.urlopen(http + "/health", timeout=10) as answer:
                assert answer.status == 200

        repeat(look, 0.05, found["health"])

    threads = [threading.Thread(target=asks), threading.Thread(target=looks)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
