"""A service that decides on statements, on this machine: it notes what it is asked, and answers as a test tells it, rightly or
not."""

import http.server
import json
import threading
import time

ALLOW = {"result": {"allow": True}}


def deny(reason=None):
    return {"result": {"allow": False, **({"reason": reason} if reason else {})}}


class Decisions:
    """`decide` takes what was asked and gives an answer: an object for JSON, or bytes. `status`, `delay` and `broken` spoil it."""

    def __init__(self, context=None):
        self.asked, self.headers = [], []
        self.reset()
        self.at_once, self.most = 0, 0
        lock = threading.Lock()
        service = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                asked = json.loads(body)["input"]
                with lock:
                    service.at_once += 1
                    service.most = max(service.most, service.at_once)
                    service.asked.append(asked)
                    service.headers.append(dict(self.headers))
                answer = service.decide(asked)
                time.sleep(service.delay)
                # Before the answer: whoever has it may ask again at once.
                with lock:
                    service.at_once -= 1
                try:
                    if service.broken:
                        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
                        return
                    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    self.send_response(service.status)
                    if service.status == 302:
                        self.send_header("location", "/elsewhere")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass

            def do_GET(self):
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Answer)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.server.server_port}/v1/data/bowshot"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        self.decide, self.status, self.delay, self.broken = (lambda asked: ALLOW), 200, 0, False

    def about(self, action=None):
        return [asked for asked in self.asked if action in (None, asked["action"])]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
