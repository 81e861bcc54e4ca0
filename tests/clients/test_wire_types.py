"""Every type that an Arrow IPC file can hold comes back equal: as it is with the session options `views` and
`dictionaries`, and as its plain type without."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import data
import protobuf
from server import Server

D = decimal.Decimal
MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000)
VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def columns():
    """Name to an array of four rows with a null, where the type can have one."""
    unit_types = [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
    made = {
        "null": pa.nulls(4),
        "bool": pa.array([True, False, None, True]),
        "float16": pa.array([1.5, -0.0, None, 65504.0], pa.float16()),
        "decimal32": pa.array([D("1.5"), D("-9999999.99"), None, D(0)], pa.decimal32(9, 2)),
        "decimal64": pa.array([D("1.5"), D("-9999999.99"), None, D(0)], pa.decimal64(18, 2)),
        "decimal128": pa.array([D("1.5"), D("-9999999.99"), None, D(0)], pa.decimal128(38, 2)),
        "decimal256": pa.array([D("1.5"), D("-9999999.99"), None, D(0)], pa.decimal256(76, 2)),
        "string": pa.array(["a", "", None, "größe 🏹"]),
        "large_string": pa.array(["a", "", None, "größe 🏹"], pa.large_string()),
        "string_view": pa.array(["a", "a string longer than twelve bytes", None, ""], pa.string_view()),
        "binary": pa.array([b"a", b"", None, b"\x00\xff"]),
        "large_binary": pa.array([b"a", b"", None, b"\x00\xff"], pa.large_binary()),
        "binary_view": pa.array([b"a", b"more than twelve bytes", None, b""], pa.binary_view()),
        "fixed_binary": pa.array([b"abc", b"\x00\x01\x02", None, b"xyz"], pa.binary(3)),
        "date32": pa.array([MOMENT.date(), datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
        "date64": pa.array([MOMENT.date(), datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], pa.date64()),
        "time32_s": pa.array([datetime.time(1, 2, 3), datetime.time(0), None, datetime.time(23, 59, 59)], pa.time32("s")),
        "time64_ns": pa.array([1, 0, None, 86_399_999_999_999], pa.time64("ns")),
        "timestamp_zone": pa.array([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us", "Europe/Berlin")),
        "interval": pa.array([(1, 2, 3), (0, 0, 0), None, (-1, -2, -3)], pa.month_day_nano_interval()),
        "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
        "large_list": pa.array([["a"], [], None, [None]], pa.large_list(pa.string())),
        "fixed_list": pa.array([[1, 2], [None, 4], None, [5, 6]], pa.list_(pa.int64(), 2)),
        "struct": pa.array([{"x": 1, "y": {"z": "a"}}, {"x": None, "y": None}, None, {"x": 2, "y": {"z": None}}]),
        "map": pa.array([[("a", 1)], [], None, [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int32())),
        "list_of_list": pa.array([[[1], []], [None], None, [[2, 3]]], pa.list_(pa.list_(pa.int8()))),
        "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "dictionary_int8": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["x", "y"]),
        "sparse_union": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, None, 3, None]), pa.array([None, "b", None, None])]
        ),
        "dense_union": pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a", None])]
        ),
        "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), pa.array(["a", None, "b"])),
        "list_view": pa.array([[1, 2], [], None, [3]], pa.list_view(pa.int32())),
        "large_list_view": pa.array([[1, 2], [], None, [3]], pa.large_list_view(pa.int32())),
        "list_of_views": pa.array([["a", None], [], None, ["b" * 20]], pa.list_(pa.string_view())),
        "struct_of_dictionary": pa.StructArray.from_arrays(
            [pa.array(["a", "b", None, "a"]).dictionary_encode(), pa.array([1, 2, 3, None])], ["d", "n"]
        ),
        "fixed_list_of_struct": pa.array([[{"x": 1}], [None], None, [{"x": None}]], pa.list_(pa.struct([("x", pa.int8())]), 1)),
        "map_of_list": pa.array([[(1, ["a"])], [], None, [(2, None)]], pa.map_(pa.int64(), pa.list_(pa.string()))),
    }  # fmt: skip
    for kind in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64, pa.float32, pa.float64):
        made[str(kind())] = pa.array([1, 0, None, 100], kind())
    for unit in ("s", "ms", "us", "ns"):
        made[f"timestamp_{unit}"] = pa.array([1, -1, None, 1_700_000_000], pa.timestamp(unit))
    for kind in unit_types:
        made[f"duration_{kind.unit}"] = pa.array([1, -1, None, 10**9], kind)
    return made


COLUMNS = columns()


@pytest.fixture(scope="module")
def typed_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    for name, column in COLUMNS.items():
        data.write_arrow(folder / f"t_{name}.arrow", pa.table({"c": column}))
    with Server(*(folder / f"t_{name}.arrow" for name in COLUMNS)) as server:
        yield server
        server.wait_idle(5)


def fetch(server, name, **options):
    with flight.connect(server.grpc_tcp) as client:
        if options:
            body = protobuf.set_session_options(options)
            (result,) = client.do_action(flight.Action("SetSessionOptions", body))
            assert bytes(result.body) == b""
        info = client.get_flight_info(flight.FlightDescriptor.for_command(f'SELECT c FROM "t_{name}"'.encode()))
        table = client.do_get(info.endpoints[0].ticket).read_all()
    assert table.schema.equals(info.schema)
    return table["c"].combine_chunks() if table["c"].num_chunks != 1 else table["c"].chunk(0)


def plain(kind):
    """The type without views, dictionaries and run ends."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_list_view(kind) or pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_large_list_view(kind):
        return pa.large_list(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain(field.type)) for field in kind])
    return VIEWS.get(kind, kind)


@pytest.mark.parametrize("name", COLUMNS)
def test_as_it_is(typed_server, name):
    column = COLUMNS[name]
    got = fetch(typed_server, name, views=True, dictionaries=True)
    assert got.type == column.type
    got.validate(full=True)
    assert got.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_plain_by_default(typed_server, name):
    column = COLUMNS[name]
    got = fetch(typed_server, name)
    assert got.type == plain(column.type)
    got.validate(full=True)
    assert got.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("name", ["string", "struct", "int64", "null", "decimal128"])
def test_compressed_on_request(typed_server, name, compression):
    got = fetch(typed_server, name, compression=compression)
    assert got.to_pylist() == COLUMNS[name].to_pylist()


def test_names_nullability_and_metadata_are_kept(tmp_path):
    schema = pa.schema(
        [
            pa.field("Upper Case", pa.int64(), nullable=False, metadata={"unit": "m", "größe": "1"}),
            pa.field("Upper Case 2", pa.struct([pa.field("inner", pa.string(), nullable=False, metadata={"k": "v"})])),
        ]
    )
    table = pa.table([[1, 2], [{"inner": "a"}, None]], schema=schema)
    data.write_arrow(tmp_path / "named.arrow", table)
    with Server(tmp_path / "named.arrow") as server, flight.connect(server.grpc_tcp) as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT * FROM named"))
        got = client.do_get(info.endpoints[0].ticket).read_all()
    assert got.schema.equals(schema, check_metadata=True), got.schema.to_string(show_field_metadata=True)
    assert info.schema.equals(schema, check_metadata=True)
    assert got.to_pylist() == table.to_pylist()


def test_tables_without_rows(tmp_path):
    empty = pa.table({name: column.slice(0, 0) for name, column in COLUMNS.items()})
    data.write_arrow(tmp_path / "empty.arrow", empty)
    with Server(tmp_path / "empty.arrow") as server, flight.connect(server.grpc_tcp) as client:
        body = protobuf.set_session_options({"views": True, "dictionaries": True})
        list(client.do_action(flight.Action("SetSessionOptions", body)))
        got = client.do_get(flight.Ticket(b"SELECT * FROM empty")).read_all()
    assert got.schema.equals(empty.schema) and got.num_rows == 0
