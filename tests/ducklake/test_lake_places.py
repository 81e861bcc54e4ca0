"""Where lakes are and who may read them: configuration, ATTACH, paths, rights; and what is wrong with a catalog."""

import contextlib
import shutil
import sqlite3
import subprocess
import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import pytest

from durable import Database, refused
from lake import Lake, asked, same, with_extensions
from server import Server, binaries, clean_environment, hash_password


def filled(lake, name="t"):
    lake.run(f"CREATE TABLE {name} AS SELECT range AS i, 'w' || range AS s FROM range(100)", f"INSERT INTO {name} VALUES (1000, 'late')")
    return lake


def config(folder, text):
    path = folder / "bowshot.toml"
    path.write_text(text)
    return ["--config", path]


def checked(*arguments):
    done = subprocess.run([binaries() / "bowshot", "check", *map(str, arguments)], capture_output=True, text=True, env=clean_environment(), timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_an_entry_of_the_configuration(lake, tmp_path):
    filled(lake).run("CREATE SCHEMA hidden", "CREATE TABLE hidden.t AS SELECT 1 AS a")
    text = '[[databases]]\nname = "shop"\nkind = "ducklake"\nuri = "ducklake:lake/meta.sqlite"\nschemas = ["main"]\n'
    with asked(arguments=config(tmp_path, text)) as database:
        assert database.one("SELECT count(*) FROM shop.main.t") == 101
        refused(database, "SELECT * FROM shop.hidden.t", "not found")
        told = database.rows("SELECT name, kind, place, read_only, attached, problem FROM system.databases")
        assert told == [("shop", "ducklake", str(lake.catalog), True, False, None)]
        database.rows("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'shop'")
        assert database.one("SELECT tables FROM system.databases") == 1


def test_what_is_served_is_told(lake):
    filled(lake).run("CREATE TABLE odd (i INTERVAL)")
    code, text = checked(lake.source)
    assert code != 0 and "lake.main.t" in text and "ducklake" in text and "lake.main.odd" in text and "`interval`" in text, text
    lake.run("DROP TABLE odd")
    code, text = checked(lake.source)
    assert code == 0 and "lake.main.t" in text, text
    with asked(lake.source) as database:
        (row,) = database.rows("SELECT table_name, format, files, path, error FROM system.files")
        assert row == ("lake.main.t", "ducklake", 2, str(lake.catalog), None)
        assert database.one("SELECT bytes FROM system.files") == sum(file.stat().st_size for file in lake.data.rglob("*.parquet"))
    assert checked(f"ducklake:{lake.catalog}")[0] != 0
    code, text = checked(f"lake=ducklake:{lake.folder}/missing.sqlite")
    assert code != 0 and "does not exist" in text, text


def test_a_lake_that_was_moved(lake, tmp_path):
    filled(lake).close()
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(lake.data, moved / "data")
    shutil.move(lake.catalog, moved / "meta.sqlite")
    entry = f'[[databases]]\nname = "lake"\nkind = "ducklake"\nuri = "{moved}/meta.sqlite"\n'
    with asked(arguments=config(tmp_path, entry)) as database:
        refused(database, "SELECT * FROM lake.main.t", "data_path")
    with asked(arguments=config(tmp_path, f'{entry}data_path = "moved/data"\n')) as database:
        assert database.one("SELECT count(*) FROM lake.main.t") == 101


def test_files_elsewhere_have_to_be_named(tmp_path):
    lake = filled(Lake(tmp_path / "lake", data=tmp_path / "elsewhere"))
    land = tmp_path / "land"
    land.mkdir()
    lake.run(f"COPY (SELECT 5 AS i, 'x' AS s) TO '{land}/f.parquet'", "CREATE TABLE u (i BIGINT, s VARCHAR)",
             f"CALL ducklake_add_data_files('lake', 'u', '{land}/f.parquet')")
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.t", "folder of the catalog", "data_path")
    entry = f'[[databases]]\nname = "lake"\nkind = "ducklake"\nuri = "{lake.catalog}"\ndata_path = "{tmp_path}/elsewhere"\n'
    with asked(arguments=config(tmp_path, entry)) as database:
        same(lake, database)
        refused(database, "SELECT * FROM lake.main.u", "not below", "read_paths")
    with asked(arguments=config(tmp_path, f'{entry}read_paths = ["{land}"]\n')) as database:
        same(lake, database, "SELECT * FROM main.u")
    lake.close()


@pytest.mark.parametrize("table, path", [
    ("ducklake_data_file", "'../../../secret.parquet', path_is_relative = 1"), ("ducklake_data_file", "'{0}/secret.parquet', path_is_relative = 0"),
    ("ducklake_data_file", "'{0}/lake/files/../../secret.parquet', path_is_relative = 0"), ("ducklake_data_file", "'s3://bucket/f.parquet', path_is_relative = 0"),
    ("ducklake_table", "'../../../', path_is_relative = 1"), ("ducklake_table", "'{0}/', path_is_relative = 0"),
    ("ducklake_schema", "'..', path_is_relative = 1"), ("ducklake_delete_file", "'{0}/secret.parquet', path_is_relative = 0"),
])
def test_a_catalog_names_no_files_of_others(lake, tmp_path, table, path):
    filled(lake).run("DELETE FROM t WHERE i = 5", "COPY (SELECT 'hidden' AS s, 0 AS pos) TO '%s/secret.parquet'" % tmp_path, "CREATE TABLE good AS SELECT 1 AS a")
    with lake.itself() as catalog:
        catalog.execute(f"UPDATE {table} SET path = {path.format(tmp_path)}" + (" WHERE table_id = 1" if table != "ducklake_schema" else ""))
    with asked(lake.source) as database:
        said = refused(database, "SELECT * FROM lake.main.t", "main.t")
        assert "hidden" not in said and ("not below" in said or "remote files" in said)
        if table != "ducklake_schema":
            assert database.one("SELECT a FROM lake.main.good") == 1


def administrator():
    """An entry of the configuration, and how its user logs in."""
    return f'[[access.users]]\nname = "root"\npassword_hash = "{hash_password("root comes in")}"\nadmin = true\n'


class As(Database):
    def __init__(self, server, name):
        login = {"username": name, "password": f"{name} comes in"}
        self.connection = dbapi.connect(server.grpc_tcp, db_kwargs=login, autocommit=True)


def test_attach_and_detach(lake, tmp_path):
    filled(lake)
    hidden = filled(Lake(tmp_path / "hidden"))
    (lake.folder / "link.sqlite").symlink_to(hidden.catalog)
    (lake.folder / "files-link").symlink_to(hidden.data)
    text = f'[attach]\nplaces = ["ducklake://{lake.folder}"]\n{administrator()}'
    with Server(arguments=config(tmp_path, text)) as server, contextlib.closing(As(server, "root")) as database:
        database.run(f"ATTACH 'ducklake:sqlite:{lake.catalog}' AS shop")
        assert database.one("SELECT count(*) FROM shop.main.t") == 101
        assert database.rows("SELECT name, kind, attached, tables FROM system.databases") == [("shop", "ducklake", True, 1)]
        refused(database, f"ATTACH 'ducklake:{lake.catalog}' AS shop", "already exists")
        database.run(f"ATTACH IF NOT EXISTS 'ducklake:{lake.catalog}' AS shop", f"ATTACH '{lake.catalog}' AS second (TYPE ducklake, READ_ONLY)",
                     f"ATTACH 'ducklake:{lake.catalog}' AS third (DATA_PATH '{lake.data}')")
        for name in ("second", "third"):
            assert database.one(f"SELECT sum(i) FROM {name}.main.t") == 5950
        for place in (hidden.catalog, lake.folder / "link.sqlite", lake.folder / ".." / "hidden" / "meta.sqlite", f"{lake.folder}2/meta.sqlite"):
            refused(database, f"ATTACH 'ducklake:{place}' AS other")
        refused(database, f"ATTACH 'ducklake:{lake.folder}/none.sqlite' AS other", "does not exist")
        refused(database, f"ATTACH 'ducklake:{lake.catalog}' AS other (DATA_PTH 'x')", "data_pth")
        refused(database, f"ATTACH 'ducklake:{lake.catalog}' AS other (READ_ONLY false)", "read-only")
        refused(database, "ATTACH 'ducklake:postgres:dbname=x' AS other", "SQLite")
        for option in (f"DATA_PATH '{hidden.data}'", f"DATA_PATH '{lake.folder}/files-link'", f"DATA_PATH '{hidden.folder}/none'", f"READ_PATHS '{hidden.folder}'"):
            refused(database, f"ATTACH 'ducklake:{lake.catalog}' AS wide ({option})", "operator allows", "attach.places")
        assert database.one("SELECT count(*) FROM system.databases") == 3
        database.run("DETACH shop")
        refused(database, "SELECT * FROM shop.main.t", "not found")
        refused(database, "DETACH shop", "shop")
    with Server(lake.source, arguments=config(tmp_path, administrator())) as server, contextlib.closing(As(server, "root")) as database:
        refused(database, f"ATTACH 'ducklake:{lake.catalog}' AS other", "attach.places")
        refused(database, "DETACH lake", "configuration")
    hidden.close()


def test_nothing_is_written(lake):
    filled(lake)
    with asked(lake.source) as database:
        for sql in ("INSERT INTO lake.main.t VALUES (1, 'x')", "DELETE FROM lake.main.t", "UPDATE lake.main.t SET i = 0", "DROP TABLE lake.main.t",
                    "CREATE TABLE lake.main.u AS SELECT 1 AS a", "ALTER TABLE lake.main.t ADD COLUMN z INT", "CREATE SCHEMA lake.other"):
            refused(database, sql)
        refused(database, "INSERT INTO lake.main.t VALUES (1, 'x')", "read-only")
        same(lake, database)


def test_rights(lake, tmp_path):
    filled(lake).run("CREATE TABLE secret AS SELECT 42 AS a", "CREATE TABLE later AS SELECT 1 AS a")
    first = lake.snapshot()
    lake.run("ALTER TABLE later ADD COLUMN b INT")
    with Server(lake.source, data=tmp_path / "data", arguments=config(tmp_path, administrator())) as server:
        root = As(server, "root")
        root.run("CREATE USER ada PASSWORD 'ada comes in'")
        ada = As(server, "ada")
        refused(ada, "SELECT * FROM lake.main.t")
        root.run("GRANT SELECT ON lake.main.t TO ada", "CREATE ROW POLICY few ON lake.main.later FOR ada USING (a > 0)", "GRANT SELECT ON lake.main.later TO ada")
        assert ada.one("SELECT count(*) FROM lake.main.t") == 101
        assert "secret" not in str(ada.rows("SELECT table_name FROM information_schema.tables"))
        refused(ada, "SELECT * FROM lake.main.secret")
        refused(ada, f"SELECT * FROM lake.main.secret FOR VERSION AS OF {first}")
        assert ada.one("SELECT count(*) FROM lake.main.later") == 1
        refused(ada, f"SELECT * FROM lake.main.later FOR VERSION AS OF {first}", "then")
        assert root.one(f"SELECT a FROM lake.main.secret FOR VERSION AS OF {first}") == 42
        for one in (root, ada):
            one.close()


DAMAGES = {
    "no table": ("DROP TABLE ducklake_column_mapping", "ducklake_column_mapping"), "a view": ("ALTER TABLE ducklake_snapshot RENAME TO s; CREATE VIEW ducklake_snapshot AS SELECT * FROM s", "ducklake_snapshot"),
    "a version": ("UPDATE ducklake_metadata SET value = '7.0' WHERE key = 'version'", "7.0"), "no version": ("DELETE FROM ducklake_metadata WHERE key = 'version'", "version"),
    "no snapshot": ("DELETE FROM ducklake_snapshot", "snapshot"), "a type": ("UPDATE ducklake_column SET column_type = 'int33' WHERE table_id = 1", "int33"),
    "a text": ("UPDATE ducklake_data_file SET path_is_relative = 'perhaps' WHERE table_id = 1", "cannot be read"), "twice": ("INSERT INTO ducklake_table SELECT * FROM ducklake_table WHERE table_id = 1", "two tables"),
    "a column twice": ("UPDATE ducklake_column SET column_name = 'i' WHERE table_id = 1", "two columns"), "a number": ("UPDATE ducklake_column SET column_id = column_id + 5000000000 WHERE table_id = 1", "invalid id"),
    "a format": ("UPDATE ducklake_data_file SET file_format = 'orc' WHERE table_id = 1", "`orc`"), "a vector": ("UPDATE ducklake_delete_file SET format = 'puffin' WHERE table_id = 1", "`puffin`"),
    "a key": ("UPDATE ducklake_data_file SET encryption_key = 'abc' WHERE table_id = 1", "encrypted"), "a key of deletes": ("UPDATE ducklake_delete_file SET encryption_key = 'abc' WHERE table_id = 1", "encrypted"),
    "a name mapping": ("UPDATE ducklake_data_file SET mapping_id = 77 WHERE table_id = 1", "77"), "a loop": ("UPDATE ducklake_column SET parent_column = column_id, column_type = 'list' WHERE table_id = 1 AND column_id = 2", None),
    "a missing file": ("UPDATE ducklake_data_file SET path = 'none.parquet' WHERE table_id = 1", "none.parquet"), "no data path": ("DELETE FROM ducklake_metadata WHERE key = 'data_path'", "data path"),
    "a folder": ("UPDATE ducklake_data_file SET path = '' WHERE table_id = 1", "not a regular file"), "rows of others": ("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'sqlite_master', 1)", "sqlite_master"),
    "rows that are not there": ("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_99', 1)", "ducklake_inlined_data_1_99"),
}


def copies(table):
    """Statements that leave thirty thousand of each entry."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
    return f"CREATE TABLE copies AS {numbers} SELECT t.* FROM {table} AS t, n; DROP TABLE {table}; ALTER TABLE copies RENAME TO {table};"


DAMAGES["many schemas of one number"] = (copies("ducklake_schema") + copies("ducklake_table"), "two schemas with the id")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_catalog_hurts_itself_alone(lake, tmp_path, damage):
    filled(lake).run("DELETE FROM t WHERE i < 5", "CREATE TABLE good AS SELECT 1 AS a")
    other = filled(Lake(tmp_path / "other"))
    statements, word = DAMAGES[damage]
    with lake.itself() as catalog:
        catalog.executescript(statements)
    with asked(lake.source, f"other=ducklake:{other.catalog}") as database:
        if word:
            refused(database, "SELECT * FROM lake.main.t", word)
        else:
            database.rows("SELECT count(*) FROM lake.main.t")
        assert database.one("SELECT count(*) FROM other.main.t") == 101
        if "table_id = 1" in statements and "INSERT" not in statements:
            assert database.one("SELECT a FROM lake.main.good") == 1
        database.rows("SELECT * FROM system.files")
        assert database.server.alive()
    other.close()


@pytest.mark.parametrize("content", [b"", b"no catalog at all, of any kind", b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_catalog(lake, content):
    filled(lake).close()
    if not content:
        content = lake.catalog.read_bytes()[:6000]
    lake.catalog.write_bytes(content)
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.t")
        assert database.rows("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'lake' AND table_schema = 'main'") == []
        assert database.one("SELECT 1") == 1


def test_a_catalog_of_duckdb(tmp_path):
    with with_extensions() as connection:
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/meta.ducklake' AS lake (DATA_PATH '{tmp_path}/files')")
        connection.execute("CREATE TABLE lake.t AS SELECT 1 AS a")
    with asked(f"lake=ducklake:{tmp_path}/meta.ducklake") as database:
        refused(database, "SELECT * FROM lake.main.t", "DuckDB", "SQLite")


def test_files_that_are_encrypted(tmp_path):
    lake = Lake(tmp_path / "lake", more=", ENCRYPTED")
    lake.run("SET force_mbedtls_unsafe = 'true'")
    filled(lake)
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.t", "encrypted", "copy the table")
    lake.close()


def test_files_that_are_damaged(lake):
    filled(lake).run("CREATE TABLE good AS SELECT 1 AS a")
    for file in (lake.data / "main" / "t").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-20])
    with asked(lake.source) as database:
        refused(database, "SELECT * FROM lake.main.t", ".parquet")
        assert database.one("SELECT a FROM lake.main.good") == 1


def test_limits(lake):
    for _ in range(4):
        lake.run("CREATE TABLE IF NOT EXISTS t (i INT)", "INSERT INTO t VALUES (1)")
    with asked(lake.source, arguments=["--set", "storage.max_files_per_table=3"]) as database:
        refused(database, "SELECT * FROM lake.main.t", "more than 3", "ducklake_merge_adjacent_files")
        lake.run("CALL ducklake_merge_adjacent_files('lake')")
        assert database.one("SELECT count(*) FROM lake.main.t") == 4


def test_a_writer_that_holds_the_catalog(lake):
    filled(lake)
    with asked(lake.source) as database:
        same(lake, database)
        for answers in (True, False):
            writer = sqlite3.connect(lake.catalog, check_same_thread=False, isolation_level=None)
            writer.execute("BEGIN EXCLUSIVE")
            if answers:
                release = threading.Timer(1, lambda: writer.execute("ROLLBACK"))
                release.start()
                assert database.one("SELECT count(*) FROM lake.main.t") == 101
                release.join()
            else:
                refused(database, "SELECT count(*) FROM lake.main.t", "run the statement again")
                writer.execute("ROLLBACK")
            writer.close()
        same(lake, database)


def test_a_catalog_that_is_replaced(lake, tmp_path):
    filled(lake)
    other = Lake(tmp_path / "other", data=lake.data)
    other.run("CREATE TABLE t AS SELECT 'another' AS word")
    other.close()
    with asked(lake.source) as database:
        same(lake, database)
        lake.close()
        shutil.move(other.catalog, lake.catalog)
        assert database.rows("SELECT * FROM lake.main.t") == [("another",)]
        with sqlite3.connect(lake.catalog) as catalog:
            catalog.execute("PRAGMA journal_mode = WAL")
            catalog.execute("UPDATE ducklake_column SET column_name = 'renamed' WHERE column_name = 'word'")
        assert database.arrow("SELECT * FROM lake.main.t").schema.names == ["renamed"]
        catalog.close()


def test_a_writer_and_readers_at_once(lake):
    """Each answer is of one snapshot: rows come in pairs that are written together."""
    lake.run("CREATE TABLE t (i INT, sign INT)")
    ended = threading.Event()

    def write():
        for n in range(40):
            lake.run("BEGIN", f"INSERT INTO t VALUES ({n}, 1)", f"INSERT INTO t VALUES ({n}, -1)", f"DELETE FROM t WHERE i = {n - 5}", "COMMIT")
        ended.set()

    with asked(lake.source) as database:
        writer = threading.Thread(target=write)
        writer.start()
        seen = set()
        while not ended.is_set():
            try:
                count, total = database.rows("SELECT count(*), coalesce(sum(sign), 0) FROM lake.main.t")[0]
            except Exception as error:
                # On a slow disk the writer holds its lock for longer than a reader waits.
                assert "run the statement again" in str(error)
                continue
            assert count % 2 == 0 and total == 0 and count <= 12
            seen.add(count)
            time.sleep(0.01)
        writer.join()
        assert len(seen) > 1
        same(lake, database)
