"""pyarrow.flight: the plain Flight client, which knows nothing of Flight SQL."""

import concurrent.futures
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight
import pytest

import data
import protobuf
from server import Server, wait_until

COUNT = "SELECT count(*) AS n FROM lineitem"
# Its first rows come at once and its last one not today.
LONG = "SELECT a.* FROM lineitem a CROSS JOIN orders"
# No row comes today.
ENDLESS = """SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c
    WHERE a.l_partkey + b.l_partkey = c.l_partkey"""


@pytest.fixture
def client(server):
    with flight.connect(server.grpc_tcp) as client:
        yield client


def command(sql):
    return flight.FlightDescriptor.for_command(sql.encode())


def read(client, sql):
    info = client.get_flight_info(command(sql))
    tables = [client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints]
    return pa.concat_tables(tables)


def act(client, name, body=b""):
    return [bytes(result.body) for result in client.do_action(flight.Action(name, body))]


def set_options(client, **options):
    (result,) = act(client, "SetSessionOptions", protobuf.set_session_options(options))
    return {protobuf.fields(entry)[1][0].decode(): entry for entry in protobuf.fields(result).get(1, [])}


def test_sql_text_as_descriptor(client):
    info = client.get_flight_info(command("SELECT n_name, n_nationkey FROM nation ORDER BY n_nationkey"))
    assert len(info.endpoints) == 1 and info.endpoints[0].locations == []
    assert info.ordered
    reader = client.do_get(info.endpoints[0].ticket)
    assert reader.schema.equals(info.schema, check_metadata=True)
    assert reader.read_all()["n_name"].to_pylist() == data.NATIONS


def test_the_same_statement_is_answered_alike_however_soon_it_ends(client):
    # Drivers hand `total_records` on as affected rows, so it must not depend on whether the query was faster.
    for sql in ("SELECT * FROM (VALUES (1), (2)) AS t(n)", "SELECT n FROM (VALUES (1), (2)) AS t(n) WHERE n > 1"):
        infos = [client.get_flight_info(command(sql)) for _ in range(100)]
        assert len({(info.total_records, info.total_bytes) for info in infos}) == 1


def test_sql_text_as_ticket_is_one_round_trip(client):
    table = client.do_get(flight.Ticket(COUNT.encode())).read_all()
    assert table.to_pylist() == [{"n": data.LINEITEM_ROWS}]


def test_command_in_any_as_descriptor_and_ticket(client):
    query = protobuf.any_of("CommandStatementQuery", protobuf.field(1, COUNT))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(query))
    assert client.do_get(info.endpoints[0].ticket).read_all().to_pylist() == [{"n": data.LINEITEM_ROWS}]
    assert client.do_get(flight.Ticket(query)).read_all().to_pylist() == [{"n": data.LINEITEM_ROWS}]


def test_path_descriptor_is_a_table(client):
    info = client.get_flight_info(flight.FlightDescriptor.for_path("nation"))
    assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 25
    for path in (["main", "nation"], ["bowshot", "main", "nation"]):
        info = client.get_flight_info(flight.FlightDescriptor.for_path(*path))
        assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 25
    with pytest.raises(pa.ArrowKeyError, match="not found"):
        client.get_flight_info(flight.FlightDescriptor.for_path("nations"))


def test_get_schema(client):
    sql = "SELECT * FROM plain_types"
    schema = client.get_schema(command(sql)).schema
    assert schema.equals(data.plain_types().schema)
    assert client.get_schema(flight.FlightDescriptor.for_path("nation")).schema.names == ["n_nationkey", "n_name"]


def test_values_survive(client):
    got = read(client, "SELECT * FROM plain_types")
    expected = data.plain_types()
    assert got.schema.equals(expected.schema)
    # NaN is not equal to itself; the printed values are.
    assert [repr(row) for row in got.to_pylist()] == [repr(row) for row in expected.to_pylist()]


def test_list_flights(client):
    paths = {tuple(part.decode() for part in info.descriptor.path): info for info in client.list_flights()}
    names = {path[-1] for path in paths if path[1] == "main"}
    assert names == {"lineitem", "orders", "nation", "plain_types", "events", "zipped", "sales"}
    info = paths[("bowshot", "main", "sales")]
    assert client.do_get(info.endpoints[0].ticket).read_all().schema.equals(info.schema)
    assert len(list(client.list_flights(b"nat%"))) == 1
    assert list(client.list_flights(b"no such table")) == []


def test_endpoints_are_read_in_parallel(client, server):
    assert set_options(client, endpoints="4") == {}
    info = client.get_flight_info(command("SELECT * FROM lineitem"))
    assert len(info.endpoints) == 4
    assert not info.ordered

    def fetch(endpoint):
        with flight.connect(server.grpc_tcp) as other:
            return other.do_get(endpoint.ticket).read_all()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        table = pa.concat_tables(pool.map(fetch, info.endpoints))
    order = [("l_orderkey", "ascending"), ("l_linenumber", "ascending"), ("l_comment", "ascending")]
    assert table.sort_by(order).equals(data.lineitem().sort_by(order))


def test_rows_with_an_order_have_one_endpoint(client):
    set_options(client, endpoints="auto")
    info = client.get_flight_info(command("SELECT l_orderkey FROM lineitem ORDER BY l_orderkey"))
    assert len(info.endpoints) == 1 and info.ordered
    keys = client.do_get(info.endpoints[0].ticket).read_all()["l_orderkey"].to_pylist()
    assert keys == sorted(keys) and len(keys) == data.LINEITEM_ROWS


def test_cancel_stops_the_query(client, server):
    info = client.get_flight_info(command(LONG))
    assert server.held()["bowshot_running_queries"] == 1
    request = protobuf.field(1, info.serialize())
    assert protobuf.fields(act(client, "CancelFlightInfo", request)[0]) == {1: [1]}
    server.wait_idle(1.0)
    # Again, and in the older form: the same answer.
    assert protobuf.fields(act(client, "CancelFlightInfo", request)[0]) == {1: [1]}
    older = protobuf.any_of("ActionCancelQueryRequest", protobuf.field(1, info.serialize()))
    name, body = protobuf.unwrap(act(client, "CancelQuery", older)[0])
    assert (name, protobuf.fields(body)) == ("ActionCancelQueryResult", {1: [1]})
    with pytest.raises(flight.FlightCancelledError):
        client.do_get(info.endpoints[0].ticket).read_all()


def test_cancel_in_mid_stream_ends_the_stream(client, server):
    info = client.get_flight_info(command(LONG))
    reader = client.do_get(info.endpoints[0].ticket)
    assert reader.read_chunk().data.num_rows > 0
    act(client, "CancelFlightInfo", protobuf.field(1, info.serialize()))
    with pytest.raises(flight.FlightCancelledError):
        for _ in reader:
            pass
    server.wait_idle(1.0)


def test_a_deadline_stops_the_work(private_server):
    with flight.connect(private_server.grpc_tcp) as client:
        with pytest.raises(flight.FlightTimedOutError):
            client.get_flight_info(command(ENDLESS), flight.FlightCallOptions(timeout=0.5))
        private_server.wait_idle(1.0)
        assert read(client, COUNT).to_pylist() == [{"n": data.LINEITEM_ROWS}]


def test_a_client_that_goes_away_before_the_answer_stops_the_work(private_server):
    reading = "import sys, pyarrow.flight as f; f.connect(sys.argv[1]).do_get(f.Ticket(sys.argv[2].encode())).read_all()"
    other = subprocess.Popen([sys.executable, "-c", reading, private_server.grpc_tcp, ENDLESS])
    wait_until(lambda: private_server.held().get("bowshot_running_queries"), "the query runs")
    other.kill()
    other.wait()
    private_server.wait_idle(1.0)


def test_a_retryable_result_is_read_until_it_is_cancelled(client, server):
    set_options(client, retryable_results=True)
    info = client.get_flight_info(command("SELECT * FROM orders"))
    assert info.endpoints[0].expiration_time is not None
    for _ in range(2):
        assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == data.ORDERS_ROWS
    (renewed,) = act(client, "RenewFlightEndpoint", protobuf.field(1, info.endpoints[0].serialize()))
    assert 3 in protobuf.fields(renewed)
    assert protobuf.fields(act(client, "CancelFlightInfo", protobuf.field(1, info.serialize()))[0]) == {1: [1]}
    server.wait_idle(1.0)


def test_a_reader_that_goes_away_frees_everything(server):
    with flight.connect(server.grpc_tcp) as client:
        reader = client.do_get(flight.Ticket(LONG.encode()))
        assert reader.read_chunk().data.num_rows > 0
        assert server.held()["bowshot_running_queries"] == 1
        reader.cancel()
        server.wait_idle(1.0)


def test_a_result_that_nobody_reads_expires(data_folder):
    with Server(data_folder, arguments=["--set", "limits.result_timeout=1s"]) as server:
        with flight.connect(server.grpc_tcp) as client:
            info = client.get_flight_info(command(LONG))
            assert server.held()["bowshot_open_results"] == 1
            server.wait_idle(5.0)
            with pytest.raises(pa.ArrowKeyError, match="not found"):
                client.do_get(info.endpoints[0].ticket).read_all()


def test_session_options(client):
    assert set_options(client, schema="system", views=True, statement_timeout_ms=5000) == {}
    options = protobuf.session_options(act(client, "GetSessionOptions")[0])
    assert options["catalog"] == "bowshot" and options["schema"] == "system"
    assert options["views"] is True and options["statement_timeout_ms"] == 5000
    failed = set_options(client, nonsense="1", endpoints="many", schema=None)
    assert set(failed) == {"nonsense", "endpoints"}
    options = protobuf.session_options(act(client, "GetSessionOptions")[0])
    assert options["schema"] == "main"
    assert protobuf.fields(act(client, "CloseSession")[0]) == {1: [1]}


@pytest.mark.parametrize(("sql", "error", "words"), [
    ("SELEC 1", pa.ArrowInvalid, "SELEC"),
    ("", pa.ArrowInvalid, "empty"),
    ("SELECT * FROM lineitm", pa.ArrowKeyError, "lineitm.*not found|not found.*lineitm"),
    ("SELECT no_such_column FROM nation", pa.ArrowInvalid, "no_such_column"),
    ("SELECT 1; SELEC 2", pa.ArrowInvalid, "SELEC"),
    ("SELECT CAST('x' AS BIGINT)", pa.ArrowInvalid, "x"),
])
def test_errors_have_the_right_code_and_name_the_thing(client, sql, error, words):
    with pytest.raises(error, match=words):
        read(client, sql)
    with pytest.raises(error, match=words):
        client.do_get(flight.Ticket(sql.encode())).read_all()


def test_several_statements_run_in_turn_and_the_last_one_answers(client):
    assert read(client, "SELECT 1 AS a; SELECT 2 AS b;").to_pydict() == {"b": [2]}
    text = "CREATE TEMPORARY TABLE several AS SELECT 1 AS x; INSERT INTO several VALUES (2); SELECT no FROM several"
    with pytest.raises(pa.ArrowInvalid, match="no"):
        read(client, text)
    # Those before the one that fails have run.
    assert client.do_get(flight.Ticket(b"SELECT 0; SELECT count(*) AS n FROM several")).read_all().to_pydict() == {"n": [2]}
    read(client, "DROP TABLE several")


def test_messages_fit_the_smallest_receive_limit(server):
    smallest = 4 << 20
    wide = flight.Ticket(b"SELECT l_orderkey, repeat(l_comment, 200) AS wide FROM lineitem LIMIT 20000")
    with flight.connect(server.grpc_tcp, generic_options=[("grpc.max_receive_message_length", smallest)]) as client:
        says_so = flight.FlightCallOptions(headers=[(b"bowshot-max-message-bytes", str(smallest).encode())])
        assert client.do_get(wide, says_so).read_all().num_rows == 20_000
        # What Arrow C++ takes unless it is told otherwise is larger.
        with pytest.raises(flight.FlightCancelledError):
            for _ in client.do_get(wide):
                pass
        wrong = flight.FlightCallOptions(headers=[(b"bowshot-max-message-bytes", b"4MiB")])
        with pytest.raises(pa.ArrowInvalid, match="bowshot-max-message-bytes"):
            client.do_get(wide, wrong)


def test_one_message_of_a_long_result_is_large():
    sizes = {"BOWSHOT_LIMITS_MESSAGE_BYTES": "16KiB", "BOWSHOT_LIMITS_LARGE_MESSAGE_BYTES": "1MiB"}
    numbers = flight.Ticket(b"SELECT value, CAST(value AS VARCHAR) AS text FROM generate_series(1, 1000000) AS s(value) ORDER BY value")
    limited = flight.FlightCallOptions(headers=[(b"bowshot-max-message-bytes", b"65536")])
    unlimited = flight.FlightCallOptions()
    with Server(environment=sizes) as server, flight.connect(server.grpc_tcp) as client:
        # Once on a connection, unless the client says that it does not take it.
        for options, large in [(limited, 0), (unlimited, 1), (unlimited, 0)]:
            batches = [chunk.data for chunk in client.do_get(numbers, options)]
            assert sum(batch.nbytes > 128 << 10 for batch in batches) == large
            table = pa.Table.from_batches(batches)
            assert table["value"].combine_chunks().equals(pa.array(range(1, 1_000_001), pa.int64()))
            assert table["text"].combine_chunks().equals(pc.cast(table["value"].combine_chunks(), pa.string()))


def test_tables_made_of_files_are_read_only(client):
    files = "(?is)nation.*(files.*read-only|read-only.*files)"
    update = protobuf.any_of("CommandStatementUpdate", protobuf.field(1, "DROP TABLE nation"))
    with pytest.raises(pa.ArrowException, match=files):
        writer, reader = client.do_put(flight.FlightDescriptor.for_command(update), pa.schema([]))
        reader.read()
        writer.close()
    with pytest.raises(pa.ArrowException, match=files):
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("nation"), data.nation().schema)
        writer.write_table(data.nation())
        writer.close()
    with pytest.raises(pa.ArrowException, match=files):
        read(client, "INSERT INTO nation VALUES (25, 'ATLANTIS')")


def test_a_draining_server_says_so_and_lets_queries_finish(data_folder):
    with Server(data_folder) as server, flight.connect(server.grpc_tcp) as client:
        reader = client.do_get(flight.Ticket(b"SELECT * FROM lineitem a CROSS JOIN nation"))
        rows = reader.read_chunk().data.num_rows
        server.terminate()
        wait_until(lambda: server.get("/ready")[0] == 503, "not ready", 5)
        assert server.get("/health")[0] == 200
        with flight.connect(server.grpc_tcp) as late:
            with pytest.raises(flight.FlightUnavailableError):
                late.do_get(flight.Ticket(b"SELECT 1")).read_all()
        rows += sum(chunk.data.num_rows for chunk in reader)
        assert rows == data.LINEITEM_ROWS * 25
