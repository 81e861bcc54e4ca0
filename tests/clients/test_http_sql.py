"""SQL over HTTP against the real program: statements, forms, sessions, uploads, who may, and clients that go away."""

import contextlib
import http.client
import io
import json
import ssl
import threading
import urllib.parse

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

import data
from http_sql import FILE, PARQUET, STREAM, Answer, ask, basic, connection, order, sql
from server import ROOT, wait_until

TLS = ROOT / "tests" / "data" / "tls"


def test_one_request_brings_rows(server):
    answer = sql(server, "SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey LIMIT 2")
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert [column["name"] for column in told["columns"]] == ["n_nationkey", "n_name"]
    assert (told["rows"], told["row_count"]) == ([[0, "ALGERIA"], [1, "ARGENTINA"]], 2)
    assert told["query_id"] == answer.headers["x-bowshot-query-id"]
    assert sql(server, "SELECT 1; SELECT 2;").rows() == [[2]]
    assert sql(server, "SELECT 1 AS a WHERE false").json()["row_count"] == 0


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


def test_parameters_and_options(server):
    assert order(server, "SELECT count(*) FROM nation WHERE n_nationkey < $1 AND n_name >= $2", 5, "B").rows() == [[3]]
    assert order(server, "SELECT $1 + 1", 41).rows() == [[42]]
    assert order(server, "SELECT $1 IS NULL", None).rows() == [[True]]
    assert order(server, "SELECT CAST($1 AS DATE) = DATE '2024-02-29'", "2024-02-29").rows() == [[True]]
    assert order(server, "SELECT 1 LIMIT $1", 1.5).error() == (400, "invalid")
    assert order(server, "SELECT $1", 1, 2).error() == (400, "invalid")
    assert order(server, "SELECT $1").error() == (400, "invalid")
    assert order(server, "SELECT 1; SELECT $1", 1).error() == (400, "invalid")
    options = {"time_zone": "+02:00"}
    assert order(server, "SHOW time_zone", options=options).rows()[0][-1] == "+02:00"
    assert sql(server, "SHOW time_zone").rows()[0][-1] == "+00:00"
    assert order(server, "SELECT 1", options={"colour": "red"}).error() == (400, "invalid")


def test_errors(server):
    """Of requests; those of statements are in test_error_codes.py."""
    answer = sql(server, "")
    assert answer.status == 400 and answer.headers["content-type"] == "application/json"
    assert ask(server, "POST", "/v1/sql", b"SELECT 1", content_type="image/png").error() == (415, "unsupported")
    assert sql(server, "SELECT 1", accept="image/png").error() == (406, "unsupported")
    assert sql(server, " " * (5 << 20)).error() == (413, "limit_reached")
    assert ask(server, "POST", "/v1/sql", b"{", content_type="application/json").error() == (400, "invalid")
    text = {"content_type": "text/plain"}
    assert ask(server, "POST", "/v1/sql", b"SELECT '\xff'", **text).error() == (400, "invalid")
    assert ask(server, "POST", "/v1/sql", b"x", content_encoding="gzip", **text).error() == (415, "unsupported")
    assert ask(server, "POST", "/v1/sql", iter([b"SELECT", b" 7"]), **text).rows() == [[7]]
    assert ask(server, "POST", "/v1/sql", iter([b" " * (1 << 20)] * 5), **text).error() == (413, "limit_reached")
    assert ask(server, "POST", "/v1/sql?format=csv", b"SELECT 7 AS a", **text).body == b"a\r\n7\r\n"
    for query in ("format=xml", "form=csv"):
        assert ask(server, "POST", f"/v1/sql?{query}", b"SELECT 1", **text).error() == (400, "invalid")
    assert sql(server, "SELECT INTERVAL '1 month'", accept=PARQUET).error() == (400, "unsupported")
    for body in (b'{"options": {"colour": 1}}', b"[", b'{"option": {}}'):
        assert ask(server, "POST", "/v1/sessions", body, content_type="application/json").error() == (400, "invalid")
    slow = order(server, SLOW, options={"statement_timeout_ms": 200})
    assert slow.error() == (504, "timeout")


def test_what_curl_sends_is_sql_and_what_a_page_could_send_is_not(server):
    form = {"content_type": "application/x-www-form-urlencoded"}
    for headers in ({}, form, {"content_type": ""}):
        assert ask(server, "POST", "/v1/sql", b"SELECT 1 + 1", **headers).rows() == [[2]]
        for said in ({"cookie": "a=b"}, {"referer": server.http}, {"sec_fetch_site": "same-site"}):
            assert ask(server, "POST", "/v1/sql", b"SELECT 1", **headers, **said).error() == (415, "unsupported")
        assert ask(server, "POST", "/v1/sql", b"SELECT 1", **headers, origin="https://evil.example").status == 403


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
    assert ask(store, "DELETE", f"/v1/sessions/{token}").status == 404
    for gone in (token, "", "x", "00000000-0000-0000-0000-000000000000"):
        assert sql(store, "SELECT 1", x_bowshot_session=gone).error() == (404, "not_found")
    changed = sql(store, f"INSERT INTO {table} VALUES (4)", accept="text/csv")
    assert (changed.headers["x-bowshot-rows-affected"], changed.body) == ("1", b"")
    assert sql(store, f"INSERT INTO {table} VALUES (5) RETURNING a").rows() == [[5]]
    sql(store, f"DROP TABLE {table}")


def test_a_script_has_its_session_to_itself(store, table):
    session = {"x_bowshot_session": ask(store, "POST", "/v1/sessions").json()["session"]}
    sql(store, f"CREATE TABLE {table} (a BIGINT)")
    with contextlib.closing(connection(store)) as client:
        text = f"INSERT INTO {table} VALUES (1); {SLOW}; INSERT INTO {table} VALUES (2)"
        headers = {"content-type": "text/plain", "x-bowshot-session": session["x_bowshot_session"]}
        client.request("POST", "/v1/sql", text.encode(), headers)
        wait_until(lambda: store.metrics()["bowshot_running_queries"], "the script runs")
        answers = []
        # Neither joins nor commits what the script rolls back.
        texts = [f"INSERT INTO {table} VALUES (3)", "COMMIT", f"INSERT INTO {table} VALUES (4); SELECT 1"]

        def work(text):
            answers.append(sql(store, text, **session))

        threads = [threading.Thread(target=work, args=[text]) for text in texts]
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        assert not answers and sql(store, f"SELECT count(*) FROM {table}").rows() == [[0]]
    for thread in threads:
        thread.join()
    assert len(answers) == len(texts)
    assert sql(store, f"SELECT a FROM {table} ORDER BY a").rows() == [[3], [4]]
    ask(store, "DELETE", f"/v1/sessions/{session['x_bowshot_session']}")
    sql(store, f"DROP TABLE {table}")


def test_credentials(guarded):
    answer = sql(guarded, "SELECT 1")
    assert answer.error() == (401, "unauthenticated") and answer.headers["www-authenticate"].startswith("Basic ")
    assert sql(guarded, "SELECT current_user", authorization=basic("ada", data.PASSWORD)).rows() == [["ada"]]
    assert sql(guarded, "SELECT current_user", authorization=f"Bearer {data.TOKEN}").rows() == [["service"]]
    assert sql(guarded, "SELECT 1", authorization=basic("ada", "wrong")).status == 401
    token = ask(guarded, "POST", "/v1/sessions", authorization=basic("ada", data.PASSWORD)).json()["session"]
    foreign = {"x_bowshot_session": token, "authorization": f"Bearer {data.TOKEN}"}
    assert sql(guarded, "SELECT 1", **foreign).error() == (404, "not_found")
    assert ask(guarded, "DELETE", f"/v1/sessions/{token}", authorization=basic("ada", data.PASSWORD)).status == 204
    for path in ("/health", "/metrics", "/v1/openapi.json"):
        assert guarded.get(path)[0] == 200


def test_https_at_the_same_address(guarded):
    address = urllib.parse.urlsplit(guarded.http)
    context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    client = http.client.HTTPSConnection(address.hostname, address.port, timeout=60, context=context)
    with contextlib.closing(client):
        headers = {"content-type": "text/plain", "authorization": basic("ada", data.PASSWORD)}
        for _ in range(2):
            client.request("POST", "/v1/sql", b"SELECT count(*) FROM lineitem", headers)
            assert Answer(client.getresponse()).rows() == [[data.LINEITEM_ROWS]]
