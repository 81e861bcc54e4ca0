"""A wire between nodes that can be cut: their internal ports are reached through it."""

import select
import socket
import threading


class Wire:
    """Passes bytes on from a port of its own to one that is named later."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.target, self.is_cut = None, False
        self.lock, self.pairs = threading.Lock(), set()
        threading.Thread(target=self._accept, daemon=True).start()

    def to(self, address):
        host, port = address.rsplit(":", 1)
        self.target = (host, int(port))

    def cut(self, silent):
        """Silent: nothing passes any more, and nobody is told. Else connections end, and new ones are refused."""
        self.is_cut = True
        if not silent:
            self._close()

    def mend(self):
        # What was cut in silence would wait for bytes that are gone.
        self._close()
        self.is_cut = False

    def _close(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            if self.is_cut or self.target is None:
                near.close()
                continue
            threading.Thread(target=self._pass, args=(near,), daemon=True).start()

    def _pass(self, near):
        try:
            far = socket.create_connection(self.target, timeout=5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (near, far)
        with self.lock:
            self.pairs.add(pair)
        try:
            while True:
                ready, _, _ = select.select(pair, [], [], 0.2)
                if self.is_cut:
                    if pair not in self.pairs:
                        return
                    continue
                for end in ready:
                    data = end.recv(1 << 18)
                    if not data:
                        return
                    (far if end is near else near).sendall(data)
        except (OSError, ValueError):
            return
        finally:
            with self.lock:
                self.pairs.discard(pair)
            for end in pair:
                end.close()
