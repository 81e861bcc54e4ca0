"""Names of a REST catalog: rules hold under all spellings of a name, lists have an end, and no other host is asked."""

import contextlib
import time

import pyarrow as pa
import pytest

import tables
from catalogs import Catalog
from durable import Database
from server import Server, hash_password
from test_iceberg import PLAIN, ROWS, made

PASSWORD = "a secret of her own"
TABLES = [
    "or\tders", "or\nders", "orders\r", "ord\x00ers", "orders\x7f", "ORDERS", "Orders", "orders ", " orders", "%6frders", "./orders",
    "../tables/orders", "orders/", "orders?x", "orders#x", ".", "..", "", "x" * 2000,
]
SCHEMAS = ["d\tb", "db\r", "\ndb", "DB", "Db", "db ", "a\x1fb", "a.\tb", "A.b", "a.B", "a..b", ".db", "db.", ".", "..", "%64b", "x/../db"]


def login(server, name):
    return Database(server, options={"username": name, "password": PASSWORD})


@contextlib.contextmanager
def guarded(catalog, tmp_path, **more):
    """An administrator, and somebody who may read the catalog by rules about one table."""
    config = tmp_path / "bowshot.toml"
    user = f'\n[[access.users]]\nname = "root"\npassword_hash = "{hash_password(PASSWORD)}"\nadmin = true\n'
    config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], **more) + user)
    with Server(arguments=["--config", config], data=str(tmp_path / "data")) as server, login(server, "root") as root:
        root.run("CREATE ROLE analyst", f"CREATE USER ada PASSWORD '{PASSWORD}'", "GRANT analyst TO ada",
                 "GRANT SELECT ON CATALOG lake TO analyst")
        for table in ("lake.db.orders", 'lake."a.b".orders')[:2 if more else 1]:
            root.run(f"CREATE ROW POLICY p ON {table} FOR analyst USING (region = 'EU')",
                     f"CREATE MASK m ON {table} (ssn) FOR analyst USING (partial(0, 1))")
        with login(server, "ada") as ada:
            yield root, ada


@contextlib.contextmanager
def serving(catalog, tmp_path, **more):
    config = tmp_path / "bowshot.toml"
    config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], **more))
    with Server(arguments=["--config", config]) as server, Database(server) as database:
        yield database


def orders(tmp_path):
    rows = pa.table({"id": [1, 2, 3], "region": ["EU", "US", "EU"], "ssn": ["1-11", "2-22", "3-33"]})
    table = tables.catalog(tmp_path / "warehouse").create_table("db.orders", rows.schema)
    table.append(rows)
    return table


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def answers(database, schema, name):
    """Whether there is such a table; if not, the server says so in words that tell nothing of another."""
    try:
        database.rows(f"SELECT * FROM lake.{quoted(schema)}.{quoted(name)}")
    except Exception as error:
        assert "INTERNAL" not in str(error) and "1-11" not in str(error), (schema, name, error)
        return False
    return True


@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("more", [{}, {"schemas": ["db", "a.b"]}])
def test_rules_hold_under_every_spelling_of_a_name(tmp_path, folds, more):
    table = orders(tmp_path)
    with Catalog() as catalog:
        catalog.folds = folds
        catalog.put("db", "orders", table)
        catalog.put("a.b", "orders", table)
        with guarded(catalog, tmp_path, **more) as (root, ada):
            # Of deeper namespaces those are seen that are chosen.
            seen = ["lake.db.orders", 'lake."a.b".orders'][:2 if more else 1]
            for name in seen:
                rows = ada.rows(f"SELECT id, ssn FROM {name} ORDER BY id")
                assert [row[0] for row in rows] == [1, 3] and not {"1-11", "3-33"} & {row[1] for row in rows}
                assert root.one(f"SELECT count(*) FROM {name}") == 3
            others = [("db", name) for name in TABLES] + [(schema, "orders") for schema in SCHEMAS]
            others += [] if more else [("a.b", "orders")]
            found = [(schema, name) for schema, name in others for database in (ada, root) if answers(database, schema, name)]
            assert found == []
            assert not any(character in path for _, path, _ in catalog.requests for character in ("%09", "%0A", "%0D", "%00", "%7F"))
            for name in seen:
                assert ada.one(f"SELECT count(*) FROM {name}") == 2


def test_names_that_are_listed_are_asked_for_to_the_letter(tmp_path):
    table = made(tmp_path / "warehouse", PLAIN, (ROWS.slice(0, 10),))
    names = ["a b", "a/b", "%41", "größe", "a?b#c", "a+b", "..."]
    with Catalog() as catalog:
        for name in names:
            catalog.put("db", name, table)
        for name in ("..", "a\tb", "x" * 2000):
            catalog.put("db", name, table)
        with serving(catalog, tmp_path) as database:
            listed = database.rows("SELECT table_name FROM lake.information_schema.tables WHERE table_schema = 'db'")
            assert sorted(name for (name,) in listed) == sorted(names)
            for name in names:
                assert database.one(f"SELECT count(*) FROM lake.db.{quoted(name)}") == 10


LISTED = "SELECT count(*) FROM lake.information_schema.tables WHERE table_schema LIKE 'n%' OR table_schema = 'db'"
PROBLEM = "SELECT problem FROM system.databases WHERE name = 'lake'"


def paged(name, token):
    """Answers with pages of one name each that never end."""
    pages = []

    def fault(handler):
        if not handler.path.partition("?")[0].endswith("/namespaces/db/tables"):
            return False
        pages.append(handler.path)
        number = len(pages)
        handler.answer(200, {"identifiers": [{"namespace": ["db"], "name": name(number)}], "next-page-token": token(number)})
        return True
    return fault, pages


@pytest.mark.parametrize("name, token, says, most", [
    (lambda number: f"{number}" + "x" * 7_000_000, str, "64 MiB", 12),
    (lambda number: f"t{number}", lambda number: "x" * (number % 2 + 1), "the same page twice", 5),
    (lambda number: f"t{number}", lambda number: "x" * 9_000, "longer than 8 KiB", 1),
])
def test_lists_that_are_hostile(tmp_path, name, token, says, most):
    with Catalog() as catalog:
        catalog.put("db", "t", made(tmp_path / "warehouse"))
        with serving(catalog, tmp_path, timeout="20s") as database:
            catalog.fault, pages = paged(name, token)
            database.rows(LISTED)
            assert says in database.one(PROBLEM) and len(pages) <= most, (database.one(PROBLEM), len(pages))
            # Whether the table is called so cannot be told then.
            with pytest.raises(Exception, match=says):
                database.rows("SELECT * FROM lake.db.t")


def slow(seconds, namespaces):
    def fault(handler):
        if handler.path.endswith("/namespaces"):
            handler.answer(200, {"namespaces": [[f"n{number}"] for number in range(namespaces)]})
            return True
        if handler.path.endswith("/tables"):
            time.sleep(seconds)
            handler.answer(200, {"identifiers": [{"namespace": ["n"], "name": "t"}]})
            return True
        return False
    return fault


@pytest.mark.parametrize("namespaces, wanted, says", [(16, 16, None), (200, 0, "did not list its tables within 4 s")])
def test_all_namespaces_have_one_deadline(tmp_path, namespaces, wanted, says):
    with Catalog() as catalog, serving(catalog, tmp_path, timeout="2s") as database:
        catalog.fault = slow(0.5, namespaces)
        assert database.one(LISTED) == wanted
        assert wanted or sum(path.endswith("/tables") for _, path, _ in catalog.requests) < namespaces, "it went on behind the deadline"
        problem = database.one(PROBLEM)
        assert problem is None if says is None else says in problem


def test_no_other_host_is_asked(tmp_path):
    table = made(tmp_path / "warehouse", rows=(ROWS.slice(0, 10),))
    with Catalog() as catalog, Catalog() as other:
        catalog.put("db", "t", table)
        other.put("db", "t", table)
        place = []

        def redirected(handler):
            if not handler.path.endswith("/tables/t"):
                return False
            handler.send_response(307)
            handler.send_header("Location", place[0])
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True

        catalog.fault = redirected
        path = "/api/v1/pre/fix/namespaces/db/tables/t"
        with serving(catalog, tmp_path) as database:
            place[:] = [f"http://127.0.0.1:{other.server_address[1]}{path}"]
            with pytest.raises(Exception, match="returned status 307"):
                database.rows("SELECT * FROM lake.db.t")
            assert other.requests == []
            # Another path of its own is no other host.
            time.sleep(1.1)
            place[:] = [path + "?there"]
            assert database.one("SELECT count(*) FROM lake.db.t") == 10
            assert not any("referer" in map(str.lower, headers) for _, _, headers in catalog.requests)
