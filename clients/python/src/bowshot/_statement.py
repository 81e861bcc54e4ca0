"""Runs one statement: by the shortest way that tells what it gives, with its parameters as Arrow."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from bowshot import _messages as messages
from bowshot import _sql, _values
from bowshot._errors import Error, ProgrammingError, place_in
from bowshot._stream import Stream
from bowshot._wire import Wire, interruptible

Result = TypeVar("Result")

# Statements that only give rows, and those that only change something: of others the server tells.
_READS = frozenset(["SELECT", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "FROM", "PRAGMA", "SUMMARIZE"])
_WRITES = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "CREATE", "DROP", "ALTER", "TRUNCATE", "RENAME", "COMMENT"}
    | {"SET", "RESET", "USE", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"}
)
# How long somebody who stops a statement waits for its end, and how often that is looked for, in seconds.
_KILL_LIMIT = 10.0
_KILL_PAUSE = 0.03


@dataclass
class _Run:
    """A statement that has been sent and may not have answered yet."""

    text: str
    over: threading.Event


@dataclass
class Answer:
    """Rows, or the number of rows that were changed (-1 where the statement changes none)."""

    stream: Stream | None
    changed: int = -1


class Statements:
    """Runs the statements of a connection, and stops those that have not answered yet."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._running: dict[object, _Run] = {}

    def run(
        self,
        sql: str,
        parameters: Sequence[_sql.Parameters] | None,
        transaction: bytes | None,
        timeout: float | None,
        key: object,
    ) -> Answer:
        """`parameters` has one item for each execution; `key` names the run for `kill`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        rows: list[list[Any]] | None = None
        bound = _sql.Bound(sql)
        if parameters is not None:
            bound = _sql.bind(sql, bool(parameters) and isinstance(parameters[0], Mapping))
            rows = [bound.row(row) for row in parameters]
        call = _Call(self._wire, bound.sql, transaction, deadline)
        with self._placed(bound, sql), self._running_as(key, bound.sql) as run:
            if rows is not None and bound.keys:
                return self._waiting(run, lambda: call.prepared(rows))
            shape = _sql.shape(sql)
            if shape.statements > 1 or shape.first in _READS:
                return self._waiting(run, call.query)
            if shape.first in _WRITES and not shape.returning:
                return self._waiting(run, call.update)
            return self._waiting(run, lambda: call.prepared(None))

    def describe(self, sql: str, transaction: bytes | None) -> pa.Schema:
        """The columns that a query would have; nothing runs."""
        with self._placed(_sql.Bound(sql), sql):
            return self._wire.schema(messages.statement_query(sql, transaction))

    def kill(self, key: object | None = None) -> int:
        """Stops statements that have been sent and not answered: that of the key, or all. Gives how many there were."""
        with self._lock:
            runs = [run for owner, run in self._running.items() if key is None or owner is key]
        return sum(self._kill(run) for run in runs)

    def _kill(self, run: _Run) -> bool:
        """The server knows a statement by its id, which it tells with the answer; until then by session and text. One that has
        been sent may not be known yet, and a prepared one is described before it runs: so until it is over."""
        live = (
            "SELECT query_id, statement FROM bowshot.system.queries WHERE outcome NOT IN"
            f" ('finished', 'failed', 'cancelled') AND session_id = {_sql.literal(self._wire.session_id or '')}"
        )
        killed, limit = False, time.monotonic() + _KILL_LIMIT
        while not run.over.is_set() and time.monotonic() < limit:
            for row in self._wire.read(live):
                if _is_text(row["statement"], run.text):
                    killed = True
                    # One that ends meanwhile cannot be stopped any more.
                    with contextlib.suppress(Error):
                        self._wire.read(f"KILL QUERY {_sql.literal(row['query_id'])}")
            run.over.wait(_KILL_PAUSE)
        return killed

    def _waiting(self, run: _Run, work: Callable[[], Result]) -> Result:
        def whole() -> Result:
            try:
                return work()
            finally:
                run.over.set()

        def stop() -> None:
            with contextlib.suppress(Error):
                self._kill(run)

        return interruptible(whole, stop)

    @contextlib.contextmanager
    def _running_as(self, key: object, text: str) -> Iterator[_Run]:
        run = _Run(text, threading.Event())
        with self._lock:
            self._running[key] = run
        try:
            yield run
        finally:
            run.over.set()
            with self._lock:
                self._running.pop(key, None)

    @contextlib.contextmanager
    def _placed(self, bound: _sql.Bound, sql: str) -> Iterator[None]:
        try:
            yield
        except Error as error:
            raise place_in(error, sql, bound.sql, bound.origin) from None


def _is_text(shown: str, text: str) -> bool:
    """Whether the server shows that text, of which it may keep the beginning only."""
    return shown == text or (len(shown) > 100 and text.startswith(shown.rstrip("…")))


@dataclass
class _Call:
    wire: Wire
    sql: str
    transaction: bytes | None
    deadline: float | None

    def _left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.001)

    def query(self) -> Answer:
        return self._rows(messages.statement_query(self.sql, self.transaction))

    def _rows(self, command: bytes) -> Answer:
        stream = Stream(self.wire, self.wire.info(command, self._left()), self.deadline)
        if len(stream.schema) == 0:
            # A statement without rows has taken effect; its one endpoint has nothing to read.
            stream.close()
            return Answer(None)
        return Answer(stream)

    def update(self) -> Answer:
        return self._changes(messages.statement_update(self.sql, self.transaction), None)

    def _changes(self, command: bytes, values: pa.Table | None) -> Answer:
        table = pa.table({}) if values is None else values
        answer = self.wire.put(command, table.schema, _batches(values), self._left())
        return Answer(None, messages.update_count(answer) if answer else -1)

    def prepared(self, rows: list[list[Any]] | None) -> Answer:
        made = self.wire.sql_action("CreatePreparedStatement", messages.create_prepared(self.sql, self.transaction))
        handle = made.data(1)
        try:
            values = None if rows is None else _values.parameters(rows, _schema(made.data(3)))
            if made.number(4):
                return self._changes(messages.prepared_update(handle), values)
            command = messages.prepared_query(handle)
            if values is not None:
                if values.num_rows == 0:
                    raise ProgrammingError("there are no values to run the query with")
                self.wire.put(command, values.schema, _batches(values), self._left())
            return self._rows(command)
        finally:
            # The query has been started and goes on without it.
            with contextlib.suppress(Error):
                self.wire.action("ClosePreparedStatement", messages.close_prepared(handle))


def _batches(values: pa.Table | None) -> Iterator[pa.RecordBatch]:
    return iter(()) if values is None else iter(values.to_batches(max_chunksize=16_384))


def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data)) if data else pa.schema([])
