"""A collector of traces: OTLP over gRPC, as Google's gRPC library and OpenTelemetry's own messages for Python have it."""

import concurrent.futures
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

from server import wait_until


class Span:
    """A span in few words: ids as hexadecimal text, attributes as values of Python."""

    def __init__(self, span, resource):
        self.name, self.kind = span.name, span.kind
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.begins, self.ends = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = {pair.key: value(pair.value) for pair in span.attributes}
        self.status, self.flags = span.status.code, span.flags
        self.resource = {pair.key: value(pair.value) for pair in resource.attributes}

    def __repr__(self):
        return f"{self.name} {self.attributes}"


def value(found):
    kind = found.WhichOneof("value")
    return getattr(found, kind) if kind else None


class Collector(service.TraceServiceServicer):
    """Takes spans at a free port, or at one that is told; with a key and its certificate, encrypted. `answer` may do something
    else with a call first."""

    def __init__(self, port=0, answer=None, identity=None):
        self.lock, self.spans, self.headers, self.answer = threading.Lock(), [], [], answer
        self.refused = 0
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        service.add_TraceServiceServicer_to_server(self, self.server)
        address = f"127.0.0.1:{port}"
        self.scheme = "https" if identity else "http"
        if identity:
            self.port = self.server.add_secure_port(address, grpc.ssl_server_credentials([identity]))
        else:
            self.port = self.server.add_insecure_port(address)
        self.server.start()

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def Export(self, request, context):
        if self.answer is not None:
            self.answer(context)
        with self.lock:
            self.headers.append(dict(context.invocation_metadata()))
            for of_resource in request.resource_spans:
                for scope in of_resource.scope_spans:
                    self.spans += [Span(span, of_resource.resource) for span in scope.spans]
        refused = self.refused
        return messages.ExportTraceServiceResponse(
            partial_success=messages.ExportTracePartialSuccess(rejected_spans=refused, error_message="too many" if refused else "")
        )

    def taken(self):
        with self.lock:
            return list(self.spans)

    def of(self, trace, names):
        """The spans of a trace by name, once these are all there."""
        found = lambda: {span.name: span for span in self.taken() if span.trace == trace}
        return wait_until(lambda: set(names) <= found().keys() and found(), f"spans {names} of {trace}: {self.taken()}", 15)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(None)
