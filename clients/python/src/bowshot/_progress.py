"""How far a query is, on a terminal or in a notebook: one line on standard error that goes away when the rows are there.

The server tells it in `system.queries`, for a query whose rows are being read too; pyarrow has no call for PollFlightInfo.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from bowshot._errors import Error

Ask = Callable[[], "tuple[float | None, int] | None"]

_FIRST = 0.5
_PAUSE = 0.25
_WIDTH = 30


class Progress:
    """Shows the progress while the block runs. `ask` gives the fraction that is done, where it is known, and the rows so
    far; nothing when the query is over."""

    def __init__(self, ask: Ask | None, out: TextIO | None = None) -> None:
        self._ask = ask
        self._out = out
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def none(cls) -> Progress:
        return cls(None)

    @staticmethod
    def wanted(setting: bool | None) -> bool:
        """Unless somebody has said so: only for somebody who sits before a terminal or a notebook."""
        if setting is not None:
            return setting
        return in_notebook() or bool(sys.stderr and sys.stderr.isatty() and hasattr(sys, "ps1"))

    def __enter__(self) -> Progress:
        if self._ask is not None:
            self._thread = threading.Thread(target=self._run, name="bowshot-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def _run(self) -> None:
        out = self._out or sys.stderr
        began, drawn = time.monotonic(), False
        pause = _FIRST
        while not self._over.wait(pause) and self._ask is not None:
            pause = _PAUSE
            try:
                state = self._ask()
            except (Error, OSError):
                break
            if state is None:
                continue
            out.write("\r" + line(*state, time.monotonic() - began))
            out.flush()
            drawn = True
        if drawn:
            out.write("\r" + " " * (_WIDTH + 40) + "\r")
            out.flush()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows below the cell what is written. IPython's shell has none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def line(fraction: float | None, rows: int, seconds: float) -> str:
    if fraction is None:
        return f"running, {rows:,} rows, {seconds:.0f} s".ljust(_WIDTH + 30)
    done = round(min(max(fraction, 0.0), 1.0) * _WIDTH)
    return f"[{'█' * done}{'░' * (_WIDTH - done)}] {fraction:4.0%}, {rows:,} rows, {seconds:.0f} s".ljust(_WIDTH + 30)
