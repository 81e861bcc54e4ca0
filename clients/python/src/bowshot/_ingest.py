"""Whatever has rows as Arrow batches, and their way into a table: all of them or none."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from bowshot import _messages as messages
from bowshot import _values
from bowshot._errors import Error, InterfaceError, ProgrammingError
from bowshot._transaction import Transactions
from bowshot._wire import Wire

# A message stays well below what a server takes by default, and is large enough to be worth one.
_MESSAGE_BYTES = 8 << 20
_ROWS_AT_ONCE = 10_000

Batches = tuple[pa.Schema, Iterable[pa.RecordBatch]]


def batches_of(data: Any) -> Batches:
    """The schema and the batches of everything that `ingest` takes. Files and iterators are read while they are sent."""
    if isinstance(data, str | os.PathLike):
        return _file(pathlib.Path(data))
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches()
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, data
    # Frames of pandas: their index is no column of a table.
    if type(data).__module__.split(".")[0] == "pandas":
        table = pa.Table.from_pandas(data.to_frame() if hasattr(data, "to_frame") else data, preserve_index=False)
        return table.schema.remove_metadata(), table.replace_schema_metadata(None).to_batches()
    if type(data).__module__.split(".")[0] == "polars":
        # Its own stream has string views, which tables of the server keep as plain strings anyway.
        frame = data.collect() if hasattr(data, "collect") else data
        frame = frame.to_frame() if hasattr(frame, "to_frame") else frame
        table = frame.to_arrow()
        return table.schema, table.to_batches()
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, reader
    if isinstance(data, Mapping):
        table = pa.table({name: _column(values) for name, values in data.items()})
        return table.schema, table.to_batches()
    if isinstance(data, Iterable):
        return _items(iter(data))
    raise InterfaceError(f"rows of type `{type(data).__name__}` cannot be ingested")


def _column(values: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array([_values.simplified(item) for item in values])


def _file(path: pathlib.Path) -> Batches:
    name = path.name.lower()
    if not path.exists():
        raise InterfaceError(f"there is no file `{path}`")
    if path.is_dir() or name.endswith((".parquet", ".pq")):
        from pyarrow import dataset

        found = dataset.dataset(path, format="parquet", partitioning="hive" if path.is_dir() else None)
        return found.schema, found.to_batches()
    if name.endswith((".csv", ".csv.gz")):
        from pyarrow import csv

        reader = csv.open_csv(path)
        return reader.schema, reader
    if name.endswith((".arrow", ".feather", ".ipc")):
        source = pa.ipc.open_file(pa.memory_map(str(path)))
        return source.schema, (source.get_batch(number) for number in range(source.num_record_batches))
    raise InterfaceError(f"`{path.name}` has no ending of a format", hint="there are .parquet, .csv, .csv.gz and .arrow")


def _items(items: Iterator[Any]) -> Batches:
    """An iterator of batches or tables, or of dictionaries: the first item tells which, and which columns there are."""
    first = next(items, None)
    if first is None:
        raise ProgrammingError("there are no rows, so that nobody knows the columns", hint="ingest an empty Arrow table")
    if isinstance(first, pa.RecordBatch | pa.Table):
        return first.schema, _arrow_items(first, items)
    if not isinstance(first, Mapping):
        raise InterfaceError(
            f"items of type `{type(first).__name__}` cannot be ingested", hint="give dictionaries or record batches"
        )
    return _dict_items(first, items)


def _arrow_items(first: Any, items: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    for item in _before(first, items):
        yield from item.to_batches() if isinstance(item, pa.Table) else [item]


def _dict_items(first: Mapping[str, Any], items: Iterator[Any]) -> Batches:
    """Dictionaries in groups. The first group tells types and names; a key that is missing is null."""
    rows = _before(first, items)
    head = [dict(row) for _, row in zip(range(_ROWS_AT_ONCE), rows, strict=False)]
    names = list(dict.fromkeys(name for row in head for name in row))
    table = pa.table({name: _column([row.get(name) for row in head]) for name in names})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        number = len(head)
        while group := [row for _, row in zip(range(_ROWS_AT_ONCE), rows, strict=False)]:
            yield _group(group, table.schema, number)
            number += len(group)

    return table.schema, batches()


def _group(group: list[Mapping[str, Any]], schema: pa.Schema, number: int) -> pa.RecordBatch:
    for row in group:
        unknown = row.keys() - set(schema.names)
        if unknown:
            raise ProgrammingError(f"a row from {number} on has a column `{min(unknown)}` that those before have not")
    columns = [pa.array([_values.simplified(row.get(item.name)) for row in group], item.type) for item in schema]
    return pa.record_batch(columns, schema=schema)


def _before(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def write(
    wire: Wire,
    transactions: Transactions,
    data: Any,
    *,
    table: str,
    mode: str,
    schema: str | None,
    catalog: str | None,
    temporary: bool,
    timeout: float | None,
) -> int:
    """One change, of a transaction of its own where none is open: a stream that breaks off in the middle looks to the
    server like one that has ended, so what came by it is undone here."""
    if mode not in messages.MODES:
        raise ProgrammingError(f"`{mode}` is no mode of ingest", hint=f"there are {', '.join(messages.MODES)}")
    columns, batches = batches_of(data)
    handle = transactions.current()
    # Not that of the connection: what other threads do meanwhile is no part of it.
    scope = _Savepoint(transactions) if handle else Own(wire)
    command = messages.ingest(
        table, mode=mode, schema=schema, catalog=catalog, temporary=temporary, transaction=handle or scope.handle
    )
    try:
        answer = wire.ingest(command, columns, sized(batches), timeout)
    except BaseException:
        # A server that is gone has undone it.
        with contextlib.suppress(Error):
            scope.end(False)
        raise
    scope.end(True)
    return messages.update_count(answer)


class Own:
    """A transaction of its own."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.handle = wire.sql_action("BeginTransaction", messages.begin_transaction()).data(1)

    def end(self, good: bool) -> None:
        self._wire.action("EndTransaction", messages.end_transaction(self.handle, good))


class _Savepoint:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self.handle = transactions.savepoint()

    def end(self, good: bool) -> None:
        self._transactions.end_savepoint(self.handle, good)


def sized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cuts batches that would make a message too large."""
    for batch in batches:
        parts = max(1, -(-batch.nbytes // _MESSAGE_BYTES))
        rows = max(1, -(-batch.num_rows // parts))
        if parts == 1:
            yield batch
            continue
        for begin in range(0, batch.num_rows, rows):
            yield batch.slice(begin, rows)
