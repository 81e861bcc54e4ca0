"""gRPC-Web by hand: the frames of a request and of an answer, in both forms of the body."""

import base64
import http.client
import json
import re
import struct
import urllib.parse

import pyarrow as pa

import protobuf

BINARY, TEXT = "application/grpc-web+proto", "application/grpc-web-text"
PATH = "/arrow.flight.protocol.FlightService/"


class Answer:
    """Messages of an answer, and its status: of the trailers in the body, else of the headers."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.messages, self.trailers = status, headers, [], None
        if headers.get("content-type", "").startswith("application/grpc-web-text"):
            # What is written together is encoded together, so padding may come in the middle.
            body = b"".join(base64.b64decode(part, validate=True) for part in re.findall(rb"[^=]+=*", body))
        while body and status == 200:
            flag, length = struct.unpack("!BI", body[:5])
            frame, body = body[5 : 5 + length], body[5 + length :]
            assert len(frame) == length, "the answer ends inside of a frame"
            assert self.trailers is None, "something comes behind the trailers"
            if flag == 0x80:
                self.trailers = dict(line.split(":", 1) for line in frame.decode().strip().split("\r\n"))
            else:
                assert flag == 0
                self.messages.append(frame)
        told = self.trailers if self.trailers is not None else headers
        told = {name.lower(): value.strip() for name, value in told.items()}
        self.code = int(told["grpc-status"]) if "grpc-status" in told else None
        self.message = urllib.parse.unquote(told.get("grpc-message", ""))


class Browser:
    """One connection that is kept, and closed with it."""

    def __init__(self, address, form=BINARY, headers=None):
        place = urllib.parse.urlsplit(address)
        self.connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
        self.form, self.headers = form, headers or {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    __del__ = close

    def send(self, method, body, headers=None):
        headers = {"content-type": self.form, "accept": self.form, "x-grpc-web": "1", **self.headers, **(headers or {})}
        self.connection.request("POST", PATH + method, body, headers)
        answer = self.connection.getresponse()
        body = answer.read()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def call(self, method, message, headers=None):
        frame = struct.pack("!BI", 0, len(message)) + message
        return self.send(method, base64.b64encode(frame) if "text" in self.form else frame, headers)

    def info(self, sql, headers=None):
        """The answer of GetFlightInfo, and the tickets in it."""
        command = protobuf.any_of("CommandStatementQuery", protobuf.field(1, sql))
        answer = self.call("GetFlightInfo", protobuf.field(1, 2) + protobuf.field(2, command), headers)
        if answer.code:
            return answer, []
        endpoints = protobuf.fields(answer.messages[0]).get(3, [])
        return answer, [protobuf.fields(endpoint)[1][0] for endpoint in endpoints]

    def get(self, ticket):
        answer = self.call("DoGet", ticket)
        return answer, table(answer.messages) if answer.code == 0 else None

    def rows(self, sql):
        answer, tickets = self.info(sql)
        assert answer.code == 0, answer.message
        return pa.concat_tables([self.get(ticket)[1] for ticket in tickets])

    def run(self, sql):
        """Runs a statement, and reads what it gives; the answer of GetFlightInfo."""
        answer, tickets = self.info(sql)
        assert answer.code == 0, answer.message
        for ticket in tickets:
            self.get(ticket)
        return answer


def table(messages):
    """The rows of messages of a DoGet."""
    stream = bytearray()
    for message in messages:
        found = protobuf.fields(message)
        header, body = found[2][0], found.get(1000, [b""])[0]
        header += bytes(-len(header) % 8)
        stream += struct.pack("<Ii", 0xFFFFFFFF, len(header)) + header + body
    return pa.ipc.open_stream(bytes(stream)).read_all()


def session(address):
    """A session of HTTP, which calls of gRPC-Web may name too."""
    place = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    connection.request("POST", "/v1/sessions")
    name = json.loads(connection.getresponse().read())["session"]
    connection.close()
    return name
