"""The exceptions of PEP 249, one leaf for each kind of error that the server knows.

Warning
Error
├── InterfaceError                 this client was used wrongly
└── DatabaseError
    ├── DataError
    ├── IntegrityError
    ├── InternalError
    │   └── ServerInternalError    Internal
    ├── NotSupportedError
    │   └── UnsupportedError       Unsupported
    ├── OperationalError
    │   ├── UnauthenticatedError   Unauthenticated
    │   ├── ConflictError          Conflict
    │   ├── LimitReachedError      LimitReached
    │   ├── StatementTimeoutError  Timeout
    │   ├── QueryCancelledError    Cancelled
    │   ├── UnavailableError       Unavailable
    │   └── CorruptError           Corrupt
    └── ProgrammingError
        ├── SqlSyntaxError         Syntax
        ├── InvalidError           Invalid
        │   ├── InvalidValueError  … of a value; also a DataError
        │   └── ConstraintError    … a NOT NULL or CHECK that does not hold; also an IntegrityError
        ├── NotFoundError          NotFound
        ├── AlreadyExistsError     AlreadyExists
        │   └── DuplicateKeyError  … of a key; also an IntegrityError
        └── DeniedError            Denied
"""

from __future__ import annotations

import re
from typing import ClassVar


class Warning(Exception):  # noqa: N818 - the name is PEP 249's
    """Required by PEP 249; nothing raises it."""


class Error(Exception):
    """Everything that goes wrong here.

    `kind` is the server's name for what went wrong, `hint` the next action, `line` and `column` the place in the
    statement and `position` the same as a number of characters (all from 1 on), `query_id` the query that failed,
    where each is known.
    """

    kind: ClassVar[str | None] = None

    def __init__(
        self,
        message: str = "",
        *,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
        position: int | None = None,
        query_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column
        self.position = position
        self.query_id = query_id

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def retryable(self) -> bool:
        """Whether the same work may succeed when it is done again unchanged."""
        return self.kind in ("Conflict", "Unavailable")


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class SqlSyntaxError(ProgrammingError):
    kind = "Syntax"


class InvalidError(ProgrammingError):
    kind = "Invalid"


# What PEP 249 calls it comes first: SQLAlchemy takes the first name that it knows.
class InvalidValueError(DataError, InvalidError):
    pass


class ConstraintError(IntegrityError, InvalidError):
    pass


class NotFoundError(ProgrammingError):
    kind = "NotFound"


class AlreadyExistsError(ProgrammingError):
    kind = "AlreadyExists"


class DuplicateKeyError(IntegrityError, AlreadyExistsError):
    pass


class UnauthenticatedError(OperationalError):
    kind = "Unauthenticated"


class DeniedError(ProgrammingError):
    kind = "Denied"


class UnsupportedError(NotSupportedError):
    kind = "Unsupported"


class ConflictError(OperationalError):
    kind = "Conflict"


class LimitReachedError(OperationalError):
    kind = "LimitReached"


class StatementTimeoutError(OperationalError):
    kind = "Timeout"


class QueryCancelledError(OperationalError):
    kind = "Cancelled"


class UnavailableError(OperationalError):
    kind = "Unavailable"


class CorruptError(OperationalError):
    kind = "Corrupt"


class ServerInternalError(InternalError):
    kind = "Internal"


# Arrow C++ writes the code into the message, since its own exceptions are fewer than the codes.
_HEAD = re.compile(r"(?:Flight|gRPC) (?:returned (.+?) error|(cancelled) call), with message: ", re.DOTALL)
_TAIL = re.compile(r"\. (?:gRPC client debug context: |Client context: |Detail: ).*", re.DOTALL)
_PLACE = re.compile(r" at line (\d+), column (\d+)")
_REFERENCE = re.compile(r"\bquery ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")

_BY_CODE: dict[str, type[Error]] = {
    "invalid argument": InvalidError,
    "not found": NotFoundError,
    "already exists": AlreadyExistsError,
    "unauthenticated": UnauthenticatedError,
    "unauthorized": DeniedError,
    "permission denied": DeniedError,
    "unimplemented": UnsupportedError,
    "aborted": ConflictError,
    "resource exhausted": LimitReachedError,
    "out of memory": LimitReachedError,
    "timeout": StatementTimeoutError,
    "deadline exceeded": StatementTimeoutError,
    "cancelled": QueryCancelledError,
    "unavailable": UnavailableError,
    "data loss": CorruptError,
    "internal": ServerInternalError,
}

# What gRPC says by itself.
_WORDS = {"deadline exceeded": "the time for the call is over; allow more with `timeout`, or ask for less"}

_CONSTRAINTS = re.compile(r"must not be NULL|check constraint|violates", re.IGNORECASE)
_KEYS = re.compile(r"\b(primary key|unique|key) .*\btwice\b|duplicate key", re.IGNORECASE)
_VALUES = re.compile(
    r"divi\w* by zero|invalid input syntax|is not a value of type|overflow|out of range|does not fit"
    r"|too (?:long|large) for",
    re.IGNORECASE,
)


# Numbers of gRPC's codes.
_CODES = {
    1: "cancelled",
    3: "invalid argument",
    4: "deadline exceeded",
    5: "not found",
    6: "already exists",
    7: "permission denied",
    8: "resource exhausted",
    10: "aborted",
    12: "unimplemented",
    13: "internal",
    14: "unavailable",
    15: "data loss",
    16: "unauthenticated",
}


def translate(error: BaseException, query_id: str | None = None) -> Error:
    """What the server or the transport said, as an exception of this package."""
    code, text = _parts(str(error))
    return _made(_BY_CODE.get(code) or _by_exception(error), text, query_id)


def from_status(code: int, text: str, query_id: str | None = None) -> Error:
    """What the server said with one of gRPC's codes."""
    return _made(_BY_CODE.get(_CODES.get(code, ""), OperationalError), text, query_id)


def _made(kind: type[Error], text: str, query_id: str | None) -> Error:
    message, hint = _split_hint(_WORDS.get(text.lower(), text))
    place = _PLACE.search(message)
    line, column = (int(place[1]), int(place[2])) if place else (None, None)
    reference = _REFERENCE.search(text)
    return _narrow(kind, message)(
        message, hint=hint, line=line, column=column, query_id=reference[1] if reference else query_id
    )


def _parts(text: str) -> tuple[str, str]:
    """Code and message, without what Arrow and gRPC put around them."""
    head = _HEAD.search(text)
    if head is None:
        return "", _TAIL.sub("", text)
    return (head[1] or head[2]).lower(), _TAIL.sub("", text[head.end() :])


def _split_hint(text: str) -> tuple[str, str | None]:
    """The server puts the hint behind a semicolon. A message may have one of its own, in a value of the user's, so the
    first one outside of quotes counts."""
    quote = ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character == "`":
            quote = character
        elif character == ";" and text[at + 1 : at + 2] == " ":
            return text[:at], text[at + 2 :]
    return text, None


def _by_exception(error: BaseException) -> type[Error]:
    """For what has no code in its text: what the class says."""
    name = type(error).__name__
    return {
        "FlightUnavailableError": UnavailableError,
        "FlightTimedOutError": StatementTimeoutError,
        "FlightCancelledError": QueryCancelledError,
        "FlightUnauthenticatedError": UnauthenticatedError,
        "FlightUnauthorizedError": DeniedError,
        "ArrowNotImplementedError": UnsupportedError,
        "ArrowInvalid": DataError,
    }.get(name, OperationalError)


def _narrow(kind: type[Error], message: str) -> type[Error]:
    if kind is InvalidError:
        if message.startswith("syntax error") or message == "the statement is empty":
            return SqlSyntaxError
        if _KEYS.search(message) or _CONSTRAINTS.search(message):
            return ConstraintError
        if _VALUES.search(message):
            return InvalidValueError
    if kind is AlreadyExistsError and _KEYS.search(message):
        return DuplicateKeyError
    return kind


def place_in(error: Error, sql: str, sent: str, origin: list[tuple[int, int]]) -> Error:
    """Adds the position in the user's text. `sent` is what the server has read; `origin` has pairs of places in `sent`
    and `sql` from which on the two run alike."""
    if error.line is None or error.column is None:
        return error
    lines = sent.split("\n")
    at = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    for begin, original in reversed(origin):
        if begin <= at:
            at = original + at - begin
            break
    at = min(at, len(sql))
    error.position = at + 1
    error.line = sql.count("\n", 0, at) + 1
    error.column = at - (sql.rfind("\n", 0, at) + 1) + 1
    return error
