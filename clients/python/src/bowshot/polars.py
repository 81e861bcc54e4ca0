"""Lazy frames of Polars over queries: columns, simple conditions and limits run at the server."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import polars
import pyarrow as pa
from polars.io.plugins import register_io_source

from bowshot import _partitions, _sql, connect


def scan_bowshot(source: str, uri: str, **connection: Any) -> polars.LazyFrame:
    """A lazy frame of the rows of a query, or of a table by its name, which is read when it is collected. Arguments are those
    of `bowshot.connect`."""
    query = _partitions.as_query(source)
    with connect(uri, autocommit=True, **connection) as opened:
        arrow = opened._describe(query)
    schema = _frame(arrow.empty_table()).schema

    def rows(
        columns: list[str] | None, predicate: polars.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        condition = None if predicate is None else to_sql(predicate, schema)
        whole = predicate is None or condition is not None
        sql = _text(query, columns, predicate, condition, limit if whole else None)
        left = limit
        with connect(uri, autocommit=True, **connection) as opened:
            for batch in opened.sql(sql).batches():
                frame = _frame(pa.Table.from_batches([batch]))
                if not whole and predicate is not None:
                    frame = frame.filter(predicate)
                if columns is not None:
                    frame = frame.select(columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame
                if left == 0:
                    return

    return register_io_source(rows, schema=schema)


def _frame(table: pa.Table) -> polars.DataFrame:
    frame = polars.from_arrow(table)
    return frame if isinstance(frame, polars.DataFrame) else frame.to_frame()


def _text(
    query: str, columns: list[str] | None, predicate: polars.Expr | None, condition: str | None, limit: int | None
) -> str:
    """What the condition reads has to come too where Polars has to look at it."""
    wanted = columns
    if columns is not None and predicate is not None and condition is None:
        wanted = list(dict.fromkeys([*columns, *predicate.meta.root_names()]))
    names = "*" if wanted is None else ", ".join(map(_sql.quote, wanted)) or "1 AS none"
    rest = "" if condition is None else f" WHERE {condition}"
    return _partitions.wrapped(query, names, rest + ("" if limit is None else f" LIMIT {limit}"))


_OPERATORS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_EXACT = (polars.datatypes.IntegerType, polars.String, polars.Boolean, polars.Date, polars.Datetime)


def to_sql(predicate: polars.Expr, schema: polars.Schema) -> str | None:
    """A condition as SQL if it is one of comparisons with values, and means the same there: floating-point numbers, whose NaN
    and zeros others order in ways of their own, are left to Polars."""
    try:
        return _condition(json.loads(predicate.meta.serialize(format="json")), schema)
    except (polars.exceptions.PolarsError, KeyError, TypeError, ValueError):
        return None


def _condition(node: dict[str, Any], schema: polars.Schema) -> str | None:
    if "BinaryExpr" in node:
        inner = node["BinaryExpr"]
        if inner["op"] in ("And", "Or"):
            sides = [_condition(inner[side], schema) for side in ("left", "right")]
            return None if None in sides else f"({sides[0]} {inner['op'].upper()} {sides[1]})"
        return _comparison(inner, schema)
    if "Function" in node:
        return _function(node["Function"]["function"]["Boolean"], node["Function"]["input"], schema)
    return None


def _comparison(inner: dict[str, Any], schema: polars.Schema) -> str | None:
    name, value = _column(inner["left"], schema), _literal(inner["right"])
    if name is None or value is None or inner["op"] not in _OPERATORS:
        return None
    return f"{name} {_OPERATORS[inner['op']]} {value}"


def _function(function: Any, inputs: list[dict[str, Any]], schema: polars.Schema) -> str | None:
    if function == "Not":
        child = _condition(inputs[0], schema)
        return None if child is None else f"NOT {child}" if child.startswith("(") else f"NOT ({child})"
    if function in ("IsNull", "IsNotNull") and "Column" in inputs[0]:
        return f"{_sql.quote(inputs[0]['Column'])} IS {'NOT ' if function == 'IsNotNull' else ''}NULL"
    return None


def _column(node: dict[str, Any], schema: polars.Schema) -> str | None:
    name = node.get("Column")
    return _sql.quote(name) if name is not None and isinstance(schema[name], _EXACT) else None


def _literal(node: dict[str, Any]) -> str | None:
    literal = node.get("Literal")
    if not isinstance(literal, dict):
        return None
    ((kind, value),) = (literal.get("Dyn") or literal["Scalar"]).items()
    if kind in ("Str", "String", "Boolean") or kind.startswith(("Int", "UInt")):
        return _partitions.literal(value)
    if kind == "Date":
        return _partitions.literal(datetime.date(1970, 1, 1) + datetime.timedelta(days=value))
    if kind == "Datetime" and value[1] == "Microseconds" and value[2] is None:
        return _partitions.literal(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value[0]))
    return None
