"""Locks between processes of the bench, so that what several of them need is made once. Uses the standard library alone."""

import contextlib
import fcntl
import hashlib
import os
import pathlib

CACHE = pathlib.Path(os.environ.get("BOWSHOT_CACHE", pathlib.Path.home() / ".cache" / "bowshot"))


@contextlib.contextmanager
def alone(what: str):
    """Waits until no other process does `what`. The lock ends with the process that holds it."""
    folder = CACHE / "bench-locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / hashlib.sha256(what.encode()).hexdigest()[:16], "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
