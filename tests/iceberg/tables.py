"""Iceberg tables as others write them: by pyiceberg with its SQL catalog, and what it does not write itself (files of deleted
places and values) with its own writers of manifests, committed by a new metadata file."""

import datetime
import decimal
import json
import pathlib
import uuid
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestWriterV2, write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType,
    NestedField, StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType,
)
from pyroaring import BitMap

# Numbers that the format reserves for files of deleted places.
FILE_PATH, POSITION = 2147483546, 2147483545


def every_type(day, year):
    """A schema with a column of each type, and three rows; the least of the days and the last of the years are given."""
    fields = [
        ("a", BooleanType(), [True, None, False]), ("b", IntegerType(), [1, None, -(2**31)]), ("c", LongType(), [2**62, None, -5]),
        ("d", FloatType(), [1.5, None, float("inf")]), ("e", DoubleType(), [1e300, None, -0.0]),
        ("f", DecimalType(38, 10), [decimal.Decimal("1.5"), None, decimal.Decimal("-99999999999999999999.0000000001")]),
        ("f2", DecimalType(9, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-9.99")]),
        ("f3", DecimalType(18, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-9.99")]),
        ("g", DateType(), [datetime.date(2024, 2, 29), None, day]),
        ("h", TimeType(), [datetime.time(23, 59, 59, 999999), None, datetime.time()]),
        ("i", TimestampType(), [datetime.datetime(year, 12, 31, 23, 59, 59), None, datetime.datetime(1, 1, 1)]),
        ("j", TimestamptzType(), [datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), None, None]),
        ("k", StringType(), ["ü\n", None, ""]), ("l", BinaryType(), [b"\0\xff", None, b""]), ("m", FixedType(3), [b"abc", None, b"\0\0\0"]),
        ("n", UUIDType(), [uuid.UUID(int=7).bytes, None, uuid.UUID(int=2**127).bytes]),
    ]
    # The numbers that the writer gives out: those of nested columns follow all others.
    nested = [
        NestedField(17, "o", ListType(20, LongType(), element_required=False)),
        NestedField(18, "p", MapType(21, StringType(), 22, DoubleType(), value_required=False)),
        NestedField(19, "q", StructType(NestedField(23, "x", LongType()), NestedField(24, "y", ListType(25, StringType(), False)))),
    ]
    schema = Schema(*[NestedField(n + 1, name, kind) for n, (name, kind, _) in enumerate(fields)], *nested)
    values = {name: values for name, _, values in fields} | {
        "o": [[1, None], None, []], "p": [[("a", 1.0)], None, []], "q": [{"x": 1, "y": ["z", None]}, None, {"x": None, "y": None}],
    }
    return schema, pa.table(values, schema.as_arrow())


def catalog(folder):
    folder.mkdir(exist_ok=True)
    made = SqlCatalog("test", uri=f"sqlite:///{folder.parent}/{folder.name}.db", warehouse=f"file://{folder}")
    made.create_namespace_if_not_exists("db")
    return made


def place(table):
    return pathlib.Path(table.location().removeprefix("file://"))


def newest(folder):
    return max((folder / "metadata").glob("*.metadata.json"))


def static(folder):
    """The table as its newest metadata file has it."""
    return StaticTable.from_metadata(str(newest(folder)))


def numbered(column, number):
    return column.with_metadata({"PARQUET:field_id": str(number)})


class DeletingManifest(ManifestWriterV2):
    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


class ManifestOfVectors(DeletingManifest):
    """Of format version 3, which this writer does not write itself."""

    @property
    def version(self):
        return 3

    def new_writer(self):
        schema = self._with_partition(3)
        return AvroOutputFile(
            output_file=self._output_file, file_schema=schema, record_schema=schema, schema_name="manifest_entry", metadata=self._meta,
        )


def commit(folder, rows, content, equality=None, partition=Record()):
    """Adds a state in which a file of `rows` deletes rows, or adds them."""
    path = folder / "data" / f"{uuid.uuid4()}-deletes.parquet"
    pq.write_table(rows, path)
    file = DataFile.from_args(
        content=content, file_path=f"file://{path}", file_format=FileFormat.PARQUET, partition=partition,
        record_count=rows.num_rows, file_size_in_bytes=path.stat().st_size, equality_ids=equality,
    )
    kind = ManifestWriterV2 if content == DataFileContent.DATA else DeletingManifest
    commit_files(folder, kind, [file])


def commit_files(folder, kind, files, version=2):
    """Adds a state with one more manifest, of these files."""
    table, io = static(folder), PyArrowFileIO()
    text = json.loads(newest(folder).read_text())
    snapshot, sequence = uuid.uuid4().int >> 65, text["last-sequence-number"] + 1
    location = f"file://{folder}/metadata"
    with kind(table.spec(), table.schema(), io.new_output(f"{location}/{uuid.uuid4()}-m0.avro"), snapshot, "null") as writer:
        for file in files:
            file.spec_id = table.spec().spec_id
            writer.add_entry(ManifestEntry.from_args(
                _table_format_version=version, status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, data_file=file))
    manifest = writer.to_manifest_file()
    current = table.current_snapshot()
    listed = f"{location}/snap-{snapshot}.avro"
    with write_manifest_list(2, io.new_output(listed), snapshot, current.snapshot_id, sequence, "null") as writer:
        writer.add_manifests([manifest, *current.manifests(io)])
    text["snapshots"].append({
        "snapshot-id": snapshot, "parent-snapshot-id": current.snapshot_id, "sequence-number": sequence,
        "timestamp-ms": text["last-updated-ms"] + 1, "manifest-list": listed, "summary": {"operation": "overwrite"},
        "schema-id": table.schema().schema_id,
    })
    text["current-snapshot-id"], text["last-sequence-number"] = snapshot, sequence
    text["refs"] = {"main": {"snapshot-id": snapshot, "type": "branch"}}
    text["last-updated-ms"] += 1
    number = int(newest(folder).name.split("-")[0]) + 1
    (folder / "metadata" / f"{number:05}-{uuid.uuid4()}.metadata.json").write_text(json.dumps(text))


def delete_places(folder, places):
    """`places` has (data file, place of a row) pairs."""
    schema = pa.schema([
        numbered(pa.field("file_path", pa.string(), False), FILE_PATH), numbered(pa.field("pos", pa.int64(), False), POSITION),
    ])
    files, rows = zip(*sorted(places))
    commit(folder, pa.table([list(files), list(rows)], schema), DataFileContent.POSITION_DELETES)


def vector(places, optimize=False):
    """The deletion vector of these places."""
    bitmaps = {}
    for place in places:
        bitmaps.setdefault(place >> 32, BitMap()).add(place & 0xFFFFFFFF)
    content = b"\xd1\xd3\x39\x64" + len(bitmaps).to_bytes(8, "little")
    for key, bitmap in sorted(bitmaps.items()):
        if optimize:
            bitmap.run_optimize()
        content += key.to_bytes(4, "little") + bitmap.serialize()
    return len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")


def delete_by_vectors(folder, vectors):
    """`vectors` has (data file, vector, rows) triples, which come into one file of a table of format version 3."""
    file, blobs = b"PFA1", []
    for path, content, _ in vectors:
        blobs.append({"type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1, "offset": len(file),
                      "length": len(content), "properties": {"referenced-data-file": path, "cardinality": "1"}})
        file += content
    footer = json.dumps({"blobs": blobs}).encode()
    file += b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    place = folder / "data" / f"{uuid.uuid4()}.puffin"
    place.write_bytes(file)
    entries = [DataFile.from_args(
        _table_format_version=3, content=DataFileContent.POSITION_DELETES, file_path=f"file://{place}", file_format=FileFormat.PUFFIN,
        partition=Record(), record_count=rows, file_size_in_bytes=len(file), referenced_data_file=path, content_offset=blob["offset"],
        content_size_in_bytes=blob["length"],
    ) for (path, _, rows), blob in zip(vectors, blobs)]
    commit_files(folder, ManifestOfVectors, entries, version=3)


def delete_values(folder, rows, numbers, **more):
    """Deletes what has these values in the columns of these numbers."""
    fields = [numbered(field, number) for field, number in zip(rows.schema, numbers)]
    commit(folder, rows.cast(pa.schema(fields)), DataFileContent.EQUALITY_DELETES, equality=list(numbers), **more)


def append_file(folder, rows):
    fields = [numbered(field, number + 1) for number, field in enumerate(rows.schema)]
    commit(folder, rows.cast(pa.schema(fields)), DataFileContent.DATA)


def data_files(folder):
    return [task.file.file_path for task in static(folder).scan().plan_files()]


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def base85(content):
    """That of ZeroMQ, filled up, as a log of Delta has a vector or the name of its file."""
    text = ""
    for at in range(0, len(content), 4):
        number = int.from_bytes(content[at : at + 4].ljust(4, b"\0"), "big")
        text += "".join(DIGITS[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text
