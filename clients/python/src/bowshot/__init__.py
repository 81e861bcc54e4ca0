"""Client of Bowshot, the Arrow-native SQL server.

    import bowshot

    with bowshot.connect("grpc://127.0.0.1:50051") as connection:
        frame = connection.sql("SELECT * FROM orders WHERE total > ?", [5.0]).df()

PEP 249 is all here, and beside it what keeps rows as Arrow: `sql`, `ingest`, `table`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bowshot._catalog import Table, TableName
from bowshot._config import configure
from bowshot._connection import Connection
from bowshot._cursor import Cursor
from bowshot._errors import (
    AlreadyExistsError,
    ConflictError,
    ConstraintError,
    CorruptError,
    DatabaseError,
    DataError,
    DeniedError,
    DuplicateKeyError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    InvalidError,
    InvalidValueError,
    LimitReachedError,
    NotFoundError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    QueryCancelledError,
    ServerInternalError,
    SqlSyntaxError,
    StatementTimeoutError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
    Warning,
)
from bowshot._magic import load_ipython_extension
from bowshot._messages import OptionValue
from bowshot._partitions import Partition
from bowshot._result import Result
from bowshot._server import Server, server
from bowshot._transaction import Rollback
from bowshot._upload import Upload
from bowshot._values import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__version__ = "0.1.0"

apilevel = "2.0"
# Threads may share the module and connections.
threadsafety = 2
# The first choice; `execute` takes the others too.
paramstyle = "qmark"


def connect(
    uri: str = "grpc://127.0.0.1:50051",
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    oidc_issuer: str | None = None,
    oidc_client_id: str | None = None,
    oidc_client_secret: str | None = None,
    oidc_flow: str | None = None,
    oidc_scope: str | None = None,
    oidc_audience: str | None = None,
    oidc_token: str | None = None,
    oidc_cache: bool | None = None,
    options: Mapping[str, OptionValue] | None = None,
    autocommit: bool | None = None,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    progress: bool | None = None,
    headers: Mapping[str, str] | None = None,
    tls_ca: str | bytes | os.PathLike[str] | None = None,
    tls_cert: str | bytes | os.PathLike[str] | None = None,
    tls_key: str | bytes | os.PathLike[str] | None = None,
    tls_verify: bool | None = None,
    tls_server_name: str | None = None,
    same_host: bool | str = "auto",
) -> Connection:
    """Connects to a server and opens a session.

    `uri` is `grpc://HOST:PORT` or `HOST:PORT`, `grpc+tls://HOST:PORT`, `bowshot://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA?OPTION=VALUE`
    (`bowshot+tls://` with TLS) or `profile:NAME`, a table of the file of profiles. `options` are those of the session.

    As PEP 249 has it, statements belong to a transaction until `commit`; with `autocommit=True` each is one by itself.
    `timeout` is for each statement, in seconds. Certificates and keys are PEM, given as they are or as a path.

    With `oidc_issuer` and `oidc_client_id` a person logs in at that identity provider: in a browser (`oidc_flow="browser"`),
    or with a code in one on any machine (`"device"`); by default whichever can be done here. `oidc_token` says which token the
    server wants (`"access_token"` or `"id_token"`). The login is kept for later, in a file of this user's; `oidc_cache=False`
    keeps nothing.

    A server on this machine shares memory with its clients, so that results are mapped and not received. `same_host=False` does
    without, `same_host=True` is an error where that is not possible; `Connection.transport` and `Result.transport` tell.
    """
    # Each argument is a setting of the same name.
    arguments: dict[str, Any] = dict(locals())
    arguments["options"] = None if options is None else dict(options)
    arguments["same_host"] = None if same_host == "auto" else same_host
    return Connection(configure(**arguments))


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AlreadyExistsError",
    "Binary",
    "ConflictError",
    "Connection",
    "ConstraintError",
    "CorruptError",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "DeniedError",
    "DuplicateKeyError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InvalidError",
    "InvalidValueError",
    "LimitReachedError",
    "NotFoundError",
    "NotSupportedError",
    "OperationalError",
    "Partition",
    "ProgrammingError",
    "QueryCancelledError",
    "Result",
    "Rollback",
    "Server",
    "ServerInternalError",
    "SqlSyntaxError",
    "StatementTimeoutError",
    "Table",
    "TableName",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "Upload",
    "Warning",
    "apilevel",
    "connect",
    "load_ipython_extension",
    "paramstyle",
    "server",
    "threadsafety",
]
