"""One server for all tests that do each other no harm, over small files; those that stop one start their own."""

import concurrent.futures
import os
import pathlib
import re
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bowshot

if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))

# For the programs that tests start.
os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).parents[1] / "src")

NUMBERS = 200_000
# Its first rows come at once and its last one not today; and one of which no row comes today.
LONG = "SELECT a.* FROM numbers a CROSS JOIN numbers b"
ENDLESS = "SELECT count(*) FROM numbers a CROSS JOIN numbers b CROSS JOIN numbers c WHERE a.n + b.n = c.n * 2"


# Far more than anything takes on a busy machine; what does not end would take for ever.
PATIENCE = 120


def wait_for(check):
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def side_by_side(work, count):
    """Calls `work` with each number in a thread of its own."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    names = ["ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT"]
    pa.csv.write_csv(pa.table({"id": range(5), "name": names}), folder / "nation.csv")
    numbers = pa.table({"n": range(NUMBERS), "text": [f"number {n}" for n in range(NUMBERS)]})
    pq.write_table(numbers, folder / "numbers.parquet", row_group_size=20_000)
    return folder


@pytest.fixture(scope="session")
def shared(folder):
    with bowshot.server(folder, settings={"result_cache.memory_bytes": 0}) as server:
        yield server
        assert server.running, server.log()[-5000:]


@pytest.fixture
def connection(shared):
    """Commits each statement."""
    with shared.connect(autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(request):
    """A name for a table that no other test has."""
    return re.sub(r"\W+", "_", request.node.name).strip("_").lower()


def running(connection):
    """The statements that the server works on, but for this one."""
    sql = (
        "SELECT statement FROM system.queries"
        " WHERE outcome NOT IN ('finished', 'failed', 'cancelled') AND statement NOT LIKE '%system.queries%'"
    )
    return [row[0] for row in connection.sql(sql)]
