"""Results in parts that other processes read, and rows of other processes as one change."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pyarrow as pa
import pytest
from conftest import NUMBERS

import bowshot

SUM = NUMBERS * (NUMBERS - 1) // 2


def total(parts):
    return sum(pa.compute.sum(table["n"]).as_py() or 0 for table in parts)


def test_endpoints_are_one_result_that_is_read_as_often_as_wanted(connection):
    parts = connection.partitions("numbers", count=4)
    assert 1 < len(parts) <= 4
    assert parts[0].schema.names == ["n", "text"]
    for _ in range(2):
        assert total(part.arrow() for part in parts) == SUM
    (one,) = connection.partitions("SELECT n FROM numbers WHERE n = ?", [5], count=1)
    assert one.reader().read_all().to_pylist() == [{"n": 5}]


@pytest.mark.parametrize(
    ("query", "column", "count"),
    [
        ("numbers", "n", 5),
        ("SELECT n, CAST(n AS DOUBLE) / 3 AS f FROM numbers", "f", 4),
        ("SELECT n, CAST(n AS DECIMAL(12, 2)) AS d FROM numbers", "d", 4),
        ("SELECT n, CASE WHEN n > 10 THEN DATE '2020-01-01' + CAST(n AS INTEGER) % 1000 END AS day FROM numbers", "day", 3),
        ("SELECT n, to_timestamp(n) AS moment FROM numbers -- with a comment", "moment", 3),
        ("SELECT 7 AS n", "n", 4),
        ("SELECT n FROM numbers WHERE n < 0", "n", 4),
    ],
)
def test_ranges_have_each_row_once(connection, query, column, count):
    parts = connection.partitions(query, count=count, column=column, ordered=True)
    assert 1 <= len(parts) <= count
    tables = [part.arrow() for part in parts]
    expected = connection.sql(f"SELECT count(*), sum(n) FROM ({'SELECT * FROM ' * (query == 'numbers')}{query}\n)").arrow()
    rows, all_of_them = (column[0].as_py() for column in expected.columns)
    assert sum(table.num_rows for table in tables) == rows
    assert total(tables) == (all_of_them or 0)
    for table in tables:
        values = [value for value in table[column].to_pylist() if value is not None]
        assert values == sorted(values)


def test_what_cannot_be_cut(connection):
    with pytest.raises(bowshot.InterfaceError, match="no ranges"):
        connection.partitions("numbers", column="text")
    with pytest.raises(bowshot.InterfaceError, match="no column `x`; there are n, text"):
        connection.partitions("numbers", column="x")
    with pytest.raises(bowshot.InterfaceError, match="no parameters"):
        connection.partitions("SELECT n FROM numbers WHERE n > ?", [1], column="n")
    with pytest.raises(bowshot.InterfaceError, match="are none"):
        connection.partitions("numbers", count=0)


def test_a_result_that_has_expired(folder):
    with bowshot.server(folder, settings={"limits.result_timeout": "1s"}) as server, server.connect() as connection:
        parts = connection.partitions("numbers", count=2)
        with pytest.raises(bowshot.NotFoundError, match="make the partitions anew"):  # noqa: PT012
            for _ in range(100):
                bowshot._wire.time.sleep(1.2)
                parts[0].arrow()


def read(part):
    return part.arrow().num_rows


def write(upload, number):
    return upload.put(pa.table({"a": range(number * 100, number * 100 + 100)}))


def test_other_processes_read_and_write(shared, connection, table):
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        assert sum(pool.map(read, connection.partitions("numbers", count=3))) == NUMBERS
        upload = connection.upload(table)
        names = list(pool.map(write, [upload] * 4, range(4)))
    assert connection.tables(like="bowshot_upload%") == []
    assert upload.commit(names) == 400
    assert connection.sql(f"SELECT count(*), min(a), max(a) FROM {table}").arrow().to_pylist()[0]["max(a)"] == 399


@pytest.mark.parametrize("temporary", [True, False])
def test_parts_that_are_not_handed_over_are_not_there(connection, table, temporary):
    connection.ingest(table, pa.table({"a": [1]}))
    upload = pickle.loads(pickle.dumps(connection.upload(table, "append", temporary=temporary)))
    with pytest.raises(ZeroDivisionError):
        upload.put(pa.record_batch({"a": [1 // at]}) for at in (1, 0))
    assert upload.commit([upload.put([{"a": 2}, {"a": 3}])]) == 2
    assert sorted(row[0] for row in connection.table(table).scan()) == [1, 2, 3]
    assert connection.tables(like="bowshot_upload%") == []
    with pytest.raises(bowshot.NotFoundError, match="session"):
        upload.put(pa.table({"a": [4]}))


def test_modes_of_uploads(connection, table):
    rows = pa.table({"a": [1, 2]})
    for mode, count in [("create", 2), ("append", 4), ("create_append", 6), ("replace", 2)]:
        upload = connection.upload(table, mode)
        assert upload.commit([upload.put(rows)]) == 2
        assert connection.table(table).count() == count
    upload = connection.upload(table)
    with pytest.raises(bowshot.AlreadyExistsError):
        upload.commit([upload.put(rows)])
    upload = connection.upload(table, "append")
    with pytest.raises(bowshot.Error):
        upload.commit([upload.put(rows), upload.put(pa.table({"b": [1]}))])
    upload = connection.upload(table, "append")
    upload.abort([upload.put(rows)])
    assert connection.table(table).count() == 2
    upload = connection.upload(table, "replace")
    assert upload.commit([], pa.schema([("z", pa.int32())])) == 0
    assert connection.table(table).columns == ["z"]
    with pytest.raises(bowshot.ProgrammingError, match="no part of an upload"):
        connection.upload(table, "append").commit(["x; DROP TABLE y"])


WORKER = """
import pickle, sys, pyarrow as pa
upload = pickle.load(sys.stdin.buffer)
def batches():
    for number in range(10**9):
        yield pa.record_batch({"a": range(10_000)})
        if number == 20:
            print("writing", flush=True)
upload.put(batches())
"""


def test_a_worker_that_is_killed_leaves_nothing(shared, connection, table):
    upload = connection.upload(table)
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(pickle.dumps(upload))
        process.stdin.close()
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGKILL)
        process.wait(120)
    assert upload.commit([upload.put(pa.table({"a": [1]}))]) == 1
    assert connection.table(table).count() == 1


def test_a_server_that_dies_while_parts_are_read_and_written(folder, tmp_path):
    with bowshot.server(folder, data=tmp_path / "data") as server:
        connection = server.connect(autocommit=True)
        (part,) = connection.partitions("SELECT a.n FROM numbers a CROSS JOIN numbers b", column="n", count=1)
        upload = connection.upload("kept")
        name = upload.put(pa.table({"a": [1]}))
        batches = part.batches()
        assert next(batches).num_rows
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        with pytest.raises(bowshot.OperationalError):
            for _ in batches:
                pass
        for work in (lambda: upload.commit([name]), lambda: upload.put(pa.table({"a": [1]})), part.arrow):
            with pytest.raises(bowshot.OperationalError):
                work()
        upload.abort([name])
        connection.close()
    with bowshot.server(folder, data=tmp_path / "data") as again, again.connect() as connection:
        assert [name.name for name in connection.tables()] == ["nation", "numbers"]


def test_a_fork_is_told_and_does_not_hang(shared, connection):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            bowshot.connect(shared.uri)
        except bowshot.InterfaceError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(reader, 1000)
