"""Stands between a client and its server, to cut their connections."""

import contextlib
import socket
import threading

from server import BUSY_FACTOR


class CuttingProxy:
    """Hands connections on to a port, and can cut them."""

    def __init__(self, port):
        self.port, self.clients = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own_port = self.listener.getsockname()[1]
        self.uri = f"grpc+tcp://127.0.0.1:{self.own_port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pumps = [threading.Thread(target=self.pump, args=ends, daemon=True) for ends in [(client, server), (server, client)]]
            for pump in pumps:
                pump.start()
            self.clients.append((client, pumps[0]))

    @staticmethod
    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # ends the other pump, too
            end.close()

    def cut(self):
        """Ends the connections, and waits until the client has noticed, which closes its own end."""
        for client, pump in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            pump.join(10 * BUSY_FACTOR)
        self.clients.clear()

    def tear(self):
        """Ends the connections at once: an answer that is on its way is lost."""
        for client, _ in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        self.clients.clear()

    def close(self):
        # Only so does the thread that accepts end.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
