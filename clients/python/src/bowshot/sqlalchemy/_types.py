"""Types of SQLAlchemy as the server names them, and the other way round."""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any

from sqlalchemy import types
from sqlalchemy.sql import compiler, sqltypes, type_api
from sqlalchemy.types import TypeEngine


class TypeCompiler(compiler.GenericTypeCompiler):
    def visit_datetime(self, type_: Any, **_: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME = visit_datetime  # noqa: N815 - SQLAlchemy's names

    def visit_large_binary(self, type_: Any, **_: Any) -> str:
        return "BYTEA"

    visit_BLOB = visit_large_binary  # noqa: N815

    def visit_unicode_text(self, type_: Any, **_: Any) -> str:
        return "TEXT"

    def visit_VARCHAR(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return f"VARCHAR({type_.length})" if type_.length else "VARCHAR"

    visit_NVARCHAR = visit_VARCHAR  # noqa: N815

    def visit_CHAR(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return f"CHAR({type_.length})" if type_.length else "VARCHAR"

    def visit_uuid(self, type_: Any, **_: Any) -> str:
        return "UUID"

    def visit_JSON(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "JSON"

    def visit_INTERVAL(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "INTERVAL"

    def visit_ARRAY(self, type_: Any, **arguments: Any) -> str:  # noqa: N802
        return str(self.process(type_.item_type, **arguments)) + "[]" * (type_.dimensions or 1)

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "REAL" if type_.precision and type_.precision <= 24 else "DOUBLE"

    def visit_double(self, type_: Any, **_: Any) -> str:
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **_: Any) -> str:  # noqa: N802
        if type_.precision is None:
            return "DECIMAL(38, 10)"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC  # noqa: N815


class Uuid(types.Uuid[Any]):
    """The server keeps them as texts in their canonical form."""

    def bind_processor(self, dialect: Any) -> Any:
        return lambda value: None if value is None else str(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        make = uuid.UUID if self.as_uuid else str
        return lambda value: None if value is None else make(value)

    def literal_processor(self, dialect: Any) -> Any:
        return lambda value: f"'{value}'"


class Interval(type_api.NativeForEmulated, sqltypes._AbstractInterval):
    """The server's own, where SQLAlchemy would count from an epoch."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> Interval:
        return cls()

    @property
    def python_type(self) -> type[datetime.timedelta]:
        return datetime.timedelta


class String(types.String):
    render_bind_cast = True


class Integer(types.Integer):
    render_bind_cast = True


class BigInteger(types.BigInteger):
    render_bind_cast = True


class SmallInteger(types.SmallInteger):
    render_bind_cast = True


class Float(types.Float[Any]):
    render_bind_cast = True


_PLAIN: dict[str, type[TypeEngine[Any]]] = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.SMALLINT,
    "SMALLINT": types.SMALLINT,
    "INTEGER": types.INTEGER,
    "BIGINT": types.BIGINT,
    "TINYINT UNSIGNED": types.SMALLINT,
    "SMALLINT UNSIGNED": types.INTEGER,
    "INTEGER UNSIGNED": types.BIGINT,
    "REAL": types.REAL,
    "DOUBLE": types.DOUBLE,
    "TEXT": types.TEXT,
    "BYTEA": types.LargeBinary,
    "DATE": types.DATE,
    "TIME": types.TIME,
    "UUID": types.UUID,
    "JSON": types.JSON,
    "INTERVAL": Interval,
}
_WITH_NUMBERS = re.compile(r"(\w+)\((\d+)(?:, ?(\d+))?\)")


def from_server(name: str) -> TypeEngine[Any]:
    """The type of a column by the name that `information_schema.columns.column_type` has."""
    if name.endswith("[]"):
        return types.ARRAY(from_server(name[:-2]))
    if name == "TIMESTAMP WITH TIME ZONE":
        return types.TIMESTAMP(timezone=True)
    if name.startswith("TIMESTAMP"):
        return types.TIMESTAMP()
    if name == "BIGINT UNSIGNED":
        return types.NUMERIC(20, 0)
    if name == "VARCHAR":
        return types.VARCHAR()
    numbers = _WITH_NUMBERS.fullmatch(name)
    if numbers:
        first, second = int(numbers[2]), int(numbers[3] or 0)
        if numbers[1] in ("DECIMAL", "NUMERIC"):
            return types.NUMERIC(first, second)
        if numbers[1] == "VARCHAR":
            return types.VARCHAR(first)
        if numbers[1] == "CHAR":
            return types.CHAR(first)
        if numbers[1] == "TIME":
            return types.TIME()
    kind = _PLAIN.get(name)
    return kind() if kind is not None else types.NullType()
