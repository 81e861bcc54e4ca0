"""What is to be done once an object has gone, by a thread of its own.

An object may go anywhere, also between two lines of the main thread's; what Python runs in this moment swallows an interrupt
(Ctrl-C) that comes then, and must not wait for a lock. So nothing runs there: the callback of a weak reference only puts it
into a queue, which is done outside of Python's code.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from typing import Any

_gone: queue.SimpleQueue[Farewell] = queue.SimpleQueue()
# Those whose objects are there: a reference that is gone itself is not called.
_waiting: set[Farewell] = set()
_lock = threading.Lock()
_running = False


class Farewell(weakref.ref):  # type: ignore[type-arg]
    """Runs once the object is gone, to which it must not refer. Subclasses begin with the object, and keep what they need."""

    __slots__ = ()

    def __new__(cls, of: object, *_: Any) -> Farewell:
        farewell = super().__new__(cls, of, _gone.put)
        _waiting.add(farewell)
        _start()
        return farewell

    def run(self) -> None:
        raise NotImplementedError


def _start() -> None:
    """A process that was forked off has no thread and needs none: what it has is its parent's, and it cannot connect."""
    global _running
    if _running:
        return
    with _lock:
        if not _running:
            threading.Thread(target=_work, name="bowshot-farewell", daemon=True).start()
            _running = True


def _work() -> None:
    while True:
        farewell = _gone.get()
        _waiting.discard(farewell)
        # What cannot be told to the other end any more is known there.
        with contextlib.suppress(OSError):
            farewell.run()
        # Else it would keep what it has, maybe a connection that nobody wants any more, until another object goes.
        del farewell
