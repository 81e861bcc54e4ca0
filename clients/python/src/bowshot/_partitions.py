"""Results in partitions, each of which any process may read: what readers of Spark, Dask, Ray and the like hand to their
workers.

There are two ways to cut. By endpoints: the query runs once and the server keeps its result until it expires, so all
partitions see one moment. By ranges of a column: each partition is a query of its own that runs when it is read, as often and
as late as somebody likes.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyarrow import flight

from bowshot import _catalog, _sql
from bowshot import _messages as messages
from bowshot._config import Config
from bowshot._errors import Error, InterfaceError, NotFoundError
from bowshot._nodes import config_at
from bowshot._oidc import login
from bowshot._same_host import Reader
from bowshot._statement import Statements
from bowshot._wire import Wire, translated

_DEFAULT_RANGES = 8
_PART = r'(?:"(?:[^"]|"")+"|[^\s".();]+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")


@dataclass(frozen=True)
class Partition:
    """A part of a result. It can be pickled, and has with it what the connection was made from, secrets too."""

    number: int
    config: Config = field(repr=False)
    ticket: bytes = field(repr=False)
    arrow_schema: bytes = field(repr=False)
    # The query that gives these rows, where the partition is one of its own.
    sql: str | None = None
    # How to reach the node that has them, where that is another one than `config` has.
    node: Config | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.arrow_schema))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batch by batch, over a connection of its own. May be done again while the result is kept."""
        wire = self.connect()
        reader = None
        try:
            reader = self.open(wire)
            while (batch := next_batch(reader)) is not None:
                yield batch
            reader = None
        except NotFoundError as error:
            if self.sql is None:
                error.hint = "the result has expired: make the partitions anew, or by a column"
            raise
        finally:
            if reader is not None:
                reader.cancel()
            wire.close()

    def open(self, wire: Wire, lane: int = 0) -> Reader | flight.FlightStreamReader:
        """Asks for the rows over a connection."""
        with translated():
            return wire.get(flight.Ticket(self.ticket), lane, self.config.timeout)

    def connect(self) -> Wire:
        """To the node that has the rows; where that cannot be, the one that was asked hands them on."""
        if self.node is not None:
            with contextlib.suppress(Error):
                return Wire(self.node)
        return Wire(self.config)

    def select(self, columns: list[str]) -> Partition:
        """The same rows with these columns alone, if the partition is a query of its own; else the partition as it is."""
        if self.sql is None:
            return self
        schema = pa.schema([self.schema.field(name) for name in columns]).serialize().to_pybytes()
        narrow = self.query(wrapped(self.sql, ", ".join(map(_sql.quote, columns))))
        return replace(narrow, arrow_schema=schema)

    def query(self, sql: str) -> Partition:
        """Another query in the place of this one's."""
        return replace(self, ticket=messages.statement_query(sql, None), sql=sql)

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def arrow(self) -> pa.Table:
        """All its rows as a table."""
        return pa.Table.from_batches(list(self.batches()), self.schema)


def next_batch(reader: Reader | flight.FlightStreamReader) -> pa.RecordBatch | None:
    while True:
        with translated():
            try:
                data = reader.read_chunk().data
            except StopIteration:
                return None
        if data is not None:
            return data


def as_query(source: str) -> str:
    """SQL as it is; the name of a table as the query of all its rows."""
    if _NAME.fullmatch(source.strip()):
        return f"SELECT * FROM {_catalog.path(source.strip(), None, None)}"
    return source.strip().rstrip(";")


def wrapped(query: str, columns: str = "*", rest: str = "") -> str:
    """A query over the rows of another one, which may end with a comment."""
    return f"SELECT {columns} FROM ({query}\n) AS source{rest}"


def plan(
    config: Config,
    query: str,
    params: _sql.Parameters | None = None,
    *,
    count: int | None = None,
    column: str | None = None,
    ordered: bool = False,
) -> list[Partition]:
    config = _handed_on(config)
    if count is not None and count < 1:
        raise InterfaceError(f"{count} partitions are none")
    if column is None:
        if ordered:
            raise InterfaceError("partitions have an order only by a column", hint="name it with `column`")
        return _by_endpoints(config, query, params, count)
    if params:
        raise InterfaceError("a query that is cut by a column takes no parameters", hint="write the values into it")
    return _by_ranges(config, query, column, count or _DEFAULT_RANGES, ordered)


def whole(config: Config, query: str) -> Partition:
    """All rows as one partition, which is a query that runs when it is read."""
    config = _handed_on(config)
    schema = describe(config, query).serialize().to_pybytes()
    return Partition(0, config, messages.statement_query(query, None), schema, query)


def describe(config: Config, query: str) -> pa.Schema:
    """The columns of a query, asked for over a connection of its own."""
    with contextlib.closing(Wire(config)) as wire:
        return Statements(wire).describe(query, None)


def _handed_on(config: Config) -> Config:
    """As other processes get it: with the token of a person who has logged in, who cannot be asked there."""
    return config if config.oidc is None else replace(config, token=login(config.oidc).token(), oidc=None)


def _by_endpoints(config: Config, query: str, params: _sql.Parameters | None, count: int | None) -> list[Partition]:
    """A result that is kept is read as often as somebody likes, from the node that was asked. One that is not (the option
    `retryable_results` is false) is read once, in a cluster from the nodes that have its parts."""
    endpoints = "auto" if count is None else str(count)
    kept = str(config.options.get("retryable_results", True)).lower() not in ("false", "off", "0", "no")
    wire = Wire(replace(config, options={**config.options, "endpoints": endpoints, "retryable_results": kept}))
    try:
        values = None if params is None else [params]
        stream = Statements(wire).run(query, values, None, config.timeout, object()).stream
        if stream is None:
            raise InterfaceError("the statement gives no rows")
        info = stream.release()
        schema = stream.schema.serialize().to_pybytes()
    except BaseException:
        wire.close()
        raise
    if kept:
        wire.close()
    else:
        # The result would end with the session.
        wire.leave()
    return [
        Partition(number, config, end.ticket.ticket, schema, node=config_at(config, end))
        for number, end in enumerate(info.endpoints)
    ]


def _by_ranges(config: Config, query: str, column: str, count: int, ordered: bool) -> list[Partition]:
    name = _sql.quote(column)
    with contextlib.closing(Wire(config)) as wire:
        statements = Statements(wire)
        schema = statements.describe(query, None)
        if column not in schema.names:
            raise InterfaceError(f"there is no column `{column}`", hint=f"there are {', '.join(schema.names)}")
        bounds = f"min({name}) AS low, max({name}) AS high"
        found = statements.run(wrapped(query, bounds), None, None, config.timeout, object()).stream
        edges = [] if found is None or count == 1 else _edges(found.table(), count)
    data = schema.serialize().to_pybytes()
    order = f" ORDER BY {name}" if ordered else ""
    texts = [wrapped(query, rest=f"{condition}{order}") for condition in _conditions(name, edges)]
    return [Partition(number, config, messages.statement_query(text, None), data, text) for number, text in enumerate(texts)]


def _conditions(name: str, edges: list[str]) -> list[str]:
    """Whatever rows there are when a partition is read, each belongs to one of them: the outermost have one end only."""
    if not edges:
        return [""]
    inner = [f" WHERE {name} >= {low} AND {name} < {high}" for low, high in itertools.pairwise(edges)]
    return [f" WHERE {name} < {edges[0]} OR {name} IS NULL", *inner, f" WHERE {name} >= {edges[-1]}"]


def _edges(bounds: pa.Table, count: int) -> list[str]:
    """Where ranges end, as literals; none where the bounds leave nothing to cut."""
    kind = bounds.schema.field("low").type
    low, high = (bounds.column(name)[0].as_py() for name in ("low", "high"))
    if low is None or high is None:
        return []
    if pa.types.is_integer(kind):
        cuts: list[Any] = [low + (high - low) * part // count for part in range(1, count)]
    elif pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
            raise _no_ranges(kind)
        cuts = [low + (high - low) * part / count for part in range(1, count)]
    elif pa.types.is_floating(kind):
        if not (math.isfinite(low) and math.isfinite(high)):
            return []
        cuts = [low + (high - low) * (part / count) for part in range(1, count)]
    else:
        raise _no_ranges(kind)
    return [literal(cut) for cut in sorted(set(cuts)) if low < cut <= high]


def _no_ranges(kind: pa.DataType) -> InterfaceError:
    return InterfaceError(f"type {kind} has no ranges", hint="name a column of numbers, dates or timestamps")


def literal(value: Any) -> str:
    """A value as it stands in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"CAST({_sql.literal(repr(value))} AS DOUBLE)"
    if isinstance(value, datetime.datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        return f"CAST({_sql.literal(datetime.datetime.isoformat(value))} AS {kind})"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, str):
        return _sql.literal(value)
    return str(value)
