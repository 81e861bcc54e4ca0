"""Disks that fail under the caches: whatever it is, queries are answered, a metric counts it once, and a line in the log
names the file."""

import errno
import re
import shutil
import time

import pyarrow as pa
import pytest

from durable import Database
from faults import READ, WRITE, Faults
from server import Server, wait_until
from test_join_cache import EAGER, ON

ROWS = 20_000
JOINED = "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k"
# What is computed within 5 ms is not worth a file.
SLOW = ", ".join(f"max({'sin(' * 8}y + {n}{')' * 8})" for n in range(12))
GROUPED = f"SELECT y % 10 AS g, count(*) AS n, {SLOW} FROM b GROUP BY 1 ORDER BY 1"
CACHES = ["join_cache", "result_cache"]


@pytest.fixture
def disk(library, tmp_path):
    return Faults(library, tmp_path, tmp_path / "data")


def errors(server, cache, what):
    """How often a cache has stepped aside for that reason."""
    sample = re.search(rf'^bowshot_{cache}_errors_total{{what="{what}"}} (\d+)', server.get("/metrics")[2], re.MULTILINE)
    return int(sample[1]) if sample else 0


def make(db):
    numbers = pa.array(range(ROWS))
    db.ingest("a", pa.table({"k": numbers}))
    db.ingest("b", pa.table({"k": numbers, "y": pa.array([n % 1000 for n in range(ROWS)])}))


def on_disk(data, cache):
    return sorted((data / cache).glob("[0-9]*.json"))


def filled(data, environment=EAGER):
    """A data folder with a join and a result on disk, and the right answers."""
    with Server(data=data, environment=environment) as server, Database(server) as db:
        make(db)
        answers = right(db)
        for _ in range(2):
            db.rows(GROUPED)
        wait_until(lambda: all(on_disk(data, cache) for cache in CACHES), "files of both caches")
    return answers


def right(db):
    return [sorted(db.rows(JOINED)), db.rows(GROUPED)]


def spoil_middle(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)


def cut_in_half(file):
    with open(file, "r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize(("suffix", "spoil", "what"), [
    (".arrow", spoil_middle, "read"),
    (".arrow", cut_in_half, "open"),
    (".json", spoil_middle, "open"),
    (".json", cut_in_half, "open"),
])
def test_damage_is_told_once_and_computed_around(tmp_path, cache, suffix, spoil, what):
    data = tmp_path / "data"
    answers = filled(data)
    (described,) = on_disk(data, cache)
    file = described.with_suffix(suffix)
    spoil(file)
    with Server(data=data, environment=ON) as server, Database(server) as db:
        assert right(db) == answers
        assert errors(server, cache, what) == 1, server.log()
        assert sum(errors(server, cache, other) for other in ("open", "read", "write", "substitute", "history")) == 1
        assert str(file) in server.log()
        assert right(db) == answers


@pytest.mark.parametrize("cache", CACHES)
def test_descriptions_that_cannot_be_read_stay_for_the_next_start(tmp_path, disk, cache):
    data = tmp_path / "data"
    answers = filled(data)
    (described,) = on_disk(data, cache)
    there = {file: file.read_bytes() for file in (described, described.with_suffix(".arrow"))}
    disk.set(READ, errno.EIO, f"{cache}/{described.name}")
    with Server(data=data, environment={**ON, **disk.environment}) as server, Database(server) as db:
        assert right(db) == answers
        assert disk.hits and errors(server, cache, "open") == 1
        assert str(described) in server.log()
        disk.clear()
    assert {file: file.read_bytes() for file in there} == there


def test_a_history_that_cannot_be_read_begins_anew(tmp_path, disk):
    data = tmp_path / "data"
    answers = filled(data)
    disk.set(READ, errno.EIO, "join_cache/history.json")
    with Server(data=data, environment={**ON, **disk.environment}) as server, Database(server) as db:
        assert errors(server, "join_cache", "history") == 1 and "history.json" in server.log()
        disk.clear()
        assert right(db) == answers


def test_what_a_full_disk_refused_is_written_when_there_is_room(tmp_path, disk):
    """One line and one count for each minute; and after a minute everything that was refused."""
    data = tmp_path / "data"
    with Server(data=data, environment={**EAGER, **disk.environment}) as server, Database(server) as db:
        make(db)
        began = time.monotonic()
        disk.set(WRITE, errno.ENOSPC, "_cache/")
        answers = right(db)
        db.rows(GROUPED)
        for cache in CACHES:
            wait_until(lambda cache=cache: errors(server, cache, "write"), f"{cache} meets the full disk")
        others = [f"SELECT a.k, b.y FROM a JOIN b ON a.k = b.k AND a.k < b.y + {n}" for n in (1, 2)]
        counts = [len(db.rows(sql)) for sql in others]
        wait_until(lambda: errors(server, "join_cache", "history"), "the history meets it, too", 60)
        for cache, whats in (("join_cache", ["write", "history"]), ("result_cache", ["write"])):
            for what in whats:
                counted = errors(server, cache, what)
                assert 1 <= counted <= 1 + (time.monotonic() - began) // 60, (cache, what, server.log())
        log = server.log()
        assert re.search(rf"join cache steps aside.*{re.escape(str(data))}/join_cache/\d+\.arrow.*", log), log
        assert right(db) == answers and not on_disk(data, "join_cache")
        disk.clear()
        wait_until(lambda: len(on_disk(data, "join_cache")) == 3, "the joins are written", 80)
        wait_until(lambda: (data / "join_cache" / "history.json").exists(), "the history is written", 30)
        db.rows(GROUPED)
        wait_until(lambda: on_disk(data, "result_cache"), "the result is written")
        assert errors(server, "join_cache", "write") <= 1 + (time.monotonic() - began) // 60
    with Server(data=data, environment=ON) as server, Database(server) as db:
        assert right(db) == answers and [len(db.rows(sql)) for sql in others] == counts
        assert db.one("SELECT count(*) FROM bowshot.system.join_cache WHERE hits > 0") == 3


def take_away(folder, other=None):
    """In one step, since the server goes on writing; perhaps with another folder in its place."""
    gone = folder.with_name(f"{folder.name} that is gone")
    while True:
        folder.rename(gone)
        if other is None:
            break
        try:
            other.rename(folder)
            break
        except OSError:
            shutil.rmtree(gone)
    shutil.rmtree(gone)


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_folders_that_are_removed_while_the_server_runs(tmp_path, again):
    data = tmp_path / "data"
    answers = filled(data)
    with Server(data=data, environment=EAGER) as server, Database(server) as db:
        assert right(db) == answers
        for cache in CACHES:
            take_away(data / cache)
            if again:
                (data / cache).mkdir(exist_ok=True)
        db.run("INSERT INTO a VALUES (5)", "INSERT INTO b VALUES (100000, 6)")
        changed = right(db)
        assert len(changed[0]) == ROWS + 1 and changed[1] != answers[1]
        db.rows(GROUPED)
        wait_until(lambda: all(on_disk(data, cache) for cache in CACHES), "files in new folders")
        wait_until(lambda: (data / "join_cache" / "history.json").exists(), "the history in its new folder", 40)
        assert not any(errors(server, cache, "write") for cache in CACHES), server.log()
    with Server(data=data, environment=ON) as server, Database(server) as db:
        assert right(db) == changed
        assert not any(errors(server, cache, "open") for cache in CACHES), server.log()


def test_a_folder_that_somebody_else_has_filled_meanwhile_is_left_alone(tmp_path):
    data = tmp_path / "data"
    answers = filled(data)
    with Server(data=data, environment=EAGER) as server, Database(server) as db:
        assert right(db) == answers
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        (theirs / "12.arrow").write_text("theirs")
        take_away(data / "join_cache", theirs)
        db.run("INSERT INTO a VALUES (5)")
        assert len(db.rows(JOINED)) == ROWS + 1
        wait_until(lambda: errors(server, "join_cache", "write") == 1, "it is told")
        assert "none of the cache's" in server.log()
    assert [file.name for file in (data / "join_cache").iterdir()] == ["12.arrow"]


def test_a_join_that_runs_out_of_memory_is_told_and_its_parts_are_tried(tmp_path):
    """Computing takes more than the cache may have, though few rows come out: the built side is what is too large."""
    environment = {**EAGER, "BOWSHOT_JOIN_CACHE_MEMORY_BYTES": "4MiB", "BOWSHOT_JOIN_CACHE_WAIT": "5s"}
    with Server(data=tmp_path / "data", environment=environment) as server, Database(server) as db:
        for name in ("a", "b"):
            db.run(
                f"CREATE TABLE {name} AS SELECT value AS k, value % 10 AS part, repeat('{name}', 100) AS t "
                "FROM generate_series(1, 60000) AS g(value)"
            )
        sql = "SELECT a.k, a.t, b.t AS other FROM a JOIN b ON a.k = b.k"
        assert len(db.rows(f"{sql} WHERE a.t < b.t AND a.k < 10")) == 9
        assert db.one(f"SELECT count(*) FROM ({sql}) AS j WHERE length(j.t) + length(j.other) = 200") == 60_000
        wait_until(lambda: "is too large for the cache" in server.log(), "the warning")
        assert server.log().count("is too large for the cache") == 1
        assert 'fills_total{outcome="too_large"} 1' in server.get("/metrics")[2]
