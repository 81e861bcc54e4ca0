"""Statements and tables over HTTP, by hand."""

import base64
import contextlib
import http.client
import io
import json
import urllib.parse

import pyarrow as pa
import pyarrow.parquet as pq

from server import BUSY_FACTOR

STREAM = "application/vnd.apache.arrow.stream"
FILE = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"


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


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def connection(server, context=None):
    """With a context of TLS, an encrypted one."""
    address = urllib.parse.urlsplit(server.http)
    kind, more = (http.client.HTTPSConnection, {"context": context}) if context else (http.client.HTTPConnection, {})
    return kind(address.hostname, address.port, timeout=20 * BUSY_FACTOR, **more)


def ask(server, method, path, body=None, context=None, **headers):
    """One request on a connection of its own; `content_type` becomes `content-type`."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(connection(server, context)) as client:
        client.request(method, path, body, headers)
        return Answer(client.getresponse())


def sql(server, text, **headers):
    return ask(server, "POST", "/v1/sql", text.encode(), **{"content_type": "text/plain", **headers})


def answered(server, text, authorization):
    """Status and text of the answer to a statement, as JSON."""
    answer = sql(server, text, authorization=authorization, accept="application/json")
    return answer.status, answer.body.decode()


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
