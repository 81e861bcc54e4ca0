"""Batches on their way from threads that read them to the one who takes them, in bounded memory."""

from __future__ import annotations

import collections
import contextlib
import queue
import threading

import pyarrow as pa

from bowshot._errors import Error

_MOST_BATCHES = 1024


class Channel:
    """Batches on their way from readers to the one who takes them.

    Whoever takes them takes all that are there, and readers wait until he has: threads that change at every small batch
    would do little else. He has no lock at any time: an interrupt (Ctrl-C) that comes while a lock is taken leaves it taken.
    """

    def __init__(self, bytes_: int, writers: int) -> None:
        self._room = bytes_
        self._writers = writers
        # Batches with their sizes; nothing for one who waits and should look at what has happened.
        self._coming: queue.SimpleQueue[tuple[pa.RecordBatch, int] | None] = queue.SimpleQueue()
        self._emptied: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._taken: collections.deque[pa.RecordBatch] = collections.deque()
        # What readers have put in, and what was taken out.
        self._bytes_in = self._batches_in = 0
        self._bytes_out = self._batches_out = 0
        self._entering = threading.Lock()
        self._ending = threading.Lock()
        self._waiting = False
        self._error: Error | None = None
        self._closed = False

    def put(self, batch: pa.RecordBatch) -> bool:
        """Waits for room; false when nobody wants more."""
        size = batch.nbytes
        with self._entering:
            while self._full() and not self._closed:
                self._waiting = True
                # It may have been emptied before that was said.
                if self._full() and not self._closed:
                    with contextlib.suppress(queue.Empty):
                        self._emptied.get(timeout=1.0)
            self._waiting = False
            if self._closed:
                return False
            self._bytes_in += size
            self._batches_in += 1
        self._coming.put((batch, size))
        return True

    def _full(self) -> bool:
        return self._bytes_in - self._bytes_out >= self._room or self._batches_in - self._batches_out >= _MOST_BATCHES

    def end(self, error: Error | None = None) -> None:
        """One writer is done. An error is told before the batches that still wait: they are a part of nothing."""
        with self._ending:
            self._error = self._error or error
            self._writers -= 1
        self._coming.put(None)

    def take(self) -> pa.RecordBatch | None:
        """The next batch; none after the last one."""
        while self._error is None and not self._closed:
            if self._taken:
                return self._taken.popleft()
            if self._writers <= 0 and self._coming.empty():
                return None
            with contextlib.suppress(queue.Empty):
                self._take_all(self._coming.get(timeout=1.0))
        if self._error is not None:
            raise self._error
        return None

    def _take_all(self, first: tuple[pa.RecordBatch, int] | None) -> None:
        """With the first one all that are there."""
        found = [first, *(self._coming.get_nowait() for _ in range(self._coming.qsize()))]
        batches = [one for one in found if one is not None]
        self._taken.extend(batch for batch, _ in batches)
        self._bytes_out += sum(size for _, size in batches)
        self._batches_out += len(batches)
        if self._waiting:
            self._emptied.put(None)

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._coming.get_nowait()
        self._coming.put(None)
        self._emptied.put(None)
