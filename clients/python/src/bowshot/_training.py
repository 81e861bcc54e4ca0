"""Batches of columns for training: cut between workers, shuffled, and taken up again where they were left.

What an epoch yields is decided by the seed, the number of the epoch and the shard alone, if each part's rows have an order:
so the source is cut and sorted by a column of unique values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bowshot import _partitions
from bowshot._config import configure
from bowshot._errors import InterfaceError
from bowshot._partitions import Partition
from bowshot._read_ahead import read_ahead

if TYPE_CHECKING:
    import numpy

# An array of NumPy for each column.
Arrays = dict[str, Any]


class Epochs:
    """The plan is made when it is needed first. It can be pickled, and workers that get it with the plan in it agree on it
    even if the table changes."""

    def __init__(
        self,
        source: str,
        uri: str,
        *,
        column: str | None,
        partitions: int,
        batch_size: int,
        shuffle_buffer: int,
        seed: int,
        drop_last: bool,
        **connection: Any,
    ) -> None:
        if batch_size < 1:
            raise InterfaceError("a batch has at least one row")
        if shuffle_buffer and column is None:
            raise InterfaceError("rows without an order cannot be shuffled again alike", hint="name a unique `column`")
        self.config = configure(uri, autocommit=True, progress=False, **connection)
        self.query = _partitions.as_query(source)
        self.column = column
        self.count = partitions
        self.batch_size = batch_size
        # Whole batches, so that none of them has rows of two blocks.
        self.block = -(-max(shuffle_buffer, batch_size) // batch_size) * batch_size
        self.shuffled = shuffle_buffer > 0
        self.seed = seed
        self.drop_last = drop_last
        self._parts: list[Partition] | None = None

    def plan(self) -> list[Partition]:
        """The parts that shards are made of."""
        if self._parts is None:
            if self.column is not None:
                self._parts = _partitions.plan(self.config, self.query, count=self.count, column=self.column, ordered=True)
            else:
                self._parts = [_partitions.whole(self.config, self.query)]
        return self._parts

    @property
    def schema(self) -> pa.Schema:
        return self.plan()[0].schema

    def batches(self, epoch: int = 0, shard: int = 0, shards: int = 1, skip: int = 0) -> Iterator[Arrays]:
        """The batches of one shard of an epoch, but for the first `skip`."""
        if self.column is None and (shards > 1 or skip):
            raise InterfaceError(
                "rows without an order cannot be cut between workers nor taken up again", hint="name a unique `column`"
            )
        per_block = self.block // self.batch_size
        first, inside = divmod(skip, per_block)
        rows = self._rows(epoch, shard, shards, first * self.block)
        for number, block in enumerate(_blocks(rows, self.block, exact=self.shuffled), first):
            if self.shuffled:
                block = block.take(pa.array(self._random(epoch, shard, number).permutation(block.num_rows)))
            begin = inside * self.batch_size if number == first else 0
            end = block.num_rows - block.num_rows % self.batch_size if self.drop_last else block.num_rows
            yield from _cut(block.slice(begin, max(end - begin, 0)), self.batch_size)

    def _rows(self, epoch: int, shard: int, shards: int, skip: int) -> Iterator[pa.RecordBatch]:
        parts = self.plan()
        if self.shuffled:
            parts = [parts[at] for at in self._random(epoch, 0, -1).permutation(len(parts))]
        return read_ahead(self._without(parts[shard::shards], skip))

    def _without(self, parts: list[Partition], rows: int) -> list[Partition]:
        """What is left of partitions without their first rows."""
        for number, part in enumerate(parts):
            if rows == 0:
                return parts[number:]
            count = self._count(part)
            if rows < count:
                return [part.query(f"{part.sql} OFFSET {rows}"), *parts[number + 1 :]]
            rows -= count
        return []

    def _count(self, part: Partition) -> int:
        counted = part.query(_partitions.wrapped(part.sql or "", "count(*) AS rows"))
        return int(next(batch.column(0)[0].as_py() for batch in counted.batches() if batch.num_rows))

    def _random(self, epoch: int, shard: int, block: int) -> numpy.random.Generator:
        import numpy

        return numpy.random.default_rng([self.seed, epoch, shard, block + 1])


def _blocks(batches: Iterator[pa.RecordBatch], rows: int, exact: bool) -> Iterator[pa.Table]:
    """Tables of just so many rows, or of as many times so many as have come; the last one may have fewer."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            taken = rows if exact else count - count % rows
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, taken)
            waiting = table.slice(taken).to_batches()
            count -= taken
    if count:
        yield pa.Table.from_batches(waiting)


def _cut(block: pa.Table, rows: int) -> Iterator[Arrays]:
    """A NumPy array for each column, of so many rows at a time; the last ones may have fewer. Numbers with nulls become
    floating-point ones with NaN; lists of one length become arrays with one more dimension; what NumPy has no type for
    becomes objects.

    Plain columns become arrays once, of which each batch gets a part that no other one has; for small batches that is most of
    the time."""
    columns = dict(enumerate(block.columns))
    whole = {number: _array(column) for number, column in columns.items() if _is_plain(column)}
    for at in range(0, block.num_rows, rows):
        yield {
            name: whole[number][at : at + rows] if number in whole else _array(columns[number].slice(at, rows))
            for number, name in enumerate(block.column_names)
        }


def _is_plain(column: pa.ChunkedArray) -> bool:
    """Whether all parts of it become arrays of one type, wherever it is cut."""
    return column.null_count == 0 and bool(pa.types.is_primitive(column.type))


def _array(column: pa.ChunkedArray) -> numpy.ndarray[Any, Any]:
    import numpy

    kind = column.type
    if isinstance(kind, pa.ExtensionType):
        column, kind = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type), kind.storage_type
    found: numpy.ndarray[Any, Any]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        rows: list[Any] = [row.values.to_numpy(zero_copy_only=False) if row.is_valid else None for row in column]
        if rows and all(row is not None and row.shape == rows[0].shape for row in rows):
            found = numpy.stack(rows)
            return found
        found = numpy.empty(len(rows), dtype=object)
        found[:] = rows
        return found
    # Nobody else has it: what comes from Arrow may not be written to.
    found = numpy.array(column.to_numpy())
    return found
