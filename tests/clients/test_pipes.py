"""Pipes: files of a folder are loaded once each as they come, over pauses, restarts and kills."""

import random
import threading
import time

import pytest

from durable import Database
from server import BUSY_FACTOR, Server, wait_until

PIPE = "CREATE PIPE p EVERY '1 second' AS COPY INTO t FROM 'n-*.csv'"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.fixture
def db(folder, tmp_path):
    with Server(folder, data=tmp_path / "data") as server, Database(server) as db:
        db.run("CREATE TABLE t (n BIGINT, s VARCHAR DEFAULT 'none')")
        yield db


def put(folder, number, text=None):
    """A file that is there at once, with one row of this number."""
    beside = folder / f".{number}"
    beside.write_text(f"n,s\n{number},0{number}\n" if text is None else text)
    beside.rename(folder / f"n-{number}.csv")


def numbers(db):
    return [n for (n,) in db.rows("SELECT n FROM t ORDER BY n")]


def expect(db, expected):
    wait_until(lambda: numbers(db) == list(expected), f"the rows of {list(expected)}, not {numbers(db)}", 30.0)


def about(db, columns, pipe="p"):
    return db.rows(f"SELECT {columns} FROM bowshot.system.pipes WHERE name = '{pipe}'")


def test_new_files_are_loaded_once(db, folder):
    put(folder, 1)
    db.run(PIPE, "CREATE PIPE IF NOT EXISTS p AS COPY INTO t FROM 'other/*.csv'")
    expect(db, [1])
    put(folder, 2)
    put(folder, 3)
    expect(db, [1, 2, 3])
    # Types are those of the table: a text keeps its zeros.
    assert db.rows("SELECT s FROM t WHERE n = 2") == [("02",)]
    assert about(db, "table_name, state, files_loaded, rows_loaded, last_error, every") == [("t", "running", 3, 3, None, "1 second")]
    assert [row[:5] for row in db.rows("SHOW PIPES LIKE 'P%'")] == [("p", *about(db, "table_catalog, table_schema, table_name, location")[0])]
    ((loaded, location),) = about(db, "last_loaded, location")
    assert loaded is not None and location == str(folder / "n-*.csv")
    with pytest.raises(Exception, match="already exists"):
        db.run(PIPE)
    db.run("DROP PIPE p", "DROP PIPE IF EXISTS p")
    assert about(db, "name") == []
    with pytest.raises(Exception, match="pipe `p` not found"):
        db.run("ALTER PIPE p PAUSE")


def test_a_file_with_other_content_is_another_file(db, folder):
    db.run(PIPE)
    put(folder, 1)
    expect(db, [1])
    put(folder, 1, "n\n7\n8\n")
    expect(db, [1, 7, 8])
    assert db.rows("SELECT s FROM t WHERE n = 7") == [("none",)]


def test_a_file_that_cannot_be_loaded_stops_no_other(db, folder):
    db.run(PIPE)
    put(folder, 1)
    put(folder, 2, "n,s\nmany,x\n")
    put(folder, 3)
    expect(db, [1, 3])
    errors = "SELECT pipe, file, error FROM bowshot.system.pipe_errors"
    wait_until(lambda: len(db.rows(errors)) == 1, "the error is noted", 30.0)
    ((pipe, file, error),) = db.rows(errors)
    assert (pipe, file) == ("p", str(folder / "n-2.csv")) and "many" in error
    assert about(db, "state, files_loaded") == [("running", 2)]
    # It is tried again when it is told to, and when it has changed.
    db.run("ALTER PIPE p RETRY")
    assert db.rows(errors) == []
    wait_until(lambda: len(db.rows(errors)) == 1, "the error is noted again", 30.0)
    put(folder, 2)
    expect(db, [1, 2, 3])
    assert db.rows(errors) == []


def test_a_paused_pipe_loads_nothing_until_it_is_resumed(db, folder):
    db.run(PIPE, "ALTER PIPE p PAUSE", "CREATE TABLE other (n BIGINT, s VARCHAR)")
    db.run("CREATE PIPE beside EVERY '1 second' AS COPY INTO other FROM 'n-*.csv' (FORMAT csv, HEADER)")
    put(folder, 1)
    # When the other one has loaded the file twice looked at, this one had its chance too.
    wait_until(lambda: about(db, "files_loaded", "beside") == [(1,)], "the other pipe loads", 30.0)
    assert numbers(db) == [] and about(db, "state") == [("paused",)]
    with pytest.raises(Exception, match="is paused"):
        db.run("ALTER PIPE p REFRESH")
    db.run("ALTER PIPE p SET PIPE_EXECUTION_PAUSED = false")
    expect(db, [1])


def test_without_its_table_a_pipe_fails(db, folder):
    db.run(PIPE, "ALTER TABLE t RENAME TO gone")
    put(folder, 1)
    wait_until(lambda: about(db, "state") == [("failed",)], "the pipe fails", 30.0)
    ((error,),) = about(db, "last_error")
    assert "t` not found" in error
    db.run("ALTER TABLE gone RENAME TO t")
    expect(db, [1])
    wait_until(lambda: about(db, "state, last_error") == [("running", None)], "the pipe runs again", 30.0)


@pytest.mark.parametrize(("statement", "reason"), [
    ("CREATE PIPE x AS COPY INTO missing FROM 'n-*.csv'", "not found"),
    ("CREATE PIPE x AS COPY INTO t FROM '../*.csv'", "in no folder"),
    ("CREATE PIPE x AS COPY INTO t FROM '/etc/*.csv'", "in no folder"),
    ("CREATE PIPE x AS COPY INTO t FROM 's3://bucket/*.csv'", "location|store"),
    ("CREATE PIPE x AS COPY INTO t FROM 'n-*'", "cannot determine the format"),
    ("CREATE PIPE x AS COPY INTO t FROM 'n-*.csv' (headr)", "no option of COPY"),
    ("CREATE PIPE x AS COPY INTO t FROM 'n-*.csv' (OVERWRITE)", "option of COPY … TO"),
    ("CREATE PIPE x EVERY '1 ms' AS COPY INTO t FROM 'n-*.csv'", "invalid interval"),
    ("CREATE PIPE x EVERY '1 month' AS COPY INTO t FROM 'n-*.csv'", "invalid interval `1 month`"),
    ("CREATE PIPE x AS COPY INTO t", "ends too soon"),
    ("CREATE PIPE x AS COPY INTO t FROM 'n-*.csv' y", "was not expected"),
    ("ALTER PIPE x SET PIPE_EXECUTION_PAUSED = 3", "was not expected"),
    ("DROP PIPE x, y", "was not expected"),
])
def test_what_a_pipe_cannot_do_is_refused(db, statement, reason):
    with pytest.raises(Exception, match=reason):
        db.run(statement)
    assert about(db, "name", "x") == []


def test_kills_neither_lose_nor_double_a_file(folder, tmp_path):
    data, dice, files = tmp_path / "data", random.Random(7), 60
    with Server(folder, data=data) as server, Database(server) as db:
        db.run("CREATE TABLE t (n BIGINT, s VARCHAR)", PIPE)
    done = threading.Event()

    def add():
        for number in range(files):
            put(folder, number, None if number % 20 != 9 else "n,s\nbad,bad\n")
            done.wait(0.1)
        done.set()

    adding = threading.Thread(target=add)
    adding.start()
    for _ in range(4):
        server = Server(folder, data=data)
        time.sleep(dice.uniform(0.5, 2.5) * BUSY_FACTOR)
        server.kill()
        server.stop()
    adding.join()
    good = [number for number in range(files) if number % 20 != 9]
    # What was loaded stays so in a start without new files, too.
    for _ in range(2):
        with Server(folder, data=data) as server, Database(server) as db:
            expect(db, good)
            wait_until(lambda: db.one("SELECT count(*) FROM bowshot.system.pipe_errors") == files - len(good), "errors are noted", 30.0)
            assert about(db, "files_loaded, rows_loaded") == [(len(good), len(good))]
