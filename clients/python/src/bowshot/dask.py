"""Dask DataFrames from queries, one Dask partition for each endpoint of the result or each range of a column; and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bowshot import _partitions, _sql, connect
from bowshot._partitions import Partition

if TYPE_CHECKING:
    import dask.dataframe
    import pandas


def read_sql(
    source: str,
    uri: str,
    *,
    npartitions: int | None = None,
    column: str | None = None,
    columns: Sequence[str] | None = None,
    arrow_types: bool = True,
    **connection: Any,
) -> dask.dataframe.DataFrame:
    """A frame of the rows of a query, or of a table by its name.

    With `column` each partition is a range of it that is read when it is computed, as often as that happens. Without it the
    query runs now, and the server keeps the result for a minute after the last read of it, so compute soon or `persist`.
    `arrow_types` keeps Arrow's types in pandas. Other arguments are those of `bowshot.connect`.
    """
    from dask import dataframe

    query = _partitions.as_query(source)
    if columns is not None:
        wanted = dict.fromkeys([*columns, *([column] if column else [])])
        query = _partitions.wrapped(query, ", ".join(map(_sql.quote, wanted)))
    with connect(uri, autocommit=True, **connection) as opened:
        parts = opened.partitions(query, count=npartitions, column=column)
    meta = _frame(parts[0].schema.empty_table(), arrow_types)
    frame = dataframe.from_map(_read, parts, arrow_types=arrow_types, meta=meta, label="bowshot")
    return frame if columns is None else frame[list(columns)]


def _read(part: Partition, columns: list[str] | None = None, arrow_types: bool = True) -> pandas.DataFrame:
    """Columns that nobody needs are not made into pandas; those of a range are not even read."""
    if columns is None or not isinstance(columns, list):
        return _frame(part.arrow(), arrow_types)
    narrow = part.select(columns)
    return _frame(narrow.arrow().select(columns), arrow_types)


def _frame(table: pa.Table, arrow_types: bool) -> pandas.DataFrame:
    if not arrow_types:
        return table.to_pandas()
    import pandas

    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def to_sql(frame: dask.dataframe.DataFrame, table: str, uri: str, *, mode: str = "create", **connection: Any) -> int:
    """Writes a frame into a table, its partitions side by side and all as one change; gives how many rows there were. `mode`
    is as for `Connection.ingest`."""
    import dask

    with connect(uri, autocommit=True, **connection) as opened:
        upload = opened.upload(table, mode)  # type: ignore[arg-type]
        schema = pa.Schema.from_pandas(frame._meta, preserve_index=False).remove_metadata()
        try:
            parts = dask.compute(*[dask.delayed(upload.put)(part) for part in frame.to_delayed()])
        except BaseException:
            upload.abort()
            raise
        return upload.commit(parts, schema if not parts else None)
