"""Durable tables on a disk that fails: statements say so, readers go on, what was acknowledged stays, nothing is half."""

import errno
import os
import re
import shutil

import adbc_driver_flightsql.dbapi as dbapi
import pytest

from durable import Database, contents, rows_of, start_that_fails
from fault_workload import ALL, MANY, STATEMENTS, attempt, check, make_tables, observe
from faults import OPEN, READ, SHORT_WRITE, SYNC, WRITE, Faults
from server import Server

# Kind of call, error, and what of it a client must be told.
FAULTS = {
    "sync": (SYNC, errno.EIO, r"input/output|i/o error|sync"),
    "full": (WRITE, errno.ENOSPC, r"no space|is full|full"),
    "torn": (SHORT_WRITE, errno.ENOSPC, r"no space|is full|full"),
    "read-only": (OPEN, errno.EROFS, r"read-?only|unable to open"),
    "denied": (OPEN, errno.EACCES, r"permission|denied|read-?only|unable to open"),
}
PLACES = {"rows": ".parquet", "catalog": "catalog.sqlite", "log": "_delta_log", "anywhere": ""}
# Faults that a statement cannot miss; others are met in the background, or not at all while files stay open.
MET = {("sync", "catalog"), ("full", "catalog"), ("torn", "catalog"), ("full", "rows"), ("torn", "rows"), ("read-only", "rows")}


@pytest.fixture
def disk(library, tmp_path, data):
    return Faults(library, tmp_path, data)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails(data, disk, fault, place):
    kind, error, words = FAULTS[fault]
    # A server whose syncs fail cannot know what is on disk, and may refuse to change anything until it is started again.
    words = f"{words}|start the server again" if fault == "sync" else words
    with Server(data=data, environment=disk.environment) as server, Database(server) as db:
        make_tables(db)
        before = observe(db)
        assert before == {name: states[0] for name, states in STATEMENTS.items()}
        disk.set(kind, error, PLACES[place], skip=1 if place == "anywhere" else 0)
        errors = attempt(db, words)
        if (fault, place) in MET:
            assert disk.hits and any(errors.values()), errors
        during = observe(db)
        check(during, errors, unsure=fault == "sync")
        disk.clear()
        met = disk.hits
        if fault != "sync" or not met:
            db.run("INSERT INTO many VALUES (-1, 'the disk is good again')")
        # Half of them end as they should: what a failing disk did to the end itself must not matter either.
        log = server.kill() if place in ("catalog", "anywhere") else server.log()
        assert "panicked" not in log, log
    with Server(data=data) as server, Database(server) as db:
        after = observe(db)
        check(after, errors, unsure=fault == "sync")
        for name, state in during.items():
            assert state == STATEMENTS[name][0] or after[name] == state, f"{name} was seen and is lost"
        db.run("INSERT INTO many VALUES (-2, 'a new start')")
        ours = db.one("SELECT count(*) FROM many")
        assert ours == ALL[0] + 1 + (fault != "sync" or not met)


@pytest.mark.parametrize("skip", range(6))
def test_one_sync_that_fails_loses_nothing(data, disk, skip):
    """The error of one sync may come to a statement, or to work in the background; never is it forgotten."""
    acknowledged, unknown = [], []
    with Server(data=data, environment=disk.environment) as server, Database(server) as db:
        db.run("CREATE TABLE t (x BIGINT)")
        disk.set(SYNC, errno.EIO, skip=skip, times=1)
        for number in range(10):
            try:
                db.run(f"INSERT INTO t VALUES ({number})")
                acknowledged.append(number)
            except dbapi.Error:
                unknown.append(number)
        assert disk.hits == 1
        server.kill()
    with Server(data=data) as server, Database(server) as db:
        found = [x for (x,) in db.rows("SELECT x FROM t ORDER BY x")]
    assert len(found) == len(set(found)) and set(acknowledged) <= set(found) <= {*acknowledged, *unknown}


def test_what_is_acknowledged_was_synced(data, disk):
    with Server(data=data, environment=disk.environment) as server, Database(server) as db:
        db.run("CREATE TABLE t (x BIGINT, word VARCHAR)")
        disk.trace()
        db.run("INSERT INTO t VALUES (1, 'a')")
        assert "catalog.sqlite-wal" in disk.synced()
        folder = db.location("t")
        old = set(rows_of(folder))
        disk.trace()
        db.ingest("t", MANY, mode="append")
        synced = disk.synced()
        new = [path.relative_to(data.resolve()) for path in rows_of(folder) if path not in old]
        assert new, "100,000 rows are a file of their own"
        assert "catalog.sqlite-wal" in synced
        for path in new:
            assert str(path) in synced
            assert str(path.parent) in synced, "a file whose folder is not synced may be lost with its name"


def test_a_file_that_cannot_be_read(data, disk):
    with Server(data=data) as server, Database(server) as db:
        make_tables(db)
        db.run("CREATE TABLE other AS SELECT * FROM many")
        folder = db.location("many")
    with Server(data=data, environment=disk.environment) as server, Database(server) as db:
        disk.set(READ, errno.EIO, f"{folder.name}/")
        with pytest.raises(dbapi.Error, match=re.compile(rf"{folder.name}|input/output", re.IGNORECASE)):
            db.rows("SELECT sum(x), min(word) FROM many")
        assert disk.hits
        assert db.rows("SELECT count(*), sum(x) FROM other") == [ALL]
        disk.clear()
        assert db.rows("SELECT count(*), sum(x) FROM many") == [ALL]


def test_a_dropped_table_whose_folder_cannot_be_removed(data, disk):
    """It is known as dropped until it is gone: else the catalog would look older than a table beside it, and be refused."""
    with Server(data=data, environment=disk.environment) as server, Database(server) as db:
        db.ingest("t", MANY)
        folder = db.location("t")
        disk.set(OPEN, errno.EACCES, folder.name)
        db.run("DROP TABLE t", "CREATE TABLE other AS SELECT 1 AS x")
    for _ in range(2):
        with Server(data=data, environment=disk.environment) as server, Database(server) as db:
            assert db.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'") == [("other",)]
        assert disk.hits and rows_of(folder)
    with Server(data=data) as server, Database(server) as db:
        assert db.one("SELECT x FROM other") == 1
    assert not folder.exists()


def fill(data):
    with Server(data=data) as server, Database(server) as db:
        db.ingest("t", MANY)
        db.run("INSERT INTO t VALUES (-1, 'small')")


def test_a_folder_that_is_read_only(data):
    fill(data)
    before = contents(data)
    paths = [data, *data.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    # Permissions bind root only without the capability to override them.
    prefix = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]
    try:
        for path in paths:
            path.chmod(modes[path] & ~0o222)
        log = start_that_fails(data, prefix=prefix if os.geteuid() == 0 else ())
        assert str(data) in log and re.search(r"permission denied|read-?only", log, re.IGNORECASE), log
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert contents(data) == before
    with Server(data=data) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == ALL[0] + 1


def test_a_folder_on_a_file_system_that_is_read_only(data, disk):
    fill(data)
    before = contents(data)
    disk.set(OPEN, errno.EROFS)
    log = start_that_fails(data, environment=disk.environment)
    assert disk.hits and str(data) in log and re.search(r"read-?only", log, re.IGNORECASE), log
    assert contents(data) == before


def test_a_folder_has_one_server(data):
    with Server(data=data) as server, Database(server) as db:
        db.run("CREATE TABLE t (x BIGINT)")
        log = start_that_fails(data)
        assert str(data) in log and re.search(r"in use|lock|another", log), log
        db.run("INSERT INTO t VALUES (1)")
    copy = data.with_name("copy")
    shutil.copytree(data, copy)
    with Server(data=data), Server(data=copy) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 1
