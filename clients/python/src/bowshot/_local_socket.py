"""A connection over the server's Unix socket: frames, descriptors of memory, and maps of it that live as long as buffers of
Arrow's point into them.

What has to be done when such a buffer goes, or a connection is forgotten, is done by a thread of its own (`_farewell`): code of
Python that runs where an object goes (`__del__`) would swallow a Ctrl-C that comes in this moment.
"""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
from typing import Any

import pyarrow as pa

from bowshot._errors import OperationalError, StatementTimeoutError
from bowshot._farewell import Farewell

# Kinds of frames: what clients say, what both say, what the server says.
GET, TAKEN, RELEASE, PUT, MEMORY, DONE = 1, 2, 3, 4, 5, 6
HELLO, SCHEMA, BYTES, RESULT, END = 16, 17, 18, 19, 20

_GREETING = b"BOWSHOT\x01"
_HEAD = struct.Struct("<BI")
_MEMORY = struct.Struct("<IQ")
_CONNECT_TIMEOUT = 5.0
# Of fcntl(2); older versions of Python have no names for them.
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEAL_SHRINK, _SEAL_GROW, _SEAL_WRITE = 2, 4, 8


class _Forks:
    """How often this process has been forked off, or was forked: both ends have the same maps then."""

    count = 0

    @classmethod
    def add(cls) -> None:
        cls.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Forks.add)


class GoneError(Exception):
    """The server has closed the connection, or does not speak the protocol."""


class RefusedError(Exception):
    """The server does not take this client; the text says why."""


class Socket:
    """One connection. One thread at a time calls; others may `stop` it and give memory back."""

    def __init__(self, path: str, name: bytes) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sending = threading.Lock()
        self._released: collections.deque[int] = collections.deque()
        self._closed = False
        self._process = os.getpid()
        # Why the rows that came last came through the socket.
        self.why = 0
        try:
            self._socket.connect(path)
            kind, payload = self.receive(time.monotonic() + _CONNECT_TIMEOUT)
            if kind == END:
                length = int.from_bytes(payload[4:8], "little")
                raise RefusedError(bytes(payload[8 : 8 + length]).decode(errors="replace"))
            # Credentials are for the server that has named this path, and not for another one that has the same.
            if kind != HELLO or bytes(payload) != _GREETING + name:
                raise RefusedError("another server answers there")
        except BaseException:
            self._socket.close()
            raise
        _Forgotten(self, self._socket)

    # --- sending

    def call(self, kind: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        parts = [struct.pack("<H", len(headers))]
        for text in (text for header in headers for text in header):
            parts += [struct.pack("<H", len(text)), text]
        self.send(kind, b"".join(parts) + body)

    def send(self, kind: int, payload: bytes = b"") -> None:
        with self._sending:
            self._socket.sendall(_release(self._free()) + _HEAD.pack(kind, len(payload)) + payload)

    def _free(self) -> list[int]:
        """What nobody has any more. To be called with the lock."""
        numbers = []
        with contextlib.suppress(IndexError):
            while True:
                numbers.append(self._released.popleft())
        return numbers

    def give_back(self, number: int) -> None:
        """Nobody has the memory any more. Never waits: it may be called from anywhere, also while this thread sends."""
        self._released.append(number)
        while self._released and not self._closed and self._sending.acquire(blocking=False):
            numbers = self._free()
            try:
                # Frames are small, so that they go whole or not at all.
                if numbers:
                    self._socket.send(_release(numbers), socket.MSG_DONTWAIT)
            except OSError:
                # The socket is full: they go with the next frame. Or it is gone, and the server knows.
                self._released.extend(numbers)
                return
            finally:
                self._sending.release()

    def send_memory(self, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
        """Rows as one stream in memory that nobody can change any more."""
        import fcntl

        descriptor = os.memfd_create("bowshot", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with pa.OSFile(f"/proc/self/fd/{descriptor}", "wb") as file, pa.ipc.new_stream(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_WRITE)
            with self._sending:
                self._socket.sendall(_release(self._free()))
                socket.send_fds(self._socket, [_HEAD.pack(MEMORY, 0)], [descriptor])
        finally:
            os.close(descriptor)

    # --- receiving

    def receive(self, deadline: float | None) -> tuple[int, Any]:
        """Kind and rest of the next frame; of rows the buffer that they lie in."""
        head, descriptors = b"", []
        try:
            while len(head) < _HEAD.size:
                self._wait(deadline)
                data, came, flags, _ = socket.recv_fds(self._socket, _HEAD.size - len(head), 1, socket.MSG_CMSG_CLOEXEC)
                descriptors += came
                if not data:
                    raise GoneError
                if flags & socket.MSG_CTRUNC:
                    raise OperationalError("this process has too many open files to map a result", hint="raise `ulimit -n`")
                head += data
            kind, length = _HEAD.unpack(head)
            if kind == BYTES:
                self.why = self._exactly(1, deadline)[0]
                buffer = pa.allocate_buffer(length - 1)
                self._fill(memoryview(buffer), deadline)
                return kind, buffer
            payload = self._exactly(length, deadline)
            if kind == MEMORY:
                if not descriptors:
                    raise GoneError
                return kind, self._map(descriptors[0], *_MEMORY.unpack(payload))
            return kind, payload
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _map(self, descriptor: int, number: int, length: int) -> pa.Buffer:
        import fcntl

        # A page that is cut off while it is read would end this process.
        if not fcntl.fcntl(descriptor, _F_GET_SEALS) & _SEAL_SHRINK:
            raise GoneError
        arguments: dict[str, Any] = {"flags": mmap.MAP_SHARED, "prot": mmap.PROT_READ}
        if sys.version_info >= (3, 13):
            # A map needs no descriptor.
            arguments["trackfd"] = False
        try:
            pages = pa.py_buffer(mmap.mmap(descriptor, length, **arguments))
        except OSError as error:
            raise OperationalError(f"memory of the server cannot be mapped: {error}") from None
        lease = _Lease(pages)
        _Ended(lease, self, number)
        return pa.foreign_buffer(pages.address, length, lease)

    def _exactly(self, length: int, deadline: float | None) -> bytearray:
        payload = bytearray(length)
        self._fill(memoryview(payload), deadline)
        return payload

    def _fill(self, place: memoryview, deadline: float | None) -> None:
        at = 0
        while at < len(place):
            self._wait(deadline)
            came = self._socket.recv_into(place[at:])
            if came == 0:
                raise GoneError
            at += came

    def _wait(self, deadline: float | None) -> None:
        """Not by the socket's own timeout, which would count for other threads that send, too."""
        if deadline is None:
            return
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        # The time may be over although there are rows: whoever takes them is slow.
        if left <= 0 or not poll.poll(left * 1000):
            raise StatementTimeoutError("the time for the call is over; allow more with `timeout`, or ask for less")

    # --- the end

    def stop(self) -> None:
        """Ends what another thread waits for."""
        self._closed = True
        if os.getpid() != self._process:
            # Of a process that was forked: the connection is its parent's.
            return
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """What is mapped stays."""
        self._closed = True
        self._socket.close()


def _release(numbers: list[int]) -> bytes:
    """A frame that gives memory back; nothing without any."""
    if not numbers:
        return b""
    return _HEAD.pack(RELEASE, 4 * len(numbers)) + struct.pack(f"<{len(numbers)}I", *numbers)


class _Lease:
    """Goes when no buffer of Arrow's points into a map any more."""

    __slots__ = ("__weakref__", "_pages")

    def __init__(self, pages: pa.Buffer) -> None:
        self._pages = pages


class _Ended(Farewell):
    """The server may fill the memory of a lease again. After a fork two processes have the map, of which neither knows when the
    other one is done: then the memory is never given back, and goes with both."""

    __slots__ = ("_forks", "_number", "_socket")

    def __init__(self, _lease: _Lease, socket: Socket, number: int) -> None:
        self._socket = socket
        self._number = number
        self._forks = _Forks.count

    def run(self) -> None:
        if self._forks == _Forks.count:
            self._socket.give_back(self._number)


class _Forgotten(Farewell):
    """A connection that is forgotten is closed without complaints, as those of Flight are."""

    __slots__ = ("_socket",)

    def __init__(self, _of: Socket, socket: socket.socket) -> None:
        self._socket = socket

    def run(self) -> None:
        self._socket.close()
