"""Connections of dbt: one of the Python client for each thread, with dbt's transactions as its transactions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState, Credentials
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import bowshot


@dataclass
class BowshotCredentials(Credentials):  # type: ignore[misc]
    """A target of `profiles.yml`. The catalog is what dbt calls a database."""

    uri: str = "grpc://127.0.0.1:50051"
    database: str = "bowshot"
    schema: str = "main"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    timeout: float | None = None
    connect_timeout: float | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    _ALIASES = {"catalog": "database", "url": "uri", "pass": "password"}  # noqa: RUF012 - as dbt has it

    @property
    def type(self) -> str:
        return "bowshot"

    @property
    def unique_field(self) -> str:
        return self.uri

    def _connection_keys(self) -> tuple[str, ...]:
        """What `dbt debug` shows: nothing that is secret."""
        return ("uri", "user", "database", "schema", "timeout", "options")

    def arguments(self) -> dict[str, Any]:
        """For `bowshot.connect`."""
        names = ("user", "password", "token", "timeout", "connect_timeout", "tls_ca", "tls_cert", "tls_key")
        given = {name: getattr(self, name) for name in names if getattr(self, name)}
        options = {"catalog": self.database, **self.options}
        return {**given, "options": options, "autocommit": True, "progress": False}


class BowshotConnectionManager(SQLConnectionManager):  # type: ignore[misc]
    TYPE = "bowshot"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            connection.handle = bowshot.connect(connection.credentials.uri, **connection.credentials.arguments())
        except bowshot.Error as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.state = ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        with contextlib.suppress(bowshot.Error):
            connection.handle.cancel()

    @contextlib.contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:  # noqa: ARG002 - the argument is dbt's
        try:
            yield
        except bowshot.Error as error:
            # What failed has changed nothing, but what came before it in the transaction is to go too.
            with contextlib.suppress(bowshot.Error):
                self.rollback_if_open()
            raise DbtDatabaseError(str(error)) from error
        except DbtRuntimeError:
            raise
        except Exception as error:
            self.rollback_if_open()
            raise DbtRuntimeError(str(error)) from error

    def begin(self) -> Connection:
        """A transaction of the client, so that its `rollback` knows of it."""
        connection = self.get_thread_connection()
        if connection.transaction_open:
            raise DbtRuntimeError(f"connection `{connection.name}` has a transaction already")
        with self.exception_handler("BEGIN"):
            connection.handle.begin()
        connection.transaction_open = True
        return connection

    def commit(self) -> Connection:
        connection = self.get_thread_connection()
        if not connection.transaction_open:
            raise DbtRuntimeError(f"connection `{connection.name}` has no transaction to commit")
        # Whatever the server says, the transaction is over.
        connection.transaction_open = False
        with self.exception_handler("COMMIT"):
            connection.handle.commit()
        return connection

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        rows = cursor.rowcount
        return AdapterResponse(_message="OK" if rows < 0 else f"OK {rows}", rows_affected=rows)

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        return str(type_code)
