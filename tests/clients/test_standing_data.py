"""The data folder stands: nothing that can be made in it keeps the server from starting again, what cannot be read is told
and left out alone, and nobody else on the machine reads it."""

import json
import os
import pathlib
import sqlite3
import stat
import subprocess

import pyarrow as pa
import pytest

from durable import Database, refused
from server import Server, binaries, clean_environment


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def lists(depth):
    """A type of so many types inside one another."""
    return "INT" + "[]" * (depth - 1)


def nested_value(depth):
    return "[" * (depth - 1) + "1" + "]" * (depth - 1)


def test_types_that_go_too_deep_are_refused_by_every_road(folder):
    deep = pa.int32()
    for _ in range(40):
        deep = pa.list_(deep)
    with Server(data=folder) as server, Database(server) as db:
        refused(db, f"CREATE TABLE a (x {lists(200)})", "32")
        refused(db, f"CREATE TABLE a (x {lists(40)})", "32")
        refused(db, f"CREATE TABLE a AS SELECT {nested_value(45)} AS x", "32")
        with pytest.raises(Exception, match="32 types"):
            db.ingest("a", pa.table({"x": pa.array([None], deep)}))
        db.run(f"CREATE TABLE good (x {lists(32)})")
        db.run("INSERT INTO good VALUES (NULL)")
    with Server(data=folder) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM good") == 1
        assert db.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'") == [("good",)]


def test_names_have_a_length(folder):
    long = "x" * 300
    with Server(data=folder) as server, Database(server) as db:
        for sql in (
            f'CREATE TABLE "{long}" (a INT)',
            f'CREATE TABLE t ("{long}" INT)',
            'CREATE TABLE "" (a INT)',
            'CREATE TABLE t ("" INT)',
            f'CREATE VIEW "{long}" AS SELECT 1 AS a',
            f'CREATE VIEW v ("{long}") AS SELECT 1',
            f'CREATE SCHEMA "{long}"',
            f'CREATE TABLE t AS SELECT 1 AS "{long}"',
        ):
            with pytest.raises(Exception):
                db.run(sql)
        db.run(f'CREATE TABLE "{"y" * 255}" ("{"z" * 255}" INT)')
    with Server(data=folder) as server, Database(server) as db:
        assert db.one(f'SELECT count("{"z" * 255}") FROM "{"y" * 255}"') == 0


def damage(folder, sql, *values):
    with sqlite3.connect(folder / "catalog.sqlite") as catalog:
        catalog.execute("PRAGMA foreign_keys = OFF")
        assert catalog.execute(sql, values).rowcount > 0
    catalog.close()


def deep_json(depth):
    text = '"integer"'
    for _ in range(depth):
        text = '{"type":"array","elementType":' + text + ',"containsNull":true}'
    column = '{"field":{"name":"a","type":' + text + ',"nullable":true,"metadata":{}},"default":null,"comment":null}'
    return '{"columns":[' + column + '],"primary_key":null,"checks":[],"comment":null}'


DAMAGES = {
    "a table that is no JSON": ("UPDATE entries SET body = ? WHERE name = 'bad'", "no JSON {"),
    "a table that is empty": ("UPDATE entries SET body = ? WHERE name = 'bad'", ""),
    "a table that is a number": ("UPDATE entries SET body = ? WHERE name = 'bad'", "17"),
    "a table without columns": ("UPDATE entries SET body = ? WHERE name = 'bad'", "{}"),
    "a table of lists without end": ("UPDATE entries SET body = ? WHERE name = 'bad'", deep_json(126)),
    "a table of more lists": ("UPDATE entries SET body = ? WHERE name = 'bad'", deep_json(5000)),
    "a table of another type": (
        "UPDATE entries SET body = ? WHERE name = 'bad'",
        json.dumps({"columns": [{"field": {"name": "a", "type": "nothing", "nullable": True}}], "checks": []}),
    ),
    "a view that is no JSON": ("UPDATE entries SET body = ? WHERE name = 'badview'", "["),
    "a view without text": ("UPDATE entries SET body = ? WHERE name = 'badview'", "{}"),
    "an id that is none": ("UPDATE entries SET id = ? WHERE name = 'bad'", "x"),
    "rows that are no rows": ("UPDATE segments SET content = ? WHERE content IS NOT NULL AND table_id = (SELECT id FROM entries WHERE name = 'bad')", b"rubbish"),
    "rows that are cut off": ("UPDATE segments SET content = CASE WHEN ? IS NULL THEN content ELSE substr(content, 1, 60) END WHERE content IS NOT NULL AND table_id = (SELECT id FROM entries WHERE name = 'bad')", b""),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_cannot_be_read_is_left_out_alone(folder, what):
    with Server(data=folder) as server, Database(server) as db:
        db.run("CREATE TABLE good AS SELECT 1 AS a", "CREATE TABLE bad (a INT)", "INSERT INTO bad VALUES (1)")
        db.run("CREATE VIEW badview AS SELECT a FROM good")
        server.kill()
    sql, value = DAMAGES[what]
    damage(folder, sql, value)
    name = "badview" if "view" in what else "bad"
    check = subprocess.run(
        [str(binaries() / "bowshot"), "check", "--data", str(folder)],
        capture_output=True, text=True, timeout=60, env=clean_environment(),
    )
    assert check.returncode == 1 and f"bowshot.main.{name}" in check.stdout, check.stdout + check.stderr
    with Server(data=folder) as server, Database(server) as db:
        assert db.one("SELECT a FROM good") == 1
        with pytest.raises(Exception, match="cannot be read"):
            db.rows(f"SELECT * FROM {name}")
        assert "cannot be read" in server.log()
        if name == "bad":
            assert db.one("SELECT error FROM system.tables WHERE table_name = 'bad'") is not None
        db.run("INSERT INTO good VALUES (2)")
        if "an id" in what:
            # Nobody knows which folder was its own, so that it cannot be dropped for good.
            return
        db.run(f"DROP {'VIEW' if name == 'badview' else 'TABLE'} {name}", f"CREATE TABLE {name} AS SELECT 7 AS a")
    with Server(data=folder) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM good") == 2
        assert db.one(f"SELECT a FROM {name}") == 7


def test_nobody_else_reads_the_folder(folder):
    os.umask(0o022)
    with Server(data=folder) as server, Database(server) as db:
        db.run("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10000) AS s(value)")
        db.run("INSERT INTO t VALUES (1)")
        for path in [folder, *folder.rglob("*")]:
            if path.name.startswith("datafusion-"):
                # The folder around it keeps others out.
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode & 0o077 == 0, f"{path} has {mode:o}"


def fails_to_start(*arguments):
    command = [str(binaries() / "bowshot"), "serve", "--flight", "127.0.0.1:0", "--http", "off", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean_environment())
    assert run.returncode == 2, (run.returncode, run.stderr)
    return run.stderr


@pytest.mark.parametrize("where", ["data", "data/tables", ".", "spill", "spill/x", "link"])
def test_the_exchange_folder_lies_apart(tmp_path, where):
    for name in ("data/tables", "spill/x", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    configuration = tmp_path / "bowshot.toml"
    configuration.write_text(f'[storage]\nexchange_folder = "{tmp_path / where}"\n[engine]\nspill_folder = "{tmp_path / "spill"}"\n')
    message = fails_to_start("--config", configuration, "--data", tmp_path / "data")
    assert "exchange folder" in message, message
    configuration.write_text(configuration.read_text().replace(str(tmp_path / where), str(tmp_path / "other"), 1))
    with Server(arguments=["--config", str(configuration)], data=tmp_path / "data"):
        pass


def test_a_dead_process_leaves_nothing_behind(tmp_path):
    exchange, store = tmp_path / "exchange", tmp_path / "store"
    (exchange / "sub").mkdir(parents=True)
    left = exchange / "sub" / ".bowshot-6d1c6e0a-63a2-4b6c-8a4f-1f7c7f1d2b11.tmp"
    left.write_text("half a file")
    other = exchange / ".bowshot-mine.tmp"
    other.write_text("of somebody else")
    environment = {"BOWSHOT_STORAGE_EXCHANGE_FOLDER": str(exchange)}
    with Server(data=store, environment=environment) as server:
        spilled = list((store / "spill").iterdir())
        assert len([path for path in spilled if path.is_dir()]) == 1
        assert not left.exists() and other.exists()
        server.kill()
    assert any(path.is_dir() for path in (store / "spill").iterdir())
    with Server(data=store, environment=environment):
        assert len([path for path in (store / "spill").iterdir() if path.is_dir()]) == 1
    assert not any((store / "spill").iterdir())


def on_disk(path):
    kinds = {}
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if pathlib.Path(path).is_relative_to(place):
            kinds[len(place)] = kind
    return kinds[max(kinds)] not in ("tmpfs", "ramfs")


def test_spilled_data_goes_to_disk_or_it_is_said():
    with Server(environment={"TMPDIR": "/dev/shm"}) as server:
        deep = [pathlib.Path(os.readlink(link)) for link in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir() if link.is_symlink()]
        locks = [path for path in deep if path.name.startswith("bowshot-spill-")]
        assert locks, deep
        assert all(on_disk(path) for path in locks) or "engine.spill_folder" in server.log()


@pytest.mark.parametrize(
    "path",
    ["../secret.parquet", "/SECRET", "file:///SECRET", "%2e%2e/secret.parquet", "a/../../secret.parquet", "..%2Fsecret.parquet"],
)
def test_a_delta_log_names_files_of_its_folder_only(tmp_path, path):
    import deltalake
    import pyarrow.parquet as parquet

    table = tmp_path / "served" / "t"
    deltalake.write_deltalake(str(table), pa.table({"a": [1, 2]}))
    secret = tmp_path / "served" / "secret.parquet"
    parquet.write_table(pa.table({"a": [42]}), secret)
    path = path.replace("/SECRET", str(secret))
    entry = {
        "add": {
            "path": path, "partitionValues": {}, "size": secret.stat().st_size,
            "modificationTime": 0, "dataChange": True, "stats": None,
        }
    }
    (table / "_delta_log" / "00000000000000000001.json").write_text(json.dumps(entry) + "\n")
    with Server(f"t={table}") as server, Database(server) as db:
        with pytest.raises(Exception, match="not in the folder"):
            db.rows("SELECT * FROM t")
        assert db.one("SELECT 1") == 1
