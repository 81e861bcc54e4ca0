"""Stands between a server and an object store, and does to answers what networks, brokers and broken servers do."""

import collections
import http.client
import socket
import threading
import time

from web import Handler, Web


class Proxy(Web):
    """`fault(handler, status, headers, body)` gives what is answered: a status, headers and body, or None to hang up. What
    `refuses(handler)` is true for never gets to the store, and is answered with 500."""

    def __init__(self, upstream_port):
        super().__init__(Forward)
        self.upstream_port = upstream_port
        self.fault = None
        self.refuses = lambda _handler: False
        self.requests = []

    def gets(self):
        """Reads of objects so far."""
        return sum(1 for method, path in self.requests if method == "GET" and "list-type" not in path)


class Forward(Handler):
    def forward(self):
        self.server.requests.append((self.command, self.path))
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length) if length else None
        if self.server.refuses(self):
            self.send_response_only(500)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream_port, timeout=30)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            # The host is part of what is signed.
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(sent)
            answer = upstream.getresponse()
            body = answer.read()
            headers = [(name, value) for name, value in answer.getheaders()
                       if name.lower() not in ("transfer-encoding", "connection")]
            given = (answer.status, headers, body)
        finally:
            upstream.close()
        fault = self.server.fault
        if fault is not None:
            given = fault(self, *given)
        if given is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, headers, body = given
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward


def is_read(handler):
    return handler.command == "GET" and "list-type" not in handler.path


def with_header(headers, name, value):
    return [(known, value if known.lower() == name.lower() else old) for known, old in headers]


def once_in(count, fault):
    """A fault for one of so many requests, the first of them."""
    lock, seen = threading.Lock(), [0]

    def sometimes(handler, status, headers, body):
        with lock:
            seen[0] += 1
            now = seen[0] % count == 1
        return fault(handler, status, headers, body) if now else (status, headers, body)

    return sometimes


def once_in_each(count, fault):
    """A fault for one of so many requests for the same, the first of them, whatever else is asked for meanwhile."""
    lock, seen = threading.Lock(), collections.Counter()

    def sometimes(handler, status, headers, body):
        request = (handler.command, handler.path, handler.headers.get("Range"))
        with lock:
            seen[request] += 1
            now = seen[request] % count == 1
        return fault(handler, status, headers, body) if now else (status, headers, body)

    return sometimes


def status(code):
    quoting = b"<Error><Code>X</Code><AWSAccessKeyId>BOWSHOTTESTKEY</AWSAccessKeyId></Error>"
    return lambda _handler, _status, _headers, _body: (code, [("Content-Type", "application/xml")], quoting)


def late(seconds):
    def fault(_handler, code, headers, body):
        time.sleep(seconds)
        return code, headers, body
    return fault


def hang_up(_handler, _status, _headers, _body):
    return None


def cut(handler, code, headers, body):
    """Half of what was announced."""
    if not is_read(handler) or len(body) < 2:
        return code, headers, body
    handler.close_connection = True
    length = [pair for pair in headers if pair[0].lower() != "content-length"] + [("Content-Length", str(len(body)))]
    return code, length, body[:len(body) // 2]


def other_range(handler, code, headers, body):
    """Says honestly that it is another part."""
    if not is_read(handler) or code != 206:
        return code, headers, body
    value = dict((name.lower(), value) for name, value in headers)["content-range"]
    first, rest = value.removeprefix("bytes ").split("-", 1)
    last, total = rest.split("/")
    return code, with_header(headers, "content-range", f"bytes {int(first) + 1}-{int(last) + 1}/{total}"), body


def shorter(handler, code, headers, body):
    """Says that it is what was asked for, and leaves the last bytes out."""
    if not is_read(handler) or code != 206 or len(body) < 20:
        return code, headers, body
    body = body[:-10]
    return code, with_header(headers, "content-length", str(len(body))), body


def whole(handler, code, headers, body):
    """Ignores that only a part was asked for."""
    if not is_read(handler) or code != 206:
        return code, headers, body
    return 200, [pair for pair in headers if pair[0].lower() != "content-range"], body


def other_content(handler, code, headers, body):
    """The part that was asked for, of another content."""
    if not is_read(handler):
        return code, headers, body
    return code, with_header(headers, "etag", '"another"'), body
