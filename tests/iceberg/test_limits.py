"""What metadata may ask for: so many files and deleted rows, values of bounded length, and nothing that never comes to an end."""

import os
import pathlib
import sys

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import FixedType, LongType, NestedField

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import tables  # noqa: E402
from durable import Database  # noqa: E402
from server import Server  # noqa: E402
from test_iceberg import PLAIN, ROWS, changed, folder, made, served  # noqa: E402, F401


def refused(place, says, **more):
    with Server(f"t={place}", **more) as server, Database(server) as database:
        with pytest.raises(Exception) as error:
            database.rows("SELECT count(*) FROM t")
        assert says in str(error.value) and "INTERNAL" not in str(error.value), error.value
        assert database.one("SELECT 1") == 1


def test_more_deleted_rows_than_memory_is_given_to(folder):  # noqa: F811
    place = tables.place(made(folder))
    (file,) = tables.data_files(place)
    count = 10_000_001
    names = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), pa.array([file]))
    schema = pa.schema([
        tables.numbered(pa.field("file_path", names.type, False), tables.FILE_PATH),
        tables.numbered(pa.field("pos", pa.int64(), False), tables.POSITION),
    ])
    tables.commit(place, pa.table([names, pa.array(range(count))], schema), tables.DataFileContent.POSITION_DELETES)
    refused(place, "deleted rows")


def test_more_files_than_are_allowed(folder):  # noqa: F811
    place = tables.place(made(folder, rows=[ROWS.slice(n * 10, 10) for n in range(5)]))
    refused(place, "more rows than are read", arguments=["--set", "storage.max_files_per_table=4"])
    with Server(f"t={place}", arguments=["--set", "storage.max_files_per_table=5"]) as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t") == 50


def test_what_is_no_file_is_not_waited_for(folder):  # noqa: F811
    place = tables.place(made(folder))
    os.mkfifo(place / "metadata" / "v9.metadata.json")
    refused(place, "not a regular file")
    os.remove(place / "metadata" / "v9.metadata.json")
    os.mkfifo(place / "metadata" / "version-hint.text")
    served(place, lambda database: database.rows("SELECT count(*) FROM t") == [(1000,)] or pytest.fail("other rows"))


def test_values_of_one_length_are_bounded(folder):  # noqa: F811
    table = made(folder, Schema(NestedField(1, "id", LongType())), rows=[pa.table({"id": pa.array([1], pa.int64())})])
    with table.update_schema() as change:
        change.add_column("big", FixedType(2_000_000_000))
    refused(tables.place(table), "fixed[2000000000]")


def test_a_manifest_that_is_named_twice(folder):  # noqa: F811
    table = made(folder)
    place = tables.place(table)
    (listed,) = place.glob("metadata/snap-*.avro")
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import read_manifest_list, write_manifest_list

    io = PyArrowFileIO()
    manifests = list(read_manifest_list(io.new_input(f"file://{listed}")))
    os.remove(listed)
    with write_manifest_list(2, io.new_output(f"file://{listed}"), 1, None, 1, "null") as writer:
        writer.add_manifests(manifests * 3)
    refused(place, "named twice")


def test_many_changes_that_each_delete_by_values(folder):  # noqa: F811
    """As a stream of changes is committed: every change deletes what it then writes again."""
    place = tables.place(made(folder, rows=(ROWS.slice(0, 100),)))
    for n in range(60):
        tables.delete_values(place, pa.table({"id": pa.array([n], pa.int64())}), [1])
        tables.append_file(place, pa.table({**{name: ROWS.slice(n, 1)[name] for name in ("id", "word", "number", "day")}}))

    def rows(database):
        assert database.rows("SELECT count(*), count(DISTINCT id), sum(id) FROM t") == [(100, 100, sum(range(100)))]

    served(place, rows)


def test_a_path_that_is_relative(folder, monkeypatch):  # noqa: F811
    place = tables.place(made(folder))
    monkeypatch.chdir(place.parent.parent)
    for path in ("./db/t", "db/../db/t"):
        served(path, lambda database: database.rows("SELECT count(*) FROM t") == [(1000,)] or pytest.fail("other rows"))


def test_a_specification_whose_fields_are_void_means_all_partitions(folder):  # noqa: F811
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "part"))
    place = tables.place(made(folder, PLAIN, spec=spec))

    def void(text):
        text["partition-specs"][0]["fields"][0]["transform"] = "void"

    changed(place, void)
    tables.delete_values(place, pa.table({"number": pa.array([1], pa.int32())}), [3], partition=Record(None))
    wanted = sum(1 for number in ROWS["number"].to_pylist() if number != 1)
    served(place, lambda database: database.rows("SELECT count(*) FROM t") == [(wanted,)] or pytest.fail("other rows"))
