"""SQL over HTTP against the real program: statements, forms, sessions, uploads, who may, and clients that go away."""

import contextlib
import http.client
import io
import json
import ssl
import urllib.parse

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

import data
from data import PASSWORD, TOKEN
from http_sql import FILE, PARQUET, STREAM, Answer, ask, basic, connection, order, sql
from server import ROOT, Server, wait_until

TLS = ROOT / "tests" / "data" / "tls"


@pytest.mark.parametrize("accept", [STREAM, FILE, PARQUET, "text/csv", "application/x-ndjson", "application/json"])
def test_every_form_has_all_rows(server, accept):
    text = "SELECT l_orderkey, l_comment FROM lineitem"
    body = sql(server, text, accept=accept).body
    if accept == STREAM:
        keys = pa.ipc.open_stream(body).read_all()["l_orderkey"].to_pylist()
    elif accept == FILE:
        keys = pa.ipc.open_file(body).read_all()["l_orderkey"].to_pylist()
    elif accept == PARQUET:
        keys = pq.read_table(io.BytesIO(body))["l_orderkey"].to_pylist()
    elif accept == "text/csv":
        keys = pa.csv.read_csv(io.BytesIO(body))["l_orderkey"].to_pylist()
    elif accept == "application/x-ndjson":
        keys = [json.loads(line)["l_orderkey"] for line in body.splitlines()]
    else:
        keys = [row[0] for row in json.loads(body)["rows"]]
    assert sorted(keys) == data.lineitem()["l_orderkey"].to_pylist()


def test_types_are_those_of_flight(server):
    with flight.connect(server.grpc_tcp) as client:
        expected = client.do_get(flight.Ticket(b"SELECT * FROM plain_types")).read_all()
    for accept, read in ((STREAM, pa.ipc.open_stream), (FILE, pa.ipc.open_file)):
        table = read(sql(server, "SELECT * FROM plain_types", accept=accept).body).read_all()
        assert table.schema.types == expected.schema.types
        assert str(table) == str(expected)
    row = dict(zip(expected.column_names, sql(server, "SELECT * FROM plain_types").rows()[2]))
    assert row["c_uint64"] == 2**64 - 1 and row["c_int64"] == -(2**63)
    assert (row["c_float32"], row["c_float64"]) == ("-Infinity", "NaN")
    assert row["c_binary"] == "00ff" and row["c_string"] == "größe 🏹" and row["c_list"] == []
    assert sql(server, "SELECT * FROM plain_types", accept="text/csv").status == 200


def test_a_statement_has_its_time(server):
    slow = order(server, SLOW, options={"statement_timeout_ms": 200})
    assert slow.error() == (504, "timeout")


SLOW = "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b WHERE a.l_comment < b.l_comment"


def test_whoever_leaves_takes_the_query_along(private_server):
    for text, answers in ((SLOW, False), ("SELECT * FROM lineitem a CROSS JOIN lineitem b", True)):
        client = connection(private_server)
        client.request("POST", "/v1/sql", text.encode(), {"content-type": "text/plain"})
        wait_until(private_server.held, "it runs")
        if answers:
            assert client.getresponse().read(1000)
        client.close()
        private_server.wait_idle(5)
    wait_until(lambda: private_server.metrics()["bowshot_sessions"] == 0, "no session is left")


def test_cancel_and_progress(private_server):
    client = connection(private_server)
    text = "SELECT * FROM lineitem a CROSS JOIN lineitem b"
    client.request("POST", "/v1/sql", text.encode(), {"content-type": "text/plain"})
    response = client.getresponse()
    query = response.headers["x-bowshot-query-id"]
    told = ask(private_server, "GET", f"/v1/queries/{query}").json()
    assert told["state"] == "running" and 0 <= told["fraction"] <= 1
    assert ask(private_server, "DELETE", f"/v1/queries/{query}").json()["state"] == "cancelled"
    rest = response.read()
    assert b'"error"' in rest[-1000:] and b"cancelled" in rest[-1000:]
    client.close()
    private_server.wait_idle(5)
    assert ask(private_server, "GET", "/v1/queries/no").error() == (400, "invalid")


def test_a_transaction_in_a_session(store, table):
    made = ask(store, "POST", "/v1/sessions", b"{}", content_type="application/json")
    assert made.status == 201
    token = made.json()["session"]
    session = {"x_bowshot_session": token}
    assert sql(store, f"CREATE TABLE {table} (a BIGINT)").json() == {"rows_affected": 0}
    again = sql(store, f"CREATE TABLE IF NOT EXISTS {table} (a BIGINT)").json()
    assert again == {"rows_affected": 0, "notices": [f"table `{table}` already exists, skipping"]}
    for text in ("BEGIN", f"INSERT INTO {table} VALUES (1), (2)"):
        assert sql(store, text, **session).status == 200
    assert sql(store, f"SELECT count(*) FROM {table}", **session).rows() == [[2]]
    assert sql(store, f"SELECT count(*) FROM {table}").rows() == [[0]]
    answer = sql(store, "COMMIT", **session)
    assert answer.status == 200, answer.body
    assert sql(store, f"SELECT count(*) FROM {table}").rows() == [[2]]
    assert sql(store, f"BEGIN; DELETE FROM {table}; COMMIT").status == 200
    assert sql(store, f"BEGIN; INSERT INTO {table} VALUES (3)").error() == (400, "invalid")
    assert sql(store, f"SELECT count(*) FROM {table}").rows() == [[0]]
    assert ask(store, "DELETE", f"/v1/sessions/{token}").status == 204
    assert sql(store, "SELECT 1", **session).error() == (404, "not_found")
    changed = sql(store, f"INSERT INTO {table} VALUES (4)", accept="text/csv")
    assert (changed.headers["x-bowshot-rows-affected"], changed.body) == ("1", b"")
    assert sql(store, f"INSERT INTO {table} VALUES (5) RETURNING a").rows() == [[5]]
    sql(store, f"DROP TABLE {table}")


def test_listed_pages_may(data_folder):
    environment = {"BOWSHOT_HTTP_ORIGINS": "https://a.example, https://b.example"}
    with Server(data_folder, environment=environment) as server:
        answer = sql(server, "SELECT 1", origin="https://b.example")
        assert answer.rows() == [[1]] and answer.headers["access-control-allow-origin"] == "https://b.example"
        assert ask(server, "OPTIONS", "/v1/sql", origin="https://a.example").status == 204
        server.wait_idle(5)


def test_credentials(guarded):
    answer = sql(guarded, "SELECT 1")
    assert answer.error() == (401, "unauthenticated") and answer.headers["www-authenticate"].startswith("Basic ")
    assert sql(guarded, "SELECT current_user", authorization=basic("ada", PASSWORD)).rows() == [["ada"]]
    assert sql(guarded, "SELECT current_user", authorization=f"Bearer {TOKEN}").rows() == [["service"]]
    assert sql(guarded, "SELECT 1", authorization=basic("ada", "wrong")).status == 401
    token = ask(guarded, "POST", "/v1/sessions", authorization=basic("ada", PASSWORD)).json()["session"]
    foreign = {"x_bowshot_session": token, "authorization": f"Bearer {TOKEN}"}
    assert sql(guarded, "SELECT 1", **foreign).error() == (404, "not_found")
    assert ask(guarded, "DELETE", f"/v1/sessions/{token}", authorization=basic("ada", PASSWORD)).status == 204
    for path in ("/health", "/metrics", "/v1/openapi.json"):
        assert guarded.get(path)[0] == 200


def test_https_at_the_same_address(guarded):
    address = urllib.parse.urlsplit(guarded.http)
    context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    client = http.client.HTTPSConnection(address.hostname, address.port, timeout=60, context=context)
    with contextlib.closing(client):
        headers = {"content-type": "text/plain", "authorization": basic("ada", PASSWORD)}
        for _ in range(2):
            client.request("POST", "/v1/sql", b"SELECT count(*) FROM lineitem", headers)
            assert Answer(client.getresponse()).rows() == [[data.LINEITEM_ROWS]]


def test_metrics_are_prometheus_text(server):
    status, headers, text = server.get("/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    sampled = {line.split("{")[0].split()[0] for line in text.splitlines() if line and not line.startswith("#")}
    suffixes = ("_bucket", "_sum", "_count")
    untyped = [
        name
        for name in sampled
        if name not in named and not any(name.endswith(suffix) and name[: -len(suffix)] in named for suffix in suffixes)
    ]
    assert not untyped
    assert server.metrics()["process_open_fds"] > 0
