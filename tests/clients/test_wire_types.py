"""Every type that an Arrow IPC file can hold comes back equal: as it is with the session options `views` and
`dictionaries`, and as its plain type without."""

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import data
import protobuf
from server import Server

VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


COLUMNS = data.all_types()


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
    schema = pa.schema([
        pa.field("Upper Case", pa.int64(), nullable=False, metadata={"unit": "m", "größe": "1"}),
        pa.field("Upper Case 2", pa.struct([pa.field("inner", pa.string(), nullable=False, metadata={"k": "v"})])),
    ])
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
