"""Rows in every form, streamed and whole."""

import gc
import importlib.util
import resource
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import LONG, NUMBERS, running, wait_for

import bowshot

ALL = "SELECT n, text FROM numbers"


def test_forms(connection):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    result = connection.sql("SELECT id, name FROM nation WHERE id < ? ORDER BY id", [2])
    assert result.columns == ["id", "name"]
    assert result.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])
    assert result.arrow().to_pydict() == {"id": [0, 1], "name": ["ALGERIA", "ARGENTINA"]}
    # What was read as a whole is kept.
    assert isinstance(result.df(), pandas.DataFrame)
    assert result.df()["id"].tolist() == [0, 1]
    assert isinstance(result.pl(), polars.DataFrame)
    assert result.pl()["name"].to_list() == ["ALGERIA", "ARGENTINA"]
    assert result.numpy()["id"].tolist() == [0, 1]
    assert list(result) == [(0, "ALGERIA"), (1, "ARGENTINA")]
    assert list(result.dicts()) == [{"id": 0, "name": "ALGERIA"}, {"id": 1, "name": "ARGENTINA"}]
    assert result.rowcount == 2
    assert result.query_id


def test_readers(connection):
    assert connection.sql(ALL).reader().read_all().num_rows == NUMBERS
    assert pa.table(connection.sql("SELECT 1 AS a")).to_pydict() == {"a": [1]}
    assert pa.RecordBatchReader.from_stream(connection.sql("SELECT 1 AS a")).read_all().num_rows == 1


def test_rows_that_stream_are_read_once(connection):
    result = connection.sql("SELECT * FROM nation ORDER BY id")
    assert len(list(result)) == 5
    with pytest.raises(bowshot.InterfaceError, match="have been read"):
        list(result)
    with pytest.raises(bowshot.InterfaceError):
        result.arrow()
    assert "have been read" in repr(result)


def test_files(connection, tmp_path):
    path = tmp_path / "numbers.parquet"
    assert connection.sql(ALL).to_parquet(path) == NUMBERS
    assert sorted(pq.read_table(path)["n"].to_pylist()) == list(range(NUMBERS))
    assert connection.sql("SELECT * FROM nation ORDER BY id").to_csv(tmp_path / "nation.csv") == 5
    assert pyarrow.csv.read_csv(tmp_path / "nation.csv")["name"][0].as_py() == "ALGERIA"
    # A query that fails in the middle leaves the old file and no new one.
    with pytest.raises(bowshot.DataError):
        connection.sql(f"SELECT 1 / ({NUMBERS - 1} - n) AS x FROM numbers").to_parquet(path)
    assert pq.read_metadata(path).num_rows == NUMBERS
    assert sorted(file.name for file in tmp_path.iterdir()) == ["nation.csv", "numbers.parquet"]


# A gigabyte that few have: with it the tensors are real ones, without it the next test looks at what goes into them.
if importlib.util.find_spec("torch"):

    def test_torch(connection):
        import torch

        tensors = connection.sql("SELECT n FROM numbers ORDER BY n LIMIT 3").torch()
        assert torch.equal(tensors["n"], torch.tensor([0, 1, 2]))


def test_columns_that_are_no_tensors(connection, monkeypatch):
    class Torch:
        @staticmethod
        def from_numpy(array):
            return array

    monkeypatch.setitem(sys.modules, "torch", Torch)
    tensors = connection.sql("SELECT 1.5::double AS a, true AS b").torch()
    assert (tensors["a"].tolist(), tensors["b"].tolist()) == ([1.5], [True])
    assert tensors["a"].flags.writeable
    for sql in ("SELECT 'text' AS a", "SELECT NULL::int AS a"):
        with pytest.raises(bowshot.InterfaceError, match="tensor"):
            connection.sql(sql).torch()


def test_text_and_html(connection, capsys):
    result = connection.sql("SELECT id, name, NULL AS nothing FROM nation ORDER BY id")
    result.show(2)
    lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in lines[0].split("│")] == ["id", "name", "nothing"]
    assert [cell.strip() for cell in lines[3].split("│")] == ["0", "ALGERIA", "NULL"]
    assert lines[-1].startswith("(first 2 rows")
    # What was shown can still be read.
    assert "<td>CANADA</td>" in result._repr_html_()
    assert "CANADA" in repr(result)
    assert len(list(result)) == 5
    assert "&lt;b&gt;" in connection.sql("SELECT '<b>' AS \"<i>\"")._repr_html_()
    assert "<b>" not in connection.sql("SELECT '<b>' AS \"<i>\"")._repr_html_()
    assert repr(connection.sql("SELECT 'a\nb\x1b[31m' AS x")).count("\x1b") == 0
    assert "1 row changed" in repr(bowshot.Result(None, 1))


def test_a_wide_table_fits_its_terminal(connection, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = repr(connection.sql("SELECT repeat('x', 30) AS a, repeat('y', 30) AS b, '宽' AS c"))
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert "2 not shown" in shown


def test_showing_a_long_result_reads_little(connection):
    with connection.sql(LONG) as result:
        assert "first 20 rows" in repr(result)
        rows = 0
        for batch in result.batches():
            rows += batch.num_rows
            if rows > 50_000:
                break
    wait_for(lambda: LONG not in running(connection))


def test_a_result_that_is_forgotten_stops(connection):
    result = connection.sql(LONG)
    next(result.batches())
    del result
    gc.collect()
    wait_for(lambda: LONG not in running(connection))


@pytest.mark.parametrize("endpoints", ["1", "4", "auto"])
def test_endpoints(shared, endpoints):
    with shared.connect(autocommit=True, options={"endpoints": endpoints}) as connection:
        result = connection.sql(ALL)
        assert sorted(result.arrow()["n"].to_pylist()) == list(range(NUMBERS))
        assert sum(batch.num_rows for batch in connection.sql(ALL).batches()) == NUMBERS
        ordered = connection.sql(f"{ALL} ORDER BY n DESC")
        assert [row[0] for row in ordered] == list(range(NUMBERS - 1, -1, -1))
        # The error of one endpoint is that of the result, and the others stop.
        for read in (lambda result: result.arrow(), list):
            with pytest.raises(bowshot.DataError, match="by zero"):
                read(connection.sql(f"SELECT 1 / ({NUMBERS - 1} - n) AS x FROM numbers"))
        assert connection.sql("SELECT 1").arrow().num_rows == 1


def test_statements_without_rows(connection, table):
    made = connection.sql(f"CREATE TABLE {table} (a INT)")
    assert made.columns == []
    assert list(made) == []
    assert made.arrow().num_rows == 0
    assert connection.sql(f"INSERT INTO {table} VALUES (1), (2)").rowcount == 2
    assert connection.sql(f"SELECT * FROM {table} WHERE false").arrow().schema.names == ["a"]
    assert list(connection.sql("WITH w AS (SELECT 5 AS a) SELECT a FROM w")) == [(5,)]
    assert connection.sql(f"WITH w AS (SELECT 5 AS a) INSERT INTO {table} SELECT a FROM w").rowcount == 1


def test_a_huge_result_takes_little_memory(shared):
    """More than a gigabyte comes by; a slow reader has no more of it than the channel holds."""
    code = """
import resource, sys, time, bowshot
with bowshot.connect(sys.argv[1], autocommit=True, options={"endpoints": "4"}) as connection:
    connection.sql("SELECT 1").arrow()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sql = "SELECT n, text, repeat(text, 500) AS wide FROM numbers"
    rows = size = 0
    for batch in connection.sql(sql).batches():
        rows, size = rows + batch.num_rows, size + batch.nbytes
    print(rows, size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", code, shared.uri], capture_output=True, text=True, check=True, timeout=110)
    rows, size, grown = map(int, done.stdout.split())
    assert rows == NUMBERS
    assert size > 1 << 30
    assert grown < 400 << 20, f"{grown >> 20} MiB"


def test_a_reader_that_waits_holds_the_query_up(connection):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with connection.sql(LONG) as result:
        batches = result.batches()
        next(batches)
        time.sleep(1.5)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 << 10
