"""One server as this client speaks to it: calls of Flight with the session's headers, errors as exceptions of this package.

Everything here may be called from several threads. Calls block; those that can take long are run with `interruptible`, so
that Ctrl-C reaches the program before the server has answered.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from bowshot import _messages as messages
from bowshot._config import Config
from bowshot._errors import Error, InterfaceError, ProgrammingError, UnauthenticatedError, UnavailableError, translate
from bowshot._messages import OptionValue
from bowshot._nodes import Nodes
from bowshot._oidc import login
from bowshot._protobuf import Message
from bowshot._same_host import HEADER, Reader, SameHost
from bowshot._threads import start

Result = TypeVar("Result")
Item = TypeVar("Item")
COOKIE = "arrow_flight_session_id"
# A server that is being started refuses connections for a moment. Nothing has been sent then, so that trying again is safe.
_CONNECT_PAUSES = (0.1, 0.4)
# What pyarrow raises; KeyError and the like are base classes of its own.
FAILURES = (pa.ArrowException, flight.FlightError, pa.ArrowKeyError, OSError)


class _Cookies(flight.ClientMiddlewareFactory):  # type: ignore[misc]
    """Keeps the session's cookie and sends it with each call: a session that is gone is then an error of the next call and
    not a new session without the options and transactions of the old one."""

    def __init__(self) -> None:
        super().__init__()
        self.session: str | None = None
        # Whether calls ask for a way beside the network, and what the server has said to that.
        self.asks = False
        self.offer: str | None = None

    def start_call(self, _info: Any) -> flight.ClientMiddleware:
        return _Cookie(self)


class _Cookie(flight.ClientMiddleware):  # type: ignore[misc]
    def __init__(self, cookies: _Cookies) -> None:
        super().__init__()
        self._cookies = cookies

    def sending_headers(self) -> dict[str, str]:
        session = self._cookies.session
        asked = {HEADER: "1"} if self._cookies.asks else {}
        return {"cookie": f"{COOKIE}={session}", **asked} if session else asked

    def received_headers(self, headers: dict[str, list[str | bytes]]) -> None:
        for text in headers.get("set-cookie", []):
            text = text.decode() if isinstance(text, bytes) else text
            name, _, value = text.split(";")[0].partition("=")
            if name.strip() == COOKIE:
                self._cookies.session = value.strip()
        for text in headers.get(HEADER, []):
            self._cookies.offer = text.decode() if isinstance(text, bytes) else text


class Wire:
    """With `session` it joins one that another connection has begun, maybe in another process."""

    def __init__(self, config: Config, session: str | None = None) -> None:
        self.config = config
        self._cookies = _Cookies()
        self._cookies.session = session
        self._joined = session is not None
        self._headers = _Headers(config)
        self._lanes: list[flight.FlightClient] = []
        self._lock = threading.Lock()
        self._closed = False
        self.same_host = SameHost(config.same_host, functools.partial(_local_headers, self._headers, self._cookies))
        self._cookies.asks = self.same_host.reason is None
        self.nodes: Nodes[Wire] = Nodes(config, Wire)
        try:
            # A person may have to log in: not in another thread, so that Ctrl-C ends it.
            self._headers.now()
            interruptible(self._connect)
        except BaseException:
            # Others may have joined the session too.
            if self._joined:
                self.leave()
            else:
                self.close()
            raise

    @property
    def session_id(self) -> str | None:
        return self._cookies.session

    @property
    def closed(self) -> bool:
        return self._closed

    def _connect(self) -> None:
        for pause in (*_CONNECT_PAUSES, None):
            try:
                self._log_in()
                return
            except UnauthenticatedError:
                # A token that was kept may have been taken back since. Once: a person is asked no more often.
                if not self._headers.forget_token():
                    raise
                self._log_in()
                return
            except UnavailableError:
                if pause is None:
                    raise
                self._forget_lanes()
                time.sleep(pause)

    def _log_in(self) -> None:
        config, timeout = self.config, self.config.connect_timeout
        if config.user is not None:
            with translated():
                options = flight.FlightCallOptions(timeout=timeout, headers=self._headers.now())
                header = self.lane(0).authenticate_basic_token(config.user, config.password or "", options)
            self._headers.add(header)
        elif config.token is not None:
            self._headers.add(_bearer(config.token))
        if self._joined:
            # Setting options would begin a new session where the old one is gone; this tells.
            self.get_options()
        else:
            self.set_options(dict(config.options), timeout)
        self._cookies.asks = False
        self.same_host.settle(self._cookies.offer)

    def lane(self, number: int) -> flight.FlightClient:
        """A connection of its own for each number; endpoints are read side by side over several of them."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            while len(self._lanes) <= number:
                self._lanes.append(self._new_lane())
            return self._lanes[number]

    def _new_lane(self) -> flight.FlightClient:
        _forks.check()
        config = self.config
        tls: dict[str, Any] = {}
        if config.tls:
            tls = {
                "tls_root_certs": config.tls_ca,
                "cert_chain": config.tls_cert,
                "private_key": config.tls_key,
                "override_hostname": config.tls_server_name,
                "disable_server_verification": not config.tls_verify,
            }
        with translated():
            return flight.FlightClient(config.location, middleware=[self._cookies], **tls)

    def options(self, timeout: float | None = None) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=timeout, headers=self._headers.now())

    def info(self, command: bytes, timeout: float | None = None) -> flight.FlightInfo:
        descriptor = flight.FlightDescriptor.for_command(command)
        with translated():
            return self.lane(0).get_flight_info(descriptor, self.options(timeout))

    def schema(self, command: bytes) -> pa.Schema:
        descriptor = flight.FlightDescriptor.for_command(command)
        with translated():
            return self.lane(0).get_schema(descriptor, self.options()).schema

    def action(self, name: str, body: bytes, timeout: float | None = None) -> bytes:
        """Runs an action; gives the body of its result, empty without one."""
        with translated():
            results = list(self.lane(0).do_action(flight.Action(name, body), self.options(timeout)))
        return bytes(results[-1].body) if results else b""

    def sql_action(self, name: str, body: bytes) -> Message:
        """Runs an action of Flight SQL, whose messages are wrapped."""
        return messages.unwrap(self.action(name, body))

    def put(self, command: bytes, schema: pa.Schema, batches: Iterable[pa.RecordBatch], timeout: float | None = None) -> bytes:
        """Writes batches; gives what the server says to them. If `batches` raises, the stream has ended early, and it is
        for the caller to undo what it did."""
        descriptor = flight.FlightDescriptor.for_command(command)
        with translated():
            writer, reader = self.lane(0).do_put(descriptor, schema, self.options(timeout))
            with contextlib.ExitStack() as stack:
                stack.callback(_close_quietly, writer)
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()
                answer = reader.read()
                stack.pop_all()
                writer.close()
        return b"" if answer is None else answer.to_pybytes()

    def get(
        self, ticket: flight.Ticket, lane: int, timeout: float | None, query_id: str | None = None
    ) -> Reader | flight.FlightStreamReader:
        """The rows of a ticket: in shared memory, else over a connection."""
        client = self.lane(lane)
        reader = self.same_host.read(ticket.ticket, timeout, query_id)
        return client.do_get(ticket, self.options(timeout)) if reader is None else reader

    def get_from(
        self, endpoint: flight.FlightEndpoint, lane: int, timeout: float | None, query_id: str | None = None
    ) -> Reader | flight.FlightStreamReader:
        """The rows of an endpoint, from the node that has them if this client can go there."""
        return (self.nodes.at(endpoint) or self).get(endpoint.ticket, lane, timeout, query_id)

    def ingest(
        self, command: bytes, schema: pa.Schema, batches: Iterable[pa.RecordBatch], timeout: float | None = None
    ) -> bytes:
        """As `put`, for many rows: in shared memory if that is possible."""
        self.lane(0)
        answer, batches = self.same_host.write(command, schema, batches, timeout)
        return self.put(command, schema, batches, timeout) if answer is None else answer

    def set_options(self, options: dict[str, OptionValue], timeout: float | None = None) -> None:
        body = messages.set_session_options(options)
        for name, reason in messages.failed_options(self.action("SetSessionOptions", body, timeout)).items():
            raise ProgrammingError(f"session option `{name}` = {options.get(name)!r}: {reason}")

    def get_options(self) -> dict[str, OptionValue]:
        return messages.session_options(self.action("GetSessionOptions", b""))

    def cancel(self, info: flight.FlightInfo) -> None:
        """Stops the query behind an answer, whoever reads it."""
        self.action("CancelFlightInfo", messages.cancel_flight_info(info.serialize()), timeout=10)

    def read(self, sql: str) -> list[dict[str, Any]]:
        """A small result outside of every transaction."""
        with translated():
            ticket = flight.Ticket(messages.statement_query(sql, None))
            reader = self.lane(0).do_get(ticket, self.options(timeout=10))
            return [row for chunk in reader for row in chunk.data.to_pylist()]

    def leave(self) -> None:
        """Closes the connection and leaves the session to those who have joined it, or will."""
        with self._lock:
            self._lanes = []
            self._closed = True
        self.same_host.close()
        self.nodes.close()

    def close(self) -> None:
        """Ends the session; a server that is gone has ended it already.

        Connections end when nobody holds them any more: to close one that another thread is about to call crashes pyarrow.
        """
        with self._lock:
            lanes, self._lanes = self._lanes, []
            closed, self._closed = self._closed, True
        self.same_host.close()
        self.nodes.close()
        if not closed and lanes and self._cookies.session:
            with contextlib.suppress(*FAILURES):
                list(lanes[0].do_action(flight.Action("CloseSession", b""), self.options(timeout=2)))
        lanes.clear()

    def _forget_lanes(self) -> None:
        with self._lock:
            self._lanes = []


class _Headers:
    """What each call carries. A token of an identity provider is renewed on the way."""

    def __init__(self, config: Config) -> None:
        self._fixed = [(name.lower().encode(), value.encode()) for name, value in config.headers.items()]
        self._login = None if config.oidc is None else login(config.oidc)

    def add(self, header: tuple[bytes, bytes]) -> None:
        self._fixed.append(header)

    def now(self) -> list[tuple[bytes, bytes]]:
        return self._fixed if self._login is None else [*self._fixed, _bearer(self._login.token())]

    def forget_token(self) -> bool:
        """Whether there may be another one."""
        if self._login is not None:
            self._login.forget()
        return self._login is not None


def _bearer(token: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {token}".encode())


def _local_headers(headers: _Headers, cookies: _Cookies) -> list[tuple[bytes, bytes]]:
    """What a call over the network has by itself."""
    session = cookies.session
    return [*headers.now(), (b"cookie", f"{COOKIE}={session}".encode())] if session else headers.now()


class _Forks:
    """gRPC has threads that a fork does not copy: calls of the child would wait for ever."""

    def __init__(self) -> None:
        self._used = self._broken = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._broken = self._used

    def check(self) -> None:
        if self._broken:
            raise InterfaceError(
                "this process was forked from one that had connections, which works for none of them",
                hint="start processes with `spawn` or `forkserver`: multiprocessing.get_context('spawn')",
            )
        self._used = True


_forks = _Forks()


def _close_quietly(writer: Any) -> None:
    with contextlib.suppress(*FAILURES):
        writer.close()


@contextlib.contextmanager
def translated(query_id: str | None = None) -> Iterator[None]:
    """Failures of pyarrow within become exceptions of this package."""
    try:
        yield
    except Error:
        raise
    except FAILURES as error:
        raise translate(error, query_id) from None


# How long work that was stopped is waited for, in seconds.
_PATIENCE = 5.0


def interruptible(work: Callable[[], Result], interrupted: Callable[[], None] | None = None) -> Result:
    """Does work that blocks outside of Python so that Ctrl-C is heard at once; `interrupted` is then called to stop it.

    Signals are for the main thread alone: in others the work is just done.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    # Not by a lock: an interrupt that comes while one is taken leaves it taken.
    ended: queue.SimpleQueue[tuple[list[Result], BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put(([work()], None))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            ended.put(([], error))

    thread = start(run, name="bowshot-call")
    try:
        results, error = _awaited(ended)
    except BaseException:
        if interrupted is not None:
            interrupted()
            # Freeing what was read takes a moment, and an interpreter that ends meanwhile breaks down.
            thread.join(_PATIENCE)
        raise
    if error is not None:
        try:
            raise error
        finally:
            # Not a cycle: the frame would keep the error, and the error the frame.
            del error
    return results[0]


def _awaited(ended: queue.SimpleQueue[Item]) -> Item:
    while True:
        try:
            # With a timeout the wait can be interrupted on Windows too.
            return ended.get(timeout=1.0)
        except queue.Empty:
            continue
