"""Tables whose schema has changed in ways that few writers make: old files have these rows, or are refused by what is amiss."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StructType

import tables
from durable import Database
from server import Server
from test_iceberg import changed, folder, made  # noqa: F401

ID = NestedField(1, "id", LongType())


def of_records(folder, *fields, rows):  # noqa: F811
    schema = Schema(ID, NestedField(2, "s", StructType(*fields)))
    return made(folder, schema, rows=[pa.table({"id": list(range(len(rows))), "s": rows}, schema.as_arrow())])


def checked(place, *answers):
    """Each is a query and its rows, or what its error says."""
    with Server(f"t={place}") as server, Database(server) as database:
        for sql, wanted in answers:
            if isinstance(wanted, str):
                with pytest.raises(Exception, match=wanted):
                    database.rows(sql)
            else:
                assert database.arrow(sql).to_pylist() == wanted, sql


def without_numbers(kind):
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, without_numbers(field.type)) for field in kind])
    return pa.list_(without_numbers(kind.value_type)) if pa.types.is_list(kind) else kind


def with_names(place, mapping):
    """The same table with a file of another writer."""
    (file,) = tables.data_files(place)
    file = file.removeprefix("file://")
    rows = pq.ParquetFile(file).read()
    schema = pa.schema([pa.field(field.name, without_numbers(field.type)) for field in rows.schema])
    pq.write_table(pa.Table.from_pylist(rows.to_pylist(), schema), file)
    changed(place, lambda text: text["properties"].update({"schema.name-mapping.default": json.dumps(mapping)}))


@pytest.mark.parametrize("transform", [IdentityTransform(), TruncateTransform(1)])
def test_a_partition_whose_column_was_widened(folder, transform):  # noqa: F811
    schema = Schema(ID, NestedField(2, "p", IntegerType()))
    rows = pa.table({"id": [1, 2, 3], "p": pa.array([7, 7, 8], pa.int32())})
    table = made(folder, schema, rows=[rows], spec=PartitionSpec(PartitionField(2, 1000, transform, "part")))
    with table.update_schema() as change:
        change.update_column("p", LongType())
    place = tables.place(table)
    tables.delete_values(place, pa.table({"id": pa.array([1, 3], pa.int64())}), [1], partition=Record(7))
    checked(place, ("SELECT * FROM t ORDER BY id", [{"id": 2, "p": 7}, {"id": 3, "p": 8}]))


def test_nested_fields_of_files_without_numbers(folder):  # noqa: F811
    table = of_records(folder, NestedField(3, "x", LongType()), NestedField(4, "z", LongType()), rows=[{"x": 5, "z": 6}])
    place = tables.place(table)
    inner = [{"field-id": 3, "names": ["x", "y"]}, {"field-id": 4, "names": ["z"]}]
    with_names(place, [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["s"], "fields": inner}])
    checked(place, ("SELECT * FROM t", [{"id": 0, "s": {"x": 5, "z": 6}}]))
    # Without the files that the catalog of the writer knows of, the schema is changed here.
    renamed = json.dumps(json.loads(tables.newest(place).read_text())).replace('"name": "x"', '"name": "y"')
    changed(place, lambda text: text.update(json.loads(renamed)))
    checked(place, ("SELECT * FROM t", "nested field `y` was renamed"), ("SELECT 1 AS n", [{"n": 1}]))


def test_nested_fields_with_a_value_of_before(folder):  # noqa: F811
    table = of_records(folder, NestedField(3, "x", LongType()), rows=[{"x": 5}])
    with table.update_schema() as change:
        change.add_column(("s", "d"), LongType())
    place = tables.place(table)

    def with_default(text):
        text["format-version"], text["next-row-id"] = 3, 0
        for schema in text["schemas"]:
            for field in schema["fields"][1]["type"]["fields"]:
                if field["name"] == "d":
                    field["initial-default"] = field["write-default"] = 42

    checked(place, ("SELECT s FROM t", [{"s": {"x": 5, "d": None}}]))
    changed(place, with_default)
    checked(place, ("SELECT s FROM t", "lacks the nested field `d`"))


@pytest.mark.parametrize("large", [False, True])
def test_records_within_lists(folder, large):  # noqa: F811
    """Both kinds of lists that writers have are looked into."""
    schema = Schema(ID, NestedField(2, "l", ListType(5, StructType(NestedField(3, "x", LongType())), False)))
    records = (pa.large_list if large else pa.list_)(pa.struct([("x", pa.int64())]))
    wanted = pa.schema([("id", pa.int64()), ("l", records)])
    rows = [[{"x": 5}, None], [], [{"x": None}]]
    table = made(folder, schema, rows=[pa.table({"id": [0, 1, 2], "l": rows}, wanted)])
    place = tables.place(table)
    checked(place, ("SELECT l FROM t ORDER BY id", [{"l": value} for value in rows]))
    renamed = json.dumps(json.loads(tables.newest(place).read_text())).replace('"name": "x"', '"name": "y"')
    changed(place, lambda text: text.update(json.loads(renamed)))
    checked(place, ("SELECT * FROM t", "nested field `y` was renamed"), ("SELECT 1 AS n", [{"n": 1}]))


def test_a_record_whose_fields_were_all_replaced(folder):  # noqa: F811
    table = of_records(folder, NestedField(3, "x", LongType()), rows=[{"x": 5}, None, {"x": None}])
    with table.update_schema() as change:
        change.add_column(("s", "n"), LongType()).delete_column(("s", "x"))
    with table.update_schema() as change:
        # Another one than the old one of this name.
        change.add_column(("s", "x"), LongType())
    table.append(pa.table({"id": [3], "s": [{"n": 9, "x": 1}]}, table.schema().as_arrow()))
    nothing = {"n": None, "x": None}
    rows = [{"id": 0, "s": nothing}, {"id": 1, "s": None}, {"id": 2, "s": nothing}, {"id": 3, "s": {"n": 9, "x": 1}}]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == rows
    checked(
        tables.place(table),
        ("SELECT * FROM t ORDER BY id", rows),
        ("SELECT id FROM t WHERE s['n'] = 9", [{"id": 3}]),
        ("SELECT id FROM t WHERE s IS NULL", [{"id": 1}]),
        ("SELECT id, s['n'] AS n FROM t WHERE id = 0", [{"id": 0, "n": None}]),
        ("SELECT count(*) AS n, count(s) AS s FROM t", [{"n": 4, "s": 3}]),
    )
