"""Rows of every form into tables: all of them or none."""

import gzip

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bowshot

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", None, "c"]})


def batches(table):
    yield from table.to_batches(max_chunksize=1)


def forms(folder):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pq.write_table(ROWS, folder / "rows.parquet")
    (folder / "parts").mkdir()
    pq.write_table(ROWS.slice(0, 1), folder / "parts" / "a.parquet")
    pq.write_table(ROWS.slice(1), folder / "parts" / "b.parquet")
    pyarrow.csv.write_csv(ROWS, folder / "rows.csv")
    with gzip.open(folder / "rows.csv.gz", "wb") as file:
        file.write((folder / "rows.csv").read_bytes())
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    frame = polars.from_arrow(ROWS)
    return {
        "table": ROWS,
        "batch": ROWS.combine_chunks().to_batches()[0],
        "reader": ROWS.to_reader(),
        "batches": batches(ROWS),
        "tables": iter([ROWS.slice(0, 2), ROWS.slice(2)]),
        "pandas": pandas.DataFrame({"id": [1, 2, 3], "name": ["a", None, "c"]}, index=[7, 8, 9]),
        "polars": frame,
        "lazy": frame.lazy(),
        "dicts": [{"id": 1, "name": "a"}, {"id": 2}, {"id": 3, "name": "c"}],
        "generator": ({"id": number, "name": name} for number, name in [(1, "a"), (2, None), (3, "c")]),
        "columns": {"id": [1, 2, 3], "name": ["a", None, "c"]},
        "parquet": folder / "rows.parquet",
        "parquet path": str(folder / "rows.parquet"),
        "folder": folder / "parts",
        "arrow": folder / "rows.arrow",
        "csv": folder / "rows.csv",
        "csv.gz": folder / "rows.csv.gz",
    }


def test_forms_of_rows(connection, table, tmp_path):
    for name, rows in forms(tmp_path).items():
        assert connection.ingest(table, rows, mode="replace") == 3, name
        found = list(connection.sql(f"SELECT id, name FROM {table} ORDER BY id"))
        # An empty field of a CSV file is an empty text to the reader of Arrow.
        expected = [(1, "a"), (2, "" if "csv" in name else None), (3, "c")]
        assert found == expected, name


def test_a_result_goes_into_a_table(connection, table):
    assert connection.ingest(table, connection.sql("SELECT n FROM numbers")) == 200_000
    assert connection.table(table).count() == 200_000


def test_modes(connection, table):
    with pytest.raises(bowshot.NotFoundError):
        connection.ingest(table, ROWS, mode="append")
    connection.ingest(table, ROWS)
    with pytest.raises(bowshot.AlreadyExistsError):
        connection.ingest(table, ROWS)
    connection.ingest(table, ROWS, mode="append")
    connection.ingest(table, ROWS, mode="create_append")
    assert connection.table(table).count() == 9
    connection.ingest(table, ROWS.select(["id"]), mode="replace")
    assert connection.table(table).schema == pa.schema([("id", pa.int64())])
    with pytest.raises(bowshot.ProgrammingError, match="mode"):
        connection.ingest(table, ROWS, mode="upsert")


def test_schemas_and_temporary_tables(connection, table):
    connection.sql(f"CREATE SCHEMA {table}")
    connection.ingest("t", ROWS, schema=table)
    assert connection.table("t", schema=table).count() == 3
    connection.ingest(f"temp_{table}", ROWS, temporary=True)
    assert connection.table(f"temp_{table}").count() == 3
    connection.sql(f"DROP SCHEMA {table} CASCADE")


def test_no_rows(connection, table):
    assert connection.ingest(table, ROWS.schema.empty_table()) == 0
    assert connection.table(table).columns == ["id", "name"]
    with pytest.raises(bowshot.ProgrammingError):
        connection.ingest(table, [], mode="append")


def test_what_are_no_rows(connection, table, tmp_path):
    (tmp_path / "x.txt").write_text("x")
    for wrong in (5, [1, 2], tmp_path / "x.txt", tmp_path / "none.parquet", b"bytes"):
        with pytest.raises(bowshot.Error):
            connection.ingest(table, wrong)


def test_an_iterator_that_fails_writes_nothing(connection, table):
    def rows():
        yield from ROWS.to_batches()
        raise ZeroDivisionError

    connection.ingest(table, ROWS)
    for mode in ("append", "replace"):
        with pytest.raises(ZeroDivisionError):
            connection.ingest(table, rows(), mode=mode)
        assert connection.table(table).count() == 3
    with pytest.raises(ZeroDivisionError):
        connection.ingest(f"{table}_new", rows())
    with pytest.raises(bowshot.NotFoundError):
        connection.table(f"{table}_new").count()


def test_a_row_that_does_not_fit_writes_nothing(connection, table):
    connection.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, name TEXT NOT NULL)")
    with pytest.raises(bowshot.IntegrityError):
        connection.ingest(table, ROWS, mode="append")
    with pytest.raises(bowshot.Error):
        connection.ingest(table, [{"id": 1, "name": "x"}, {"id": 1, "name": "y"}], mode="append")
    assert connection.table(table).count() == 0


def test_dictionaries_come_in_groups(connection, table):
    assert connection.ingest(table, ({"id": number, "text": str(number)} for number in range(25_000))) == 25_000
    late = [{"id": number} for number in range(10_001)]
    late[-1]["new"] = 1
    with pytest.raises(bowshot.ProgrammingError, match="new"):
        connection.ingest(table, late, mode="append")
    assert connection.table(table).count() == 25_000


def test_large_batches_are_cut(connection, table):
    wide = pa.table({"id": range(400_000), "text": ["x" * 100] * 400_000}).combine_chunks()
    assert connection.ingest(table, wide) == 400_000
    assert connection.table(table).count() == 400_000


def test_an_ingest_belongs_to_the_transaction(shared, table):
    with shared.connect() as connection:
        connection.ingest(table, ROWS)
        with pytest.raises(ZeroDivisionError):
            connection.ingest(table, (1 / 0 for _ in range(1)), mode="append")

        def rows():
            yield from ROWS.to_batches()
            raise ZeroDivisionError

        # What a broken one has brought is undone alone.
        with pytest.raises(ZeroDivisionError):
            connection.ingest(table, rows(), mode="append")
        assert connection.table(table).count() == 3
        connection.rollback()
        with pytest.raises(bowshot.NotFoundError):
            connection.table(table).count()
