"""An Iceberg REST catalog that tests are run against, which does what networks and broken catalogs do when it is told to."""

import json
import pathlib
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import tables

# Words that must never be seen again.
TOKEN, CLIENT, PASSWORD, VENDED = "kept-t0ken", "kept-client-1d", "kept-passw0rd", "kept-vended-s3cret"


class Catalog(ThreadingHTTPServer):
    """Tables by (namespace, name), as much of the specification as reading takes, two names to a page."""

    daemon_threads = True

    def __init__(self, token=None, client=None):
        super().__init__(("127.0.0.1", 0), Answers)
        self.tables, self.requests = {}, []
        self.token, self.client = token, client
        # Called with the handler before anything else; true when it has answered.
        self.fault = None
        self.credentials, self.config = [], {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.server_address[1]}/api"

    def add(self, namespace, name, folder, location=None):
        """The table in a folder as its newest metadata file has it, said to lie at `location`."""
        newest = tables.newest(pathlib.Path(folder))
        metadata = json.loads(newest.read_text())
        place = location or metadata["location"]
        moved = json.loads(newest.read_text().replace(metadata["location"], place)) if location else metadata
        self.tables[tuple(namespace.split(".")), name] = (f"{place}/metadata/{newest.name}", moved)

    def entry(self, name="lake", **more):
        """Its entry in the configuration file of a server."""
        keys = {"name": name, "kind": "iceberg", "uri": self.uri, "cache_ttl": "200ms", "timeout": "3s", **more}
        return "[[databases]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())

    def handle_error(self, *_):
        """Servers hang up when they have waited long enough."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status):
        """As catalogs do: with what was sent in it."""
        sent = dict(self.headers)
        self.answer(status, {"error": {"message": f"no: {sent} {self.server.token} {VENDED}", "type": "X", "code": status}})

    def do_POST(self):
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        if self.path != "/api/v1/oauth/tokens" or (form.get("client_id"), form.get("client_secret")) != self.server.client:
            return self.error(400)
        assert form["grant_type"] == "client_credentials" and form["scope"]
        return self.answer(200, {"access_token": self.server.token, "token_type": "bearer", "expires_in": 3600})

    def do_GET(self):
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        if self.server.fault is not None and self.server.fault(self):
            return None
        if self.server.token is not None and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self.error(401)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = [urllib.parse.unquote(part) for part in url.path.removeprefix("/api/v1/").split("/")]
        if parts == ["config"]:
            return self.answer(200, {"defaults": {"prefix": "other"}, "overrides": {"prefix": "pre/fix"}})
        if parts[:2] != ["pre", "fix"]:
            return self.error(404)
        return self.below(parts[2:], query)

    def below(self, parts, query):
        match parts:
            case ["namespaces"]:
                spaces = sorted({namespace for namespace, _ in self.server.tables if len(namespace) == 1})
                return self.page("namespaces", [list(space) for space in spaces], query)
            case ["namespaces", namespace, "tables"]:
                namespace = tuple(namespace.split("\x1f"))
                names = sorted(name for space, name in self.server.tables if space == namespace)
                return self.page("identifiers", [{"namespace": list(namespace), "name": name} for name in names], query)
            case ["namespaces", namespace, "tables", name]:
                found = self.server.tables.get((tuple(namespace.split("\x1f")), name))
                if found is None:
                    return self.error(404)
                more = {}
                if self.headers.get("X-Iceberg-Access-Delegation") == "vended-credentials":
                    more = {"storage-credentials": self.server.credentials}
                return self.answer(200, {"metadata-location": found[0], "metadata": found[1], "config": self.server.config, **more})
        return self.error(404)

    def page(self, key, names, query):
        first = int(query.get("pageToken", 0))
        more = {"next-page-token": str(first + 2)} if first + 2 < len(names) else {"next-page-token": None}
        return self.answer(200, {key: names[first:first + 2], **more})
