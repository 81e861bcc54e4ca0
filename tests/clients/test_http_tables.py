"""Tables over HTTP: what there is, and uploads of every form."""

import datetime
import decimal
import io
import json
import random

import pyarrow as pa

from http_sql import FILE, PARQUET, STREAM, ask, file, parquet, sql, stream
from server import Server


def test_tables(server):
    names = {entry["name"] for entry in ask(server, "GET", "/v1/tables?schema=main").json()["tables"]}
    assert {"nation", "orders", "lineitem", "plain_types"} <= names
    for name in ("nation", "main.nation", "bowshot.main.nation"):
        told = ask(server, "GET", f"/v1/tables/{name}").json()
        assert [column["name"] for column in told["columns"]] == ["n_nationkey", "n_name"]
    assert ask(server, "GET", "/v1/tables/nowhere").error() == (404, "not_found")
    rows = ask(server, "GET", "/v1/tables/nation/rows?limit=3&format=csv").body
    assert len(rows.splitlines()) == 4
    for path, status in (("a..b", 400), ("nowhere/rows", 404), ("nation/rows?limit=-1", 400)):
        assert ask(server, "GET", f"/v1/tables/{path}").status == status, path


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
        ("POST", STREAM, stream(rows)[:-5000]),
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
    rows = pa.table({
        "small": pa.array([1, None], pa.int8()),
        "exact": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(20, 2)),
        "moment": pa.array([moment, None], pa.timestamp("us")),
        "zoned": pa.array([moment, None], pa.timestamp("us", "UTC")),
        "list": pa.array([["a", None], None], pa.list_(pa.string())),
        "struct": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())])),
        "bytes": pa.array([b"\0\xff", None], pa.binary()),
    })
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

    whole = parquet(pa.table({"n": list(range(1_000))}))
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
