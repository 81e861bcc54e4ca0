"""A way to a server of this machine, by a port of its own, that tests can cut, hold and look at."""

import contextlib
import socket
import threading

from server import BUSY_FACTOR


def end(pair):
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class Relay:
    """Passes connections on to the port `to`, which may change; while it is None, new ones are ended. What clients send waits while
    `requests` is clear, what they are answered while `answers` is."""

    def __init__(self, to=None):
        # By pair of sockets, the client's first: the thread that ends with them.
        self.to, self.pairs = to, {}
        self.requests, self.answers = threading.Event(), threading.Event()
        self.requests.set()
        self.answers.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def grpc_tcp(self):
        """Of a server of Flight behind it, as `Server.grpc_tcp`."""
        return f"grpc+tcp://127.0.0.1:{self.port}"

    def passes(self, pair, data, is_client):
        """What has come from one end and goes to the other now."""

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.to is None:
                    raise ConnectionRefusedError
                far = socket.create_connection(("127.0.0.1", self.to), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = self.pairs[near, far] = threading.Thread(target=self._carry, args=((near, far),), daemon=True)
            thread.start()

    def _carry(self, pair):
        back = threading.Thread(target=self._pump, args=(pair, False), daemon=True)
        back.start()
        self._pump(pair, True)
        back.join()
        self.pairs.pop(pair, None)
        for one in pair:
            one.close()

    def _pump(self, pair, is_client):
        source, sink = pair if is_client else pair[::-1]
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                (self.requests if is_client else self.answers).wait()
                self.passes(pair, data, is_client)
                sink.sendall(data)
        end(pair)

    def cut(self, gently=False):
        """Ends the connections; gently, it waits until each client has noticed, which closes its own end."""
        for pair, thread in list(self.pairs.items()):
            if gently:
                with contextlib.suppress(OSError):
                    pair[0].shutdown(socket.SHUT_WR)
                thread.join(10 * BUSY_FACTOR)
            else:
                end(pair)

    def close(self):
        # A blocked accept holds the listener open; this ends it.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.requests.set()
        self.answers.set()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
