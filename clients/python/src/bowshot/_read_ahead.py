"""Partitions one after the other, of which the next ones come already while one is read."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import flight

from bowshot._channel import Channel
from bowshot._errors import Error, translate
from bowshot._partitions import Partition, next_batch
from bowshot._same_host import Reader
from bowshot._threads import forget, start, stop_at_end
from bowshot._wire import FAILURES, Wire

# Partitions that come at a time, and what may wait of each.
_AT_ONCE = 2
_BYTES = 8 << 20


def read_ahead(parts: Sequence[Partition]) -> Iterator[pa.RecordBatch]:
    """The rows of partitions of one plan in their order, over one connection: for queries of a few milliseconds each, making
    one for every partition and waiting for each query would be most of the time."""
    if not parts:
        return
    wire = parts[0].connect()
    coming: collections.deque[_Coming] = collections.deque()
    try:
        for number, part in enumerate(parts):
            coming.append(_Coming(wire, part, number % _AT_ONCE))
            if len(coming) == _AT_ONCE:
                yield from coming[0].batches()
                coming.popleft()
        while coming:
            yield from coming[0].batches()
            coming.popleft()
    finally:
        for left in coming:
            left.end()
        wire.close()


class _Coming:
    """A partition that a thread reads."""

    def __init__(self, wire: Wire, part: Partition, lane: int) -> None:
        self._channel = Channel(_BYTES, 1)
        self._reader: Reader | flight.FlightStreamReader | None = None
        self._ended = False
        stop_at_end(self)
        start(self._read, wire, part, lane, name="bowshot-reader")

    def batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._channel.take()) is not None:
            yield batch
        forget(self)

    def end(self) -> None:
        """Stops the query if there are rows left."""
        self._ended = True
        self._channel.close()
        forget(self)
        if self._reader is not None:
            with contextlib.suppress(*FAILURES):
                self._reader.cancel()

    def _read(self, wire: Wire, part: Partition, lane: int) -> None:
        try:
            reader = self._reader = part.open(wire, lane)
            # Whoever ended it meanwhile has seen no reader.
            if self._ended:
                reader.cancel()
            while (batch := next_batch(reader)) is not None:
                if not self._channel.put(batch):
                    reader.cancel()
                    return
        except Exception as error:  # noqa: BLE001 - told to the one who takes the rows
            self._channel.end(error if isinstance(error, Error) else translate(error, None))
            return
        finally:
            self._reader = None
        self._channel.end()
