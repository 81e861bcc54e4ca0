"""Traces over OTLP: the road of a query as spans, the caller's span above them, and nothing that waits for a collector."""

import contextlib
import json
import secrets
import socket
import time

import grpc
import mysql.connector
import psycopg
import pyarrow
import pyarrow.flight as flight
import pymysql
import pytest

import http_sql
import protobuf
from certificates import key_pair
from collector import Collector
from durable import Database
from program import bowshot, refused
from server import BUSY_FACTOR, Server, wait_until

ROAD = ["statement", "admission", "plan", "authorise", "execute", "optimise", "stream"]
SERVER, ERROR = 2, 2
SQL = "SELECT value AS secret_name FROM generate_series(1, 1000) AS t(value)"


def traced(collector, *more, **options):
    arguments = ["--set", f"traces.endpoint={collector.endpoint}", "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
    return Server(arguments=[*arguments, *more], **options)


def name_of_a_caller(flags="01"):
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    return trace, span, f"00-{trace}-{span}-{flags}"


def commented(sql, parent):
    """As SQLCommenter has it."""
    return f"{sql} /*application='tests',traceparent='{parent}'*/"


def over_http(server, sql, parent=None):
    answer = http_sql.sql(server, sql, **({"traceparent": parent} if parent else {}))
    assert answer.status == 200, answer.body
    return answer.body


def over_flight(server, sql, parent):
    options = flight.FlightCallOptions(headers=[(b"traceparent", parent.encode())])
    with flight.connect(server.grpc_tcp) as client:
        command = protobuf.any_of("CommandStatementQuery", protobuf.field(1, sql))
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
        return client.do_get(info.endpoints[0].ticket, options).read_all()


def postgres(server):
    return psycopg.connect(**server.postgres(user="anonymous"), autocommit=True)


def over_postgres(server, sql, parent):
    with postgres(server) as client:
        return client.execute(commented(sql, parent)).fetchall()


def over_postgres_in_steps(server, sql, parent):
    with postgres(server) as client:
        return client.execute(commented(sql, parent), prepare=True).fetchall()


def over_mysql(server, sql, parent):
    with contextlib.closing(pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="anonymous")) as client:
        with client.cursor() as cursor:
            cursor.execute(commented(sql, parent))
            return cursor.fetchall()


def over_mysql_prepared(server, sql, parent):
    address = {"host": "127.0.0.1", "port": server.mysql_port, "user": "anonymous"}
    with contextlib.closing(mysql.connector.connect(**address, use_pure=True)) as client:
        with contextlib.closing(client.cursor(prepared=True)) as cursor:
            cursor.execute(commented(sql, parent))
            return cursor.fetchall()


DOORS = {
    "flight": (over_flight, "flight", {"GetFlightInfo", "DoGet"}),
    "http": (over_http, "http", {"/v1/sql"}),
    "postgresql": (over_postgres, "postgresql", {"Query"}),
    "postgresql-steps": (over_postgres_in_steps, "postgresql", {"Parse", "Execute"}),
    "mysql": (over_mysql, "mysql", {"COM_QUERY"}),
    "mysql-prepared": (over_mysql_prepared, "mysql", {"COM_STMT_PREPARE", "COM_STMT_EXECUTE"}),
}


@pytest.fixture(scope="module")
def collector():
    with Collector() as found:
        yield found


@pytest.fixture(scope="module")
def server(collector):
    with traced(collector, "--set", "traces.service_name=tested") as found:
        yield found


@pytest.mark.parametrize("door", DOORS)
def test_the_road_of_a_query_is_one_tree_below_its_caller(collector, server, door):
    run, protocol, calls = DOORS[door]
    trace, caller, parent = name_of_a_caller()
    run(server, SQL, parent)
    below_caller = lambda: {span.name: span for span in collector.taken() if span.trace == trace and span.parent == caller}
    wait_until(lambda: calls <= below_caller().keys(), f"{calls} below the caller: {collector.taken()}", 15)
    collector.of(trace, ROAD)
    for name in calls:
        call = below_caller()[name]
        assert (call.kind, call.attributes["network.protocol.name"]) == (SERVER, protocol)
        assert call.flags == 0x301, "sampled, and its parent is another process's"
    # The one with the rows: statements are prepared before, and MySQL's front end asks for more.
    with_rows = lambda: [span for span in collector.taken() if span.trace == trace and span.attributes.get("db.response.returned_rows") == 1000]
    (statement,) = wait_until(with_rows, "the statement with the rows", 15)
    by_id = {span.id: span for span in collector.taken() if span.trace == trace}
    below = {span.name: span for span in by_id.values() if span.parent == statement.id}
    assert {"admission", "plan", "execute", "stream"} <= below.keys()
    for name, span in below.items():
        assert statement.begins <= span.begins <= span.ends <= statement.ends + 50_000_000, name
    assert below["admission"].ends <= below["plan"].ends <= below["execute"].ends <= below["stream"].ends
    assert by_id[statement.parent].name in calls
    # Front ends that prepare all statements plan there, as a statement of its own.
    assert all(by_id[span.parent].name == "plan" for span in by_id.values() if span.name == "authorise")
    assert all(by_id[span.parent].name == "execute" for span in by_id.values() if span.name == "optimise")
    assert statement.attributes["bowshot.bytes"] > 0
    assert statement.attributes["bowshot.outcome"] == "finished"
    assert statement.attributes["user.name"] == "anonymous"
    assert statement.resource["service.name"] == "tested"
    # One tree: each span's parent is there, or is the caller.
    assert all(span.parent == caller or span.parent in by_id for span in by_id.values())
    assert "secret_name" not in repr(collector.taken()), "no text of statements unless that is asked for"


def test_statements_have_the_tag_of_their_session(collector, server):
    trace, _, parent = name_of_a_caller()
    body = json.dumps({"sql": SQL, "options": {"query_tag": "nightly"}})
    assert http_sql.ask(server, "POST", "/v1/sql", body, content_type="application/json", traceparent=parent).status == 200
    collector.of(trace, ROAD)
    tags = [span.attributes.get("bowshot.query_tag") for span in collector.taken() if span.trace == trace and span.name == "statement"]
    assert tags and set(tags) == {"nightly"}


def test_what_fails_says_its_kind_and_no_more(collector, server):
    trace, _, parent = name_of_a_caller()
    with pytest.raises(pyarrow.ArrowKeyError):
        over_flight(server, "SELECT hidden_name FROM nowhere", parent)
    statement = collector.of(trace, ["statement"])["statement"]
    assert (statement.status, statement.attributes["error.type"]) == (ERROR, "NotFound")
    assert statement.attributes["bowshot.outcome"] == "failed"
    assert "hidden_name" not in repr(statement) and "nowhere" not in repr(statement)


def test_writes(collector, server):
    trace, _, parent = name_of_a_caller()
    with postgres(server) as client:
        client.execute("CREATE TABLE traced (n BIGINT)")
        client.execute(commented("INSERT INTO traced VALUES (1), (2)", parent))
    spans = collector.of(trace, ["Query", "statement", "admission", "plan", "write"])
    assert spans["write"].parent == spans["statement"].id
    assert spans["statement"].parent == spans["Query"].id


def test_texts_if_they_are_asked_for(collector):
    with traced(collector, "--set", "traces.statements=true") as server:
        trace, _, parent = name_of_a_caller()
        over_http(server, "SELECT 'asked for' AS a", parent)
        statement = collector.of(trace, ["statement"])["statement"]
        assert statement.attributes["db.query.text"] == "SELECT 'asked for' AS a"


def of_process(collector, trace):
    """All spans of the server that this trace is of."""
    instance = collector.of(trace, ROAD)["plan"].resource["service.instance.id"]
    return [span for span in collector.taken() if span.resource["service.instance.id"] == instance]


def test_callers_and_the_operator_choose_what_is_traced(collector):
    with traced(collector, "--set", "traces.sample_ratio=0") as server:
        for _ in range(5):
            over_http(server, "SELECT 1")
        _, _, unwanted = name_of_a_caller("00")
        over_http(server, "SELECT 2", unwanted)
        trace, _, wanted = name_of_a_caller()
        over_http(server, "SELECT 3", wanted)
        assert {span.trace for span in of_process(collector, trace)} == {trace}


def test_a_share_can_stand_in_the_file(collector, tmp_path):
    file = tmp_path / "bowshot.toml"
    file.write_text(f'[traces]\nendpoint = "{collector.endpoint}"\nsample_ratio = 0.25\n')
    assert bowshot("check", "--config", file)[0] == 0
    for wrong in ("1.5", "-0.1", "nan"):
        file.write_text(f'[traces]\nendpoint = "{collector.endpoint}"\nsample_ratio = {wrong}\n')
        refused("check", "--config", file, words=["0 to 1"], code=2)


def test_spans_are_in_no_log(collector):
    with traced(collector, "--log", "trace") as server:
        trace, _, parent = name_of_a_caller()
        over_http(server, "SELECT 1", parent)
        collector.of(trace, ROAD)
        assert trace not in server.log() and "otel.name" not in server.log() and "admission" not in server.log()


def test_headers_come_from_a_file(tmp_path):
    headers = tmp_path / "headers"
    headers.write_text("# of the collector\nX-Key: a secret: with colons\n\n")
    with Collector() as collector, traced(collector, "--set", f"traces.headers_file={headers}") as server:
        over_http(server, "SELECT 1")
        wait_until(collector.taken, "spans", 15)
        assert collector.headers[0]["x-key"] == "a secret: with colons"
        assert "a secret" not in server.log()
    settings = lambda endpoint: ["--set", f"traces.endpoint={endpoint}", "--set", f"traces.headers_file={headers}"]
    at = lambda endpoint, word: refused("check", *settings(endpoint), words=[word], code=2)
    # A key is not sent in clear beyond this machine.
    at("http://192.0.2.1:4317", "unencrypted")
    headers.write_text("a secret\n")
    assert "a secret" not in at("http://127.0.0.1:4317", "line 1")


def test_encrypted_collectors_have_to_prove_who_they_are(tmp_path):
    ours, others = (key_pair(tmp_path, name, is_authority=True) for name in ("ours", "others"))
    own = key_pair(tmp_path, "collector", issuer=ours)
    with Collector(identity=(own[1].read_bytes(), own[0].read_bytes())) as collector:
        trusted = ["--set", f"traces.ca_file={ours[0]}"]
        with traced(collector, *trusted) as server:
            trace, _, parent = name_of_a_caller()
            over_http(server, "SELECT 1", parent)
            collector.of(trace, ROAD)
        with traced(collector, "--set", f"traces.ca_file={others[0]}") as server:
            before = len(collector.taken())
            over_http(server, "SELECT 1")
            wait_until(lambda: counted(server).get("failed", 0) > 0, "spans that could not be sent", 15)
            assert "certificate" in server.log()
            assert len(collector.taken()) == before
        plain = f"http://127.0.0.1:{collector.port}"
        refused("check", "--set", f"traces.endpoint={plain}", *trusted, words=["ca_file"], code=2)


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


def slowest(server, statements=50):
    """How long the slowest of some statements took, in seconds."""
    times = []
    with Database(server) as database:
        for _ in range(statements):
            began = time.monotonic()
            assert database.one("SELECT 1") == 1
            times.append(time.monotonic() - began)
    return max(times)


def test_a_collector_that_is_down_stops_nobody():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with Server(arguments=["--set", f"traces.endpoint=http://127.0.0.1:{port}", "--set", "traces.timeout=3s"]) as server:
        assert slowest(server) < 3, "a statement waited for a delivery"
        wait_until(lambda: counted(server).get("failed", 0) > 0, "spans that could not be sent", 15)
        wait_until(lambda: "does not accept traces" in server.log(), "a word of it")
        assert server.log().count("does not accept traces") == 1
        with Collector(port) as collector:
            wait_until(lambda: over_http(server, "SELECT 1") and collector.taken(), "spans again", 15)
            wait_until(lambda: "accepts traces again" in server.log(), "a word of it", 15)
        assert counted(server)["sent"] > 0


def test_a_collector_that_is_slow_or_refuses_stops_nobody():
    with Collector(answer=lambda _: time.sleep(4)) as slow, traced(slow, "--set", "traces.timeout=3s") as server:
        assert slowest(server) < 3, "a statement waited for a delivery"
        wait_until(lambda: counted(server).get("failed", 0) > 0, "spans that were not taken in time", 15)
    exhausted = lambda context: context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more today")
    with Collector(answer=exhausted) as refusing, traced(refusing) as server:
        assert slowest(server) < 3, "a statement waited for a delivery"
        wait_until(lambda: "no more today" in server.log(), "the reason", 15)
        assert "sent" not in counted(server)
    with Collector() as partly, traced(partly) as server:
        partly.refused = 2
        over_http(server, "SELECT 1")
        wait_until(lambda: counted(server).get("failed", 0) == 2, "two that were refused", 15)
        assert counted(server)["sent"] > 0


def test_a_collector_that_hangs_stops_nobody_and_the_queue_has_an_end():
    """It accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Server(arguments=["--set", f"traces.endpoint={endpoint}", "--set", "traces.timeout=20s"]) as server:
            assert slowest(server) < 10
            deadline = time.monotonic() + 60 * BUSY_FACTOR
            with Database(server) as database:
                while counted(server).get("dropped", 0) == 0 and time.monotonic() < deadline:
                    for _ in range(100):
                        database.one("SELECT 1")
            assert counted(server).get("dropped", 0) > 0
            assert slowest(server) < 10
            server.terminate()
            began = time.monotonic()
            server.process.wait(60 * BUSY_FACTOR)
            assert time.monotonic() - began < 25 * BUSY_FACTOR, "it ends in the time of one delivery, and not of sixteen"


def test_without_an_endpoint_there_are_none():
    with Server() as server:
        over_http(server, "SELECT 1", name_of_a_caller()[2])
        assert counted(server) == {}
