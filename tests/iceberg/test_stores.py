"""Iceberg tables in an object store: the rows that the same tables have on disk, and what their writers read of them."""

import json
import shutil

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, StringType

import proxy as faults
import stores
import tables
from conftest import QUICK, refused, serving
from durable import Database
from server import Server, wait_until
from test_iceberg import PLAIN, ROWS, made, sorted_rows


def partitioned(folder, name, transform, column):
    spec = PartitionSpec(PartitionField(column, 1000, transform, "part"))
    return made(folder, spec=spec, name=name)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """Tables of every kind, on disk."""
    folder = tmp_path_factory.mktemp("made") / "warehouse"
    made(folder, name="plain", rows=(ROWS.slice(0, 400), ROWS.slice(400)))
    made(folder, name="empty", rows=())
    partitioned(folder, "by_day", IdentityTransform(), 4)
    partitioned(folder, "by_bucket", BucketTransform(8), 1)
    changed = made(folder, name="changed", rows=(ROWS.slice(0, 100),))
    with changed.update_schema() as change:
        change.rename_column("word", "text").update_column("number", LongType()).add_column("new", StringType())
    with changed.update_schema() as change:
        change.add_column("word", LongType()).delete_column("day")
    more = changed.schema().as_arrow()
    changed.append(pa.table({"id": [5000], "text": ["t"], "number": [2**40], "new": ["n"], "word": [7]}, more))
    places = tables.place(made(folder, name="places", rows=(ROWS.slice(0, 600), ROWS.slice(600))))
    files = tables.data_files(places)
    tables.delete_places(places, [(files[0], n) for n in (0, 1, 5)] + [(files[1], 3)])
    values = tables.place(made(folder, name="deleted_values", rows=(ROWS.slice(0, 600),)))
    tables.delete_values(values, pa.table({"number": pa.array([1, None], pa.int32())}), [3])
    tables.append_file(values, ROWS.slice(0, 9))
    return folder / "db"


@pytest.fixture(scope="module")
def copied(s3, warehouse):
    s3.copy(warehouse, "lake/copied/db")
    return warehouse


NAMES = ["by_bucket", "by_day", "changed", "deleted_values", "empty", "places", "plain"]


def test_copied_tables_are_those_on_disk(s3, copied):
    with Server(copied) as server, Database(server) as here, serving("s3://lake/copied/db", s3=s3) as there:
        sql = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'main' ORDER BY 1, 2"
        assert there.rows(sql) == here.rows(sql)
        assert sorted({name for name, *_ in there.rows(sql)}) == NAMES
        for name in NAMES:
            assert sorted_rows(there.arrow(f"SELECT * FROM {name}")) == sorted_rows(here.arrow(f"SELECT * FROM {name}")), name
            # What their writer reads; it knows no files of deleted values.
            if name != "deleted_values":
                wanted = tables.static(copied / name).scan().to_arrow()
                assert sorted_rows(there.arrow(f"SELECT * FROM {name}")) == sorted_rows(wanted), name
        with duckdb.connect() as connection:
            connection.register("plain", ROWS)
            for where in ("id > 395 AND id < 405", "word = 'größe 3'", "number IS NULL", "day = '2024-03-01'", "id < 0"):
                sql = f"SELECT count(*), sum(id), min(word), max(day), count(number) FROM plain WHERE {where}"
                assert there.rows(sql) == connection.execute(sql).fetchall(), where


def test_what_was_read_is_not_asked_for_again(s3, copied):
    with serving("s3://lake/copied/db", s3=s3) as database:
        place = "SELECT sum(bytes_read), sum(failed) FROM system.object_stores"
        database.rows("SELECT sum(id), max(word), max(day) FROM plain")
        before = database.rows(place)
        database.rows("SELECT sum(id) + 1, max(word), min(day) FROM plain WHERE id >= 0")
        assert database.rows(place) == before


def live(s3, tmp_path, name="t", **more):
    """A catalog whose tables are written to the store by their writer."""
    catalog = SqlCatalog("live", uri=f"sqlite:///{tmp_path}/live.db", warehouse="s3://lake/live", **{
        "s3.endpoint": s3.endpoint, "s3.access-key-id": stores.KEY, "s3.secret-access-key": stores.SECRET, "s3.region": "us-east-1",
    })
    catalog.create_namespace_if_not_exists("db")
    return catalog.create_table(f"db.{name}", PLAIN, location=f"s3://lake/live/{tmp_path.name}/{name}", **more)


@pytest.mark.parametrize("source", ["s3://lake/live/{}", "t=s3://lake/live/{}/t", "t=s3a://lake/live/{}/t"])
def test_a_later_state_is_seen(s3, tmp_path, source):
    table = live(s3, tmp_path)
    table.append(ROWS)
    with serving(source.format(tmp_path.name), s3=s3) as database:
        assert sorted_rows(database.arrow("SELECT * FROM t")) == sorted_rows(ROWS)
        table.append(ROWS.slice(0, 7))
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 1007, "the state that was committed")
        table.delete("id < 7")
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 993, "the rows that are gone")
        first = table.history()[0].snapshot_id
        assert database.one(f"SELECT count(*) FROM t FOR VERSION AS OF {first}") == 1000


def test_a_table_that_comes_later(s3, tmp_path):
    with serving(f"s3://lake/live/{tmp_path.name}", s3=s3) as database:
        live(s3, tmp_path).append(ROWS)

        def there():
            names = database.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'")
            return ("t",) in names and database.one("SELECT count(*) FROM t") == 1000

        wait_until(there, "the new table", 20)


def changed(s3, copied, tmp_path, change):
    """The address of a copy of a table whose metadata say something else."""
    place = tmp_path / "t"
    shutil.copytree(copied / "plain", place)
    newest = tables.newest(place)
    text = json.loads(newest.read_text())
    change(text)
    newest.write_text(json.dumps(text))
    s3.copy(place, f"lake/changed/{tmp_path.name}/t")
    return f"t=s3://lake/changed/{tmp_path.name}/t"


@pytest.mark.parametrize("name", [
    "s3://other/x.avro", "s3://lake/copied/db/plain/metadata/x.avro", "gs://lake/x.avro", "/etc/passwd", "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data", "{location}/../../x.avro", "{location}/..\\x.avro", "metadata/x.avro",
])
def test_metadata_that_name_other_places_are_refused(s3, copied, tmp_path, name):
    def change(text):
        text["snapshots"][-1]["manifest-list"] = name.format(location=text["location"])

    with faults.Proxy(s3.port) as proxy:
        with serving(changed(s3, copied, tmp_path, change), s3=s3, endpoint=proxy.endpoint) as database:
            refused(database, "SELECT * FROM t", "not in the folder")
            assert not any("x.avro" in path or "passwd" in path for _, path in proxy.requests)


def test_names_that_are_addresses_here_are_those_of_files_here(s3, copied, tmp_path):
    """Where the writer has called the store something else, or the table was moved within it."""
    own = f"s3a://lake/changed/{tmp_path.name}/t"

    def change(text):
        state = text["snapshots"][-1]
        state["manifest-list"] = state["manifest-list"].replace(text["location"], own)

    with serving(changed(s3, copied, tmp_path, change), s3=s3) as database:
        assert database.one("SELECT count(*) FROM t") == 1000


def test_files_that_are_damaged_or_gone_are_told(s3, copied, tmp_path):
    place = tmp_path / "t"
    shutil.copytree(copied / "plain", place)
    into = f"lake/damaged/{tmp_path.name}/t"
    s3.copy(place, into)
    victims = [next(place.glob("data/*.parquet")), *place.glob("metadata/*.avro"), tables.newest(place)]
    for victim in victims:
        name, whole = f"{into}/{victim.relative_to(place).as_posix()}", victim.read_bytes()
        for cut in (whole[: len(whole) // 2], b"\0" * len(whole)):
            s3.write(name, cut)
            with serving(f"t=s3://{into}", s3=s3) as database:
                refused(database, "SELECT * FROM t")
                assert database.one("SELECT 1") == 1
                # As soon as it is right again, so is the table.
                s3.write(name, whole)
                wait_until(lambda: works(database, "SELECT count(*) FROM t"), "a table that was repaired")
    gone = victims[0]
    s3.delete(f"{into}/{gone.relative_to(place).as_posix()}")
    with serving(f"t=s3://{into}", s3=s3) as database:
        refused(database, "SELECT * FROM t", gone.name, "does not exist")


def works(database, sql):
    try:
        return bool(database.rows(sql))
    except Exception:
        return False


def test_a_store_that_is_down_takes_only_its_tables(s3, copied, tmp_path):
    pq.write_table(ROWS, tmp_path / "here.parquet")
    settings = ("object_store.refresh=200ms", "object_store.timeout=2s", "object_store.request_timeout=1s",
                "result_cache.memory_bytes=0", "storage.column_cache_bytes=0", "object_store.cache_bytes=0")
    with faults.Proxy(s3.port) as proxy:
        sources = ("s3://lake/copied/db", tmp_path / "here.parquet")
        with serving(*sources, s3=s3, endpoint=proxy.endpoint, settings=settings) as database:
            assert database.one("SELECT count(*) FROM plain") == 1000
            proxy.fault = faults.hang_up
            wait_until(lambda: not works(database, "SELECT sum(id) FROM plain"), "a store that is down", 20)
            refused(database, "SELECT sum(id) FROM plain", "s3://lake/copied/db/plain")
            assert database.one("SELECT count(*) FROM here") == 1000
            proxy.fault = None
            wait_until(lambda: works(database, "SELECT sum(id) FROM plain"), "a store that is up again", 20)
            assert database.one("SELECT sum(id) FROM plain") == sum(range(1000))


def test_files_of_a_table_are_no_table_of_files(s3, copied):
    """Reading all its files would give rows that were deleted."""
    with serving("all=s3://lake/copied", s3=s3, settings=QUICK) as database:
        refused(database, "SELECT count(*) FROM \"all\"", "an Iceberg table")
