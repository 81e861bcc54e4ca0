"""The cursor of PEP 249."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from bowshot import _sql, _values
from bowshot._errors import InterfaceError, ProgrammingError, UnsupportedError
from bowshot._result import Result

if TYPE_CHECKING:
    from bowshot._connection import Connection


class Cursor:
    """Runs statements one after another; a new one ends the reading of the one before."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result: Result | None = None
        self._rows: Iterator[_values.Row] = iter(())
        self._fetched = 0
        self._closed = False

    @property
    def description(self) -> list[_values.Description] | None:
        """Seven items for each column; the second is the Arrow type, equal to `bowshot.NUMBER` and the like."""
        if self._result is None or len(self._result.schema) == 0:
            return None
        return _values.description(self._result.schema)

    @property
    def rowcount(self) -> int:
        return -1 if self._result is None else self._result.rowcount

    @property
    def rownumber(self) -> int | None:
        return None if self.description is None else self._fetched

    @property
    def query_id(self) -> str | None:
        return None if self._result is None else self._result.query_id

    def execute(self, operation: str, parameters: _sql.Parameters | None = None, *, timeout: float | None = None) -> Cursor:
        """Runs a statement. Its parameters are in one of the styles `?`, `$1`, `:1`, `%s`, or `:name`, `$name`, `%(name)s`."""
        return self._run(operation, None if parameters is None else [parameters], timeout)

    def executemany(
        self, operation: str, seq_of_parameters: Sequence[_sql.Parameters], *, timeout: float | None = None
    ) -> Cursor:
        """Runs a statement once for each item, as one change. What gives rows gives those of all runs."""
        items = list(seq_of_parameters)
        if not items:
            self._reset()
            self._result = Result(None, 0)
            return self
        if any(isinstance(item, Mapping) != isinstance(items[0], Mapping) for item in items):
            raise ProgrammingError("some parameters have names and some have none")
        return self._run(operation, items, timeout)

    def _run(self, sql: str, parameters: Sequence[_sql.Parameters] | None, timeout: float | None) -> Cursor:
        self._check_open()
        self._reset()
        answer = self.connection._run(sql, parameters, timeout, self)
        self._result = Result(answer.stream, answer.changed)
        return self

    def _reset(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result, self._rows, self._fetched = None, iter(()), 0

    def _reading(self) -> Result:
        self._check_open()
        if self._result is None or self.description is None:
            raise ProgrammingError("there are no rows to fetch", hint="execute a query before")
        return self._result

    def _iterate(self) -> Iterator[_values.Row]:
        result = self._reading()
        if self._fetched == 0 and not result.taken:
            self._rows = iter(result)
        return self._rows

    def fetchone(self) -> _values.Row | None:
        row = next(self._iterate(), None)
        self._fetched += row is not None
        return row

    def fetchmany(self, size: int | None = None) -> list[_values.Row]:
        rows = list(itertools.islice(self._iterate(), self.arraysize if size is None else size))
        self._fetched += len(rows)
        return rows

    def fetchall(self) -> list[_values.Row]:
        rows = list(self._iterate())
        self._fetched += len(rows)
        return rows

    def __iter__(self) -> Iterator[_values.Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetch_arrow_table(self) -> pa.Table:
        """All rows as a table; not after some of them were fetched otherwise."""
        return self._reading().arrow()

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """The rows as a reader."""
        return self._reading().reader()

    def fetch_df(self) -> Any:
        """All rows as a frame of pandas."""
        return self._reading().df()

    def cancel(self) -> None:
        """Stops what the cursor runs or reads; may be called from another thread."""
        result = self._result
        if result is not None:
            result.cancel()
        else:
            self.connection._statements.kill(self)

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> NoReturn:  # noqa: ARG002 - PEP 249's
        raise UnsupportedError("there are no stored procedures")

    def nextset(self) -> None:
        """A text with several statements gives the rows of the last one."""
        return

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Types come from the values."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Values have any size."""

    def close(self) -> None:
        self._closed = True
        self._reset()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self.connection.closed:
            raise InterfaceError("the connection is closed")

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
