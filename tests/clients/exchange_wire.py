"""An exchange over bare HTTP/2, for what no client library sends."""

import socket
import urllib.parse

import h2.connection
import h2.events
import pyarrow as pa

import protobuf
from server import BUSY_FACTOR


def grpc_message(payload):
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def ipc_messages(*batches, schema=None):
    """Header and body of each message of an Arrow stream: the schema first."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema or batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    return [(message.metadata.to_pybytes(), message.body.to_pybytes() if message.body else b"") for message in reader]


def flight_data(header, body=b"", descriptor=None):
    message = protobuf.field(1, descriptor) if descriptor else b""
    message += protobuf.field(2, header) if header else b""
    return grpc_message(message + (protobuf.field(1000, body) if body else b""))


class Raw:
    """An exchange over a bare connection, for what pyarrow does not send."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, server.port))
        self.socket.settimeout(20 * BUSY_FACTOR)
        self.h2 = h2.connection.H2Connection()
        self.h2.initiate_connection()
        self.stream = self.h2.get_next_available_stream_id()
        names = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/arrow.flight.protocol.FlightService/DoExchange"),
            (":authority", "x"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        self.h2.send_headers(self.stream, names)
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def send(self, data, end=False):
        for at in range(0, max(len(data), 1), 10_000):
            part = data[at : at + 10_000]
            self.h2.send_data(self.stream, part, end_stream=end and at + 10_000 >= len(data))
            self.flush()

    def status(self):
        """Code and message that the call ends with."""
        while True:
            received = self.socket.recv(65536)
            assert received, "the connection was closed without a status"
            for event in self.h2.receive_data(received):
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                headers = dict(getattr(event, "headers", None) or [])
                headers = {as_text(name): as_text(value) for name, value in headers.items()}
                if "grpc-status" in headers:
                    self.socket.close()
                    return int(headers["grpc-status"]), urllib.parse.unquote(headers.get("grpc-message", ""))
            self.flush()


def as_text(value):
    return value.decode() if isinstance(value, bytes) else value
