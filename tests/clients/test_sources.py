"""Sources that change while they are served: new, replaced and removed files, and files that are broken. Formats are in tests/files."""

import csv
import json
import os
import shutil

import deltalake
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

import data
from server import Server, wait_until

TABLE = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"name {number}" for number in range(10)]})


def write_csv(file):
    writer = csv.writer(file)
    writer.writerow(TABLE.column_names)
    writer.writerows(zip(*TABLE.to_pydict().values()))


def write_json(file):
    for row in TABLE.to_pylist():
        file.write(json.dumps(row) + "\n")


def write(path):
    name = path.name
    if name.endswith(".parquet"):
        pq.write_table(TABLE, path)
    elif name.endswith(".arrow"):
        data.write_arrow(path, TABLE)
    elif name.endswith(".arrows"):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)
    else:
        with open(path, "w") as file:
            (write_json if name.endswith(".jsonl") else write_csv)(file)


@pytest.fixture
def query():
    clients = []

    def run(server, sql):
        client = flight.connect(server.grpc_tcp)
        clients.append(client)
        return client.do_get(flight.Ticket(sql.encode())).read_all()

    yield run
    for client in clients:
        client.close()


def test_an_empty_folder_is_served_and_keeps_the_name_of_its_table(tmp_path, query):
    folder = tmp_path / "landing"
    folder.mkdir()
    with Server(folder) as server:
        wait_until(lambda: "landing is empty: tables appear when it has files" in server.log(), "the word about it")
        for part in (1, 2):
            pq.write_table(TABLE, tmp_path / "part")
            (tmp_path / "part").rename(folder / f"orders-{part:04}.parquet")

            def has_rows(rows=part * TABLE.num_rows):
                try:
                    return query(server, "SELECT count(*) AS n FROM landing")["n"].to_pylist() == [rows]
                except (flight.FlightError, pa.ArrowException):
                    return False

            wait_until(has_rows, f"rows of {part} files")
        tables = query(server, "SELECT table_name AS n FROM information_schema.tables WHERE table_schema = 'main'")
        assert tables["n"].to_pylist() == ["landing"]


def test_new_replaced_and_removed_files_are_seen(tmp_path, query):
    pq.write_table(TABLE, tmp_path / "first.parquet")
    write(tmp_path / "other.csv")
    with Server(tmp_path) as server:
        assert query(server, "SELECT count(*) AS n FROM first").to_pylist() == [{"n": 10}]

        def rows(table):
            try:
                return query(server, f"SELECT count(*) AS n FROM {table}").to_pylist()[0]["n"]
            except pa.ArrowKeyError:
                return None

        pq.write_table(pa.concat_tables([TABLE, TABLE]), tmp_path / "second.parquet")
        wait_until(lambda: rows("second") == 20, "a new file is seen", 10)
        replacement = tmp_path / ".replacement.parquet"
        pq.write_table(TABLE.slice(0, 3).rename_columns(["id", "renamed"]), replacement)
        os.replace(replacement, tmp_path / "first.parquet")
        wait_until(lambda: rows("first") == 3, "a replaced file is seen", 10)
        assert query(server, "SELECT * FROM first").column_names == ["id", "renamed"]
        (tmp_path / "second.parquet").unlink()
        wait_until(lambda: rows("second") is None, "a removed file is seen", 10)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow", "arrows"])
def test_a_query_right_after_a_file_was_removed_has_the_rows_that_are_left(tmp_path, query, ending):
    """The server looks at files every second: it still believes in those that have just gone."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(6):
        write(folder / f"{part}.{ending}")
    with Server(tmp_path) as server:
        for left in range(5, 1, -1):
            (folder / f"{left}.{ending}").unlink()
            # A file that is open already can be read to its end. In order there is no row before all files are read: after a
            # row the query could not begin again.
            found = query(server, "SELECT name FROM parts ORDER BY name").num_rows
            assert found in (10 * left, 10 * (left + 1))
            wait_until(lambda: query(server, "SELECT count(id) AS n FROM parts").to_pylist() == [{"n": 10 * left}], "seen", 10)
        for part in range(2):
            (folder / f"{part}.{ending}").unlink()
        with pytest.raises(pa.ArrowKeyError, match="parts"):
            while query(server, "SELECT name FROM parts ORDER BY name").num_rows:
                pass
        server.wait_idle(5)


def test_a_broken_file_fails_alone_and_by_name(tmp_path, query):
    write(tmp_path / "good.csv")
    (tmp_path / "noise.parquet").write_bytes(b"PAR1 this is no parquet file PAR1")
    whole = tmp_path / "whole.arrow"
    data.write_arrow(whole, data.orders())
    (tmp_path / "cut.arrow").write_bytes(whole.read_bytes()[:5000])
    (tmp_path / "ragged.csv").write_text("a,b\n" + "1,2\n" * 30 + "3,4,5\n6\n")
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "half.jsonl").write_text('{"a": 1}\n{"a": ')
    with Server(tmp_path) as server:
        assert query(server, "SELECT * FROM good").num_rows == 10
        for name in ("noise.parquet", "cut.arrow", "ragged.csv", "empty.parquet", "half.jsonl"):
            with pytest.raises(pa.ArrowException, match=name.replace(".", "[.]")):
                query(server, f"SELECT * FROM {name.split('.')[0]}")
        assert query(server, "SELECT * FROM good").num_rows == 10
        listed = [info.descriptor.path[-1].decode() for info in flight.connect(server.grpc_tcp).list_flights()]
        assert "good" in listed and "noise" in listed
        # What breaks behind the beginning of a file shows when it is read.
        columns = "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'main'"
        assert sorted(query(server, columns).column(0).to_pylist()) == ["good", "half", "ragged", "whole"]
        assert "noise" in query(server, "SELECT table_name FROM information_schema.tables").column(0).to_pylist()
        server.wait_idle(5)


def as_parquet(folder, name, table):
    options = {"row_group_size": 5_000, "write_page_index": True, "data_page_size": 4_096}
    pq.write_table(table, folder / f"{name}.parquet", **options)


def as_delta(folder, name, table):
    for start in range(0, table.num_rows, 5_000):
        deltalake.write_deltalake(folder / name, table.slice(start, 5_000), mode="append")


@pytest.mark.parametrize(
    "write, kind", [(as_parquet, pa.float64()), (as_parquet, pa.float32()), (as_parquet, pa.float16()),
                    (as_delta, pa.float64()), (as_delta, pa.float32())],
)  # fmt: skip
def test_numbers_that_are_none_are_found_whatever_the_bounds_of_a_file_say(tmp_path, query, write, kind):
    """Writers leave NaN out of the bounds of row groups, pages and files; it is above all numbers, whatever its sign."""
    odd = {0: float("nan"), 5: -float("nan")}
    numbers = pa.array([odd.get(row % 10, row % 4) for row in range(20_000)], pa.float64()).cast(kind)
    write(tmp_path, "t", pa.table({"id": pa.array(range(20_000), pa.int64()), "f": numbers}))
    write(tmp_path, "lone", pa.table({"g": pa.array([float("nan")], pa.float64()).cast(kind)}))
    with Server(tmp_path) as server:
        for _ in range(3):  # with kept columns too
            for source, rows in {
                "t WHERE f > 100": 4_000, "t WHERE f >= 100": 4_000, "t WHERE NOT f <= 100": 4_000,
                "t WHERE f = CAST('NaN' AS DOUBLE)": 4_000, "t WHERE f < -100": 0, "t WHERE f > 2": 4_000 + 4_000,
                "t JOIN lone ON f = g": 4_000, "t WHERE f > 100 AND id < 50": 10,
            }.items():  # fmt: skip
                assert query(server, f"SELECT count(*) FROM {source}").column(0).to_pylist() == [rows], source
            largest = query(server, "SELECT f FROM t ORDER BY f DESC LIMIT 3").column(0).to_pylist()
            assert all(number != number for number in largest), largest


def test_a_folder_that_becomes_a_delta_table_later_is_one(tmp_path, query):
    """Writers put the first data file of a table there before its log."""
    made, there = tmp_path / "made", tmp_path / "served" / "late"
    deltalake.write_deltalake(made, TABLE)
    there.mkdir(parents=True)
    for part in made.glob("*.parquet"):
        shutil.copy(part, there)
    deltalake.DeltaTable(made).delete("id < 4")

    def ids(server):
        try:
            return sorted(query(server, "SELECT id FROM late").column(0).to_pylist())
        except pa.ArrowException as error:
            return str(error)

    with Server(tmp_path / "served") as server:
        assert ids(server) == list(range(10))
        shutil.copytree(made, there, dirs_exist_ok=True)
        wait_until(lambda: ids(server) == [4, 5, 6, 7, 8, 9], "the rows that the log names")
        shutil.rmtree(there)
        there.mkdir()
        pq.write_table(TABLE, there / "part-1.parquet")
        wait_until(lambda: ids(server) == list(range(10)), "the rows of plain files")


def test_conditions_that_are_unknown_take_rows_of_a_delta_table_out(tmp_path, query):
    """The library says that its scans apply conditions on partition columns and constants, and lets NULL through."""
    table = pa.table({"id": range(12), "p": ["a", "b", None, "c"] * 3})
    deltalake.write_deltalake(tmp_path / "t", table, partition_by=["p"])
    with Server(tmp_path) as server:
        for condition, rows in {
            "id > 0 AND id = NULL": 0, "id >= 0 AND NULL": 0, "p NOT IN ('a', NULL)": 0, "p IN ('a', NULL)": 3,
            "p BETWEEN 'a' AND NULL": 0, "p <> 'a' AND (p = 'b' OR NULL)": 3, "p LIKE NULL": 0, "p IS NULL": 3, "p <> 'a'": 6,
            "p = 'a' AND id < 5": 2,
        }.items():  # fmt: skip
            assert query(server, f"SELECT count(*) FROM t WHERE {condition}").column(0).to_pylist() == [rows], condition
