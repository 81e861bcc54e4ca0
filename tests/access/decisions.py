"""A service that decides on statements, on this machine: it notes what it is asked, and answers as a test tells it, rightly or
not."""

import contextlib
import json
import threading

import world
from web import Handler, Web

ALLOW = {"result": {"allow": True}}


def deny(reason=None):
    return {"result": {"allow": False, **({"reason": reason} if reason else {})}}


class Decisions:
    """`decide` takes what was asked and gives an answer: an object for JSON, or bytes. `status`, `delay` and `broken` spoil it."""

    def __init__(self, context=None):
        self.asked, self.headers, self.awake = [], [], threading.Event()
        self.reset()
        self.at_once, self.most = 0, 0
        lock = threading.Lock()
        service = self

        class Answer(Handler):
            protocol_version = "HTTP/1.0"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                asked = json.loads(body)["input"]
                with lock:
                    service.at_once += 1
                    service.most = max(service.most, service.at_once)
                    service.asked.append(asked)
                    service.headers.append(dict(self.headers))
                answer = service.decide(asked)
                service.awake.wait(service.delay)
                # Before the answer: whoever has it may ask again at once.
                with lock:
                    service.at_once -= 1
                try:
                    if service.broken:
                        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
                        return
                    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    self.answer(service.status, body, **({"location": "/elsewhere"} if service.status == 302 else {}))
                except OSError:
                    pass

            def do_GET(self):
                self.answer(200)

        self.server = Web(Answer, context)
        self.url = f"{self.server.endpoint}/v1/data/bowshot"

    def reset(self):
        """Answers rightly and at once, those too that wait for a late answer."""
        self.awake.set()
        self.awake = threading.Event()
        self.decide, self.status, self.delay, self.broken = (lambda asked: ALLOW), 200, 0, False

    def about(self, action=None):
        return [asked for asked in self.asked if action in (None, asked["action"])]

    def close(self):
        self.server.close()


SETUP = [
    "CREATE TABLE people (id INTEGER, name VARCHAR, region VARCHAR, ssn VARCHAR)",
    "INSERT INTO people VALUES (1, 'Anna', 'EU', '111'), (2, 'Cleo', 'US', '333')",
    "CREATE TABLE other (id INTEGER, text VARCHAR)",
    "INSERT INTO other VALUES (1, 'x')",
    "CREATE VIEW names AS SELECT id, name FROM people",
    "CREATE SCHEMA annex",
    "CREATE TABLE annex.people (id INTEGER, secret VARCHAR)",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "CREATE ROLE clerk",
    "CREATE ROLE staff",
    "GRANT staff TO clerk",
    "GRANT clerk TO ada",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON people TO staff",
    "GRANT SELECT ON other TO staff",
    "GRANT SELECT ON names TO staff",
    "GRANT SELECT ON annex.people TO staff",
    "GRANT CREATE ON SCHEMA main TO ada",
    "CREATE ROW POLICY own ON people FOR staff USING (region = 'EU')",
    "CREATE ROLE exchange",
    "GRANT exchange TO ada",
]


@contextlib.contextmanager
def serving(folder, service, environment=None, arguments=()):
    folder.mkdir(exist_ok=True)
    environment = {"BOWSHOT_ACCESS_DECISION_URL": service.url, **(environment or {})}
    with world.world(folder, SETUP, environment=environment, arguments=arguments) as made:
        yield made


def objects(asked, access=None):
    return {
        (".".join(thing["name"]), thing["access"]): None if thing["columns"] is None else set(thing["columns"])
        for thing in asked["objects"]
        if access in (None, thing["access"])
    }


PEOPLE = ("bowshot.main.people", "read")
