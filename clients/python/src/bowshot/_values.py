"""Values of Python as Arrow and back, and the type objects of PEP 249."""

from __future__ import annotations

import datetime
import decimal
import enum
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bowshot._errors import DataError, ProgrammingError

Row = tuple[Any, ...]


class TypeObject:
    """A type object of PEP 249: equal to every Arrow type that it stands for."""

    def __init__(self, name: str, *checks: Callable[[pa.DataType], bool]) -> None:
        self._name = name
        self._checks = checks

    def __eq__(self, other: object) -> bool:
        if isinstance(other, pa.DataType):
            return any(check(other) for check in self._checks)
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"bowshot.{self._name}"


def _is_text(kind: pa.DataType) -> bool:
    view = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    view = getattr(pa.types, "is_binary_view", lambda _: False)
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or view(kind))


STRING = TypeObject("STRING", _is_text)
BINARY = TypeObject("BINARY", _is_bytes)
NUMBER = TypeObject("NUMBER", pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
DATETIME = TypeObject(
    "DATETIME", pa.types.is_timestamp, pa.types.is_date, pa.types.is_time, pa.types.is_duration, pa.types.is_interval
)
ROWID = TypeObject("ROWID")

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - the names are PEP 249's
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    return datetime.datetime(*time.localtime(ticks)[:6])


Description = tuple[str, pa.DataType, None, int | None, int | None, int | None, bool]


def description(schema: pa.Schema) -> list[Description]:
    """PEP 249's seven items for each column."""
    return [_column(column) for column in schema]


def _column(column: pa.Field) -> Description:
    kind = column.type
    size = None
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        size = (kind.bit_width + 7) // 8
    precision, scale = (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (None, None)
    return column.name, kind, None, size, precision, scale, column.nullable


# --- from Arrow to Python


def rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch as tuples of Python values."""
    if batch.num_columns == 0:
        return iter([()] * batch.num_rows)
    return zip(*(_column_values(column) for column in batch.columns), strict=True)


def _column_values(column: pa.Array) -> list[Any]:
    plain = _without_nanoseconds(column.type)
    if plain != column.type:
        column = column.cast(plain, safe=False)
    if pa.types.is_interval(plain):
        return [_interval(value) for value in column.to_pylist()]
    if _has_map(plain):
        return [_with_dicts(value, plain) for value in column.to_pylist()]
    return list(column.to_pylist())


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """Maps as dictionaries, where Arrow has lists of pairs. Older versions of pyarrow do not do it themselves."""
    if value is None or not _has_map(kind):
        return value
    if pa.types.is_map(kind):
        return {key: _with_dicts(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return {item.name: _with_dicts(value[item.name], item.type) for item in fields}
    if hasattr(kind, "value_type"):
        return [_with_dicts(item, kind.value_type) for item in value]
    return value


def _without_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """The type in microseconds: Python's own classes have no more, and what is left is cut off."""
    types = pa.types
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_nanoseconds(kind.value_type)))
    if types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([item.with_type(_without_nanoseconds(item.type)) for item in fields])
    return kind


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if not pa.types.is_nested(kind):
        return False
    return any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


def _interval(value: Any) -> Any:
    """A timedelta where the interval has no months, whose length is nobody's guess; else Arrow's triple."""
    if value is None or value.months:
        return value
    return datetime.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)


# --- from Python to Arrow


def parameters(rows_: Sequence[Sequence[Any]], expected: pa.Schema) -> pa.Table:
    """Rows of values as a table with one column for each parameter; `expected` is what the server would take."""
    if rows_ and len(rows_[0]) != len(expected):
        raise ProgrammingError(f"the statement has {len(expected)} parameters, but {len(rows_[0])} values were given")
    columns = [_parameter([row[at] for row in rows_], expected.field(at).type, at + 1) for at in range(len(expected))]
    return pa.Table.from_arrays(columns, names=[f"${at + 1}" for at in range(len(expected))])


def _parameter(values: list[Any], expected: pa.DataType, number: int) -> pa.Array:
    plain = [simplified(value) for value in values]
    if all(value is None for value in plain):
        return pa.nulls(len(plain), pa.null() if pa.types.is_nested(expected) else expected)
    try:
        array = _array(plain, expected)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, decimal.DecimalException) as error:
        raise DataError(f"parameter {number} is no value that Arrow has a type for: {error}") from error
    if pa.types.is_integer(expected) and (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        _check_whole(plain, number)
    return array


def _check_whole(values: list[Any], number: int) -> None:
    """The server would round, and nobody would hear of it."""
    for value in values:
        if value is not None and value != value // 1:
            raise DataError(
                f"parameter {number} is {value}, where the statement takes a whole number",
                hint=f"say what it is: `CAST(${number} AS DOUBLE)`",
            )


def _array(values: list[Any], expected: pa.DataType) -> pa.Array:
    first = next(value for value in values if value is not None)
    if isinstance(first, datetime.datetime):
        zones = {value.tzinfo is not None for value in values if value is not None}
        if len(zones) > 1:
            raise TypeError("some times have a zone and some have none")
        return pa.array(values, pa.timestamp("us", "UTC" if zones.pop() else None))
    if isinstance(first, dict) and pa.types.is_map(expected):
        return pa.array([None if value is None else list(value.items()) for value in values], expected)
    if isinstance(first, dict | list) and pa.types.is_nested(expected):
        # An empty list or a null within tells no type of its own.
        return pa.array(values, expected)
    if isinstance(first, int) and not isinstance(first, bool):
        kinds = {type(value) for value in values if value is not None}
        if decimal.Decimal in kinds or any(abs(value) >= 1 << 63 for value in values if isinstance(value, int)):
            return pa.array([None if value is None else decimal.Decimal(value) for value in values])
    kinds = {type(value) for value in values if value is not None}
    if decimal.Decimal in kinds and float in kinds:
        exact = pa.types.is_decimal(expected)
        return pa.array([None if value is None else _number(value, exact) for value in values])
    return pa.array(values)


def _number(value: Any, exact: bool) -> Any:
    return decimal.Decimal(repr(value) if isinstance(value, float) else value) if exact else float(value)


def simplified(value: Any) -> Any:
    """A value in one of the classes that pyarrow knows."""
    if value is None or isinstance(value, str | int | float | bytes | decimal.Decimal):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, enum.Enum):
        return simplified(value.value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return {key: simplified(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [simplified(item) for item in value]
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise DataError("a time of day with a zone has no type in SQL", hint="use a datetime")
    if isinstance(value, pa.Scalar):
        return simplified(value.as_py())
    # Arrays and numbers of NumPy, tensors, columns of pandas.
    for name in ("tolist", "to_pylist"):
        if hasattr(value, name):
            return simplified(getattr(value, name)())
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value


def _moment(value: datetime.datetime) -> datetime.datetime | None:
    if type(value).__name__ == "NaTType":
        return None
    return value if value.tzinfo is None else value.astimezone(datetime.timezone.utc)
