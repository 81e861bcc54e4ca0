"""The rows of one answer, as they come: all endpoints side by side, in bounded memory.

Each reader is a thread with a connection of its own. Readers put batches into a channel that holds few MiB; when it is
full they wait, the server's buffers fill up, and the query waits too. Where the answer has an order there is one channel
for each endpoint, and they are emptied in turn.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import flight

from bowshot._channel import Channel
from bowshot._errors import Error, InterfaceError, QueryCancelledError, StatementTimeoutError, translate
from bowshot._protobuf import Message
from bowshot._same_host import Reader
from bowshot._threads import forget, start, stop_at_end
from bowshot._wire import FAILURES, Wire, interruptible, translated

MAX_READERS = 16
# What waits in a channel for each of its readers, until the next batch is one too many.
_CHANNEL_BYTES = 4 << 20
# An answer of so few rows comes in one message or two: a thread for it would cost more than it gains.
_FEW_ROWS = 20_000


class Stream:
    """A FlightInfo and the reading of it, once."""

    def __init__(self, wire: Wire, info: flight.FlightInfo, deadline: float | None = None) -> None:
        self._wire = wire
        self._info = info
        self._deadline = deadline
        # Older versions of pyarrow have no names for these two fields.
        message = Message(info.serialize())
        self._ordered = bool(message.number(6))
        self.query_id: str | None = message.data(7).decode(errors="replace") or None
        with translated(self.query_id):
            self.schema: pa.Schema = info.schema
        self._shared = _Shared(wire, info.endpoints, deadline, self.query_id)
        self._channels: collections.deque[Channel] = collections.deque()
        self._started = self._finished = self._cancelled = False
        self._complete = False
        self._count = 0
        stop_at_end(self)

    @property
    def endpoints(self) -> int:
        return len(self._info.endpoints)

    def release(self) -> flight.FlightInfo:
        """Hands the answer over to others, who read its endpoints."""
        self._finished = True
        forget(self)
        return self._info

    @property
    def transport(self) -> str | None:
        """`memory` where the rows came in memory that the server shares, else `socket`; none before they are read."""
        mapped = self._shared.mapped
        return None if mapped is None else "memory" if mapped else "socket"

    @property
    def transport_note(self) -> str | None:
        return self._shared.note or (self._wire.same_host.reason if self.transport == "socket" else None)

    @property
    def rows(self) -> int | None:
        """How many rows there are, where the server knows or all of them have come."""
        if self._complete:
            return self._count
        total = self._info.total_records
        return total if total >= 0 else None

    def next(self) -> pa.RecordBatch | None:
        """The next batch with rows; none after the last one."""
        if self._cancelled:
            raise QueryCancelledError("the query was cancelled", query_id=self.query_id)
        if not self._started:
            self._start()
        try:
            while self._channels:
                batch = self._channels[0].take()
                if batch is None:
                    self._channels.popleft()
                elif batch.num_rows > 0:
                    self._count += batch.num_rows
                    return batch
        except BaseException:
            self.close()
            raise
        if self._cancelled:
            raise QueryCancelledError("the query was cancelled", query_id=self.query_id)
        self._finished = self._complete = True
        return None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.next()) is not None:
            yield batch

    def table(self) -> pa.Table:
        """All rows, of several endpoints side by side."""
        if self._started or self._cancelled:
            return pa.Table.from_batches(list(self), self.schema)
        self._started = True
        try:
            tables = self._read_all()
        except BaseException:
            self.close()
            raise
        if self._cancelled:
            raise QueryCancelledError("the query was cancelled", query_id=self.query_id)
        self._finished = True
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def _read_all(self) -> list[pa.Table]:
        shared, endpoints = self._shared, self._info.endpoints
        if len(endpoints) == 1:
            if self.rows is not None and self.rows <= _FEW_ROWS:
                return [shared.read_all(0, 0)]
            return [interruptible(lambda: shared.read_all(0, 0), self.cancel)]
        tables: list[pa.Table | None] = [None] * len(endpoints)
        errors: list[Error] = []

        def read(lane: int) -> None:
            try:
                while not errors and (number := shared.take()) is not None:
                    tables[number] = shared.read_all(number, lane)
            except Error as error:
                errors.append(shared.fail(error))

        lanes = min(len(endpoints), MAX_READERS)
        threads = [start(read, lane, name="bowshot-reader") for lane in range(lanes)]
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(1.0)
        except BaseException:
            self.cancel()
            raise
        if errors:
            raise errors[0]
        return [table for table in tables if table is not None]

    def _start(self) -> None:
        self._started = True
        endpoints = len(self._info.endpoints)
        lanes = min(endpoints, MAX_READERS)
        if self._ordered:
            channels = [Channel(_CHANNEL_BYTES, 1) for _ in range(endpoints)]
        else:
            channels = [Channel(_CHANNEL_BYTES * lanes, endpoints)] * endpoints
        self._channels.extend(channels if self._ordered else channels[:1])
        for lane in range(lanes):
            start(_read, self._shared, channels, lane, name="bowshot-reader")

    def cancel(self) -> None:
        """Stops the query; may be called from any thread, also while another one waits for rows."""
        if self._finished or self._cancelled:
            return
        self._cancelled = True
        self._stop()
        with contextlib.suppress(Error):
            self._wire.cancel(self._info)

    def close(self) -> None:
        """Frees what the answer holds here and at the server, read or not."""
        if self._finished or self._cancelled:
            return
        self._finished = True
        self._stop()
        # The server sees by itself that a stream was given up. Of several some may not have been opened, or were given up
        # before their node has heard of them.
        if (self._shared.unopened() or self.endpoints > 1) and not self._wire.closed:
            with contextlib.suppress(Error, InterfaceError):
                self._wire.cancel(self._info)

    def abandon(self) -> None:
        """As `close`, for one who must not wait: a result that is collected."""
        # Once the interpreter ends there are no new threads; the connection's end frees the same.
        if self._finished or self._cancelled or sys.is_finalizing():
            return
        with contextlib.suppress(RuntimeError):
            start(self.close, name="bowshot-close")

    def end(self) -> None:
        """At the interpreter's end: readers that are in a call then would go on into nothing."""
        self._stop()
        self._cancelled = True

    def _stop(self) -> None:
        self._shared.stop()
        for channel in list(self._channels):
            channel.close()
        forget(self)


class _Shared:
    """What the readers of an answer share. They know no more of it, so that an answer that nobody wants any more can go."""

    def __init__(
        self, wire: Wire, endpoints: list[flight.FlightEndpoint], deadline: float | None, query_id: str | None
    ) -> None:
        self._wire = wire
        self._endpoints = endpoints
        self._deadline = deadline
        self._query_id = query_id
        self._lock = threading.Lock()
        self._next = 0
        self._opened = 0
        self._stopped = False
        self._readers: set[Reader | flight.FlightStreamReader] = set()
        # Whether all rows so far came in shared memory; none before the first. And why not.
        self.mapped: bool | None = None
        self.note: str | None = None
        self._failed: Error | None = None

    def take(self) -> int | None:
        """The number of an endpoint that nobody reads yet."""
        with self._lock:
            if self._stopped or self._next >= len(self._endpoints):
                return None
            self._next += 1
            return self._next - 1

    def unopened(self) -> bool:
        return self._opened < len(self._endpoints)

    @contextlib.contextmanager
    def reading(self, number: int, lane: int) -> Iterator[Reader | flight.FlightStreamReader]:
        timeout = None
        if self._deadline is not None:
            timeout = self._deadline - time.monotonic()
            if timeout <= 0:
                raise StatementTimeoutError("the time for the statement is over", query_id=self._query_id)
        with translated(self._query_id):
            reader = self._wire.get_from(self._endpoints[number], lane, timeout, self._query_id)
        self.note = self.note or self._wire.nodes.note(self._endpoints[number])
        with self._lock:
            self._opened += 1
            self.mapped = isinstance(reader, Reader) and self.mapped is not False
            self._readers.add(reader)
            stopped = self._stopped
        try:
            if stopped:
                reader.cancel()
            yield reader
        finally:
            with self._lock:
                self._readers.discard(reader)
            if isinstance(reader, Reader):
                self.note = self.note or reader.note
                reader.close()

    def read_all(self, number: int, lane: int) -> pa.Table:
        """Not by the reader's own `read_all`, which takes a query that somebody has cancelled for a Ctrl-C and interrupts the
        main thread."""
        with self.reading(number, lane) as reader, translated(self._query_id):
            return pa.Table.from_batches([chunk.data for chunk in reader if chunk.data is not None], reader.schema)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            readers = list(self._readers)
        for reader in readers:
            with contextlib.suppress(*FAILURES):
                reader.cancel()

    def fail(self, error: BaseException) -> Error:
        """Stops all readers; gives the first error, since the others only tell that they were stopped."""
        with self._lock:
            if self._failed is None:
                self._failed = error if isinstance(error, Error) else translate(error, self._query_id)
            failed = self._failed
        self.stop()
        return failed


def _read(shared: _Shared, channels: list[Channel], lane: int) -> None:
    """Reads endpoints until there are no more."""
    while (number := shared.take()) is not None:
        channel = channels[number]
        try:
            with shared.reading(number, lane) as reader:
                for chunk in reader:
                    if chunk.data is not None and not channel.put(chunk.data):
                        reader.cancel()
                        return
        except Exception as error:  # noqa: BLE001 - told to the one who takes the rows
            channel.end(shared.fail(error))
            return
        channel.end()
