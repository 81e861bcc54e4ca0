"""`bowshot verify` finds each kind of damage, says of what and what to do, and finds none where there is none."""

import contextlib
import json
import shutil
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database, contents, rows_of
from program import LIGHTGBM, backup, bowshot, faults, verify
from server import Server


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A data folder with files, rows in the catalog, versions, a view and a model, and a backup of it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "exchange").mkdir()
    (folder / "exchange" / "m.txt").write_text(LIGHTGBM)
    data, arguments = folder / "data", ["--set", f"storage.exchange_folder={folder / 'exchange'}"]
    server = Server(data=data, arguments=arguments)
    with Database(server) as database:
        rows = pa.table({"n": pa.array(range(20_000), pa.int64()), "t": [f"row {n}" for n in range(20_000)]})
        database.ingest("big", rows)
        database.run(
            "DELETE FROM big WHERE n < 10",
            "CREATE TABLE small (n BIGINT PRIMARY KEY, t VARCHAR)",
            "CREATE VIEW seen AS SELECT n FROM big",
            "CREATE MODEL m FROM 'm.txt'",
            "INSERT INTO small VALUES (1, 'one'), (2, 'two')",
        )
    # Killed, so that the rows of `small` stay in the catalog.
    server.kill()
    backup(data, folder / "backup")
    # What the killed one has left in the write-ahead log goes where it belongs.
    with catalog(data) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@contextlib.contextmanager
def catalog(folder):
    connection = sqlite3.connect(folder / "catalog.sqlite", isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def change(*statements):
    def damage(folder):
        with catalog(folder) as connection:
            for sql in statements:
                connection.execute(sql)

    return damage


def table_id(folder, name):
    with catalog(folder) as connection:
        ((found,),) = connection.execute("SELECT id FROM entries WHERE name = ?", [name])
    return found


def current_file(folder):
    """The file that the newest version of `big` has."""
    with catalog(folder) as connection:
        ((table, name),) = connection.execute("SELECT table_id, file FROM segments WHERE file IS NOT NULL AND removed IS NULL LIMIT 1")
    return folder / "tables" / table / name


def rewritten(make):
    """Puts another whole Parquet file in the place of one, and tells the catalog its size: only a look into it shows that."""

    def damage(folder):
        path = current_file(folder)
        pq.write_table(make(pq.read_table(path)), path)
        change(f"UPDATE segments SET bytes = {path.stat().st_size} WHERE file = '{path.name}'")(folder)

    return damage


def flipped(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def torn(path):
    """Nothing but its size and its footer are left."""
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = b"\xff" * (len(content) - footer - 4)
    path.write_bytes(content)


def newest_entry(folder):
    log = folder / "tables" / table_id(folder, "big") / "_delta_log"
    return sorted(log.glob("*.json"))[-1]


def entry_after(folder, version):
    newest = newest_entry(folder)
    number = int(newest.stem) + 1
    text = json.dumps({"commitInfo": {"bowshotVersion": version}}) if version is not None else '{"commitInfo": {}}'
    newest.with_name(f"{number:020}.json").write_text(text + "\n")


def without_log(folder):
    change("INSERT OR REPLACE INTO published (table_id, delta_version, version, columns) "
           "SELECT id, 0, 0, '' FROM entries WHERE name = 'big'")(folder)  # fmt: skip
    shutil.rmtree(newest_entry(folder).parent)


def unknown_table(folder):
    log = folder / "tables" / "11111111-2222-4333-8444-555555555555" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{}")


def linked(folder):
    path = current_file(folder)
    path.rename(folder / "elsewhere.parquet")
    path.mkdir()


def model(folder):
    (found,) = (folder / "models").glob("*.model")
    return found


ONE_ROW_LESS = rewritten(lambda rows: rows.slice(1))
OTHER_TYPE = rewritten(lambda rows: rows.set_column(0, "n", pa.array([[n] for n in range(len(rows))])))

# What is damaged, and words that a fault must have.
DAMAGES = {
    "no catalog": (lambda folder: (folder / "catalog.sqlite").unlink(), "catalog.sqlite", "missing"),
    "a catalog that is none": (lambda folder: (folder / "catalog.sqlite").write_bytes(b"x" * 9_000), "catalog.sqlite", "not a database"),
    "an empty catalog": (lambda folder: (folder / "catalog.sqlite").write_bytes(b""), "catalog.sqlite", "layout 0"),
    "a catalog of another layout": (change("PRAGMA user_version = 77"), "catalog.sqlite", "layout 77"),
    "a catalog without a table": (change("DROP TABLE segments"), "catalog.sqlite", "no such table"),
    "a torn page": (lambda folder: flipped_pages(folder), "catalog.sqlite", ""),
    "a definition that is none": (change("UPDATE entries SET body = '{' WHERE name = 'big'"), "big", "damaged"),
    "a view that is none": (change("UPDATE entries SET body = '{}' WHERE name = 'seen'"), "seen", "view"),
    "an id that is none": (change("UPDATE entries SET id = 'none' WHERE name = 'seen'"), "seen", ""),
    "an entry of no schema": (change("PRAGMA foreign_keys = OFF", "UPDATE entries SET schema = 'none' WHERE name = 'seen'"), "seen", "schema"),
    "rows in the catalog that are none": (change("UPDATE segments SET content = x'00' WHERE content IS NOT NULL"), "small", ""),
    "rows in the catalog that are fewer": (change("UPDATE segments SET row_count = 9 WHERE content IS NOT NULL"), "table", "9 were written"),
    "a segment with nothing in it": (change("UPDATE segments SET content = NULL WHERE content IS NOT NULL"), "table", "neither rows nor a file"),
    "rows of no table": (change("UPDATE segments SET table_id = 'none' WHERE content IS NOT NULL"), "table none", "no table"),
    "a version that is not kept": (change("DELETE FROM versions"), "table", "history"),
    "a definition that is not kept": (change("DELETE FROM definitions"), "table", "definition"),
    "a segment that ends before it begins": (change("UPDATE segments SET removed = added WHERE removed IS NOT NULL"), "table", "goes from version"),
    "a segment of the future": (change("UPDATE segments SET added = 99, removed = NULL WHERE content IS NOT NULL"), "table", "still to come"),
    "a file that is gone": (lambda folder: current_file(folder).unlink(), ".parquet", "missing"),
    "a file of an earlier version that is gone": (lambda folder: earlier_file(folder).unlink(), ".parquet", "missing"),
    "a folder in its place": (linked, ".parquet", "no file"),
    "a file that is shorter": (lambda folder: current_file(folder).write_bytes(current_file(folder).read_bytes()[:-9]), ".parquet", "bytes, "),
    "a footer that is none": (lambda folder: flipped(current_file(folder), -2), ".parquet", "footer"),
    "a file with fewer rows": (ONE_ROW_LESS, ".parquet", "rows, "),
    "a file with another column": (OTHER_TYPE, ".parquet", "column `n`"),
    "a model that is gone": (lambda folder: model(folder).unlink(), ".model", "missing"),
    "a model that is another": (lambda folder: flipped(model(folder), 5), ".model", "not those that were written"),
    "a log that is ahead": (lambda folder: entry_after(folder, 99), "_delta_log", "99"),
    "a log that others wrote": (lambda folder: entry_after(folder, None), "_delta_log", "not written by Bowshot"),
    "a log that is gone": (without_log, "_delta_log", "missing"),
    "a table that nobody knows": (unknown_table, "11111111", "does not know"),
}  # fmt: skip
# What only a look at every value shows.
DEEP = {"pages of a file": (lambda folder: torn(current_file(folder)), ".parquet", "rows")}


def earlier_file(folder):
    with catalog(folder) as connection:
        ((table, name),) = connection.execute("SELECT table_id, file FROM segments WHERE removed IS NOT NULL LIMIT 1")
    return folder / "tables" / table / name


def flipped_pages(folder):
    """Pages of the middle of the catalog, so that its head can be read."""
    path = folder / "catalog.sqlite"
    content = bytearray(path.read_bytes())
    for page in range(3, len(content) // 4096 - 1):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)


def copied(whole, tmp_path, name="data"):
    return shutil.copytree(whole / name, tmp_path / name)


def test_what_is_whole_has_no_fault(whole, tmp_path):
    before = contents(whole / "data")
    found = verify(whole / "data", "--deep")
    assert (found["kind"], found["faults"], found["tables"], found["rows"]) == ("data folder", [], 2, 20_000 - 10 + 2)
    after = contents(whole / "data")
    assert {name: content for name, content in after.items() if not name.endswith(("-shm", "-wal"))} == before
    assert verify(whole / "backup", "--deep")["faults"] == []
    code, out, _ = bowshot("verify", "--data", whole / "backup")
    assert code == 0 and out.endswith("all is well\n"), out


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found(whole, tmp_path, name):
    damage, place, problem = DAMAGES[name]
    data = copied(whole, tmp_path)
    damage(data)
    found = faults(data)
    assert any(place in where and problem in what for where, what in found), found
    code, out, _ = bowshot("verify", "--data", data)
    lines = [line for line in out.splitlines() if line.startswith("FAULT")]
    assert code == 1 and len(lines) == len(found), out
    assert all(line.rsplit(". ", 1)[1] for line in lines), "each says what to do"


@pytest.mark.parametrize("name", DEEP)
def test_what_only_rows_show(whole, tmp_path, name):
    damage, place, problem = DEEP[name]
    data = copied(whole, tmp_path)
    damage(data)
    assert verify(data)["faults"] == []
    assert any(place in where and problem in what for where, what in faults(data, "--deep"))


# What is damaged in a backup, and words that a fault must have.
OF_BACKUPS = {
    "a manifest that is none": (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json", ""),
    "a manifest of the future": (lambda folder: in_manifest(folder, lambda manifest: manifest.update(format=9)), "manifest.json", "format 9"),
    "a manifest that leads out": (lambda folder: in_manifest(folder, escape), "manifest.json", "../x"),
    "a file that is gone": (lambda folder: rows_of(folder / "tables")[0].unlink(), ".parquet", "missing"),
    "a file that is shorter": (lambda folder: rows_of(folder / "tables")[0].write_bytes(b"x"), ".parquet", "has 1 bytes"),
    "one bit of a file": (lambda folder: flipped(rows_of(folder / "tables")[0], 100), ".parquet", "not those that were written"),
    "one bit of the catalog": (lambda folder: flipped(folder / "catalog.sqlite", 5_000), "catalog.sqlite", "not those that were written"),
    "a file too many": (lambda folder: (folder / "tables" / "new").write_text("x"), "tables/new", "not in the manifest"),
    "a file that the manifest forgets": (lambda folder: in_manifest(folder, forget), ".parquet", "not in the manifest"),
}  # fmt: skip


def in_manifest(folder, act):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    act(manifest)
    path.write_text(json.dumps(manifest))


def escape(manifest):
    manifest["files"]["../x"] = {"bytes": 1, "sha256": "0" * 64}


def forget(manifest):
    del manifest["files"][next(name for name in manifest["files"] if name.endswith(".parquet"))]


@pytest.mark.parametrize("name", OF_BACKUPS)
def test_each_damage_of_a_backup_is_found(whole, tmp_path, name):
    damage, place, problem = OF_BACKUPS[name]
    folder = copied(whole, tmp_path, "backup")
    damage(folder)
    found = faults(folder)
    assert any(place in where and problem in what for where, what in found), found


def test_what_a_killed_writer_leaves_is_a_remark(whole, tmp_path):
    data = copied(whole, tmp_path)
    (data / "tables" / table_id(data, "big") / "bowshot-left.parquet").write_bytes(b"x")
    (data / "tables" / "11111111-2222-4333-8444-555555555555").mkdir()
    found = verify(data)
    assert len(found["remarks"]) == 2 and found["faults"] == [], found
    with Server(data=data):
        pass
    assert verify(data)["remarks"] == []


def test_a_folder_in_use(whole, tmp_path):
    data = copied(whole, tmp_path)
    with Server(data=data) as server, Database(server) as database:
        assert verify(data, "--deep")["kind"] == "data folder in use"
        database.run("INSERT INTO small VALUES (3, 'three')")
        assert verify(data)["rows"] == 20_000 - 10 + 3
        assert not any((data / "holds").iterdir())
        current_file(data).unlink()
        assert any("missing" in what for _, what in faults(data))


def test_what_is_no_folder_of_tables(tmp_path):
    for place in (tmp_path, tmp_path / "none"):
        code, out, err = bowshot("verify", "--data", place)
        assert (code, out, "is no data folder" in err, "hint:" in err) == (1, "", True, True), err
