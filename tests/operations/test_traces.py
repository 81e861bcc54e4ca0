"""Traces over OTLP: the road of a query as spans, the caller's span above them, and nothing that waits for a collector."""

import json
import secrets
import socket
import time
import urllib.request

import psycopg
import pyarrow.flight as flight
import pytest

from collector import Collector
from durable import Database
from server import Server, wait_until

ROAD = ["statement", "admission", "plan", "authorise", "execute", "stream"]
SERVER, ERROR = 2, 2


def traced(collector, *more, **options):
    arguments = ["--set", f"traces.endpoint={collector.endpoint}", "--pg", "127.0.0.1:0"]
    return Server(arguments=[*arguments, *more], **options)


def name_of_a_caller(flags="01"):
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    return trace, span, f"00-{trace}-{span}-{flags}"


def over_http(server, sql, parent=None):
    headers = {"content-type": "application/json", **({"traceparent": parent} if parent else {})}
    request = urllib.request.Request(f"{server.http}/v1/sql", json.dumps({"statement": sql}).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def over_flight(server, sql, parent):
    options = flight.FlightCallOptions(headers=[(b"traceparent", parent.encode())])
    with flight.connect(server.grpc_tcp) as client:
        # CommandStatementQuery of Flight SQL, packed into Any: its text is field 1.
        text = sql.encode()
        command = b"\n" + bytes([len(text)]) + text
        kind = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"
        packed = b"\n" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(command)]) + command
        info = client.get_flight_info(flight.FlightDescriptor.for_command(packed), options)
        return client.do_get(info.endpoints[0].ticket, options).read_all()


@pytest.fixture(scope="module")
def collector():
    with Collector() as found:
        yield found


@pytest.fixture(scope="module")
def server(collector):
    with traced(collector, "--set", "traces.service_name=tested") as found:
        yield found


@pytest.mark.parametrize("door", ["flight", "http"])
def test_the_road_of_a_query_hangs_on_its_caller(collector, server, door):
    trace, caller, parent = name_of_a_caller()
    sql = "SELECT value AS secret_name FROM generate_series(1, 1000) AS t(value)"
    (over_flight if door == "flight" else over_http)(server, sql, parent)
    spans = collector.of(trace, ROAD)
    call = next(span for span in spans.values() if span.kind == SERVER)
    assert (call.parent, call.attributes["network.protocol.name"]) == (caller, door)
    statement = spans["statement"]
    for name in ("admission", "plan", "execute", "stream"):
        assert spans[name].parent == statement.id, name
        assert statement.begins <= spans[name].begins <= spans[name].ends <= statement.ends + 50_000_000, name
    assert spans["authorise"].parent == spans["plan"].id
    first = [span for span in collector.taken() if span.trace == trace and span.parent == caller]
    assert statement.parent in {span.id for span in first}
    assert statement.attributes["db.response.returned_rows"] == 1000
    assert statement.attributes["bowshot.bytes"] > 0
    assert statement.attributes["bowshot.outcome"] == "finished"
    assert statement.attributes["user.name"] == "anonymous"
    assert statement.resource["service.name"] == "tested"
    assert "secret_name" not in repr(collector.taken()), "no text of statements unless that is asked for"


def test_what_fails_says_its_kind_and_no_more(collector, server):
    trace, _, parent = name_of_a_caller()
    with pytest.raises(flight.FlightError):
        over_flight(server, "SELECT hidden_name FROM nowhere", parent)
    statement = collector.of(trace, ["statement"])["statement"]
    assert (statement.status, statement.attributes["error.type"]) == (ERROR, "NotFound")
    assert "hidden_name" not in repr(statement) and "nowhere" not in repr(statement)


def test_writes_and_other_front_ends(collector, server):
    with psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=anonymous dbname=bowshot", autocommit=True) as client:
        client.execute("CREATE TABLE traced (n BIGINT)")
        client.execute("INSERT INTO traced VALUES (1), (2)")
    written = wait_until(lambda: [span for span in collector.taken() if span.name == "write"], "a write", 15)
    by_id = {span.id: span for span in wait_until(lambda: collector.taken(), "spans")}
    wait_until(lambda: all(span.parent in {one.id for one in collector.taken()} for span in written), "what is above it", 15)
    by_id = {span.id: span for span in collector.taken()}
    above = by_id[by_id[written[0].parent].parent]
    assert above.attributes["network.protocol.name"] == "postgresql", above


def test_texts_if_they_are_asked_for(collector):
    with traced(collector, "--set", "traces.statements=true") as server:
        trace, _, parent = name_of_a_caller()
        over_http(server, "SELECT 'asked for' AS a", parent)
        statement = collector.of(trace, ["statement"])["statement"]
        assert statement.attributes["db.query.text"] == "SELECT 'asked for' AS a"


def test_callers_and_the_operator_choose_what_is_traced(collector):
    with traced(collector, "--set", "traces.sample_ratio=0") as server:
        for _ in range(5):
            over_http(server, "SELECT 1")
        not_this, _, unwanted = name_of_a_caller("00")
        over_http(server, "SELECT 2", unwanted)
        trace, _, wanted = name_of_a_caller()
        over_http(server, "SELECT 3", wanted)
        collector.of(trace, ROAD)
        own = [span for span in collector.taken() if span.resource["service.instance.id"] == collector.of(trace, ROAD)["plan"].resource["service.instance.id"]]
        assert {span.trace for span in own} == {trace}
    with traced(collector, "--set", "traces.sample_ratio=0.5") as server:
        before = len(collector.taken())
        for _ in range(100):
            over_http(server, "SELECT 1")
        taken = lambda: len({span.trace for span in collector.taken()[before:]})
        wait_until(lambda: taken() > 20, "about half of them", 15)
        time.sleep(1)
        assert taken() < 80


def test_what_is_no_name_of_a_caller_changes_nothing(collector, server):
    before = len(collector.taken())
    for parent in ("00-0-0-00", "x" * 5_000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"):
        over_http(server, "SELECT 1", parent)
    roots = lambda: [span for span in collector.taken()[before:] if span.name == "/v1/sql"]
    wait_until(lambda: len(roots()) == 3, "three calls", 15)
    assert {span.parent for span in roots()} == {""}


def test_headers_come_from_a_file(tmp_path):
    headers = tmp_path / "headers"
    headers.write_text("# of the collector\nX-Key: a secret: with colons\n\n")
    with Collector() as collector, traced(collector, "--set", f"traces.headers_file={headers}") as server:
        over_http(server, "SELECT 1")
        wait_until(collector.taken, "spans", 15)
        assert collector.headers[0]["x-key"] == "a secret: with colons"
        assert "a secret" not in server.log()


def test_the_end_of_a_server_sends_what_is_left():
    with Collector() as collector:
        with traced(collector) as server:
            trace, _, parent = name_of_a_caller()
            over_http(server, "SELECT 1", parent)
        assert {span.name for span in collector.taken() if span.trace == trace} >= set(ROAD)


def counted(server):
    _, _, text = server.get("/metrics")
    lines = [line for line in text.splitlines() if line.startswith("bowshot_trace_spans_total{")]
    return {line.split('outcome="')[1].split('"')[0]: float(line.split()[-1]) for line in lines}


def quick(server, seconds=5.0):
    """Statements run as ever."""
    began = time.monotonic()
    with Database(server) as database:
        for _ in range(20):
            assert database.one("SELECT 1") == 1
    assert time.monotonic() - began < seconds


def test_a_collector_that_is_down_stops_nobody():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with Server(arguments=["--set", f"traces.endpoint=http://127.0.0.1:{port}", "--set", "traces.timeout=1s"]) as server:
        quick(server)
        wait_until(lambda: counted(server).get("failed", 0) > 0, "spans that could not be sent", 15)
        assert server.log().count("does not take traces") == 1
        with Collector(port) as collector:
            wait_until(lambda: over_http(server, "SELECT 1") and collector.taken(), "spans again", 15)
            wait_until(lambda: "takes traces again" in server.log(), "a word of it", 15)
        assert counted(server)["sent"] > 0


def test_a_collector_that_hangs_stops_nobody_and_the_queue_has_an_end():
    """It accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Server(arguments=["--set", f"traces.endpoint={endpoint}", "--set", "traces.timeout=30s"]) as server:
            quick(server)
            deadline = time.monotonic() + 60
            with Database(server) as database:
                while counted(server).get("dropped", 0) == 0 and time.monotonic() < deadline:
                    for _ in range(100):
                        database.one("SELECT 1")
            assert counted(server).get("dropped", 0) > 0
            quick(server)
            server.terminate()
            began = time.monotonic()
            server.process.wait(60)
            assert time.monotonic() - began < 45, "it ends in the time of one delivery"


def test_without_an_endpoint_there_are_none(collector):
    with Server() as server:
        over_http(server, "SELECT 1")
        assert counted(server) == {}
