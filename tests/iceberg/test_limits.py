"""What metadata may ask for: so many files and deleted rows, values of bounded length, and nothing that never comes to an end."""

import json
import os
import pathlib
import zlib

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import FixedType, LongType, NestedField

import tables
from durable import Database
from server import Server
from test_iceberg import PLAIN, ROWS, changed, folder, made, served  # noqa: F401


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
    refused(place, "more rows than the limit", arguments=["--set", "storage.max_files_per_table=4"])
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
    refused(place, "listed twice")


def test_many_changes_that_each_delete_by_values(folder):  # noqa: F811
    """As a stream of changes is committed: every change deletes what it then writes again."""
    place = tables.place(made(folder, rows=(ROWS.slice(0, 100),)))
    for n in range(60):
        tables.delete_values(place, pa.table({"id": pa.array([n], pa.int64())}), [1])
        tables.append_file(place, pa.table({**{name: ROWS.slice(n, 1)[name] for name in ("id", "word", "number", "day")}}))

    def rows(database):
        assert database.rows("SELECT count(*), count(DISTINCT id), sum(id) FROM t") == [(100, 100, sum(range(100)))]

    served(place, rows)


def number(value):
    """As Avro writes it."""
    value, written = value << 1, b""
    while value > 0x7F:
        value, written = value >> 7, written + bytes([value & 0x7F | 0x80])
    return written + bytes([value])


def doubling():
    """Each record has two fields of the one before: 2 ** 24 fields in 3 KB."""
    def record(name, *kinds):
        return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)]}

    records = [record("r0", "null"), *(record(f"r{n}", f"r{n - 1}", f"r{n - 1}") for n in range(1, 24))]
    return record("m", "string", *records), b"null", number(1) + b"a"


def bomb():
    """A path of 100 MB, which is 100 KB packed."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    length, part = 100_000_000, bytes(1_000_000)
    packed = [packing.compress(number(length)), *(packing.compress(part) for _ in range(100)), packing.flush()]
    return {"type": "record", "name": "m", "fields": [{"name": "manifest_path", "type": "string"}]}, b"deflate", b"".join(packed)


@pytest.mark.parametrize("made_of, says", [(doubling, "more than 10000 types"), (bomb, "more than 64 MiB decompressed")])
def test_a_small_list_of_manifests_that_grows(folder, made_of, says):  # noqa: F811
    place = tables.place(made(folder))
    schema, codec, block = made_of()
    file, mark = b"Obj\x01" + number(2), b"S" * 16
    for text in (b"avro.schema", json.dumps(schema).encode(), b"avro.codec", codec):
        file += number(len(text)) + text
    (listed,) = place.glob("metadata/snap-*.avro")
    listed.write_bytes(file + number(0) + mark + number(1) + number(len(block)) + block + mark)
    assert listed.stat().st_size < 300_000
    # As a table, and as the rows of a file.
    files = folder.parent / "files"
    files.mkdir()
    (files / "grown.avro").write_bytes(listed.read_bytes())
    with Server(f"t={place}", files) as server, Database(server) as database:
        with pytest.raises(Exception, match=says):
            database.rows("SELECT count(*) FROM t")
        if made_of is bomb:
            assert database.one("SELECT count(*) FROM grown") == 1
        else:
            with pytest.raises(Exception, match=says):
                database.rows("SELECT count(*) FROM grown")
        status = pathlib.Path(f"/proc/{server.process.pid}/status")
        if status.exists():
            (most,) = (int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            assert most < 1_500_000, f"{most} kB"


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
