"""Rows from several processes into one table, as one change.

Each part goes into a temporary table of one session that all processes share, and the commit moves what has arrived whole.
So a worker that dies, is tried again or runs twice leaves nothing behind: only parts whose name was handed over count, and
the session's end takes the rest away.
"""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from bowshot import _catalog, _ingest, _sql
from bowshot import _messages as messages
from bowshot._config import Config
from bowshot._errors import Error, InterfaceError, ProgrammingError
from bowshot._statement import Statements
from bowshot._wire import Wire

_PREFIX = "bowshot_upload_"


@dataclass(frozen=True)
class Upload:
    """Made by `Connection.upload`. It can be pickled: workers `put`, one process commits or aborts. It has with it what the
    connection was made from, secrets too."""

    table: str
    mode: str
    session: str = field(repr=False)
    config: Config = field(repr=False)
    # Whether the parts wait in memory of the session, or in tables beside the target, which may be larger.
    temporary: bool = True

    @staticmethod
    def begin(config: Config, table: str, mode: str, *, temporary: bool = True) -> Upload:
        if mode not in messages.MODES:
            raise ProgrammingError(f"`{mode}` is no mode of upload", hint=f"there are {', '.join(messages.MODES)}")
        # Found out before rows are on their way.
        names = _sql.parts(table)
        # The session gets no transaction: uploads would be part of it.
        wire = Wire(dataclasses.replace(config, autocommit=True))
        session = wire.session_id
        # A session that no call has named ends with its connection.
        wire.get_options()
        wire.leave()
        if session is None:
            raise InterfaceError("the server has given the session no name")
        return Upload(".".join(map(_sql.quote, names)), mode, session, config, temporary)

    def put(self, data: Any) -> str:
        """Uploads a part: whatever `ingest` takes. Gives its name for `commit`."""
        name = f"{_PREFIX}{uuid.uuid4().hex}"
        columns, batches = _ingest.batches_of(data)
        catalog, schema = (None, None) if self.temporary else self._place()
        command = messages.ingest(
            name, mode="create", schema=schema, catalog=catalog, temporary=self.temporary, transaction=None
        )
        wire = Wire(self.config, self.session)
        try:
            wire.ingest(command, columns, _ingest.sized(batches), self.config.timeout)
        except BaseException:
            with contextlib.suppress(Error):
                self._drop(wire, [name])
            raise
        finally:
            wire.leave()
        return name

    def commit(self, parts: Iterable[str], schema: pa.Schema | None = None) -> int:
        """Writes the rows of these parts into the table, all or none; gives how many there were. `schema` are the columns of
        the table where there are no parts. The upload is over, whether this goes well or not."""
        parts = list(parts)
        wire = Wire(self.config, self.session)
        try:
            scope = _ingest.Own(wire)
            try:
                rows = self._move(wire, scope.handle, parts, schema)
            except BaseException:
                with contextlib.suppress(Error):
                    scope.end(False)
                raise
            scope.end(True)
            return rows
        finally:
            self._end(wire, parts)

    def abort(self, parts: Iterable[str] = ()) -> None:
        """Takes everything away."""
        with contextlib.suppress(Error):
            self._end(Wire(self.config, self.session), list(parts))

    def _move(self, wire: Wire, handle: bytes, parts: list[str], schema: pa.Schema | None) -> int:
        statements = Statements(wire)
        if schema is None and parts:
            schema = statements.describe(f"SELECT * FROM {self._stage(parts[0])}", handle)
        if schema is None:
            if self.mode == "append":
                return 0
            raise ProgrammingError("there are no rows, so that nobody knows the columns", hint="give `schema`")
        names = _sql.parts(self.table)
        catalog, space, table = [None] * (3 - len(names)) + names
        command = messages.ingest(
            str(table), mode=self.mode, schema=space, catalog=catalog, temporary=False, transaction=handle
        )
        wire.put(command, schema, schema.empty_table().to_batches(), self.config.timeout)
        rows = 0
        for part in parts:
            move = f"INSERT INTO {self.table} BY NAME SELECT * FROM {self._stage(part)}"
            rows += max(0, statements.run(move, None, handle, self.config.timeout, object()).changed)
        return rows

    def _place(self) -> tuple[str | None, str | None]:
        names = _sql.parts(self.table)
        catalog, schema = ([None, None, *names[:-1]])[-2:]
        return catalog, schema

    def _stage(self, part: str) -> str:
        """As it stands in SQL."""
        if not part.startswith(_PREFIX):
            raise ProgrammingError(f"`{part}` is no part of an upload", hint="give what `put` has returned")
        if self.temporary:
            return f"temp.main.{_sql.quote(part)}"
        catalog, schema = self._place()
        return _catalog.path(_sql.quote(part), None, None) if schema is None else _catalog.path(part, schema, catalog)

    def _drop(self, wire: Wire, parts: list[str]) -> None:
        statements = Statements(wire)
        for part in parts:
            statements.run(f"DROP TABLE IF EXISTS {self._stage(part)}", None, None, None, object())

    def _end(self, wire: Wire, parts: list[str]) -> None:
        """Temporary tables end with the session."""
        try:
            if not self.temporary:
                with contextlib.suppress(Error):
                    self._drop(wire, parts)
        finally:
            wire.close()
