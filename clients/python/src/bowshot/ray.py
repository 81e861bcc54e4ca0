"""Ray Data from queries, one read task for each endpoint of the result or each range of a column; and back.

dataset = ray.data.read_datasource(bowshot.ray.BowshotDatasource("orders", "grpc://127.0.0.1:50051"))
dataset.write_datasink(bowshot.ray.BowshotDatasink("copies", "grpc://127.0.0.1:50051"))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from ray.data import Datasink, Datasource, ReadTask
from ray.data.block import BlockAccessor, BlockMetadata

from bowshot import _partitions, connect
from bowshot._partitions import Partition
from bowshot._upload import Upload


class BowshotDatasource(Datasource):  # type: ignore[misc]
    """The rows of a query, or of a table by its name. Ray says how many read tasks it wants where `partitions` does not.
    Further arguments are those of `bowshot.connect`."""

    def __init__(
        self, source: str, uri: str, *, partitions: int | None = None, column: str | None = None, **connection: Any
    ) -> None:
        super().__init__()
        self._query = _partitions.as_query(source)
        self._uri = uri
        self._partitions = partitions
        self._column = column
        self._connection = connection

    def get_name(self) -> str:
        return "Bowshot"

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        # A server refuses more endpoints than it has as its limit.
        count = self._partitions or max(1, min(parallelism, 16))
        with connect(self._uri, autocommit=True, **self._connection) as opened:
            parts = opened.partitions(self._query, count=count, column=self._column)
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(_Read(part), unknown, part.schema, per_task_row_limit=per_task_row_limit) for part in parts]


class _Read:
    def __init__(self, part: Partition) -> None:
        self._part = part

    def __call__(self) -> Iterable[pa.Table]:
        empty = True
        for batch in self._part.batches():
            empty = False
            yield pa.Table.from_batches([batch])
        if empty:
            yield self._part.schema.empty_table()


class BowshotDatasink(Datasink):  # type: ignore[misc]
    """Each write task uploads one part; the end moves all of them into the table at once. `mode` is as for
    `Connection.ingest`, further arguments are those of `bowshot.connect`."""

    def __init__(self, table: str, uri: str, *, mode: str = "create", **connection: Any) -> None:
        self._table = table
        self._mode = mode
        self._uri = uri
        self._connection = connection
        self._schema: pa.Schema | None = None
        self._upload: Upload | None = None

    def get_name(self) -> str:
        return "Bowshot"

    def on_write_start(self, schema: Any = None) -> None:
        self._schema = schema if isinstance(schema, pa.Schema) else None
        with connect(self._uri, autocommit=True, **self._connection) as opened:
            self._upload = opened.upload(self._table, self._mode)  # type: ignore[arg-type]

    def write(self, blocks: Iterable[Any], ctx: Any) -> str | None:
        tables = [BlockAccessor.for_block(block).to_arrow() for block in blocks]
        full = [table for table in tables if table.num_rows]
        if not full or self._upload is None:
            return None
        return self._upload.put(iter(full))

    def on_write_complete(self, write_result: Any) -> None:
        if self._upload is not None:
            self._upload.commit([part for part in write_result.write_returns if part is not None], self._schema)

    def on_write_failed(self, error: Exception) -> None:
        if self._upload is not None:
            self._upload.abort()
