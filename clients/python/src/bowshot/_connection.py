"""A connection: PEP 249's, and the ways that keep rows as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

from bowshot import _catalog, _errors, _ingest, _partitions, _sql
from bowshot._config import Config
from bowshot._cursor import Cursor
from bowshot._errors import InterfaceError
from bowshot._messages import Mode, OptionValue
from bowshot._partitions import Partition
from bowshot._progress import Progress
from bowshot._result import Result
from bowshot._statement import Answer, Statements
from bowshot._transaction import Block, Transactions
from bowshot._upload import Upload
from bowshot._wire import Wire


class Connection:
    """Made by `bowshot.connect`. Threads may share it; they share its transaction too."""

    Warning = _errors.Warning
    Error = _errors.Error
    InterfaceError = _errors.InterfaceError
    DatabaseError = _errors.DatabaseError
    DataError = _errors.DataError
    OperationalError = _errors.OperationalError
    IntegrityError = _errors.IntegrityError
    InternalError = _errors.InternalError
    ProgrammingError = _errors.ProgrammingError
    NotSupportedError = _errors.NotSupportedError

    def __init__(self, config: Config) -> None:
        self._config = config
        self._wire = Wire(config)
        self._statements = Statements(self._wire)
        self._transactions = Transactions(self._wire, config.autocommit)
        self.timeout = config.timeout

    # --- PEP 249

    def cursor(self) -> Cursor:
        self._check_open()
        return Cursor(self)

    def begin(self) -> None:
        """Begins a transaction that lasts until `commit` or `rollback`; only of use with `autocommit`."""
        self._check_open()
        self._transactions.begin()

    def commit(self) -> None:
        self._end(True)

    def rollback(self) -> None:
        self._end(False)

    def close(self) -> None:
        """Rolls back what was not committed. Closing twice is fine."""
        self._wire.close()

    def _end(self, commit: bool) -> None:
        self._check_open()
        if self._transactions.blocks:
            raise _errors.ProgrammingError(
                "the transaction belongs to a block of `transaction()`", hint="it ends with the block"
            )
        self._transactions.end(commit)

    def __enter__(self) -> Connection:
        self._check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        """Commits if all went well, and closes."""
        try:
            if kind is None and not self.closed:
                self._transactions.end(True)
        finally:
            self.close()

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._transactions.autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        self._transactions.autocommit = autocommit

    @property
    def closed(self) -> bool:
        return self._wire.closed

    @property
    def transport(self) -> str:
        """`memory` while rows are shared with a server on this machine, else `socket`."""
        return "memory" if self._wire.same_host.open else "socket"

    @property
    def transport_note(self) -> str | None:
        """Why it is not memory."""
        return self._wire.same_host.reason

    @property
    def in_transaction(self) -> bool:
        return self._transactions.open

    @property
    def session_id(self) -> str | None:
        """The session's name in `system.queries`."""
        return self._wire.session_id

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")

    # --- statements

    def execute(self, sql: str, parameters: _sql.Parameters | None = None) -> Cursor:
        """A new cursor that has run the statement."""
        return self.cursor().execute(sql, parameters)

    def sql(
        self, query: str, params: _sql.Parameters | None = None, *, timeout: float | None = None, progress: bool | None = None
    ) -> Result:
        """Runs a statement; its rows come as Arrow when they are asked for.

        `timeout` is for the statement and the reading of its rows, in seconds. `progress` shows a bar on standard error;
        without it that depends on who sits before it: at an interactive terminal and in a notebook there is one.
        """
        key = object()
        shown = self._config.progress if progress is None else progress
        watched = Progress(self._progress_of_text(query)) if Progress.wanted(shown) else Progress.none()
        with watched:
            answer = self._run(query, None if params is None else [params], timeout, key)
        later = None
        if answer.stream is not None and Progress.wanted(shown):
            later = Progress(self._progress_of_query(answer.stream.query_id or ""))
        return Result(answer.stream, answer.changed, later)

    def _run(self, sql: str, parameters: Sequence[_sql.Parameters] | None, timeout: float | None, key: object) -> Answer:
        self._check_open()
        if not isinstance(sql, str):
            raise InterfaceError(f"a statement is a text, not `{type(sql).__name__}`")
        if self._steers_transaction(sql):
            return Answer(None)
        transaction = self._transactions.current()
        timeout = self.timeout if timeout is None else timeout
        return self._statements.run(sql, parameters, transaction, timeout, key)

    def _steers_transaction(self, sql: str) -> bool:
        """The statements of SQL that steer transactions mean ours, where there is one or would be one."""
        if self.autocommit and not self._transactions.open:
            return False
        steering = _sql.steering(sql)
        if steering is None:
            return False
        verb, name = steering
        if verb == "BEGIN":
            self._transactions.begin()
        elif verb in ("COMMIT", "ROLLBACK"):
            self._end(verb == "COMMIT")
        elif verb == "SAVEPOINT":
            self._transactions.mark(name)
        elif verb == "RELEASE":
            self._transactions.release(name)
        else:
            self._transactions.back_to(name)
        return True

    def ingest(
        self,
        table: str,
        data: Any,
        mode: Mode = "create",
        *,
        schema: str | None = None,
        catalog: str | None = None,
        temporary: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Writes rows into a table, all or none, and gives how many there were.

        `data` is a frame of pandas or Polars, anything of Arrow, the path of a Parquet, CSV or Arrow file or of a folder of
        Parquet files, an iterator of record batches, a list of dictionaries or a dictionary of columns. `mode` says what
        becomes of the table: `create` (an error if it is there), `append` (an error if it is not), `replace`,
        `create_append`.
        """
        self._check_open()
        return _ingest.write(
            self._wire,
            self._transactions,
            data,
            table=table,
            mode=mode,
            schema=schema,
            catalog=catalog,
            temporary=temporary,
            timeout=self.timeout if timeout is None else timeout,
        )

    def partitions(
        self,
        query: str,
        params: _sql.Parameters | None = None,
        *,
        count: int | None = None,
        column: str | None = None,
        ordered: bool = False,
    ) -> list[Partition]:
        """The rows of a query in parts, each of which any process may read: they can be pickled.

        Without `column` the query runs now and once, and the server keeps its result until nobody has read of it for
        `limits.result_timeout`; there are up to `count` parts, one for each endpoint. With a `column` of numbers, dates or
        timestamps each part is a range of it, a query of its own that runs when it is read; `ordered` sorts its rows. They see
        what is committed, nothing of an open transaction.
        """
        self._check_open()
        return _partitions.plan(self._config, _partitions.as_query(query), params, count=count, column=column, ordered=ordered)

    def upload(self, table: str, mode: Mode = "create", *, temporary: bool = True) -> Upload:
        """Rows from several processes as one change: each process calls `put` of what this gives, and one of them `commit`
        with what they have returned. `mode` is as for `ingest`. The parts wait in temporary tables, whose memory is bounded
        (`storage.temporary_bytes`), or with `temporary=False` in tables beside the target."""
        self._check_open()
        return Upload.begin(self._config, table, mode, temporary=temporary)

    def transaction(self) -> Block:
        """A block that commits at its end and rolls back if it fails; within another one it is a savepoint."""
        self._check_open()
        return Block(self._transactions)

    def cancel(self) -> int:
        """Stops the statements that have been sent and not answered, from another thread; gives how many there were. A
        result that is being read has a `cancel` of its own."""
        self._check_open()
        return self._statements.kill()

    # --- what there is

    def catalogs(self) -> list[str]:
        return _catalog.catalogs(self._rows)

    def schemas(self, catalog: str | None = None) -> list[str]:
        return _catalog.schemas(self._rows, catalog)

    def tables(
        self, schema: str | None = None, *, catalog: str | None = None, like: str | None = None
    ) -> list[_catalog.TableName]:
        """Tables and views that may be seen; without a schema not those about the server."""
        return _catalog.tables(self._rows, catalog, schema, like)

    def table(self, name: str, *, schema: str | None = None, catalog: str | None = None) -> _catalog.Table:
        """A table by its name, or by `schema.name`."""
        return _catalog.Table(_catalog.path(name, schema, catalog), self.sql, self._describe, self._rows)

    def _describe(self, sql: str) -> pa.Schema:
        self._check_open()
        return self._statements.describe(sql, self._transactions.current())

    def _rows(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        answer = self._run(sql, [values] if values else None, None, object())
        return list(Result(answer.stream))

    # --- the session

    @property
    def options(self) -> dict[str, OptionValue]:
        """The options of the session that are in force."""
        return self._wire.get_options()

    def set_options(self, **options: OptionValue) -> None:
        """Sets options of the session; None goes back to the default."""
        self._wire.set_options(options)

    # --- progress

    def _progress_of_text(self, sql: str) -> Any:
        condition = f"session_id = {_sql.literal(self.session_id or '')} AND statement = {_sql.literal(sql)}"
        return lambda: self._progress(condition)

    def _progress_of_query(self, query_id: str) -> Any:
        return lambda: self._progress(f"query_id = {_sql.literal(query_id)}")

    def _progress(self, condition: str) -> tuple[float | None, int] | None:
        found = self._wire.read(
            "SELECT progress, rows FROM bowshot.system.queries WHERE outcome NOT IN ('finished', 'failed', 'cancelled')"
            f" AND {condition}"
        )
        return (found[0]["progress"], found[0]["rows"]) if found else None
