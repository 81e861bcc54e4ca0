"""Durable tables in an object store that does not answer, answers with errors, or loses its answers: reads go on as far as
they can, nothing is half written, and afterwards everything is as it was told."""

import signal
import time

import pytest

import kept
import proxy as faults
from durable import Database
from kept import identity, numbers, rows, settled, vacuumed
from server import BUSY_FACTOR, beside, wait_until


@pytest.fixture
def place(s3, tmp_path, request):
    return kept.Place(s3, tmp_path, f"faults/{request.node.name}-{time.time_ns()}")


@pytest.fixture
def proxy(s3):
    with faults.Proxy(s3.port) as between:
        yield between


def all_down(proxy):
    proxy.refuses = lambda _handler: True


def all_up(proxy):
    proxy.refuses = lambda _handler: False
    proxy.fault = None


def refused(server, new):
    """The words of the server about rows that it does not take."""
    try:
        server.database.ingest("t", new, mode="append")
    except Exception as error:  # The driver has a class for each kind.
        assert kept.stores.SECRET not in str(error) and kept.stores.KEY not in str(error)
        return str(error)
    raise AssertionError("the rows were taken")


def takes(server, new):
    try:
        server.database.ingest("t", new, mode="append")
        return True
    except Exception:
        return False


def test_a_store_that_is_down_and_comes_back(place, proxy):
    with place.serve(endpoint=proxy.endpoint) as server:
        database = server.database
        database.ingest("t", numbers(0, 10_000))
        table = settled(place, database)
        before = place.names()
        all_down(proxy)
        # What is here is read, few rows are taken, files are not.
        assert database.one("SELECT count(*) FROM t") == 10_000
        text = refused(server, numbers(20_000, 40_000))
        assert place.address in text and "cannot be" in text, text
        database.run("INSERT INTO t VALUES (-1, 1, 'few')", "CREATE TABLE made (n BIGINT)", "INSERT INTO made VALUES (1)")
        began = time.monotonic()
        assert database.one("SELECT count(*) FROM t") == 10_001
        assert time.monotonic() - began < 4, "nobody waits for the store to read what is here"
        assert place.names() == before
        all_up(proxy)
        wait_until(lambda: takes(server, numbers(20_000, 40_000)), "files are written again", 20)
        assert database.one("SELECT count(*) FROM t") == 30_001
        settled(place, database)
        assert database.one("SELECT n FROM made") == 1
        database.run("VACUUM t RETAIN 0 HOURS")
        wait_until(lambda: place.rows_of(table) == place.files_in_log(table), "nothing half written is left", 20)


def test_what_is_not_here_says_so(place, proxy):
    with place.serve(endpoint=proxy.endpoint) as server:
        server.database.ingest("t", numbers(0, 10_000))
        settled(place, server.database)
    place.lose_copies()
    with place.serve("object_store.cache_bytes=0", endpoint=proxy.endpoint) as server:
        all_down(proxy)
        text = server.refused("SELECT sum(value) FROM t")
        assert "`bowshot.main.t`" in text and place.address in text, text
        server.database.run("CREATE TABLE few (n BIGINT)", "INSERT INTO few VALUES (1)")
        assert server.database.one("SELECT n FROM few") == 1
        all_up(proxy)
        assert server.database.one("SELECT count(*) FROM t WHERE value >= 0") == 10_000


def test_a_start_without_the_store(place, proxy):
    with place.serve(endpoint=proxy.endpoint) as server:
        server.database.ingest("t", numbers(0, 10_000))
        settled(place, server.database)
    all_down(proxy)
    with place.serve(endpoint=proxy.endpoint) as server:
        assert server.database.one("SELECT sum(id) FROM t") == sum(range(10_000))
        text = refused(server, numbers(20_000, 40_000))
        assert "yet" in text and place.address in text, text
        server.database.run("INSERT INTO t VALUES (-1, 1, 'few')")
        all_up(proxy)
        wait_until(lambda: takes(server, numbers(20_000, 40_000)), "files are written when it answers", 20)
        assert server.database.one("SELECT count(*) FROM t") == 30_001
        settled(place, server.database)


def test_a_place_that_was_taken_meanwhile(place, tmp_path):
    """The first start of a folder whose store does not answer, and which somebody else takes before it does."""
    with faults.Proxy(place.store.port) as between:
        all_down(between)
        with place.serve(endpoint=between.endpoint) as first:
            first.database.run("CREATE TABLE t (id BIGINT, value BIGINT, note VARCHAR)")
            with place.serve(data=tmp_path / "second") as second:
                second.database.ingest("t", numbers(0, 10_000))
                all_up(between)
                wait_until(lambda: "another data folder" in refused(first, numbers(0, 20_000)), "it is noticed", 20)
                settled(place, second.database)


FAULTS = {
    "slow down": faults.once_in(3, faults.status(503)),
    "broken connections": faults.once_in(4, faults.hang_up),
    "half of an answer": faults.once_in(2, faults.cut),
    "another part": faults.once_in(2, faults.other_range),
}


@pytest.mark.parametrize("name", FAULTS)
def test_everything_is_right_in_the_end(place, proxy, name):
    """An answer that is lost after a write went through must not make two of it, nor none."""
    settings = ("object_store.max_retries=8", "object_store.timeout=20s", "object_store.cache_bytes=0")
    with place.serve(*settings, endpoint=proxy.endpoint) as server:
        server.database.ingest("t", numbers(0, 10_000))
        proxy.fault = FAULTS[name]
        there = {0}
        for step in range(1, 8):
            if takes(server, numbers(step * 10_000, step * 10_000 + 6_000)):
                there.add(step)
        all_up(proxy)
        expected = {step: 10_000 if step == 0 else 6_000 for step in there}
        sql = "SELECT id / 10000, count(*) FROM t GROUP BY 1"
        assert dict(server.database.rows(sql)) == expected
        assert len(there) > 1, "hardly anything came through"
        server.kill()
    place.lose_copies()
    with place.serve(*settings, endpoint=proxy.endpoint) as server:
        proxy.fault = FAULTS[name]
        for _ in range(3):
            wait_until(lambda: answers(server, sql, expected), "the same rows", 30)
        all_up(proxy)
        table = settled(place, server.database)
        vacuumed(place, server.database, table)


def answers(server, sql, expected):
    """An error is none; another answer is a mistake."""
    try:
        found = dict(server.database.rows(sql))
    except Exception:
        return False
    assert found == expected
    return True


def test_a_store_that_is_stopped_and_goes_on(place):
    store = place.store
    with place.serve() as server:
        server.database.ingest("t", numbers(0, 10_000))
        settled(place, server.database)
        store.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            refused(server, numbers(20_000, 40_000))
            assert time.monotonic() - began < 30 * BUSY_FACTOR, "a wait has an end"
            assert server.database.one("SELECT count(*) FROM t") == 10_000
        finally:
            store.process.send_signal(signal.SIGCONT)
        wait_until(lambda: takes(server, numbers(20_000, 40_000)), "files are written again", 30)
        assert server.database.one("SELECT count(*) FROM t") == 30_000


def test_nobody_waits_for_a_store_that_hangs(place, proxy):
    """Statements that need nothing of it, while others wait for it."""
    with place.serve("object_store.timeout=8s", endpoint=proxy.endpoint) as server:
        server.database.ingest("t", numbers(0, 10_000))
        settled(place, server.database)
        proxy.fault = faults.late(6)
        with beside(*[lambda _: takes(server_of(server), numbers(20_000, 40_000))] * 3), Database(server) as own:
            for step in range(10):
                began = time.monotonic()
                own.run(f"INSERT INTO t VALUES ({-step - 1}, 1, 'few')")
                assert own.one("SELECT count(*) FROM t WHERE id < 0") == step + 1
                assert time.monotonic() - began < 6, "a statement of few rows waits for the store"
            all_up(proxy)
        assert len(rows(server.database)) >= 10_010
        assert identity(server.database, "t")


def server_of(server):
    """A connection of its own to the same server, as `takes` has it."""

    class Own:
        database = Database(server)

    return Own


def test_a_log_that_others_have_written_to_is_left_alone(place):
    with place.serve() as server:
        server.database.ingest("t", numbers(0, 10_000))
        table = settled(place, server.database)
        name = f"{table}/_delta_log/{1:020}.json"
        place.store.write(f"lake/{place.prefix}/{name}", b'{"commitInfo":{"operation":"OTHERS"}}\n')
        server.database.ingest("t", numbers(10_000, 20_000), mode="append")
        server.database.ingest("other", numbers(0, 10_000))
        settled(place, server.database, "other")
        assert server.database.one("SELECT count(*) FROM t") == 20_000
        assert place.entries_of(table) == [0, 1]
        with place.store.files.open_input_stream(f"lake/{place.prefix}/{name}") as stream:
            assert b"OTHERS" in stream.read()
        wait_until(lambda: "other programs do not see the newest rows" in server.log(), "the operator is told", 20)
