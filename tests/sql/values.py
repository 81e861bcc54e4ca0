"""How values are written in cases, whichever database they come from; README.md has the table."""

import math
import re
from decimal import Decimal, InvalidOperation

import pyarrow as pa

NULL = "NULL"
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def kind_of(type_):
    """The letter of an Arrow type."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_boolean(type_):
        return "B"
    if pa.types.is_integer(type_):
        return "I"
    if pa.types.is_decimal(type_):
        return "I" if type_.scale == 0 else "R"
    if pa.types.is_floating(type_):
        return "R"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_time(type_):
        return "D"
    if pa.types.is_null(type_):
        return "?"
    return "T"


def fits(wanted, got):
    """Whether a column of kind `got` may stand where a case says `wanted`."""
    return wanted == "?" or got == "?" or wanted == got or (wanted == "R" and got == "I")


def rows(table):
    """The rows of an Arrow table as lists of texts."""
    columns = [column_texts(column) for column in table.columns]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(table.num_rows)]


def column_texts(column):
    texts = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if isinstance(chunk, pa.ExtensionArray):
            chunk = uuid_texts(chunk) if chunk.type.extension_name == "arrow.uuid" else chunk.storage
        texts.extend(text(chunk.type, scalar) for scalar in chunk)
    return texts


def uuid_texts(chunk):
    hexes = [None if value is None else value.hex() for value in chunk.storage.to_pylist()]
    return pa.array([h and f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}" for h in hexes], pa.string())


def text(type_, scalar):
    """One Arrow value."""
    if not scalar.is_valid:
        return NULL
    if pa.types.is_dictionary(type_):
        return text(type_.value_type, scalar.value)
    if pa.types.is_boolean(type_):
        return "true" if scalar.as_py() else "false"
    if pa.types.is_float16(type_) or pa.types.is_float32(type_):
        return floating(float(scalar.cast(pa.float32()).cast(pa.string()).as_py()))
    if pa.types.is_float64(type_):
        return floating(scalar.as_py())
    if pa.types.is_decimal(type_):
        return format(scalar.as_py(), "f")
    if pa.types.is_date(type_):
        days = scalar.value if pa.types.is_date32(type_) else scalar.value // 86_400_000
        return day(days)
    if pa.types.is_timestamp(type_):
        return timestamp(scalar.value, TICKS[type_.unit]) + ("+00" if type_.tz else "")
    if pa.types.is_time(type_):
        return clock(scalar.value, TICKS[type_.unit])
    if pa.types.is_duration(type_):
        return interval(0, 0, scalar.value * (10**9 // TICKS[type_.unit]))
    if pa.types.is_interval(type_):
        months, days, nanos = scalar.as_py()
        return interval(months, days, nanos)
    if is_binary(type_):
        return "\\x" + scalar.as_py().hex()
    return nested(type_, scalar)


def is_binary(type_):
    return (
        pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_) or pa.types.is_fixed_size_binary(type_)
    )


def nested(type_, scalar):
    if pa.types.is_map(type_):
        entries = scalar.values
        pairs = zip(entries.field(0), entries.field(1))
        return "{" + ", ".join(f"{text(type_.key_type, k)}={text(type_.item_type, v)}" for k, v in pairs) + "}"
    if pa.types.is_struct(type_):
        fields = [(field.name, field.type, scalar[index]) for index, field in enumerate(type_)]
        return "{" + ", ".join(f"{name}: {text(inner, value)}" for name, inner, value in fields) + "}"
    if hasattr(scalar, "values"):  # every sort of list
        return "[" + ", ".join(text(type_.value_type, value) for value in scalar.values) + "]"
    value = str(scalar.as_py())
    return value if value else "(empty)"


def floating(value):
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def day(days):
    """Days since 1970 as a date of the proleptic Gregorian calendar; Python's dates end in the year 9999."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    date = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year + era * 400 + (1 if month <= 2 else 0)
    return f"{year:04d}-{month:02d}-{date:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{date:02d} BC"


def clock(value, ticks):
    seconds, part = divmod(value, ticks)
    written = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    fraction = f"{part * (10**9 // ticks):09d}".rstrip("0")
    return f"{written}.{fraction}" if fraction else written


def timestamp(value, ticks):
    days, rest = divmod(value, 86_400 * ticks)
    date, _, era = day(days).partition(" ")
    return f"{date} {clock(rest, ticks)}" + (f" {era}" if era else "")


def interval(months, days, nanos):
    """As PostgreSQL writes it."""
    years, months = int(months / 12), int(math.fmod(months, 12))
    parts = [(years, "year"), (months, "mon"), (days, "day")]
    words = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count]
    if nanos or not words:
        words.append(("-" if nanos < 0 else "") + clock(abs(nanos), 10**9))
    return " ".join(words)


def same(wanted, got, kind):
    """Whether two texts are the same value of a column of this kind: numbers that are not whole are compared as
    numbers, doubles within some units of the last place."""
    if wanted == got:
        return True
    if kind != "R" or NULL in (wanted, got):
        return False
    try:
        left, right = Decimal(wanted), Decimal(got)
        if left.is_nan() or right.is_nan():
            return left.is_nan() and right.is_nan()
        if left == right:
            return True
        if not left.is_finite() or not right.is_finite() or (is_whole(wanted) and is_whole(got)):
            return False
        return abs(left - right) <= abs(left) * Decimal("1e-12")
    except InvalidOperation:
        return False


def is_whole(number):
    return re.fullmatch(r"-?\d+", number) is not None


def sort_key(row, kinds):
    """Sorts rows the same however their numbers are written."""
    return [normal(cell, kind) for cell, kind in zip(row, kinds)]


def normal(cell, kind):
    if kind != "R" or cell == NULL:
        return cell
    try:
        return cell if is_whole(cell) else format(float(cell) + 0.0, ".10g")
    except ValueError:
        return cell
