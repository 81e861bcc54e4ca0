"""Rows in memory that the server on this machine shares, instead of bytes over the network: results are mapped, and uploads are
written once, into memory that the server maps.

The server names a Unix socket to clients of its own machine that ask (`x-bowshot-same-host`). Calls over it are those of
Flight, with the same headers and tickets; where anything stands in the way, the network is used and `reason` says why. The
protocol is in docs/reference/same-host.md.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import flight

from bowshot import _local_socket as local
from bowshot._errors import (
    Error,
    InterfaceError,
    OperationalError,
    QueryCancelledError,
    UnauthenticatedError,
    UnavailableError,
    from_status,
)
from bowshot._local_socket import GoneError, Socket

HEADER = "x-bowshot-same-host"
# Uploads of fewer bytes are one message over the network.
_SMALL_UPLOAD = 4 << 20
# Bytes in one memory, and memories that the server has not taken yet.
_MEMORY_BYTES = 16 << 20
_AHEAD = 4
# The first byte of rows that came through the socket: why they did.
_FOR_LIMITS = 1
_LIMITED = "the limit on shared memory was reached, so that some rows came through the socket"

Headers = Callable[[], list[tuple[bytes, bytes]]]


@dataclass
class Chunk:
    """As pyarrow's, without metadata."""

    data: pa.RecordBatch


class SameHost:
    """The way beside the network, if there is one. With `wanted` true it has to be there, with false it is not looked for."""

    def __init__(self, wanted: bool | None, headers: Headers) -> None:
        self._wanted = wanted
        self._headers = headers
        self._offer: tuple[bytes, str] | None = None
        self._idle: list[Socket] = []
        self._lock = threading.Lock()
        self._closed = False
        self.reason: str | None = None
        if wanted is False:
            self.reason = "it was not wanted (`same_host=False`)"
        elif not sys.platform.startswith("linux"):
            self.reason = "only Linux shares memory in this way"

    @property
    def open(self) -> bool:
        return self.reason is None and self._offer is not None

    def settle(self, offer: str | None) -> None:
        """Takes what the server has said: the name of this run of it, and where its socket is; or nothing."""
        name, _, path = (offer or "").partition(" ")
        with contextlib.suppress(ValueError):
            self._offer = (bytes.fromhex(name), path) if path else None
        if self.reason is None and self._offer is None:
            self.reason = "the server is on another machine, or has no socket for clients on its own"
        if self.open:
            try:
                self._give(self._connect())
            except (OSError, GoneError, Error) as error:
                self._fall_back(error)
        if self._wanted and self.reason is not None:
            raise InterfaceError(f"rows cannot be shared in memory: {self.reason}", hint="leave out `same_host=True`")

    def _connect(self) -> Socket:
        if self._offer is None:
            raise GoneError
        name, path = self._offer
        try:
            return Socket(path, name)
        except local.RefusedError as refused:
            raise OperationalError(str(refused)) from None

    def _fall_back(self, error: BaseException) -> None:
        text = "it has closed the connection" if isinstance(error, GoneError) else str(error)
        reason = f"the server's socket cannot be used: {text}"
        if self._wanted:
            raise OperationalError(reason)
        self.reason = reason

    def _take(self) -> tuple[Socket, bool]:
        """A connection, and whether it was used before: then the server may have closed it meanwhile."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            if self._idle:
                return self._idle.pop(), True
        return self._connect(), False

    def _give(self, socket: Socket) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(socket)
                return
        socket.close()

    def close(self) -> None:
        """What is mapped stays."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed = True
        for socket in idle:
            socket.close()

    def read(self, ticket: bytes, timeout: float | None, query_id: str | None) -> Reader | None:
        """The rows of a ticket; none where the network has to be used."""
        if not self.open:
            return None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            used = False
            try:
                socket, used = self._take()
                try:
                    socket.call(local.GET, self._headers(), ticket)
                    return Reader(self._give, socket, deadline, query_id)
                except BaseException:
                    socket.close()
                    raise
            except UnauthenticatedError as error:
                # On the network there may be a certificate that says who this is.
                self._fall_back(error)
                return None
            except (OSError, GoneError) as error:
                if not used:
                    self._fall_back(error)
                    return None

    def write(
        self, command: bytes, schema: pa.Schema, batches: Iterable[pa.RecordBatch], timeout: float | None
    ) -> tuple[bytes | None, Iterable[pa.RecordBatch]]:
        """Uploads rows; gives what the server says to them, or nothing and the rows where the network has to be used."""
        if not self.open:
            return None, batches
        rest = iter(batches)
        head: list[pa.RecordBatch] = []
        while sum(batch.nbytes for batch in head) < _SMALL_UPLOAD:
            batch = next(rest, None)
            if batch is None:
                return None, head
            head.append(batch)
        batches = _both(head, rest)
        try:
            socket, used = self._take()
            if used:
                # One that has ended meanwhile could not be told from an upload that failed.
                socket.close()
                socket = self._connect()
        except (OSError, GoneError, OperationalError) as error:
            self._fall_back(error)
            return None, batches
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            answer = _Upload(socket, deadline).run(self._headers(), command, schema, batches)
        except BaseException as error:
            socket.close()
            if isinstance(error, OSError | GoneError):
                raise UnavailableError("the server is gone; whether the rows were written is not known") from None
            raise
        self._give(socket)
        return answer, ()


class Reader:
    """The rows of one ticket, as a reader of Flight gives them."""

    def __init__(self, give: Callable[[Socket], None], socket: Socket, deadline: float | None, query_id: str | None) -> None:
        self._give = give
        self._socket: Socket | None = socket
        self._deadline = deadline
        self._query_id = query_id
        self._cancelled = False
        self._batches: Iterator[pa.RecordBatch] = iter(())
        # Why not all rows were mapped.
        self.note: str | None = None
        kind, payload = socket.receive(deadline)
        if kind != local.SCHEMA:
            # Whoever has made the connection closes it.
            raise (status(payload, query_id) if kind == local.END else None) or GoneError()
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(payload))

    def read_chunk(self) -> Chunk:
        """The next batch; `StopIteration` at the end, as pyarrow has it."""
        while True:
            batch = next(self._batches, None)
            if batch is not None:
                return Chunk(batch)
            stream = self._next_stream()
            if stream is None:
                raise StopIteration
            self._batches = iter(pa.ipc.open_stream(pa.BufferReader(stream)))

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            try:
                chunk = self.read_chunk()
            except StopIteration:
                return
            yield chunk

    def _next_stream(self) -> pa.Buffer | None:
        socket = self._socket
        if socket is None:
            return None
        try:
            kind, payload = socket.receive(self._deadline)
            if kind == local.END:
                self._end(socket, payload)
                return None
            if kind not in (local.MEMORY, local.BYTES):
                raise GoneError
            socket.send(local.TAKEN)
        except (OSError, GoneError):
            self.close()
            if self._cancelled:
                raise QueryCancelledError("the query was cancelled", query_id=self._query_id) from None
            raise UnavailableError("the server is gone, and the rest of the rows with it", query_id=self._query_id) from None
        except BaseException:
            self.close()
            raise
        if kind == local.BYTES and socket.why == _FOR_LIMITS:
            self.note = _LIMITED
        return payload

    def _end(self, socket: Socket, payload: bytes) -> None:
        """The call is over and the connection free for the next one."""
        self._socket = None
        self._give(socket)
        error = status(payload, self._query_id)
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Stops the query; from any thread."""
        self._cancelled = True
        socket = self._socket
        if socket is not None:
            socket.stop()

    def close(self) -> None:
        """Of rows that nobody wants any more the rest does not come."""
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()


class _Upload:
    def __init__(self, socket: Socket, deadline: float | None) -> None:
        self._socket = socket
        self._deadline = deadline
        self._under_way = 0
        self._result = b""

    def run(
        self, headers: list[tuple[bytes, bytes]], command: bytes, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> bytes:
        # A FlightDescriptor of the type CMD with the command.
        descriptor = flight.FlightDescriptor.for_command(command).serialize()
        try:
            self._socket.call(local.PUT, headers, descriptor)
            for group in _groups(batches):
                while self._under_way >= _AHEAD:
                    self._hear()
                self._socket.send_memory(schema, group)
                self._under_way += 1
            self._socket.send(local.DONE)
        except OSError:
            # What the server has said before it closed the connection says more.
            while self._hear():
                pass
            raise
        while self._hear():
            pass
        return self._result

    def _hear(self) -> bool:
        """One word of the server's; false for the last one."""
        kind, payload = self._socket.receive(self._deadline)
        if kind == local.TAKEN:
            self._under_way -= 1
        elif kind == local.RESULT:
            self._result = bytes(payload)
        elif kind == local.END:
            error = status(payload, None)
            if error is not None:
                raise error
            return False
        else:
            raise GoneError
        return True


def _both(head: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from head
    yield from rest


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= _MEMORY_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def status(payload: bytes, query_id: str | None) -> Error | None:
    """How a call has ended; none for a good end."""
    code = int.from_bytes(payload[:4], "little", signed=True)
    length = int.from_bytes(payload[4:8], "little")
    if code == 0:
        return None
    return from_status(code, bytes(payload[8 : 8 + length]).decode(errors="replace"), query_id)
