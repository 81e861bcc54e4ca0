"""The one transaction of a connection, with its savepoints."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from bowshot import _messages as messages
from bowshot._errors import Error, ProgrammingError
from bowshot._wire import Wire


class Transactions:
    """With autocommit each statement is a transaction, unless a block has begun one; without it the first statement
    begins one that lasts until `commit` or `rollback`."""

    def __init__(self, wire: Wire, autocommit: bool) -> None:
        self._wire = wire
        self._lock = threading.RLock()
        self._handle: bytes | None = None
        self._savepoints = 0
        self._named: list[tuple[str, bytes]] = []
        self.blocks = 0
        self._autocommit = autocommit

    @property
    def open(self) -> bool:
        return self._handle is not None

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        if self.open and autocommit != self._autocommit:
            raise ProgrammingError("autocommit cannot be changed in a transaction", hint="call `commit` or `rollback` before")
        self._autocommit = autocommit

    def current(self) -> bytes | None:
        """The transaction that the next statement belongs to; begins one if the connection wants that."""
        with self._lock:
            if self._handle is None and not self._autocommit:
                self.begin()
            return self._handle

    def begin(self) -> bytes:
        with self._lock:
            if self._handle is not None:
                raise ProgrammingError("a transaction is open already", hint="savepoints are what nests")
            self._handle = self._wire.sql_action("BeginTransaction", messages.begin_transaction()).data(1)
            return self._handle

    def end(self, commit: bool) -> None:
        """Whatever the server says, the transaction is over: one whose commit has failed was rolled back."""
        with self._lock:
            handle, self._handle = self._handle, None
            self._named.clear()
            if handle is not None:
                self._wire.action("EndTransaction", messages.end_transaction(handle, commit))

    def savepoint(self, name: str | None = None) -> bytes:
        with self._lock:
            handle = self.current()
            if handle is None:
                raise ProgrammingError("a savepoint needs a transaction", hint="begin one with `transaction()`")
            self._savepoints += 1
            name = name or f"bowshot_{self._savepoints}"
            return self._wire.sql_action("BeginSavepoint", messages.begin_savepoint(handle, name)).data(1)

    def end_savepoint(self, savepoint: bytes, release: bool) -> None:
        self._wire.action("EndSavepoint", messages.end_savepoint(savepoint, release))

    def mark(self, name: str) -> None:
        """`SAVEPOINT name`"""
        with self._lock:
            self._named.append((name, self.savepoint(name)))

    def back_to(self, name: str) -> None:
        """`ROLLBACK TO name`: the savepoint stays, those behind it are gone."""
        with self._lock:
            at, handle = self._find(name)
            self.end_savepoint(handle, False)
            self._named[at:] = [(name, self.savepoint(name))]

    def release(self, name: str) -> None:
        """`RELEASE name`: it and those behind it are gone, and what they did stays."""
        with self._lock:
            at, handle = self._find(name)
            self.end_savepoint(handle, True)
            del self._named[at:]

    def _find(self, name: str) -> tuple[int, bytes]:
        for at in reversed(range(len(self._named))):
            if self._named[at][0] == name:
                return at, self._named[at][1]
        raise ProgrammingError(f"there is no savepoint `{name}`")


class Block:
    """`with connection.transaction():` The outermost block is the transaction, those within are savepoints."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._savepoint: bytes | None = None

    def __enter__(self) -> Block:
        transactions = self._transactions
        if transactions.open:
            self._savepoint = transactions.savepoint()
        else:
            transactions.begin()
        transactions.blocks += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        transactions = self._transactions
        transactions.blocks -= 1
        if self._savepoint is not None:
            savepoint = self._savepoint
            end: Callable[[bool], None] = lambda good: transactions.end_savepoint(savepoint, good)  # noqa: E731
        else:
            end = transactions.end
        if kind is None:
            end(True)
            return False
        # What went wrong in the block is told, not that the server could not undo it any more: it has by itself then.
        with contextlib.suppress(Error):
            end(False)
        return isinstance(error, Rollback)


class Rollback(Exception):  # noqa: N818 - an order, not an error
    """Raise it in a block of `transaction()` to undo what the block did; it goes no further."""
