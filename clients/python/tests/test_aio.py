"""The client for asyncio."""

import asyncio

import pyarrow as pa
import pytest
from conftest import ENDLESS, LONG, NUMBERS, running, wait_for

import bowshot
import bowshot.aio


def test_statements(shared, table):
    async def main():
        async with await bowshot.aio.connect(shared.uri, autocommit=True) as connection:
            await connection.sql(f"CREATE TABLE {table} (a INT)")
            async with connection.transaction():
                await connection.ingest(table, pa.table({"a": pa.array([1, 2], pa.int32())}), mode="append")
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with connection.transaction():
                    await connection.sql(f"DELETE FROM {table}")
                    raise ZeroDivisionError
            assert [row async for row in await connection.sql(f"SELECT a FROM {table} ORDER BY a")] == [(1,), (2,)]
            cursor = await connection.execute(f"SELECT a FROM {table} WHERE a > ?", [1])
            assert cursor.description[0][0] == "a"
            assert await cursor.fetchall() == [(2,)]
            await cursor.executemany(f"INSERT INTO {table} VALUES (?)", [(3,), (4,)])
            assert cursor.rowcount == 2
            frame = await (await connection.sql(f"SELECT count(*) AS n FROM {table}")).df()
            assert frame["n"].tolist() == [4]
            assert table in [found.name for found in await connection.tables()]
            with pytest.raises(bowshot.NotFoundError):
                await connection.sql("SELECT * FROM nope")
        assert connection.closed

    asyncio.run(main())


def test_statements_side_by_side_do_not_hold_up_the_loop(shared):
    async def main():
        async with await bowshot.aio.connect(shared.uri, autocommit=True) as connection:
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.005)

            ticking = asyncio.create_task(tick())

            async def count(number):
                result = await connection.sql("SELECT ? + 0 AS n, text FROM numbers", [number])
                return sum([batch.num_rows async for batch in result.batches()])

            assert await asyncio.gather(*map(count, range(6))) == [NUMBERS] * 6
            ticking.cancel()
            assert ticks > 5

    asyncio.run(main())


@pytest.mark.parametrize("sql", [ENDLESS, LONG], ids=["answer", "rows"])
def test_cancelling_a_task_stops_its_statement(shared, connection, sql):
    async def main():
        async with await bowshot.aio.connect(shared.uri, autocommit=True) as other:

            async def read():
                return [batch async for batch in (await other.sql(sql)).batches()][:0]

            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(read(), 1.0)
            assert (await (await other.sql("SELECT 1 AS a")).arrow()).to_pydict() == {"a": [1]}

    asyncio.run(main())
    wait_for(lambda: sql not in running(connection))


def test_nobody_is_there():
    with pytest.raises(bowshot.UnavailableError):
        asyncio.run(bowshot.aio.connect("grpc://127.0.0.1:1"))
