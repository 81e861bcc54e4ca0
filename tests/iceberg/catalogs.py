"""An Iceberg REST catalog that tests are run against, which does what networks and broken catalogs do when it is told to."""

import json
import pathlib
import threading
import urllib.parse
import uuid

from web import Handler, Web

# Words that must never be seen again.
TOKEN, CLIENT, PASSWORD, VENDED = "kept-t0ken", "kept-client-1d", "kept-passw0rd", "kept-vended-s3cret"


class Catalog(Web):
    """Tables by (namespace, name), as much of the specification as reading takes, two names to a page."""

    def __init__(self, token=None, client=None):
        super().__init__(Answers)
        self.tables, self.requests = {}, []
        # Namespaces that were made, and where tables are made.
        self.namespaces, self.warehouse = set(), None
        self.token, self.client = token, client
        # Called with the handler before anything else; true when it has answered.
        self.fault = None
        # Called with the handler and the commit instead of that; what it returns is the status of the answer.
        self.commit_fault = None
        self.commits = threading.Lock()
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

    def commit(self, namespace, name, change):
        """Applies a change whose requirements hold, as a catalog does: the status of the answer."""
        with self.commits:
            key = tuple(namespace.split("\x1f")), name
            if key not in self.tables:
                return 404
            metadata = json.loads(json.dumps(self.tables[key][1]))
            if any(not holds(metadata, required) for required in change["requirements"]):
                return 409
            for update in change["updates"]:
                apply(metadata, update)
            folder = pathlib.Path(metadata["location"].removeprefix("file://")) / "metadata"
            place = folder / f"{len(list(folder.glob('*.metadata.json'))):05}-{uuid.uuid4()}.metadata.json"
            place.write_text(json.dumps(metadata))
            self.tables[key] = (f"file://{place}", metadata)
            return 200

    def create(self, namespace, new):
        """Makes a table as a catalog does, which gives columns numbers of its own: the status of the answer."""
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
        from pyiceberg.typedef import IcebergBaseModel

        key = tuple(namespace.split("\x1f")), new["name"]
        if key[0] not in self.namespaces and not any(space == key[0] for space, _ in self.tables):
            return 404
        if key in self.tables:
            return 409
        place = pathlib.Path(self.warehouse, *key[0], new["name"])
        (place / "metadata").mkdir(parents=True)
        schema, spec = Schema.model_validate(new["schema"]), PartitionSpec.model_validate(new["partition-spec"])
        metadata = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, f"file://{place}", dict(new["properties"]))
        # By the class above it: the one of version 3 refuses to be written, and leaves out the number.
        text = {"next-row-id": 0} if metadata.format_version == 3 else {}
        text |= json.loads(IcebergBaseModel.model_dump_json(metadata))
        (place / "metadata" / f"00000-{uuid.uuid4()}.metadata.json").write_text(json.dumps(text))
        self.tables[key] = (f"file://{place}/metadata/first", text)
        return 200

    def create_namespace(self, new):
        namespace = tuple(new["namespace"])
        if namespace in self.namespaces or any(space == namespace for space, _ in self.tables):
            return 409
        self.namespaces.add(namespace)
        return 200

    def drop(self, namespace, name=None):
        parts = tuple(namespace.split("\x1f"))
        if name is not None:
            found = self.found(namespace, name)
            self.tables = {key: table for key, table in self.tables.items() if table is not found}
            return 204 if found is not None else 404
        if any(space == parts for space, _ in self.tables):
            return 409
        if parts not in self.namespaces:
            return 404
        self.namespaces.remove(parts)
        return 204

    def entry(self, name="lake", **more):
        """Its entry in the configuration file of a server."""
        keys = {"name": name, "kind": "iceberg", "uri": self.uri, "cache_ttl": "200ms", "timeout": "3s", **more}
        return "[[databases]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def current(metadata):
    found = metadata.get("current-snapshot-id")
    return None if found in (None, -1) else found


def holds(metadata, required):
    match required["type"]:
        case "assert-table-uuid":
            return metadata["table-uuid"] == required["uuid"]
        case "assert-ref-snapshot-id":
            if required["ref"] == "main":
                return current(metadata) == required["snapshot-id"]
            return metadata.get("refs", {}).get(required["ref"], {}).get("snapshot-id") == required["snapshot-id"]
        case "assert-current-schema-id":
            return metadata["current-schema-id"] == required["current-schema-id"]
        case "assert-last-assigned-field-id":
            return metadata["last-column-id"] == required["last-assigned-field-id"]
        case "assert-default-spec-id":
            return metadata["default-spec-id"] == required["default-spec-id"]
        case "assert-last-assigned-partition-id":
            return metadata["last-partition-id"] == required["last-assigned-partition-id"]
    raise ValueError(required)


def apply(metadata, update):
    match update["action"]:
        case "add-snapshot":
            snapshot = update["snapshot"]
            assert snapshot["sequence-number"] == metadata["last-sequence-number"] + 1
            assert snapshot.get("parent-snapshot-id") == current(metadata)
            assert snapshot["timestamp-ms"] >= metadata["last-updated-ms"]
            assert all(known["snapshot-id"] != snapshot["snapshot-id"] for known in metadata.get("snapshots", []))
            metadata.setdefault("snapshots", []).append(snapshot)
            metadata["last-sequence-number"], metadata["last-updated-ms"] = snapshot["sequence-number"], snapshot["timestamp-ms"]
            if metadata["format-version"] == 3:
                assert snapshot["first-row-id"] == metadata["next-row-id"]
                metadata["next-row-id"] += snapshot["added-rows"]
        case "set-snapshot-ref":
            assert any(known["snapshot-id"] == update["snapshot-id"] for known in metadata["snapshots"])
            metadata.setdefault("refs", {})[update["ref-name"]] = {"snapshot-id": update["snapshot-id"], "type": update["type"]}
            if update["ref-name"] != "main":
                return
            metadata["current-snapshot-id"] = update["snapshot-id"]
            entry = {"snapshot-id": update["snapshot-id"], "timestamp-ms": metadata["last-updated-ms"]}
            metadata.setdefault("snapshot-log", []).append(entry)
        case "remove-snapshot-ref":
            del metadata["refs"][update["ref-name"]]
        case "add-spec":
            assert all(spec["spec-id"] != update["spec"]["spec-id"] for spec in metadata["partition-specs"])
            metadata["partition-specs"].append(update["spec"])
            metadata["last-partition-id"] = max(metadata["last-partition-id"], *(field["field-id"] for field in update["spec"]["fields"]), 0)
        case "set-default-spec":
            last = metadata["partition-specs"][-1]["spec-id"]
            metadata["default-spec-id"] = last if update["spec-id"] == -1 else update["spec-id"]
        case "remove-snapshots":
            gone = set(update["snapshot-ids"])
            assert not gone & {current(metadata), *(ref["snapshot-id"] for ref in metadata.get("refs", {}).values())}
            for key in ("snapshots", "snapshot-log"):
                metadata[key] = [one for one in metadata.get(key, []) if one["snapshot-id"] not in gone]
        case "remove-statistics" | "remove-partition-statistics":
            key = update["action"].removeprefix("remove-")
            metadata[key] = [one for one in metadata[key] if one["snapshot-id"] != update["snapshot-id"]]
        case "add-schema":
            assert all(schema["schema-id"] != update["schema"]["schema-id"] for schema in metadata["schemas"])
            metadata["schemas"].append(update["schema"])
            metadata["last-column-id"] = max(metadata["last-column-id"], update["last-column-id"])
        case "set-current-schema":
            assert update["schema-id"] == -1
            metadata["current-schema-id"] = metadata["schemas"][-1]["schema-id"]
        case other:
            raise ValueError(other)


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
        if "/tables/" in self.path:
            return self.commit()
        if "/namespaces" in self.path:
            return self.create()
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        if self.path != "/api/v1/oauth/tokens" or (form.get("client_id"), form.get("client_secret")) != self.server.client:
            return self.error(400)
        assert form["grant_type"] == "client_credentials" and form["scope"]
        return self.answer(200, {"access_token": self.server.token, "token_type": "bearer", "expires_in": 3600})

    def commit(self):
        """The last parts of the path are the namespace and the table."""
        change = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        *_, namespace, _, name = (urllib.parse.unquote(part) for part in self.path.split("/"))
        made = lambda: self.server.commit(namespace, name, change)  # noqa: E731
        status = made() if self.server.commit_fault is None else self.server.commit_fault(self, made)
        if status == 200:
            location, metadata = self.server.found(namespace, name)
            return self.answer(200, {"metadata-location": location, "metadata": metadata})
        return self.error(status) if status is not None else None

    def create(self):
        new = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = [urllib.parse.unquote(part) for part in self.path.split("/")]
        status = self.server.create(parts[-2], new) if parts[-1] == "tables" else self.server.create_namespace(new)
        return self.answer(status, {}) if status == 200 else self.error(status)

    def do_DELETE(self):
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        match [urllib.parse.unquote(part) for part in self.path.split("/")]:
            case [*_, namespace, "tables", name]:
                status = self.server.drop(namespace, name)
            case [*_, namespace]:
                status = self.server.drop(namespace)
        if status != 204:
            return self.error(status)
        self.send_response(204)
        self.end_headers()

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
                spaces = {namespace for namespace, _ in self.server.tables} | self.server.namespaces
                spaces = sorted(space for space in spaces if len(space) == 1)
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
