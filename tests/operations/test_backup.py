"""`bowshot backup` and `bowshot restore`: one moment of a server that serves, all of it or nothing."""

import errno
import itertools
import json
import pathlib
import shutil
import signal
import subprocess
import time

import deltalake
import pyarrow as pa
import pytest

from backups import Rounds
from durable import Database, contents, rows_of
from faults import WRITE, Faults, compile_into
from program import LIGHTGBM, TOKEN, admin, backup, bowshot, refused, restore, verify
from server import BUSY_FACTOR, Server, beside, binaries, clean_environment, wait_until



def rows_for(count):
    return pa.table({"n": pa.array(range(count), pa.int64()), "text": [f"row {n}" for n in range(count)]})


def filled(server, count=50_000):
    """A table with a file, rows in the catalog, an earlier version, a view, and one that is dropped."""
    with Database(server) as database:
        database.ingest("big", rows_for(count))
        database.run(
            "CREATE TABLE small (n BIGINT PRIMARY KEY, t VARCHAR)",
            "INSERT INTO small VALUES (1, 'one'), (2, 'two')",
            "CREATE VIEW both_of AS SELECT n FROM big WHERE n IN (SELECT n FROM small)",
            "DELETE FROM big WHERE n = 7",
        )


def filled_folder(tmp_path, count=50_000):
    """The data folder of a server that has made these tables and ended."""
    with Server(data=tmp_path / "data") as server:
        filled(server, count)
    return tmp_path / "data"


def left_in(folder):
    """Names in a folder but those that belong there."""
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_has_all_of_one_moment_and_comes_back(tmp_path):
    data, into, again = tmp_path / "data", tmp_path / "backups" / "one", tmp_path / "again"
    with Server(data=data) as server:
        filled(server)
        told = backup(data, into)
        with Database(server) as database:
            database.run("INSERT INTO small VALUES (3, 'later')", "DROP TABLE big CASCADE")
        assert not any((data / "holds").iterdir()), "the hold is gone"
    assert told["tables"] == 2 and told["shared_bytes"] == 0
    manifest = json.loads((into / "manifest.json").read_text())
    assert set(manifest["files"]) == {name for name in contents(into) if name != "manifest.json"}
    assert verify(into, "--deep")["kind"] == "backup"
    assert left_in(into.parent) == ["one"], "nothing beside it"
    assert (into.stat().st_mode & 0o777, (into / "catalog.sqlite").stat().st_mode & 0o777) == (0o700, 0o600)
    assert restore(into, again)["bytes"] == told["bytes"]
    assert verify(again, "--deep")["faults"] == []
    with Server(data=again) as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM big") == 49_999
        assert database.rows("SELECT * FROM small ORDER BY n") == [(1, "one"), (2, "two")]
        assert database.one("SELECT count(*) FROM both_of") == 2
        (version,) = database.rows("SELECT min(version) FROM bowshot.system.table_history WHERE table_name = 'big'")[0]
        assert database.one(f"SELECT count(*) FROM big FOR VERSION AS OF {version}") in (0, 50_000)
        database.run("INSERT INTO big VALUES (-1, 'new')", "OPTIMIZE big")
        assert deltalake.DeltaTable(str(database.location("big"))).count() == 50_000, "others see it go on"


def test_users_rules_and_models_are_in_it(tmp_path):
    """All of them are notes of the catalog; the file of a model lies beside it."""
    data, into, again, exchange = (tmp_path / name for name in ("data", "one", "again", "exchange"))
    exchange.mkdir()
    (exchange / "m.txt").write_text(LIGHTGBM)
    arguments = [*admin(tmp_path), "--set", f"storage.exchange_folder={exchange}"]
    with Server(data=data, arguments=arguments) as server, Database(server, token=TOKEN) as database:
        database.run("CREATE TABLE t (n BIGINT)", "CREATE MODEL m FROM 'm.txt'", "CREATE ROLE readers")
        database.run("GRANT SELECT ON t TO readers")
        backup(data, into)
        before = database.one("SELECT predict('m', 0.75)")
    assert len(list((into / "models").glob("*.model"))) == 1
    restore(into, again)
    with Server(data=again, arguments=arguments) as server, Database(server, token=TOKEN) as database:
        assert database.one("SELECT predict('m', 0.75)") == before
        assert database.one("SELECT count(*) FROM bowshot.system.grants WHERE grantee = 'readers'") == 1


def test_a_stopped_and_a_killed_folder_are_backed_up_too(tmp_path):
    data = filled_folder(tmp_path, 5_000)
    backup(data, tmp_path / "stopped")
    server = Server(data=data)
    with Database(server) as database:
        database.run("INSERT INTO small VALUES (9, 'nine')")
    server.kill()
    backup(data, tmp_path / "killed")
    for name, count in (("stopped", 2), ("killed", 3)):
        restore(tmp_path / name, tmp_path / f"{name}-again")
        with Server(data=tmp_path / f"{name}-again") as server, Database(server) as database:
            assert database.one("SELECT count(*) FROM small") == count, name


def test_what_is_there_is_not_touched(tmp_path):
    data, taken = tmp_path / "data", tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    with Server(data=data) as server:
        filled(server, 5_000)
        backup(data, tmp_path / "one")
        before = contents(tmp_path / "one")
        for place in (taken, tmp_path / "one", taken / "mine"):
            refused("backup", place, "--data", data, words=["is there and not empty", "hint: name a folder"])
        for place in (taken, data):
            refused("restore", tmp_path / "one", "--data", place, words=["is there and not empty"])
    assert contents(tmp_path / "one") == before and contents(taken) == {"mine": b"mine"}
    empty = tmp_path / "empty"
    empty.mkdir()
    backup(data, empty)
    assert verify(empty)["faults"] == []
    refused("backup", tmp_path / "two", "--data", taken, words=["is no data folder"])
    refused("restore", taken, "--data", tmp_path / "two", words=["is no backup"])
    assert left_in(tmp_path) == ["data", "empty", "one", "taken"]


def test_files_are_shared_where_that_is_wanted(tmp_path):
    data = tmp_path / "data"
    with Server(data=data) as server:
        filled(server)
        linked = backup(data, tmp_path / "linked", "--link")
        first = backup(data, tmp_path / "first")
        with Database(server) as database:
            database.ingest("more", rows_for(20_000))
        second = backup(data, tmp_path / "second", "--since", tmp_path / "first")
        ours = {path.stat().st_ino for path in rows_of(data / "tables")}
    assert linked["shared_bytes"] > 0 and first["shared_bytes"] == 0 and second["shared_bytes"] > 0
    inodes = lambda name: {path.stat().st_ino for path in rows_of(tmp_path / name / "tables")}
    assert inodes("linked") <= ours and not inodes("first") & ours
    assert inodes("first") <= inodes("second")
    assert second["shared_bytes"] == sum(path.stat().st_size for path in rows_of(tmp_path / "first" / "tables")), "only what is new was copied"
    shutil.rmtree(tmp_path / "first")
    for name in ("linked", "second"):
        assert verify(tmp_path / name, "--deep")["faults"] == [], name


def test_a_damaged_backup_does_not_come_back(tmp_path):
    data, into = tmp_path / "data", tmp_path / "one"
    with Server(data=data) as server:
        filled(server)
        backup(data, into)
    victim = rows_of(into / "tables")[0]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    refused("restore", into, "--data", tmp_path / "again", words=[victim.name, "not those that were written"])
    assert left_in(tmp_path) == ["data", "one"], "nothing is left of it"
    victim.unlink()
    refused("restore", into, "--data", tmp_path / "again", words=[victim.name])
    assert left_in(tmp_path) == ["data", "one"]


def test_a_backup_of_a_damaged_folder_says_so(tmp_path):
    data = filled_folder(tmp_path)
    victim = rows_of(data / "tables")[0]
    victim.unlink()
    refused("backup", tmp_path / "one", "--data", data, words=[victim.name, "missing"])
    assert left_in(tmp_path) == ["data"] and not any((data / "holds").iterdir())


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_into(tmp_path_factory.mktemp("faults"))


PARTS = ["", "catalog.sqlite", ".parquet", "_delta_log"]


@pytest.mark.parametrize(("command", "part"), [("backup", "manifest.json"), *itertools.product(("backup", "restore"), PARTS)])
def test_a_full_disk_leaves_nothing(tmp_path, library, command, part):
    data, backups = filled_folder(tmp_path, 20_000), tmp_path / "backups"
    backups.mkdir()
    backup(data, tmp_path / "good")
    disk = Faults(library, tmp_path, backups)
    disk.set(WRITE, errno.ENOSPC, part)
    words = ["backup", backups / "one", "--data", data] if command == "backup" else ["restore", tmp_path / "good", "--data", backups / "one"]
    code, out, err = bowshot(*words, environment=disk.environment)
    assert disk.hits and (code, out) == (1, ""), err
    assert "No space left on device" in err and "hint: free space" in err, err
    assert left_in(backups) == [] and not any((data / "holds").iterdir())
    disk.clear()
    code, _, err = bowshot(*words, environment=disk.environment)
    assert code == 0, err


def test_a_full_data_folder_makes_no_backup(tmp_path, library):
    """The copy of the catalog and the second names of files are made there."""
    data = filled_folder(tmp_path, 20_000)
    disk = Faults(library, tmp_path, data)
    disk.set(WRITE, errno.ENOSPC, "holds")
    refused("backup", tmp_path / "one", "--data", data, words=["full"], environment=disk.environment)
    assert disk.hits
    assert not (tmp_path / "one").exists() and not any((data / "holds").iterdir())
    assert verify(data)["faults"] == []


def test_all_of_it_is_synced_before_it_has_its_name(tmp_path, library):
    data, backups = filled_folder(tmp_path, 20_000), tmp_path / "backups"
    backups.mkdir()
    disk = Faults(library, tmp_path, backups)
    disk.trace()
    code, _, err = bowshot("backup", backups / "one", "--data", data, environment=disk.environment)
    assert code == 0, err
    # Under the name that it had then.
    names = {str(pathlib.Path(*pathlib.Path(path).parts[1:])) for path in disk.synced() if path.startswith(".bowshot")}
    wanted = {str(path.relative_to(backups / "one")) for path in (backups / "one").rglob("*")}
    assert wanted <= names, wanted - names
    assert "" in disk.synced() or "." in disk.synced(), "the folder around it, last"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_one_that_is_ended_leaves_nothing_or_the_next_one_clears_up(tmp_path, how):
    data, backups = tmp_path / "data", tmp_path / "backups"
    held = data / "holds"
    with Server(data=data) as server:
        with Database(server) as database:
            for number in range(4):
                database.ingest(f"big_{number}", rows_for(300_000))
        ended = 0
        # Some may be done before the signal comes.
        for number in range(20):
            into = backups / str(number)
            command = [binaries() / "bowshot", "backup", into, "--data", data]
            process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, env=clean_environment())
            at_work = lambda: backups.is_dir() and any(path.name.startswith(".") for path in backups.iterdir())
            wait_until(lambda: at_work() or process.poll() is not None, "a backup at work")
            process.send_signal(how)
            _, err = process.communicate(timeout=60 * BUSY_FACTOR)
            if process.returncode == 0:
                continue
            ended += 1
            assert not into.exists()
            if how == signal.SIGKILL:
                assert any(held.iterdir())
            else:
                assert process.returncode == 1 and "stopped; nothing is left of it" in err, err
                assert not any(held.iterdir()) and str(number) not in left_in(backups)
                assert not any(name.startswith(".") for name in left_in(backups))
            if ended == 2:
                break
        assert ended, "none of them could be ended"
        backup(data, backups / "last")
        assert not any(held.iterdir()) and not any(name.startswith(".") for name in left_in(backups))


def test_the_start_of_a_server_clears_up_too(tmp_path):
    data = filled_folder(tmp_path, 5_000)
    dead = data / "holds" / "hold-dead"
    dead.mkdir(parents=True)
    (dead / "x").write_text("x")
    dead.with_suffix(".lock").write_text("")
    with Server(data=data):
        assert not any((data / "holds").iterdir())


def test_vacuum_and_drop_wait_for_nobody_and_lose_nothing(tmp_path):
    """Tables come and go, and versions are forgotten, as fast as they can while backups are taken."""
    data = tmp_path / "data"
    with Server(data=data) as server:
        filled(server, 20_000)

        def churn(ended):
            with Database(server) as database:
                number = 0
                while not ended.is_set():
                    name, number = f"gone_{number % 3}", number + 1
                    database.ingest(name, rows_for(6_000))
                    database.run(f"DELETE FROM {name} WHERE n % 2 = 0", f"VACUUM {name} RETAIN 0 HOURS", f"DROP TABLE {name}")

        with beside(churn):
            began = time.monotonic()
            for number in range(12):
                backup(data, tmp_path / f"b{number}")
                assert verify(tmp_path / f"b{number}", "--deep")["faults"] == []
                assert verify(data)["faults"] == [], "the server's own folder, as it runs"
            assert time.monotonic() - began < 60 * BUSY_FACTOR


def test_under_load_a_backup_is_of_one_moment(tmp_path):
    assert Rounds(tmp_path, 20260, 4).run() > 0
