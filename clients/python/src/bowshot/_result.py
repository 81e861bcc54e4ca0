"""What a statement gives: rows that come as they are asked for, in the form that is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bowshot import _show, _values
from bowshot._errors import InterfaceError
from bowshot._progress import Progress
from bowshot._stream import Stream

if TYPE_CHECKING:
    import pandas
    import polars


class Result:
    """The rows of one statement. They are read once: as a whole (`arrow`, `df`, `pl`, …, which keep them, so that others of
    these can follow) or piece by piece in bounded memory (iteration, `batches`, `reader`, `to_parquet`, `to_csv`).

    A result that is not read to its end stops its query when it is closed or forgotten.
    """

    def __init__(self, stream: Stream | None, changed: int = -1, progress: Progress | None = None) -> None:
        self._stream = stream
        self._changed = changed
        self._progress = progress
        self._table: pa.Table | None = None if stream is not None else pa.table({})
        self._peeked: list[pa.RecordBatch] = []
        self._taken = False

    @property
    def schema(self) -> pa.Schema:
        """The columns; none for a statement without rows."""
        return self._stream.schema if self._stream is not None else pa.schema([])

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def query_id(self) -> str | None:
        """The query's name in `system.queries`."""
        return self._stream.query_id if self._stream is not None else None

    @property
    def rowcount(self) -> int:
        """How many rows were changed, or how many there are; -1 where nobody knows yet."""
        if self._stream is None:
            return self._changed
        if self._table is not None:
            return int(self._table.num_rows)
        return -1 if self._stream.rows is None else self._stream.rows

    @property
    def transport(self) -> str | None:
        """How the rows came: `memory` if the server has shared memory with this process (what is small comes through its local
        socket), `socket` if they came over the network; none before they are read."""
        return self._stream.transport if self._stream is not None else None

    @property
    def transport_note(self) -> str | None:
        """Why rows came through a socket that could have come in memory, where there is a reason."""
        return self._stream.transport_note if self._stream is not None else None

    @property
    def taken(self) -> bool:
        """Whether somebody reads the rows already, or has read them."""
        return self._taken

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batch by batch, in bounded memory."""
        if self._table is not None:
            yield from self._table.to_batches()
            return
        stream = self._take()
        with self._watched():
            while self._peeked:
                yield self._peeked.pop(0)
            yield from stream

    def __iter__(self) -> Iterator[_values.Row]:
        """Row by row, each a tuple."""
        for batch in self.batches():
            yield from _values.rows(batch)

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Row by row, each a dictionary."""
        names = self.columns
        for row in self:
            yield dict(zip(names, row, strict=True))

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a reader, for whatever takes Arrow's streams."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def arrow(self) -> pa.Table:
        """All rows as a table."""
        if self._table is None:
            stream = self._take()
            with self._watched():
                if self._peeked:
                    rest = list(stream)
                    self._table = pa.Table.from_batches(self._peeked + rest, self.schema)
                    self._peeked = []
                else:
                    self._table = stream.table()
        return self._table

    def df(self, **arguments: Any) -> pandas.DataFrame:
        """All rows as a frame of pandas; arguments are those of `pyarrow.Table.to_pandas`."""
        return self.arrow().to_pandas(**arguments)

    def pl(self) -> polars.DataFrame:
        """All rows as a frame of Polars."""
        import polars

        frame = polars.from_arrow(self.arrow())
        return frame if isinstance(frame, polars.DataFrame) else frame.to_frame()

    def numpy(self) -> dict[str, Any]:
        """All rows as one array of NumPy for each column; nulls as pandas has them."""
        table = self.arrow()
        return {name: column.to_numpy() for name, column in zip(table.column_names, table.columns, strict=True)}

    def torch(self) -> dict[str, Any]:
        """All rows as one tensor for each column, which has to have numbers and no nulls."""
        import torch

        tensors = {}
        for name, column in zip(self.columns, self.arrow().columns, strict=True):
            kind = column.type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise InterfaceError(f"column `{name}` has type {kind}, which no tensor has", hint="leave it out")
            if column.null_count:
                raise InterfaceError(f"column `{name}` has nulls, which no tensor has", hint="replace them: coalesce")
            # A tensor may be written to, Arrow's buffers may not.
            tensors[name] = torch.from_numpy(column.to_numpy().copy())
        return tensors

    def to_parquet(self, path: str | os.PathLike[str], **arguments: Any) -> int:
        """Writes the rows to a file while they come; arguments are those of `pyarrow.parquet.ParquetWriter`. Gives how many
        there were. A file that is there is replaced when all rows have come."""
        from pyarrow import parquet

        arguments.setdefault("compression", "zstd")
        with _Replacing(path) as partial, parquet.ParquetWriter(partial, self.schema, **arguments) as writer:
            return self._write(writer)

    def to_csv(self, path: str | os.PathLike[str], **arguments: Any) -> int:
        """Writes the rows to a file while they come; arguments are those of `pyarrow.csv.WriteOptions`. Gives how many there
        were. A file that is there is replaced when all rows have come."""
        from pyarrow import csv

        options = csv.WriteOptions(**arguments)
        with _Replacing(path) as partial, csv.CSVWriter(partial, self.schema, write_options=options) as writer:
            return self._write(writer)

    def _write(self, writer: Any) -> int:
        rows = 0
        for batch in self.batches():
            writer.write_batch(batch)
            rows += batch.num_rows
        return rows

    def show(self, rows: int = 20) -> None:
        """Prints the first rows; they can still be read."""
        print(_show.text(*self._head(rows), width=_show.terminal_width()))

    def __repr__(self) -> str:
        if self._stream is None:
            return f"<bowshot.Result: {_show.changed(self._changed)}>"
        if self._taken and self._table is None:
            return f"<bowshot.Result: {len(self.columns)} columns, rows have been read>"
        return _show.text(*self._head(20), width=_show.terminal_width())

    def _repr_html_(self) -> str:
        if self._stream is None or (self._taken and self._table is None):
            return f"<p>{_show.escape(repr(self))}</p>"
        return _show.html(*self._head(50))

    def _head(self, rows: int) -> tuple[pa.Table, int | None]:
        """The first rows, and how many there are in all if that is known."""
        if self._table is not None:
            return self._table.slice(0, rows), self._table.num_rows
        if self._taken:
            raise InterfaceError("the rows have been read", hint="run the statement again")
        stream = self._open()
        ended = False
        while not ended and sum(batch.num_rows for batch in self._peeked) <= rows:
            batch = stream.next()
            ended = batch is None
            if batch is not None:
                self._peeked.append(batch)
        table = pa.Table.from_batches(self._peeked, self.schema)
        if ended:
            self._table, self._peeked = table, []
        return table.slice(0, rows), table.num_rows if ended else stream.rows

    def _take(self) -> Stream:
        if self._taken:
            raise InterfaceError("the rows have been read", hint="run the statement again, or keep them with `arrow()`")
        self._taken = True
        return self._open()

    def _open(self) -> Stream:
        if self._stream is None:
            raise InterfaceError("the statement gives no rows")
        return self._stream

    def _watched(self) -> Progress:
        return self._progress if self._progress is not None else Progress.none()

    def cancel(self) -> None:
        """Stops the query; may be called from another thread, whose reading then fails with `QueryCancelledError`."""
        if self._stream is not None:
            self._stream.cancel()

    def close(self) -> None:
        """Stops the query if its rows are not read to the end, and forgets them."""
        self._peeked = []
        self._taken = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None:
            stream.abandon()


class _Replacing:
    """A file beside the one that is wanted, which it replaces when all went well."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._partial = f"{self._path}.{os.getpid()}.partial"

    def __enter__(self) -> str:
        return self._partial

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            os.replace(self._partial, self._path)
        elif os.path.exists(self._partial):
            os.unlink(self._partial)
