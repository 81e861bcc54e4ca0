"""Cancelling, time limits, Ctrl-C, and servers that die."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import types

import pyarrow as pa
import pytest
from conftest import ENDLESS, LONG, PATIENCE, running, side_by_side, wait_for

import bowshot


@contextlib.contextmanager
def repeated(work, pause=0.5):
    """Does something again and again beside a block, until the block ends: a cancel may come before what it is to end."""
    ended = threading.Event()

    def repeat():
        while not ended.wait(pause):
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def later(work, *arguments, seconds=0.5):
    timer = threading.Timer(seconds, work, arguments)
    timer.daemon = True
    timer.start()
    return timer


@pytest.mark.parametrize("how", ["batches", "arrow"])
@pytest.mark.parametrize("endpoints", ["1", "4"])
def test_cancel_while_rows_are_read(shared, connection, how, endpoints):
    with shared.connect(autocommit=True, options={"endpoints": endpoints}) as other:
        result = other.sql(LONG)
        later(result.cancel)
        with pytest.raises(bowshot.QueryCancelledError) as caught:
            for _ in getattr(result, how)():
                pass
        assert caught.value.query_id == result.query_id
        wait_for(lambda: not running(connection))
        assert other.sql("SELECT 1").arrow().num_rows == 1


def test_cancel_before_the_answer(shared, connection):
    with shared.connect(autocommit=True) as other:
        for stop in (other.cancel, None):
            cursor = other.cursor()
            with repeated(stop or cursor.cancel), pytest.raises(bowshot.QueryCancelledError):
                cursor.execute(ENDLESS)
            wait_for(lambda: not running(connection))
        cursor = other.cursor()
        with repeated(cursor.cancel), pytest.raises(bowshot.QueryCancelledError):
            cursor.execute(ENDLESS.replace("c.n *", "c.n * ? *"), [1])
        assert other.cancel() == 0


def test_time_limits(shared, connection):
    with shared.connect(autocommit=True, timeout=0.5) as other:
        for statement in (lambda: other.sql(ENDLESS), lambda: other.execute(ENDLESS), lambda: other.sql(LONG).arrow()):
            with pytest.raises(bowshot.StatementTimeoutError):
                statement()
        with pytest.raises(bowshot.StatementTimeoutError):  # noqa: PT012
            for _ in other.sql(LONG).batches():
                time.sleep(0.05)
        assert other.sql("SELECT count(*) FROM numbers", timeout=60).arrow().num_rows == 1
    wait_for(lambda: not running(connection))


INTERRUPTED = """
import sys, bowshot
connection = bowshot.connect(sys.argv[1], autocommit=True)
print("ready", flush=True)
try:
    result = connection.sql(sys.argv[2])
    if sys.argv[3] == "arrow":
        result.arrow()
    for batch in result.batches():
        pass
except KeyboardInterrupt:
    print("interrupted", connection.sql("SELECT 1 AS one").arrow().to_pylist(), flush=True)
"""


@pytest.mark.parametrize(
    ("sql", "how"), [(ENDLESS, "batches"), (LONG, "batches"), (LONG, "arrow")], ids=["answer", "batches", "arrow"]
)
def test_ctrl_c(shared, connection, sql, how):
    command = [sys.executable, "-c", INTERRUPTED, shared.uri, sql, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        wait_for(lambda: running(connection))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted [{'one': 1}]\n"
        assert process.wait(PATIENCE) == 0
    wait_for(lambda: not running(connection))


INTERRUPTED_ANYWHERE = """
import random, signal, sys, bowshot

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
chance = random.Random(7)
options = {"autocommit": True, "options": {"endpoints": "4"}, "same_host": sys.argv[3] == "memory"}
for number in range(30):
    with bowshot.connect(sys.argv[1], **options) as connection:
        result = connection.sql(sys.argv[2])
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.02, 0.15))
        try:
            for batch in result.batches():
                pass
        except KeyboardInterrupt:
            result.close()
        assert connection.sql("SELECT 1 AS one").arrow().to_pylist() == [{"one": 1}]
        print(number, flush=True)
"""


@pytest.mark.parametrize("transport", ["memory", "socket"])
def test_interrupts_are_heard_wherever_they_come(shared, connection, transport):
    """Between two lines of a reader's, or where a batch goes: none is swallowed, and none leaves a lock behind."""
    command = [sys.executable, "-c", INTERRUPTED_ANYWHERE, shared.uri, LONG, transport]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == [str(number) for number in range(30)]
    wait_for(lambda: not running(connection))


INGEST = """
import sys, bowshot, pyarrow as pa
connection = bowshot.connect(sys.argv[1], autocommit=True)
def batches():
    number = 0
    while True:
        yield pa.record_batch({"a": range(10_000)})
        number += 1
        if number == 20:
            print("writing", flush=True)
try:
    connection.ingest(sys.argv[2], batches())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_ingest_that_is_stopped_writes_nothing(shared, connection, table, how):
    with subprocess.Popen([sys.executable, "-c", INGEST, shared.uri, table], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(how)
        process.wait(120)
    wait_for(lambda: not running(connection))
    with pytest.raises(bowshot.NotFoundError):
        connection.table(table).count()


@pytest.mark.parametrize("how", ["batches", "arrow"])
def test_a_server_that_dies_while_rows_are_read(folder, how):
    with bowshot.server(folder) as server:
        connection = server.connect(autocommit=True, options={"endpoints": "4"})
        result = connection.sql(LONG)
        if how == "batches":
            assert next(result.batches()).num_rows > 0
            result = connection.sql(LONG)
        later(os.kill, server.process.pid, signal.SIGKILL)
        with pytest.raises(bowshot.OperationalError):
            for _ in getattr(result, how)():
                pass
        with pytest.raises(bowshot.OperationalError):
            connection.sql("SELECT 1")
        connection.close()


def test_a_server_that_dies_while_rows_are_written(folder, tmp_path):
    data = tmp_path / "data"
    rows = pa.record_batch({"a": range(1000)})
    with bowshot.server(folder, data=data) as server:
        connection = server.connect(autocommit=True)
        connection.ingest("kept", [rows])

        def dying():
            yield rows
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            while True:
                yield rows

        with pytest.raises(bowshot.Error):
            connection.ingest("kept", dying(), mode="append")
        connection.close()
    with bowshot.server(folder, data=data) as again, again.connect() as connection:
        assert connection.table("kept").count() == 1000


def test_a_session_that_is_gone_is_an_error_and_no_new_session(folder):
    with bowshot.server(folder) as server:
        connection = server.connect(autocommit=True, options={"schema": "system"})
        other = server.connect(autocommit=True)
        # Another connection of the same session ends it.
        other._wire._cookies.session = connection.session_id
        other.close()
        with pytest.raises(bowshot.NotFoundError, match="session"):
            connection.sql("SELECT 1")
        connection.close()


def test_many_connections_at_once(shared):
    def work(number):
        with shared.connect(autocommit=True) as connection:
            return connection.sql("SELECT ? + 0 AS n, count(*) FROM numbers", [number]).arrow()["n"][0].as_py()

    assert side_by_side(work, 24) == list(range(24))


def test_progress_is_shown_and_taken_away(connection):
    import io

    from bowshot._progress import Progress, line

    out = io.StringIO()
    with Progress(lambda: (0.5, 1234), out):
        wait_for(lambda: "1,234 rows" in out.getvalue())
    assert "50%" in out.getvalue()
    assert "1,234 rows" in out.getvalue()
    assert out.getvalue().endswith(" \r")
    assert "running" in line(None, 5, 1.0)
    # Nobody sits before this terminal.
    assert not Progress.wanted(None)


def test_progress_is_shown_in_notebooks(monkeypatch):
    from bowshot._progress import Progress

    for shell, wanted in ((types.SimpleNamespace(kernel=1), True), (types.SimpleNamespace(), False), (None, False)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert Progress.wanted(None) is wanted
    assert Progress.wanted(False) is False


def test_progress_of_a_query(connection, monkeypatch):
    import io

    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)

    def cancel():
        if "%" in shown.getvalue():
            connection.cancel()

    with repeated(cancel), pytest.raises(bowshot.QueryCancelledError):
        connection.sql(ENDLESS, progress=True)
    assert "%" in shown.getvalue()
