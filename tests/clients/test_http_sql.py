"""SQL over HTTP against the real program: statements, forms, sessions, uploads, who may, and clients that go away."""

import base64
import contextlib
import datetime
import decimal
import hashlib
import http.client
import io
import json
import random
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pyarrow as pa
import pyarrow.csv
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

import data
from server import ROOT, Server, binaries, wait_until

STREAM = "application/vnd.apache.arrow.stream"
FILE = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"
PASSWORD = "pässword: with colon"
TOKEN = "a fixed token of a service"
TLS = ROOT / "tests" / "data" / "tls"


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def rows(self):
        assert self.status == 200, self.body
        return self.json()["rows"]

    def error(self):
        return self.status, self.json()["error"]["kind"]


def connection(server):
    address = urllib.parse.urlsplit(server.http)
    return http.client.HTTPConnection(address.hostname, address.port, timeout=60)


def ask(server, method, path, body=None, **headers):
    """One request on a connection of its own; `content_type` becomes `content-type`."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(connection(server)) as client:
        client.request(method, path, body, headers)
        return Answer(client.getresponse())


def sql(server, text, **headers):
    return ask(server, "POST", "/v1/sql", text.encode(), **{"content_type": "text/plain", **headers})


def order(server, text, *parameters, **more):
    body = json.dumps({"sql": text, "parameters": parameters, **more})
    return ask(server, "POST", "/v1/sql", body.encode(), content_type="application/json")


def stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    return sink.getvalue()


def file(table):
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    return sink.getvalue()


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


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
    options = {"time_zone": "+02:00"}
    assert order(server, "SHOW time_zone", options=options).rows()[0][-1] == "+02:00"
    assert sql(server, "SHOW time_zone").rows()[0][-1] == "+00:00"
    assert order(server, "SELECT 1", options={"colour": "red"}).error() == (400, "invalid")


def test_errors(server):
    for text, expected in (
        ("SELEC 1", (400, "syntax")),
        ("SELECT nothing FROM nation", (400, "invalid")),
        ("SELECT * FROM nowhere", (404, "not_found")),
        ("SELECT 1 / 0", (400, "invalid")),
        ("", (400, "syntax")),
        ("BEGIN", (400, "invalid")),
    ):
        answer = sql(server, text)
        assert answer.error() == expected or (answer.status == 400 and text == ""), (text, answer.body)
        assert answer.headers["content-type"] == "application/json"
    position = sql(server, "SELECT 1; SELECT FROM FROM x").json()["error"].get("position")
    assert position is None or position > 10
    assert ask(server, "POST", "/v1/sql", b"SELECT 1", content_type="image/png").error() == (415, "unsupported")
    assert sql(server, "SELECT 1", accept="image/png").error() == (406, "unsupported")
    assert sql(server, " " * (5 << 20)).error() == (413, "limit_reached")
    assert ask(server, "POST", "/v1/sql", b"{", content_type="application/json").error() == (400, "invalid")
    slow = order(server, SLOW, options={"statement_timeout_ms": 200})
    assert slow.error() == (504, "timeout")


SLOW = "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b WHERE a.l_comment < b.l_comment"
# Rows come at once and for long, and the last of them fails.
FAILS = "SELECT 1 / (3000000 - value) AS x FROM generate_series(1, 3000000) AS s(value)"


def test_a_result_that_fails_late_is_never_whole(server):
    answer = sql(server, FAILS)
    assert answer.status == 400 or ("error" in answer.json() and "row_count" not in answer.json())
    with contextlib.closing(connection(server)) as client:
        client.request("POST", "/v1/sql", FAILS.encode(), {"content-type": "text/plain", "accept": "text/csv"})
        try:
            response = client.getresponse()
            assert response.status == 400 or not response.read()
        except (http.client.IncompleteRead, http.client.RemoteDisconnected, ConnectionError):
            pass


def test_whoever_leaves_takes_the_query_along(private_server):
    for text, answers in ((SLOW, False), ("SELECT * FROM lineitem a CROSS JOIN lineitem b", True)):
        client = connection(private_server)
        client.request("POST", "/v1/sql", text.encode(), {"content-type": "text/plain"})
        wait_until(private_server.held, "it runs")
        if answers:
            assert client.getresponse().read(1000)
        client.close()
        private_server.wait_idle(5)
    assert private_server.metrics()["bowshot_sessions"] == 0


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


def test_tables(server):
    names = {entry["name"] for entry in ask(server, "GET", "/v1/tables?schema=main").json()["tables"]}
    assert {"nation", "orders", "lineitem", "plain_types"} <= names
    for name in ("nation", "main.nation", "bowshot.main.nation"):
        told = ask(server, "GET", f"/v1/tables/{name}").json()
        assert [column["name"] for column in told["columns"]] == ["n_nationkey", "n_name"]
    assert ask(server, "GET", "/v1/tables/nowhere").error() == (404, "not_found")
    rows = ask(server, "GET", "/v1/tables/nation/rows?limit=3&format=csv").body
    assert len(rows.splitlines()) == 4


def test_uploads(store, table):
    rows = pa.table({"n": pa.array(range(10_000), pa.int64()), "s": [f"text {n}" for n in range(10_000)]})
    path = f"/v1/tables/{table}"
    csv = io.BytesIO()
    pa.csv.write_csv(rows, csv)
    objects = rows.to_pylist()
    for media, body in (
        (STREAM, stream(rows)),
        (FILE, file(rows)),
        (PARQUET, parquet(rows)),
        ("text/csv", csv.getvalue()),
        ("application/json", json.dumps(objects).encode()),
        ("application/x-ndjson", "\n".join(map(json.dumps, objects)).encode()),
    ):
        for method, count in (("PUT", 10_000), ("POST", 20_000)):
            answer = ask(store, method, path, body, content_type=media)
            assert answer.json() == {"rows_affected": 10_000}, (media, answer.body)
            assert sql(store, f"SELECT count(*), sum(n) FROM {table}").rows() == [[count, count // 10_000 * 49_995_000]]
    for method, media, body in (
        ("POST", "text/csv", b"n,s\n1,a\nx,b\n"),
        ("POST", "application/json", b'[{"n": 1.5}]'),
        ("POST", "application/json", b'[{"n": 1}, {"n": 2}'),
        ("POST", STREAM, stream(rows)[:-5000]),
        ("POST", STREAM, stream(pa.table({"m": [1]}))),
        ("PUT", STREAM, b"no arrow"),
        ("POST", PARQUET, parquet(pa.table({"m": [1]}))),
        ("PUT", PARQUET, b""),
        ("PUT", PARQUET, b"PAR1"),
        ("PUT", PARQUET, parquet(rows)[:-1000]),
    ):
        answer = ask(store, method, path, body, content_type=media)
        assert answer.status in (400, 429), (media, body[:40], answer.body)
    assert sql(store, f"SELECT count(*) FROM {table}").rows() == [[20_000]]
    assert ask(store, "POST", "/v1/tables/nowhere", b"n\n1\n", content_type="text/csv").error() == (404, "not_found")
    sql(store, f"DROP TABLE {table}")


def test_parquet_has_its_types_and_what_is_damaged_is_told(store, table):
    path = f"/v1/tables/{table}"
    moment = datetime.datetime(1, 2, 3, 4, 5, 6, 789_000)
    rows = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "exact": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(20, 2)),
            "moment": pa.array([moment, None], pa.timestamp("us")),
            "zoned": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "list": pa.array([["a", None], None], pa.list_(pa.string())),
            "struct": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())])),
            "bytes": pa.array([b"\0\xff", None], pa.binary()),
        }
    )
    for row_group_size in (1, 2):
        body = parquet(rows, row_group_size=row_group_size)
        assert ask(store, "PUT", path, body, content_type=PARQUET).json() == {"rows_affected": 2}
        back = ask(store, "GET", f"{path}/rows?format=arrow").body
        assert pa.ipc.open_stream(back).read_all().cast(rows.schema).equals(rows)
    # Of 96 bits, over more years than nanoseconds of 64 bits hold.
    far = pa.table({"moment": pa.array([datetime.datetime(2500, 1, 1)], pa.timestamp("us"))})
    body = parquet(far, use_deprecated_int96_timestamps=True, store_schema=False)
    assert ask(store, "PUT", path, body, content_type=PARQUET).status == 200
    assert sql(store, f"SELECT CAST(moment AS VARCHAR) FROM {table}").rows() == [["2500-01-01 00:00:00"]]

    whole = parquet(pa.table({"n": list(range(1_000)), "s": [f"text {n}" for n in range(1_000)]}))
    random.seed(31)
    refused = 0
    for _ in range(200):
        body = bytearray(whole)
        for _ in range(random.randint(1, 8)):
            body[random.randrange(len(body))] = random.randrange(256)
        answer = ask(store, "PUT", path, bytes(body), content_type=PARQUET)
        assert answer.status in (200, 400), answer.body
        refused += answer.status == 400
    assert refused > 20
    answer = ask(store, "PUT", path, whole[:-1] + b"x", content_type=PARQUET)
    assert answer.error() == (400, "invalid")
    message = answer.json()["error"]["message"]
    assert message.startswith("the Parquet file cannot be read: ") and "spill" not in message, message
    store.wait_idle(5)
    sql(store, f"DROP TABLE {table}")


def test_parquet_on_its_way_is_bounded(data_folder):
    random.seed(7)
    body = parquet(pa.table({"b": [random.randbytes(1_000_000) for _ in range(3)]}))
    with Server(data_folder, environment={"BOWSHOT_LIMITS_RESULT_SPILL_BYTES": "2MiB"}) as server:
        answer = ask(server, "PUT", "/v1/tables/large", body, content_type=PARQUET)
        assert answer.error() == (429, "limit_reached")
        assert "limits.result_spill_bytes" in answer.json()["error"]["hint"]
        assert ask(server, "GET", "/v1/tables/large").error() == (404, "not_found")
        small = parquet(pa.table({"n": [1]}))
        for _ in range(3):
            assert ask(server, "PUT", "/v1/tables/small", small, content_type=PARQUET).status == 200
        server.wait_idle(5)
        assert "bowshot_result_spill_bytes 0" in ask(server, "GET", "/metrics").body.decode()


def test_an_upload_that_breaks_off_writes_nothing(store, table):
    sql(store, f"CREATE TABLE {table} (n BIGINT)")
    address = urllib.parse.urlsplit(store.http)
    with socket.create_connection((address.hostname, address.port), timeout=10) as half:
        lines = b"n\n" + b"123456789\n" * 300_000
        head = f"POST /v1/tables/{table} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\n"
        half.sendall(head.encode() + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (len(lines), lines))
        time.sleep(0.2)
    store.wait_idle(5)
    assert sql(store, f"SELECT count(*) FROM {table}").rows() == [[0]]
    sql(store, f"DROP TABLE {table}")


def test_web_pages_and_other_names_are_refused(server):
    assert sql(server, "SELECT 1", origin="https://evil.example").error() == (403, "denied")
    assert sql(server, "SELECT 1", host="evil.example").error() == (403, "denied")
    assert ask(server, "OPTIONS", "/v1/sql", origin="https://evil.example").status == 403


def test_listed_pages_may(data_folder):
    environment = {"BOWSHOT_HTTP_ORIGINS": "https://a.example, https://b.example"}
    with Server(data_folder, environment=environment) as server:
        answer = sql(server, "SELECT 1", origin="https://b.example")
        assert answer.rows() == [[1]] and answer.headers["access-control-allow-origin"] == "https://b.example"
        assert ask(server, "OPTIONS", "/v1/sql", origin="https://a.example").status == 204
        server.wait_idle(5)


@pytest.fixture(scope="module")
def users(tmp_path_factory, data_folder):
    run = subprocess.run(
        [str(binaries() / "bowshot"), "hash-password"], input=PASSWORD.encode(), capture_output=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    folder = tmp_path_factory.mktemp("users") / "users.toml"
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    folder.write_text(
        f'[[users]]\nname = "ada"\npassword_hash = "{run.stdout.decode().strip()}"\n'
        f'[[tokens]]\nuser = "service"\nsha256 = "{token}"\n'
    )
    certificate = ["--tls-certificate", str(TLS / "first.pem"), "--tls-key", str(TLS / "first.key")]
    with Server(data_folder, arguments=["--users-file", str(folder), *certificate]) as server:
        yield server
        server.wait_idle(5)


def basic(password):
    return "Basic " + base64.b64encode(f"ada:{password}".encode()).decode()


def test_credentials(users):
    answer = sql(users, "SELECT 1")
    assert answer.error() == (401, "unauthenticated") and answer.headers["www-authenticate"].startswith("Basic ")
    assert sql(users, "SELECT current_user", authorization=basic(PASSWORD)).rows() == [["ada"]]
    assert sql(users, "SELECT current_user", authorization=f"Bearer {TOKEN}").rows() == [["service"]]
    assert sql(users, "SELECT 1", authorization=basic("wrong")).status == 401
    token = ask(users, "POST", "/v1/sessions", authorization=basic(PASSWORD)).json()["session"]
    foreign = {"x_bowshot_session": token, "authorization": f"Bearer {TOKEN}"}
    assert sql(users, "SELECT 1", **foreign).error() == (404, "not_found")
    assert ask(users, "DELETE", f"/v1/sessions/{token}", authorization=basic(PASSWORD)).status == 204
    for path in ("/health", "/metrics", "/v1/openapi.json"):
        assert users.get(path)[0] == 200


def test_https_at_the_same_address(users):
    address = urllib.parse.urlsplit(users.http)
    context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    client = http.client.HTTPSConnection(address.hostname, address.port, timeout=60, context=context)
    with contextlib.closing(client):
        headers = {"content-type": "text/plain", "authorization": basic(PASSWORD)}
        for _ in range(2):
            client.request("POST", "/v1/sql", b"SELECT count(*) FROM lineitem", headers)
            assert Answer(client.getresponse()).rows() == [[data.LINEITEM_ROWS]]


def test_many_at_once(server):
    found = []

    def work():
        with contextlib.closing(connection(server)) as client:
            for number in range(20):
                client.request("POST", "/v1/sql", f"SELECT {number}".encode(), {"content-type": "text/plain"})
                found.append(Answer(client.getresponse()).rows() == [[number]])

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [True] * 320
