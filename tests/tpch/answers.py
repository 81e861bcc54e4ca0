"""Whether two answers to one query say the same, from two engines whose types differ.

Same number of columns and rows; row by row in the order of the answer as far as the query orders it, so rows that tie are
compared as a set. Integers, dates and texts exactly. Decimals exactly when both sides answer a decimal of the same scale.
Where one side answers a floating-point number (averages and quotients: DuckDB computes them in doubles, we in decimals of
fixed scale, cut and not rounded) the values may differ by 1e-6 of their size or by one unit of the last decimal place,
whichever is larger.
"""

import datetime
import decimal

import pyarrow as pa

RELATIVE_TOLERANCE = 1e-6


def step(column: pa.DataType) -> float:
    """One unit of the last decimal place of a decimal column; 0 for others."""
    return 10.0 ** -column.scale if pa.types.is_decimal(column) else 0.0


def is_inexact(ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether a column is compared with tolerance."""
    if pa.types.is_floating(ours) or pa.types.is_floating(theirs):
        return True
    return pa.types.is_decimal(ours) and pa.types.is_decimal(theirs) and ours.scale != theirs.scale


def plain(value):
    """Values of different but equal types in one form."""
    if isinstance(value, datetime.datetime):
        return value.date() if value.time() == datetime.time() else value
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal.Decimal(value)
    return value


def same(ours, theirs, tolerance) -> bool:
    """Whether two values are the same; `tolerance` is None for exact columns, else the absolute part."""
    if ours is None or theirs is None:
        return ours is theirs
    if tolerance is None:
        return plain(ours) == plain(theirs)
    ours, theirs = float(ours), float(theirs)
    return abs(ours - theirs) <= max(RELATIVE_TOLERANCE * abs(theirs), tolerance)


def rows(table: pa.Table) -> list:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


def difference(keys: list, ours: pa.Table, theirs: pa.Table) -> str | None:
    """What differs, in words; None when nothing does. `keys` are the positions of the columns that the rows are in order
    of; rows that agree in them may come in any order, and so may all rows where there are none.
    """
    if ours.num_columns != theirs.num_columns or ours.num_rows != theirs.num_rows:
        return f"shape {ours.num_rows} × {ours.num_columns}, DuckDB {theirs.num_rows} × {theirs.num_columns}"
    tolerances = [
        max(step(mine.type), step(other.type)) if is_inexact(mine.type, other.type) else None
        for mine, other in zip(ours.schema, theirs.schema, strict=True)
    ]
    mine, others = rows(ours), rows(theirs)
    for place, (first, second) in enumerate(zip(mine, others, strict=True)):
        if not all(same(first[key], second[key], tolerances[key]) for key in keys):
            return f"row {place} is out of order: {first}, DuckDB {second}"
    exact = [index for index, tolerance in enumerate(tolerances) if tolerance is None]
    by_exact = lambda row: [(row[index] is not None, str(plain(row[index]))) for index in exact]
    for first, second in zip(sorted(mine, key=by_exact), sorted(others, key=by_exact), strict=True):
        for index, values in enumerate(zip(first, second, strict=True)):
            if not same(*values, tolerances[index]):
                return f"column {ours.schema.names[index]}: {first}, DuckDB {second}"
    return None
