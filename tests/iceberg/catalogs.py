"""An Iceberg REST catalog that tests are run against, which does what networks and broken catalogs do when it is told to."""

import json
import urllib.parse

from web import Handler, Web

# Words that must never be seen again.
TOKEN, CLIENT, PASSWORD, VENDED = "kept-t0ken", "kept-client-1d", "kept-passw0rd", "kept-vended-s3cret"


class Catalog(Web):
    """Tables by (namespace, name), as much of the specification as reading takes, two names to a page."""

    def __init__(self, token=None, client=None):
        super().__init__(Answers)
        self.tables, self.requests = {}, []
        self.token, self.client = token, client
        # Called with the handler before anything else; true when it has answered.
        self.fault = None
        self.credentials, self.config = [], {}
        # Whether names mean the same in capitals and with blanks around them, as in catalogs over databases.
        self.folds = False

    @property
    def uri(self):
        return f"{self.endpoint}/api"

    def put(self, namespace, name, table):
        """A table of pyiceberg as it is now."""
        metadata = json.loads(table.metadata.model_dump_json())
        self.tables[tuple(namespace.split(".")), name] = (table.metadata_location, metadata)

    def found(self, namespace, name):
        plain = (lambda text: text.strip().lower()) if self.folds else str
        wanted = (*map(plain, namespace.split("\x1f")), plain(name))
        return next((table for (space, known), table in self.tables.items() if (*map(plain, space), plain(known)) == wanted), None)

    def names(self, namespace):
        """As they are asked for: catalogs that fold cases list the tables of other spellings, too."""
        plain = (lambda text: text.strip().lower()) if self.folds else str
        parts = tuple(map(plain, namespace.split("\x1f")))
        return sorted(name for space, name in self.tables if tuple(map(plain, space)) == parts)

    def entry(self, name="lake", **more):
        """Its entry in the configuration file of a server."""
        keys = {"name": name, "kind": "iceberg", "uri": self.uri, "cache_ttl": "200ms", "timeout": "3s", **more}
        return "[[databases]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


class Answers(Handler):
    def answer(self, status, value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        super().answer(status, body, Content_Type="application/json")

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
                names = self.server.names(namespace)
                return self.page("identifiers", [{"namespace": namespace.split("\x1f"), "name": name} for name in names], query)
            case ["namespaces", namespace, "tables", name]:
                found = self.server.found(namespace, name)
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
