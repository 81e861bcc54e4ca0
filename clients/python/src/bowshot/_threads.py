"""Threads of the package that may be in Arrow's code.

They are daemons, so that no program waits for rows that nobody wants; but an interpreter that ends while one of them gives rows
back breaks down, so that its end stops what takes long (`stop_at_end`) and waits for them.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

# How long the end of the interpreter waits for all of them, in seconds.
_PATIENCE = 5.0
_started: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_lock = threading.Lock()


class Ending(Protocol):
    """Work of threads that may go on for long."""

    def end(self) -> None: ...


_at_work: weakref.WeakSet[Ending] = weakref.WeakSet()


def stop_at_end(work: Ending) -> None:
    """It is ended with the interpreter, if it is there and not forgotten by then."""
    _at_work.add(work)


def forget(work: Ending) -> None:
    _at_work.discard(work)


def start(work: Callable[..., object], *arguments: Any, name: str) -> threading.Thread:
    """Does the work in a thread of this name."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    with _lock:
        _started.add(thread)
    thread.start()
    return thread


@atexit.register
def _end() -> None:
    for work in list(_at_work):
        work.end()
    until = time.monotonic() + _PATIENCE
    with _lock:
        threads = [thread for thread in _started if thread.is_alive() and thread is not threading.current_thread()]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
