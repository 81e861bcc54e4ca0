"""What a result says, in a few numbers that do not depend on the order of its rows: the check that two readers of the
same query got the same answer.

For each column: how many values are null, and a sum. Whole numbers, dates, times and truth values are summed modulo
2^64; texts as the sum of each byte times its place (from 1) in its text, modulo 2^64; decimals and floating-point
numbers as a float, which is compared with a tolerance. Java's reader computes the same (`bench/java`).
"""

import decimal
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RELATIVE_TOLERANCE = 1e-9
CHUNK_ROWS = 1 << 18


def of_table(table: pa.Table) -> dict:
    return {"rows": table.num_rows, "columns": [of_column(column) for column in table.columns]}


def of_batches(batches) -> dict:
    """Of record batches, of which one is in memory at a time."""
    whole = None
    for batch in batches:
        part = of_table(pa.Table.from_batches([batch]))
        whole = part if whole is None else joined(whole, part)
    return whole or {"rows": 0, "columns": []}


def joined(one: dict, other: dict) -> dict:
    """The digest of two parts of one table together."""
    columns = [
        {"nulls": left["nulls"] + right["nulls"], "sum": added(left["sum"], right["sum"])}
        for left, right in zip(one["columns"], other["columns"], strict=True)
    ]
    return {"rows": one["rows"] + other["rows"], "columns": columns}


def added(one, other):
    return one + other if isinstance(one, float) else (one + other) % 2**64


def of_rows(rows: list) -> dict:
    """Of a list of tuples, as a DBAPI cursor gives them."""
    return {"rows": len(rows), "columns": [of_values(values) for values in zip(*rows, strict=True)]}


def of_values(values: tuple) -> dict:
    return of_column(pa.chunked_array([pa.array([plain(value) for value in values])]))


def plain(value):
    """A value that pyarrow sums alike from all drivers: decimals become floats."""
    return float(value) if isinstance(value, decimal.Decimal) else value


def of_column(column: pa.ChunkedArray) -> dict:
    column = unwrapped(column)
    kind = column.type
    nulls = column.null_count
    if is_text(kind):
        return {"nulls": nulls, "sum": sum(text_sum(part) for part in pieces(column)) % 2**64}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = column.cast(pa.float64())
        return {"nulls": nulls, "sum": float(pc.sum(floats).as_py() or 0.0)}
    return {"nulls": nulls, "sum": sum(integer_sum(part) for part in pieces(column)) % 2**64}


def unwrapped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary or an extension type. ADBC's PostgreSQL driver gives decimals as texts of such a type."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if isinstance(column.type, pa.BaseExtensionType):
        is_number = getattr(column.type, "type_name", "") == "numeric"
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        return column.cast(pa.float64()) if is_number else column
    return column


def is_text(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def pieces(column: pa.ChunkedArray):
    """The column in parts of a bounded size, without nulls."""
    for chunk in column.chunks:
        for start in range(0, len(chunk), CHUNK_ROWS):
            yield chunk.slice(start, CHUNK_ROWS).drop_null()


def integer_sum(part: pa.Array) -> int:
    if not len(part) or pa.types.is_null(part.type):
        return 0
    if pa.types.is_boolean(part.type):
        part = part.cast(pa.int64())
    elif pa.types.is_timestamp(part.type):
        part = part.cast(pa.timestamp("us", part.type.tz)).cast(pa.int64())
    elif pa.types.is_date(part.type):
        # Some drivers know no dates: a day counts as its midnight.
        part = part.cast(pa.timestamp("us")).cast(pa.int64())
    elif pa.types.is_time(part.type):
        part = part.cast(pa.time64("us")).cast(pa.int64())
    elif pa.types.is_uint64(part.type):
        return int(part.to_numpy(zero_copy_only=False).sum(dtype=np.uint64))
    return int(part.to_numpy(zero_copy_only=False).astype(np.int64).sum(dtype=np.int64)) % 2**64


def text_sum(part: pa.Array) -> int:
    part = part.cast(pa.large_binary())
    _, offsets, content = part.buffers()
    if content is None or not len(part):
        return 0
    ends = np.frombuffer(offsets, np.int64)[part.offset : part.offset + len(part) + 1]
    letters = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    places = np.arange(len(letters), dtype=np.uint64) - np.repeat(ends[:-1] - ends[0], np.diff(ends)).astype(np.uint64) + 1
    return int((letters * places).sum(dtype=np.uint64))


def difference(ours: dict, theirs: dict) -> str | None:
    """What differs, in words; None when nothing does."""
    if ours["rows"] != theirs["rows"] or len(ours["columns"]) != len(theirs["columns"]):
        shapes = [f"{digest['rows']} × {len(digest['columns'])}" for digest in (ours, theirs)]
        return f"shape {shapes[0]} and {shapes[1]}"
    for index, (mine, other) in enumerate(zip(ours["columns"], theirs["columns"], strict=True)):
        if mine["nulls"] != other["nulls"] or not same(mine["sum"], other["sum"]):
            return f"column {index}: {mine} and {other}"
    return None


def same(mine, other) -> bool:
    if isinstance(mine, float) or isinstance(other, float):
        return math.isclose(as_float(mine), as_float(other), rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-6)
    return mine == other


def as_float(value) -> float:
    """A sum modulo 2^64 of whole numbers is that of signed ones."""
    return float(value - 2**64) if isinstance(value, int) and value >= 2**63 else float(value)
