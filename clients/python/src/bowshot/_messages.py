"""The messages of Flight SQL that this client sends and reads. Numbers of fields are those of `FlightSql.proto` and
`Flight.proto`."""

from __future__ import annotations

import struct
from typing import Literal

from bowshot._protobuf import Message, field, fixed64

OptionValue = str | bool | int | float | list[str] | None
Mode = Literal["create", "append", "replace", "create_append"]

_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."

# if_not_exist (1 create, 2 fail) and if_exists (1 fail, 2 append, 3 replace) of an ingest.
MODES: dict[str, tuple[int, int]] = {
    "create": (1, 1),
    "append": (2, 2),
    "replace": (1, 3),
    "create_append": (1, 2),
}


def any_of(name: str, body: bytes) -> bytes:
    """A message wrapped in google.protobuf.Any."""
    return field(1, _PREFIX + name) + field(2, body)


def unwrap(data: bytes) -> Message:
    """The message in a google.protobuf.Any."""
    return Message(Message(data).data(2))


def statement_query(sql: str, transaction: bytes | None) -> bytes:
    return any_of("CommandStatementQuery", field(1, sql) + field(2, transaction))


def statement_update(sql: str, transaction: bytes | None) -> bytes:
    return any_of("CommandStatementUpdate", field(1, sql) + field(2, transaction))


def prepared_query(handle: bytes) -> bytes:
    return any_of("CommandPreparedStatementQuery", field(1, handle))


def prepared_update(handle: bytes) -> bytes:
    return any_of("CommandPreparedStatementUpdate", field(1, handle))


def ingest(
    table: str,
    *,
    mode: str,
    schema: str | None,
    catalog: str | None,
    temporary: bool,
    transaction: bytes | None,
) -> bytes:
    if_missing, if_exists = MODES[mode]
    body = field(1, field(1, if_missing) + field(2, if_exists)) + field(2, table)
    body += field(3, schema) + field(4, catalog) + field(5, temporary) + field(6, transaction)
    return any_of("CommandStatementIngest", body)


def update_count(data: bytes) -> int:
    """`record_count` of a DoPutUpdateResult; -1 where the server does not know or the statement has none."""
    message = Message(data)
    return message.number(1) if 1 in message else 0


def create_prepared(sql: str, transaction: bytes | None) -> bytes:
    return any_of("ActionCreatePreparedStatementRequest", field(1, sql) + field(2, transaction))


def close_prepared(handle: bytes) -> bytes:
    return any_of("ActionClosePreparedStatementRequest", field(1, handle))


def begin_transaction() -> bytes:
    return any_of("ActionBeginTransactionRequest", b"")


def end_transaction(transaction: bytes, commit: bool) -> bytes:
    return any_of("ActionEndTransactionRequest", field(1, transaction) + field(2, 1 if commit else 2))


def begin_savepoint(transaction: bytes, name: str) -> bytes:
    return any_of("ActionBeginSavepointRequest", field(1, transaction) + field(2, name))


def end_savepoint(savepoint: bytes, release: bool) -> bytes:
    return any_of("ActionEndSavepointRequest", field(1, savepoint) + field(2, 1 if release else 2))


def cancel_flight_info(info: bytes) -> bytes:
    return field(1, info)


def set_session_options(options: dict[str, OptionValue]) -> bytes:
    entries = (field(1, name) + field(2, _option(value)) for name, value in options.items())
    return b"".join(field(1, entry) for entry in entries)


def _option(value: OptionValue) -> bytes:
    """SessionOptionValue; None resets."""
    if value is None:
        return b""
    if isinstance(value, list):
        return field(5, b"".join(field(1, text) for text in value))
    if isinstance(value, bool):
        return field(2, value)
    if isinstance(value, int):
        return fixed64(3, value)
    return field(4 if isinstance(value, float) else 1, value)


def failed_options(data: bytes) -> dict[str, str]:
    """SetSessionOptionsResult: names of options that were refused, with the reason."""
    reasons = {1: "there is no such option", 2: "the option does not take this value"}
    failed = {}
    for entry in map(Message, Message(data).all(1)):
        reason = Message(entry.data(2)).number(1)
        failed[entry.text(1)] = reasons.get(reason, "the option could not be set")
    return failed


def session_options(data: bytes) -> dict[str, OptionValue]:
    """GetSessionOptionsResult."""
    options: dict[str, OptionValue] = {}
    for entry in map(Message, Message(data).all(1)):
        value = Message(entry.data(2))
        name = entry.text(1)
        if 1 in value:
            options[name] = value.text(1)
        elif 2 in value:
            options[name] = bool(value.number(2))
        elif 3 in value:
            (options[name],) = struct.unpack("<q", value.data(3))
        elif 4 in value:
            (options[name],) = struct.unpack("<d", value.data(4))
        elif 5 in value:
            options[name] = [text.decode() for text in Message(value.data(5)).all(1)]
    return options
