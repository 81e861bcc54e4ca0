"""Iceberg catalogs that are asked over HTTP: their tables, who is let in, where tables may lie, and catalogs that are broken."""

import contextlib
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import proxy as faults
import stores
import tables
from catalogs import CLIENT, PASSWORD, TOKEN, VENDED, Catalog
from conftest import refused, serving, serving_real
from server import binaries, wait_until
from test_iceberg import PLAIN, ROWS, made, sorted_rows
from test_stores import works

SECRETS = (TOKEN, CLIENT, PASSWORD, VENDED)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory, s3):
    """Tables in the store, by number."""
    folder = tmp_path_factory.mktemp("made")
    writer = SqlCatalog("stored", uri=f"sqlite:///{folder}/catalog.db", warehouse="s3://lake/catalog", **{
        "s3.endpoint": s3.endpoint, "s3.access-key-id": stores.KEY, "s3.secret-access-key": stores.SECRET, "s3.region": "us-east-1",
    })
    writer.create_namespace("db")
    for number in range(5):
        table = writer.create_table(f"db.t{number}", PLAIN, location=f"s3://lake/catalog/db/t{number}")
        for part in (ROWS.slice(0, 100), ROWS.slice(100, 100 * number)):
            table.append(part)
    table.delete("id = 3")
    return [writer.load_table(f"db.t{number}") for number in range(5)]


@contextlib.contextmanager
def asking(s3, tmp_path, entry, endpoint=None, environment=None, sources=()):
    config = tmp_path / "bowshot.toml"
    config.write_text(entry)
    with serving(*sources, "--config", config, s3=s3, endpoint=endpoint, environment=environment, secrets=SECRETS) as database:
        yield database


def filled(catalog, warehouse):
    for number, table in enumerate(warehouse):
        catalog.put("db", f"t{number}", table)
    catalog.put("deep.er", "t0", warehouse[0])
    return catalog


def test_tables_of_a_catalog(s3, warehouse, tmp_path):
    with filled(Catalog(), warehouse) as catalog, asking(s3, tmp_path, catalog.entry(warehouse="s3://lake/catalog")) as database:
        for number in range(5):
            wanted = warehouse[number].scan().to_arrow()
            got = database.arrow(f"SELECT * FROM lake.db.t{number}")
            assert got.schema.names == wanted.schema.names and sorted_rows(got) == sorted_rows(wanted)
        named = "SELECT table_name FROM lake.information_schema.tables WHERE table_schema = 'db' ORDER BY 1"
        assert database.rows(named) == [(f"t{number}",) for number in range(5)]
        assert database.one("SELECT count(*) FROM lake.db.t1 a JOIN lake.db.t2 b USING (id)") == 200
        told = database.rows("SELECT name, kind, place, read_only, tables, problem FROM system.databases")
        assert told == [("lake", "iceberg", catalog.uri, True, 5, None)]
        refused(database, "SELECT * FROM lake.db.nobody", "nobody")
        refused(database, "SELECT * FROM lake.nobody.t1", "t1")
        refused(database, "INSERT INTO lake.db.t1 SELECT * FROM lake.db.t2")
        refused(database, "DROP TABLE lake.db.t1")
        refused(database, "DETACH lake")
        assert any("warehouse=s3" in path for _, path, _ in catalog.requests)


def test_later_and_earlier_states(s3, warehouse, tmp_path):
    with filled(Catalog(), warehouse) as catalog, asking(s3, tmp_path, catalog.entry(warehouse="s3://lake/catalog")) as database:
        assert database.one("SELECT count(*) FROM lake.db.t4") == 499
        states = warehouse[4].metadata.snapshots
        assert database.one(f"SELECT count(*) FROM lake.db.t4 FOR VERSION AS OF {states[0].snapshot_id}") == 100
        assert database.one(f"SELECT count(*) FROM lake.db.t4 VERSION AS OF {states[1].snapshot_id}") == 500
        assert database.one("SELECT count(*) FROM lake.db.t4 FOR TIMESTAMP AS OF '2999-01-01'") == 499
        refused(database, "SELECT * FROM lake.db.t4 FOR VERSION AS OF 7", "has no snapshot 7")
        refused(database, "SELECT * FROM lake.db.nobody FOR VERSION AS OF 7", "nobody")
        # What a catalog says counts, not what is in the folder.
        catalog.put("db", "t4", warehouse[2])
        wait_until(lambda: database.one("SELECT count(*) FROM lake.db.t4") == 300, "what the catalog says now")
        del catalog.tables[("db",), "t3"]
        wait_until(lambda: not works(database, "SELECT count(*) FROM lake.db.t3"), "a table that is gone")
        catalog.put("new", "t", warehouse[0])
        wait_until(lambda: works(database, "SELECT count(*) FROM lake.new.t"), "a new namespace")


def test_namespaces_that_are_chosen(s3, warehouse, tmp_path):
    entry = {"places": ["s3://lake/catalog"], "schemas": ["deep.er"]}
    with filled(Catalog(), warehouse) as catalog, asking(s3, tmp_path, catalog.entry(**entry)) as database:
        assert database.one('SELECT count(*) FROM lake."deep.er".t0') == 100
        refused(database, "SELECT * FROM lake.db.t1")
        names = database.rows("SELECT table_schema, table_name FROM lake.information_schema.tables WHERE table_schema = 'deep.er'")
        assert names == [("deep.er", "t0")]


def test_tables_on_this_machine(s3, tmp_path):
    table = made(tmp_path / "warehouse", rows=(ROWS.slice(0, 100), ROWS.slice(100, 200)))
    folder = tables.place(table)
    tables.delete_places(folder, [(tables.data_files(folder)[0], 3)])
    with Catalog() as catalog:
        catalog.put("db", "t", tables.static(folder))
        with asking(s3, tmp_path, catalog.entry(places=[str(tmp_path / "warehouse")])) as database:
            assert database.one("SELECT count(*) FROM lake.db.t") == 299


@pytest.mark.parametrize("location", [
    "s3://lake/catalog", "s3://lake/other/t1", "s3://other/catalog/db/t1", "s3://lake/catalog/db2/t1", "file:///etc", "/etc",
    "gs://lake/catalog/db/t1", "s3://lake/catalog/db/../t1", "http://169.254.169.254/latest", "",
])
def test_tables_that_lie_elsewhere_are_refused(s3, warehouse, tmp_path, location):
    with faults.Proxy(s3.port) as proxy, filled(Catalog(), warehouse) as catalog:
        metadata_location, metadata = catalog.tables[("db",), "t1"]
        catalog.tables[("db",), "t1"] = (metadata_location, {**metadata, "location": location})
        entry = catalog.entry(places=["s3://lake/catalog/db"])
        with asking(s3, tmp_path, entry, endpoint=proxy.endpoint) as database:
            refused(database, "SELECT * FROM lake.db.t1", "is not allowed")
            assert proxy.requests == []
            assert database.one("SELECT count(*) FROM lake.db.t2") == 300


def test_files_that_lie_elsewhere_are_refused(s3, warehouse, tmp_path):
    with filled(Catalog(), warehouse) as catalog:
        for name in ("s3://other/x.avro", "/etc/passwd", "s3://lake/catalog/db/t2/metadata/x.avro"):
            catalog.tables[("db",), "t1"][1]["snapshots"][-1]["manifest-list"] = name
            with asking(s3, tmp_path, catalog.entry(warehouse="s3://lake/catalog")) as database:
                refused(database, "SELECT * FROM lake.db.t1", "not in the folder")


def test_a_token(s3, warehouse, tmp_path):
    place = tmp_path / "token"
    place.write_text(TOKEN + "\n")
    with filled(Catalog(token=TOKEN), warehouse) as catalog:
        entry = catalog.entry(warehouse="s3://lake/catalog", token=f"file:{place}")
        with asking(s3, tmp_path, entry) as database:
            assert database.one("SELECT count(*) FROM lake.db.t2") == 300
            # It is renewed where it lies.
            catalog.token = "kept-t0ken-2"
            place.write_text(catalog.token)
            time.sleep(0.3)
            assert database.one("SELECT count(*) FROM lake.db.t1") == 200
            place.write_text("wr0ng")
            catalog.token = TOKEN
            time.sleep(0.3)
            text = refused(database, "SELECT count(*) FROM lake.db.t0", "rejected the credentials", "401")
            assert "wr0ng" not in text and TOKEN not in text
            assert "rejected the credentials" in database.one("SELECT problem FROM system.databases")


def test_client_credentials(s3, warehouse, tmp_path):
    environment = {"TEST_ID": CLIENT, "TEST_SECRET": PASSWORD}
    entry = {"warehouse": "s3://lake/catalog", "client_id": "env:TEST_ID", "client_secret": "env:TEST_SECRET"}
    with filled(Catalog(token=TOKEN, client=(CLIENT, PASSWORD)), warehouse) as catalog:
        with asking(s3, tmp_path, catalog.entry(**entry), environment=environment) as database:
            assert database.one("SELECT count(*) FROM lake.db.t2") == 300
            catalog.token = "kept-t0ken-2"
            time.sleep(0.3)
            assert database.one("SELECT count(*) FROM lake.db.t2") == 300
            asked = sum(path.endswith("/oauth/tokens") for _, path, _ in catalog.requests)
            assert asked == 2, "a token is used as long as it is taken"
        with asking(s3, tmp_path, catalog.entry(**entry), environment={**environment, "TEST_SECRET": "wr0ng"}) as database:
            assert "wr0ng" not in refused(database, "SELECT * FROM lake.db.t2", "rejected the credentials")


def vended(secret=stores.SECRET, prefix="s3://lake/catalog/db"):
    keys = {"s3.access-key-id": stores.KEY, "s3.secret-access-key": secret, "client.region": "us-east-1"}
    return [{"prefix": prefix, "config": {**keys, "s3.endpoint": "http://127.0.0.1:1"}}]


def test_credentials_that_the_catalog_gives(s3, warehouse, tmp_path):
    """The server itself has none, or wrong ones, and asks no host that the catalog names."""
    none = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    wrong = {"AWS_ACCESS_KEY_ID": "wr0ng", "AWS_SECRET_ACCESS_KEY": "wr0ng"}
    entry = {"warehouse": "s3://lake/catalog", "credentials": "vended"}
    with filled(Catalog(), warehouse) as catalog:
        catalog.credentials = vended()
        for own in (none, wrong):
            with asking(s3, tmp_path, catalog.entry(**entry), environment=own) as database:
                assert database.one("SELECT sum(id) FROM lake.db.t2") == sum(range(300))
        with asking(s3, tmp_path, catalog.entry(**entry), sources=("served=s3://lake/catalog/db/t1",)) as database:
            assert database.one("SELECT count(*) FROM served") == 200
            catalog.credentials = vended(VENDED)
            refused(database, "SELECT sum(id) FROM lake.db.t2", "rejected the credentials")
            catalog.credentials = vended()
            wait_until(lambda: works(database, "SELECT sum(id) FROM lake.db.t2"), "credentials that were renewed")
            catalog.credentials = vended(prefix="s3://lake/elsewhere")
            refused(database, "SELECT sum(id) FROM lake.db.t3", "returned no credentials")
            assert database.one("SELECT sum(id) FROM served") == sum(range(200))
        # Nobody has asked for them.
        with asking(s3, tmp_path, catalog.entry(warehouse="s3://lake/catalog"), environment=wrong) as database:
            refused(database, "SELECT sum(id) FROM lake.db.t2", "rejected the credentials")


def status(code):
    def fault(handler):
        handler.error(code)
        return True
    return fault


def body(content):
    def fault(handler):
        handler.answer(200, content)
        return True
    return fault


def hang_up(handler):
    handler.close_connection = True
    handler.connection.shutdown(2)
    return True


LATE = 40


def late(handler):
    time.sleep(LATE)
    return False


def endless(handler):
    handler.answer(200, {"namespaces": [[f"n{len(handler.server.requests)}"]], "next-page-token": f"x{len(handler.server.requests)}"})
    return True


def large(handler):
    handler.answer(200, b" " * (60 << 20))
    return True


@pytest.mark.parametrize("fault", [
    status(500), status(503), status(403), status(418), body(b""), body(b"[]"), body(b'{"namespaces": 1}'), body(b"\xff\0"), hang_up,
    late, large,
])
def test_a_catalog_that_is_broken_takes_only_its_tables(s3, warehouse, tmp_path, fault):
    pq.write_table(ROWS, tmp_path / "here.parquet")
    with filled(Catalog(), warehouse) as catalog:
        catalog.fault = fault
        entry = catalog.entry(warehouse="s3://lake/catalog")
        with asking(s3, tmp_path, entry, sources=(tmp_path / "here.parquet",)) as database:
            begun = time.monotonic()
            text = refused(database, "SELECT * FROM lake.db.t1", "the catalog `lake`")
            assert VENDED not in text and time.monotonic() - begun < LATE
            assert database.one("SELECT count(*) FROM here") == 1000
            catalog.fault = None
            wait_until(lambda: works(database, "SELECT count(*) FROM lake.db.t1"), "a catalog that is right again", 20)
            assert database.one("SELECT count(*) FROM lake.db.t1") == 200


def test_lists_that_never_end(s3, warehouse, tmp_path):
    with filled(Catalog(), warehouse) as catalog:
        with asking(s3, tmp_path, catalog.entry(warehouse="s3://lake/catalog", timeout="2s")) as database:
            assert database.one("SELECT count(*) FROM lake.db.t1") == 200
            catalog.fault = endless
            database.rows("SELECT table_name FROM lake.information_schema.tables")
            assert len(catalog.requests) < 1_100
            problem = database.one("SELECT problem FROM system.databases")
            assert "did not list its tables within 4 s" in problem or "more than 1000 pages" in problem, problem


def test_a_catalog_that_is_not_there(s3, tmp_path):
    (port,) = stores.free_ports(1)
    entry = f'[[databases]]\nname = "lake"\nkind = "iceberg"\nuri = "http://127.0.0.1:{port}"\nplaces = ["s3://lake"]\ntimeout = "2s"\n'
    with asking(s3, tmp_path, entry) as database:
        refused(database, "SELECT * FROM lake.db.t1", "the catalog `lake` cannot be reached")
        assert database.one("SELECT 1") == 1


@pytest.mark.parametrize("line, says", [
    ('token = "kept-t0ken"', "reference to a secret"), ('uri = "http://u:kept-t0ken@h/x"', "must not contain credentials"), ('nonsense = "x"', "unknown key"),
    ('credentials = "all"', "own"), ('places = ["somewhere"]', "places"),
])
def test_entries_that_are_wrong(tmp_path, line, says):
    config = tmp_path / "bowshot.toml"
    keys = {"name": '"lake"', "kind": '"iceberg"', "uri": '"http://h/x"', "places": '["s3://lake"]'}
    keys |= dict([line.split(" = ", 1)])
    config.write_text("[[databases]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()))
    command = [binaries() / "bowshot", "serve", "--config", config, "--data", "memory", "--flight", "127.0.0.1:0", "--http", "off"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    log = run.stdout + run.stderr
    assert run.returncode == 2 and says in log and TOKEN not in log, log


def test_a_real_catalog(s3_tables, tmp_path):
    """SeaweedFS as the catalog and the store, pyiceberg as the writer."""
    writer, *_ = s3_tables
    writer.create_namespace("db")
    table = writer.create_table("db.t", schema=pa.schema([("id", pa.int64()), ("word", pa.string())]))
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "word": [f"w{n % 7}" for n in range(100)]})
    table.append(rows)
    with serving_real(s3_tables, tmp_path, more="") as database:
        assert sorted_rows(database.arrow("SELECT * FROM lake.db.t")) == sorted_rows(rows)
        table.append(rows.slice(0, 5))
        wait_until(lambda: database.one("SELECT count(*) FROM lake.db.t") == 105, "the state that was committed")
        table.delete("id < 5")
        wait_until(lambda: database.one("SELECT count(*) FROM lake.db.t") == 95, "the rows that are gone")
        first = table.history()[0].snapshot_id
        assert database.one(f"SELECT count(*) FROM lake.db.t FOR VERSION AS OF {first}") == 100
        assert ("db", "t") in database.rows("SELECT table_schema, table_name FROM lake.information_schema.tables")
