"""Threads of the package that may be in Arrow's code.

They are daemons, so that no program waits for rows that nobody wants; but an interpreter that ends while one of them gives rows
back breaks down, so that its end waits for them. Whoever starts one for long work stops it at the end by itself.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

# How long the end of the interpreter waits for all of them, in seconds.
_PATIENCE = 5.0
_started: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_lock = threading.Lock()


def start(work: Callable[..., object], *arguments: Any, name: str) -> threading.Thread:
    """Does the work in a thread of this name."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    with _lock:
        _started.add(thread)
    thread.start()
    return thread


# What is registered later runs earlier: who starts threads has stopped their work by then.
@atexit.register
def _join() -> None:
    until = time.monotonic() + _PATIENCE
    with _lock:
        threads = [thread for thread in _started if thread.is_alive() and thread is not threading.current_thread()]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
