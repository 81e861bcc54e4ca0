"""Readers and writers of other systems, and what PyTorch and tf.data have in common. What is not installed is tried by the
longer suite."""

import datetime
from itertools import accumulate

import documents
import numpy
import pyarrow as pa
import pytest
from conftest import NUMBERS, running, wait_for

import bowshot
from bowshot._training import Epochs, _blocks, _cut

# --- training


def epochs(shared, query="SELECT n, text FROM numbers WHERE n < 10000", **arguments):
    defaults = {"column": "n", "partitions": 5, "batch_size": 300, "shuffle_buffer": 0, "seed": 7, "drop_last": False}
    return Epochs(query, shared.uri, **{**defaults, **arguments})


def seen(batches):
    return [int(value) for batch in batches for value in batch["n"]]


def test_an_epoch_has_each_row_once(shared):
    plain = epochs(shared)
    assert seen(plain.batches()) == list(range(10_000))
    mixed = epochs(shared, shuffle_buffer=1000)
    assert mixed.block == 1200
    shards = [seen(mixed.batches(0, shard, 3)) for shard in range(3)]
    assert sorted(value for shard in shards for value in shard) == list(range(10_000))
    assert all(shards)
    first, again, other = (seen(mixed.batches(epoch)) for epoch in (0, 0, 1))
    assert first == again
    assert first != other
    assert sorted(other) == list(range(10_000))
    assert all(len(batch["n"]) == 300 for batch in epochs(shared, drop_last=True).batches())


@pytest.mark.parametrize("buffer", [0, 900])
@pytest.mark.parametrize("skip", [1, 3, 10, 33, 34, 100])
def test_an_epoch_is_taken_up_again_where_it_was(shared, buffer, skip):
    source = epochs(shared, shuffle_buffer=buffer)
    whole = [seen([batch]) for batch in source.batches(2)]
    assert [seen([batch]) for batch in source.batches(2, skip=skip)] == whole[skip:]


def test_an_epoch_that_is_left_stops_its_queries(shared, connection):
    query = "SELECT a.n, b.text FROM numbers a CROSS JOIN (SELECT text FROM numbers LIMIT 50) b"
    batches = epochs(shared, query, shuffle_buffer=900).batches()
    assert len(next(batches)["n"]) == 300
    # The one that is read, and the next one.
    wait_for(lambda: len(running(connection)) == 2)
    batches.close()
    wait_for(lambda: not running(connection))


def test_an_epoch_fails_where_a_partition_does(shared, connection, table):
    connection.execute(f"CREATE TABLE {table} AS SELECT n FROM numbers WHERE n < 1000")
    source = epochs(shared, f"SELECT n, 100 / (900 - n) AS ratio FROM {table}", batch_size=10)
    batches = source.batches()
    values = []
    with pytest.raises(bowshot.DataError, match="zero"):
        values.extend(value for batch in batches for value in batch["n"])
    assert 0 < len(values) < 900
    assert values == list(range(len(values)))
    connection.execute(f"DROP TABLE {table}")
    with pytest.raises(bowshot.NotFoundError, match=table):
        list(source.batches())


def test_rows_without_an_order(shared):
    source = epochs(shared, column=None)
    assert sorted(seen(source.batches())) == list(range(10_000))
    for arguments in ({"shards": 2}, {"skip": 1}):
        with pytest.raises(bowshot.InterfaceError, match="unique `column`"):
            next(source.batches(**arguments))
    with pytest.raises(bowshot.InterfaceError, match="unique `column`"):
        epochs(shared, column=None, shuffle_buffer=10)


def test_columns_become_arrays(shared):
    sql = (
        "SELECT CAST(2 AS SMALLINT) AS small, 1.5::REAL AS real, true AS flag, 'x' AS text, DATE '1970-01-03' AS day,"
        " CAST(NULL AS BIGINT) AS missing, [CAST(1 AS DOUBLE), CAST(n AS DOUBLE)] AS pair, [n] AS one FROM numbers WHERE n < 2"
    )
    (batch,) = epochs(shared, sql, column=None, partitions=1, batch_size=10).batches()
    assert {name: array.dtype.kind for name, array in batch.items()} == {
        "small": "i", "real": "f", "flag": "b", "text": "O", "day": "M", "missing": "f", "pair": "f", "one": "i"
    }  # fmt: skip
    assert batch["pair"].shape == (2, 2)
    assert numpy.isnan(batch["missing"]).all()
    assert batch["small"].flags.writeable


def test_batches_of_an_epoch_are_cut_where_rows_come_as_they_like():
    table = pa.table({"n": range(35), "half": [None if n % 5 == 0 else n for n in range(35)]}).combine_chunks()
    sizes = [1, 4, 7, 0, 20, 3]
    columns = [table.slice(at, size).to_batches()[0] for at, size in zip(accumulate([0, *sizes]), sizes, strict=False) if size]
    for exact in (True, False):
        blocks = list(_blocks(iter(columns), 4, exact))
        assert all(block.num_rows % 4 == 0 for block in blocks[:-1])
        assert not exact or all(block.num_rows == 4 for block in blocks[:-1])
        batches = [batch for block in blocks for batch in _cut(block, 4)]
        assert [len(batch["n"]) for batch in batches] == [4] * 8 + [3]
        assert numpy.concatenate([batch["n"] for batch in batches]).tolist() == list(range(35))
        # Nulls make numbers of their batch alone floating-point ones.
        assert {batch["half"].dtype.kind for batch in batches} == {"f", "i"}
        for batch in batches:
            batch["n"] += 1000
        assert numpy.concatenate([batch["n"] for batch in batches]).tolist() == list(range(1000, 1035))
    assert list(batches[0]) == ["n", "half"]


# --- Polars


def test_polars_asks_only_for_what_it_needs(shared, connection):
    polars = pytest.importorskip("polars")
    from bowshot.polars import scan_bowshot

    frame = scan_bowshot("numbers", shared.uri)
    assert frame.collect_schema() == {"n": polars.Int64, "text": polars.String}
    column = polars.col("n")
    near = frame.filter((column >= 5) & ~(column > 8) & (polars.col("text") != "number 6"))
    assert near.select("n").collect()["n"].to_list() == [5, 7, 8]
    assert frame.select((column * 2).alias("d")).head(3).collect().height == 3
    # Nobody could say this in SQL, so Polars does it.
    odd = frame.filter(polars.col("text").str.contains("9999$")).select("n").head(2).collect()
    assert odd.height == 2
    assert all(number % 10_000 == 9_999 for number in odd["n"].to_list())
    assert frame.filter(polars.col("text").is_null()).collect().height == 0
    assert frame.select(polars.len()).collect().item() == NUMBERS
    asked = [row[0] for row in connection.sql("SELECT statement FROM system.queries ORDER BY started")]
    assert any("\"text\" <> 'number 6'" in text for text in asked)
    assert any(text.startswith('SELECT "n" FROM') and "LIMIT 3" in text for text in asked)


def test_conditions_of_polars_as_sql():
    polars = pytest.importorskip("polars")
    from bowshot.polars import to_sql

    schema = polars.Schema(
        {"a": polars.Int64, "s": polars.String, "f": polars.Float64, "d": polars.Date, "t": polars.Datetime("us")}
    )
    a, s = polars.col("a"), polars.col("s")
    for condition, expected in [
        ((a > 5) & (s == "o'x"), "(\"a\" > 5 AND \"s\" = 'o''x')"),
        (~((a < 1) | s.is_null()), 'NOT ("a" < 1 OR "s" IS NULL)'),
        (polars.col("d") >= datetime.date(2020, 1, 1), "\"d\" >= DATE '2020-01-01'"),
        (polars.col("t") < datetime.datetime(2020, 1, 1, 5), "\"t\" < CAST('2020-01-01T05:00:00' AS TIMESTAMP)"),
        (polars.col("f") > 1.0, None),
        (polars.col("f") > 1, None),
        (a > polars.col("b"), None),
        (s.str.len_chars() > 2, None),
    ]:
        assert to_sql(condition, schema) == expected


# --- Dask


def test_dask_reads_and_writes(shared, connection, table):
    pytest.importorskip("dask.dataframe")
    import dask

    import bowshot.dask

    with dask.config.set(scheduler="threads", num_workers=2):
        frame = bowshot.dask.read_sql("numbers", shared.uri, npartitions=3, column="n")
        assert frame.npartitions == 3
        assert frame.n.sum().compute() == NUMBERS * (NUMBERS - 1) // 2
        few = bowshot.dask.read_sql("SELECT * FROM numbers WHERE n < 100", shared.uri, columns=["text"], npartitions=2)
        assert list(few.columns) == ["text"]
        assert len(few) == 100
        assert bowshot.dask.to_sql(frame[frame.n < 1000], table, shared.uri) == 1000
        with pytest.raises(bowshot.AlreadyExistsError):
            bowshot.dask.to_sql(frame, table, shared.uri)
    assert connection.table(table).count() == 1000
    asked = [row[0] for row in connection.sql("SELECT statement FROM system.queries ORDER BY started")]
    assert any(text.startswith('SELECT "n" FROM (') for text in asked)


# --- the page


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", ["Partitions and uploads", "Dask", "Polars", "Ibis"])
def test_examples_of_the_page(folder, section, tmp_path, monkeypatch):
    needed = {"Dask": "dask.dataframe", "Polars": "polars", "Ibis": "ibis"}.get(section)
    if needed is not None:
        pytest.importorskip(needed)
    with bowshot.server(folder) as server, server.connect(autocommit=True) as connection:
        documents.orders(connection)
        if section == "Ibis":
            # What an installed package has.
            info = tmp_path / "bowshot_ibis-0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bowshot-ibis\nVersion: 0\n")
            (info / "entry_points.txt").write_text("[ibis.backends]\nbowshot = bowshot.ibis\n")
            monkeypatch.syspath_prepend(tmp_path)
        names = documents.run(section, server.uri)
        if section == "Partitions and uploads":
            assert names["rows"] == 100
            assert connection.table("copies").count() == 100
            names["connection"].close()
        if section == "Dask":
            assert connection.table("large_orders").count() == 89
        if section == "Polars":
            assert names["first"].height == 10
        if section == "Ibis":
            assert names["by_name"].num_rows == connection.table("totals").count() == 3
            names["backend"].disconnect()
            other = names["ibis"].connect(f"bowshot://{server.uri.removeprefix('grpc://')}")
            assert set(other.list_tables()) == {"nation", "numbers", "orders", "totals"}
            assert other.table("orders").filter(lambda t: t.order_id > 97).execute()["name"].tolist() == ["name 2", "name 0"]
            other.disconnect()


@pytest.mark.parametrize("section", ["Airflow and Dagster"])
def test_examples_that_need_a_scheduler_are_python(section):
    compile(documents.example(section, "grpc://127.0.0.1:50051"), section, "exec")
