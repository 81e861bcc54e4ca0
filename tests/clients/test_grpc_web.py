"""gRPC-Web on the HTTP port, by hand (see grpc_web.py); real clients of it are in node/grpcweb.test.js."""

import base64
import contextlib
import struct

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import grpc_web
import protobuf
from grpc_web import BINARY, TEXT, Browser
from server import Server, wait_until

FORMS = pytest.mark.parametrize("form", [BINARY, TEXT])
NUMBERS = "SELECT value AS n, CAST(value AS DOUBLE) / 3 AS d, repeat('ü', CAST(value % 50 AS INT)) AS t FROM generate_series(1, {}) AS s(value)"


@pytest.fixture
def browse(store):
    """Makes browsers, which are closed after the test."""
    with contextlib.ExitStack() as open_ones:
        yield lambda form=BINARY, headers=None: open_ones.enter_context(Browser(store.http, form, headers))


@pytest.fixture
def browser(browse):
    return browse()


@FORMS
@pytest.mark.parametrize("sql", [NUMBERS.format(300_000) + " ORDER BY n", "SELECT * FROM plain_types"])
def test_the_rows_are_those_of_flight(store, browse, form, sql):
    with flight.connect(store.grpc_tcp) as client:
        command = protobuf.any_of("CommandStatementQuery", protobuf.field(1, sql))
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        expected = pa.concat_tables([client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints])
    got = browse(form).rows(sql)
    assert got.schema.equals(expected.schema) and repr(got.to_pylist()) == repr(expected.to_pylist())


@FORMS
def test_statuses(browse, form):
    browser = browse(form)
    for method, message, code, words in (
        ("GetFlightInfo", protobuf.field(1, 2) + protobuf.field(2, "SELECT * FROM nowhere"), 5, "nowhere"),
        ("GetFlightInfo", protobuf.field(1, 2) + protobuf.field(2, "SELEC 1"), 3, "SELEC"),
        ("GetFlightInfo", b"\xff\xff", 3, "malformed"),
        ("DoGet", protobuf.field(1, b"nonsense"), 3, ""),
        ("DoAction", protobuf.field(1, "Nonsense"), 12, "Nonsense"),
        ("DoPut", b"", 12, "gRPC-Web"),
        ("DoExchange", b"", 12, "gRPC-Web"),
        ("Handshake", b"", 12, "authorization"),
        ("Nonsense", b"", 12, "Nonsense"),
    ):
        answer = browser.call(method, message)
        assert (answer.status, answer.code, answer.messages) == (200, code, []), (method, answer.message)
        assert words in answer.message, answer.message
    # Behind the first rows.
    _, [ticket] = browser.info("SELECT 1000 / (value - 900000) FROM generate_series(1, 1000000) AS s(value)")
    answer, _ = browser.get(ticket)
    assert (answer.status, answer.code) == (200, 3) and "zero" in answer.message
    assert answer.trailers is not None
    # The connection is as good as before.
    assert browser.rows("SELECT 1 AS n").to_pylist() == [{"n": 1}]


def test_broken_requests(store):
    message = protobuf.field(1, 2) + protobuf.field(2, "SELECT 1")
    whole = struct.pack("!BI", 0, len(message)) + message
    for form, body in (
        (BINARY, b""),
        (BINARY, whole[:3]),
        (BINARY, whole[:-1]),
        (BINARY, struct.pack("!BI", 0, 0xFFFFFFFF) + message),
        (BINARY, struct.pack("!BI", 1, len(message)) + message),
        (TEXT, base64.b64encode(whole)[:-1]),
        (TEXT, base64.b64encode(whole)[:-4]),
        (TEXT, b"!" * 8),
        (TEXT, whole),
    ):
        for method in ("GetFlightInfo", "DoGet", "DoAction"):
            with Browser(store.http, form) as browser:
                answer = browser.send(method, body)
            assert answer.status == 200 and answer.code not in (None, 0, 2, 13, 15), (form, body, method, answer.code, answer.message)
    for form in ("application/grpc", "application/json", "text/plain", ""):
        with Browser(store.http, form) as browser:
            assert browser.send("GetFlightInfo", whole).status == 415
    store.wait_idle()


def test_a_request_that_is_too_large(browse):
    sql = "SELECT '" + "x" * (20 << 20) + "'"
    for form in (BINARY, TEXT):
        answer, _ = browse(form).info(sql)
        assert answer.code == 8, answer.message


def test_sessions(store, browse, browser):
    answer = browser.run("SET time_zone = '+02:00'")
    opened = answer.headers["x-bowshot-session"]
    assert "set-cookie" not in answer.headers
    # The same connection is the same session, and another one that which it names.
    zone = "SELECT current_setting('time_zone') AS zone"
    assert browser.rows(zone).to_pylist() == [{"zone": "+02:00"}]
    named = browse(TEXT, {"x-bowshot-session": opened})
    assert named.rows(zone).to_pylist() == [{"zone": "+02:00"}]
    assert browse().rows(zone).to_pylist() != [{"zone": "+02:00"}]
    # Cookies say nothing here.
    cookie = browse(headers={"cookie": f"arrow_flight_session_id={opened}"})
    assert cookie.rows(zone).to_pylist() != [{"zone": "+02:00"}]
    # A session of HTTP is one, too.
    both = browse(headers={"x-bowshot-session": grpc_web.session(store.http)})
    both.run("SET time_zone = '+03:00'")
    assert both.rows(zone).to_pylist() == [{"zone": "+03:00"}]
    answer, _ = browse(headers={"x-bowshot-session": "00000000-0000-0000-0000-000000000000"}).info("SELECT 1")
    assert answer.code == 5 and "session not found" in answer.message


def test_a_session_ends_with_its_connection():
    with Server() as server:
        browser = Browser(server.http)
        browser.rows("SELECT 1")
        assert server.metrics()["bowshot_sessions"] == 1
        browser.close()
        wait_until(lambda: server.metrics()["bowshot_sessions"] == 0, "the session has ended")


def test_deadlines(store, browser):
    slow = "SELECT count(*) FROM generate_series(1, 3000000) AS a(x), generate_series(1, 3000000) AS b(y) WHERE x * y % 7 = 3"
    answer, _ = browser.info(slow, {"grpc-timeout": "200m"})
    assert answer.code == 4, answer.message
    store.wait_idle(5)
