"""The same client for asyncio: `await bowshot.aio.connect(…)`.

pyarrow's calls block, so each waits in a thread; the loop never does. Cancelling a task stops its statement at the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from bowshot import _catalog, _connection, _cursor, _errors, _result, _sql, _transaction, _values
from bowshot._messages import Mode, OptionValue

if TYPE_CHECKING:
    import pandas
    import polars

Value = TypeVar("Value")
Closing = TypeVar("Closing", bound="_Closing")
# Statements of one connection that wait at a time; more wait for these.
_THREADS = 8


async def connect(uri: str = "grpc://127.0.0.1:50051", **arguments: Any) -> Connection:
    """Connects; arguments are those of `bowshot.connect`."""
    import bowshot

    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bowshot")
    try:
        made = await asyncio.get_running_loop().run_in_executor(threads, functools.partial(bowshot.connect, uri, **arguments))
    except BaseException:
        threads.shutdown(wait=False)
        raise
    return Connection(made, threads)


class _Worker:
    """Runs blocking calls in threads of the connection's own."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def _run(self, work: Callable[[], Value], stop: Callable[[], object] | None = None) -> Value:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if stop is not None:
                # Not in the threads of the connection, all of which may wait.
                with contextlib.suppress(_errors.Error):
                    await loop.run_in_executor(None, stop)
            # What the stopped work still says is nobody's any more.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise


class _Closing(_Worker):
    """What ends with a block."""

    sync: Any

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.sync.close)

    async def __aenter__(self: Closing) -> Closing:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()


class Connection(_Closing):
    """As `bowshot.Connection`."""

    sync: _connection.Connection

    def __init__(self, connection: _connection.Connection, threads: ThreadPoolExecutor) -> None:
        super().__init__(threads)
        self.sync = connection

    async def sql(self, query: str, params: _sql.Parameters | None = None, *, timeout: float | None = None) -> Result:
        key = object()
        rows = None if params is None else [params]
        work = functools.partial(self.sync._run, query, rows, timeout, key)
        answer = await self._run(work, lambda: self.sync._statements.kill(key))
        return Result(_result.Result(answer.stream, answer.changed), self._threads)

    def cursor(self) -> Cursor:
        return Cursor(self.sync.cursor(), self._threads)

    async def execute(self, sql: str, parameters: _sql.Parameters | None = None) -> Cursor:
        return await self.cursor().execute(sql, parameters)

    async def ingest(self, table: str, data: Any, mode: Mode = "create", **arguments: Any) -> int:
        return await self._run(functools.partial(self.sync.ingest, table, data, mode, **arguments))

    async def commit(self) -> None:
        await self._run(self.sync.commit)

    async def rollback(self) -> None:
        await self._run(self.sync.rollback)

    def transaction(self) -> Block:
        return Block(self.sync.transaction(), self._threads)

    async def cancel(self) -> int:
        return await asyncio.get_running_loop().run_in_executor(None, self.sync.cancel)

    async def catalogs(self) -> list[str]:
        return await self._run(self.sync.catalogs)

    async def schemas(self, catalog: str | None = None) -> list[str]:
        return await self._run(functools.partial(self.sync.schemas, catalog))

    async def tables(
        self, schema: str | None = None, *, catalog: str | None = None, like: str | None = None
    ) -> list[_catalog.TableName]:
        return await self._run(functools.partial(self.sync.tables, schema, catalog=catalog, like=like))

    async def options(self) -> dict[str, OptionValue]:
        return await self._run(lambda: self.sync.options)

    async def set_options(self, **options: OptionValue) -> None:
        await self._run(functools.partial(self.sync.set_options, **options))

    async def close(self) -> None:
        await super().close()
        self._threads.shutdown(wait=False)

    @property
    def closed(self) -> bool:
        return self.sync.closed

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self.closed and self.sync.in_transaction:
                await self.commit()
        finally:
            await self.close()


class Block(_Worker):
    """As the block of `bowshot.Connection.transaction`."""

    def __init__(self, block: _transaction.Block, threads: ThreadPoolExecutor) -> None:
        super().__init__(threads)
        self._block = block

    async def __aenter__(self) -> Block:
        await self._run(self._block.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return await asyncio.shield(self._run(functools.partial(self._block.__exit__, kind, error, trace)))


class Result(_Closing):
    """As `bowshot.Result`; iterate with `async for`."""

    sync: _result.Result

    def __init__(self, result: _result.Result, threads: ThreadPoolExecutor) -> None:
        super().__init__(threads)
        self.sync = result

    @property
    def schema(self) -> pa.Schema:
        return self.sync.schema

    @property
    def columns(self) -> list[str]:
        return self.sync.columns

    @property
    def rowcount(self) -> int:
        return self.sync.rowcount

    @property
    def query_id(self) -> str | None:
        return self.sync.query_id

    @property
    def transport(self) -> str | None:
        return self.sync.transport

    @property
    def transport_note(self) -> str | None:
        return self.sync.transport_note

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        batches = self.sync.batches()
        while (batch := await self._run(lambda: next(batches, None), self.sync.cancel)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[_values.Row]:
        async for batch in self.batches():
            for row in _values.rows(batch):
                yield row

    async def arrow(self) -> pa.Table:
        return await self._run(self.sync.arrow, self.sync.cancel)

    async def df(self, **arguments: Any) -> pandas.DataFrame:
        return await self._run(functools.partial(self.sync.df, **arguments), self.sync.cancel)

    async def pl(self) -> polars.DataFrame:
        return await self._run(self.sync.pl, self.sync.cancel)

    async def numpy(self) -> dict[str, Any]:
        return await self._run(self.sync.numpy, self.sync.cancel)

    async def to_parquet(self, path: str, **arguments: Any) -> int:
        return await self._run(functools.partial(self.sync.to_parquet, path, **arguments), self.sync.cancel)

    async def to_csv(self, path: str, **arguments: Any) -> int:
        return await self._run(functools.partial(self.sync.to_csv, path, **arguments), self.sync.cancel)

    async def cancel(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.sync.cancel)


class Cursor(_Closing):
    """As the cursor of PEP 249, with coroutines."""

    sync: _cursor.Cursor

    def __init__(self, cursor: _cursor.Cursor, threads: ThreadPoolExecutor) -> None:
        super().__init__(threads)
        self.sync = cursor

    @property
    def description(self) -> list[_values.Description] | None:
        return self.sync.description

    @property
    def rowcount(self) -> int:
        return self.sync.rowcount

    async def execute(self, operation: str, parameters: _sql.Parameters | None = None) -> Cursor:
        await self._run(functools.partial(self.sync.execute, operation, parameters), self.sync.cancel)
        return self

    async def executemany(self, operation: str, seq_of_parameters: Sequence[_sql.Parameters]) -> Cursor:
        await self._run(functools.partial(self.sync.executemany, operation, seq_of_parameters), self.sync.cancel)
        return self

    async def fetchone(self) -> _values.Row | None:
        return await self._run(self.sync.fetchone, self.sync.cancel)

    async def fetchmany(self, size: int | None = None) -> list[_values.Row]:
        return await self._run(functools.partial(self.sync.fetchmany, size), self.sync.cancel)

    async def fetchall(self) -> list[_values.Row]:
        return await self._run(self.sync.fetchall, self.sync.cancel)

    async def __aiter__(self) -> AsyncIterator[_values.Row]:
        while (row := await self.fetchone()) is not None:
            yield row
