"""Clients that are programs of their own in `bench`, each in an environment of packages that are too large for `main`: they are run
with words instead of an order, and print one JSON line."""

import json
import subprocess
import sys

from . import environments, places

TIMEOUT_S = 3600
SHOWN_CHARACTERS = 4000


def client(environment: str, script: str, *words) -> dict:
    """What a program says of its runs, as `client.py` says it."""
    command = [environments.python(environment), "-W", "ignore", places.BENCH / script, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        print(done.stderr[-SHOWN_CHARACTERS:], file=sys.stderr)
        raise RuntimeError(f"{script} {' '.join(map(str, words))} failed")
    return json.loads(done.stdout.splitlines()[-1])


def versions(environment: str) -> dict:
    """Of its packages, for a line of the results."""
    return {f"{package} ({environment})": version for package, version in environments.pinned(environment).items()}
