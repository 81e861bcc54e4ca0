"""Durable tables whose files are in an object store: nothing of a data folder but its catalog is needed, others read what the
server has, and nothing is left of what is gone."""

import random
import shutil
import threading
import time

import duckdb
import pytest

import delta
import kept
from durable import Database, start_that_fails
from kept import identity, numbers, rows, settled, vacuumed
from program import bowshot
from server import beside, wait_until


@pytest.fixture
def place(s3, tmp_path, request):
    return kept.Place(s3, tmp_path, f"tables/{request.node.name}-{time.time_ns()}")


class Both:
    """A server with its tables in a store, and DuckDB, which get the same statements."""

    def __init__(self, database):
        self.database, self.duck = database, duckdb.connect()

    def add(self, new, mode="append"):
        self.database.ingest("t", new, mode=mode)
        self.duck.register("new", new)
        self.duck.execute("CREATE TABLE t AS FROM new" if mode == "create" else "INSERT INTO t FROM new")
        self.duck.unregister("new")

    def run(self, *statements):
        for sql in statements:
            self.database.run(sql)
            self.duck.execute(sql)

    def agree(self, database=None):
        sql = "SELECT id, value, note FROM t ORDER BY id, value"
        assert (database or self.database).rows(sql) == self.duck.execute(sql).fetchall()


CHANGES = (
    "UPDATE t SET value = value + 1 WHERE id % 7 = 3",
    "DELETE FROM t WHERE id % 11 = 5",
    "INSERT INTO t VALUES (-1, 0, 'few'), (-2, 0, NULL)",
    "UPDATE t SET note = 'changed' WHERE id < 100",
    "DELETE FROM t WHERE id BETWEEN 6000 AND 6100",
)


def test_nothing_but_the_catalog_is_needed(place):
    server = place.serve()
    both = Both(server.database)
    both.add(numbers(0, 12_000), "create")
    both.add(numbers(12_000, 30_000))
    both.run(*CHANGES)
    both.agree()
    # Again and again: killed, without the copies, with more changes of what is in the bucket alone.
    for step in range(3):
        history = versions(server.database)
        server.kill()
        place.lose_copies()
        server = place.serve()
        both.database = server.database
        both.agree()
        assert versions(server.database)[:len(history)] == history
        both.run(f"UPDATE t SET value = {step} WHERE id % 5 = {step}", f"DELETE FROM t WHERE id % 17 = {step}")
        both.add(numbers(100_000 * (step + 1), 100_000 * (step + 1) + 9_000))
        if step == 1:
            both.database.run("OPTIMIZE t")
        both.agree()
    both.database.run("VACUUM t RETAIN 0 HOURS")
    both.agree()
    table = settled(place, both.database)
    delta.assert_same(both.database.arrow("SELECT * FROM t"), place.by_deltalake(table))
    server.stop()


def versions(database):
    """Rows of each version that is kept, as time travel finds them."""
    kept_ones = database.rows("SELECT version FROM system.table_history WHERE table_name = 't' ORDER BY version")
    counted = []
    for (version,) in kept_ones:
        sql = f"SELECT count(*), coalesce(sum(id), 0), coalesce(sum(value), 0) FROM t FOR VERSION AS OF {version}"
        counted.append((version, *database.rows(sql)))
    return counted


def test_others_read_the_table_in_the_bucket(place):
    with place.serve() as server:
        database = server.database
        database.ingest("t", numbers(0, 8_000))
        table = identity(database, "t")
        wait_until(lambda: place.entries_of(table) == [0], "the first entry", 10)
        # Enough entries for a checkpoint.
        for step in range(1, 13):
            database.ingest("t", numbers(step * 10_000, step * 10_000 + 5_000), mode="append")
            # What comes before it is written becomes one entry.
            settled(place, database)
        database.run("DELETE FROM t WHERE id % 3 = 0", "INSERT INTO t VALUES (-1, 1, 'one')", "OPTIMIZE t")
        settled(place, database)
        ours = database.arrow("SELECT * FROM t")
        delta.assert_same(ours, place.by_deltalake(table))
        delta.assert_same(ours, place.by_duckdb(table))
        assert place.by_deltalake(table, version=0).num_rows == 8_000
        wait_until(lambda: f"{table}/_delta_log/_last_checkpoint" in place.names(), "a checkpoint", 10)
        entries = place.entries_of(table)
    place.lose_copies()
    # Who has nothing of the log goes on where it was, and gives no number twice.
    with place.serve() as server:
        server.database.ingest("t", numbers(500_000, 510_000), mode="append")
        settled(place, server.database)
        assert place.entries_of(table) == [*entries, entries[-1] + 1]
        ours = server.database.arrow("SELECT * FROM t")
        delta.assert_same(ours, place.by_deltalake(table))
        delta.assert_same(ours, place.by_duckdb(table))


def test_drop_and_vacuum_leave_nothing(place):
    with place.serve() as server:
        database = server.database
        database.ingest("t", numbers(0, 20_000))
        database.ingest("other", numbers(0, 10_000))
        table, other = identity(database, "t"), identity(database, "other")
        database.run("UPDATE t SET value = 0 WHERE id < 100", "DELETE FROM t WHERE id >= 19000")
        vacuumed(place, database, table)
        assert database.one("SELECT count(*) FROM t") == 19_000
        database.run("DROP TABLE t")
        wait_until(lambda: not any(name.startswith(table) for name in place.names()), "the table is gone", 10)
        assert len(place.rows_of(other)) == 1
        # A transaction that is rolled back, and a statement that fails.
        with Database(server, autocommit=False) as transaction:
            transaction.ingest("other", numbers(0, 30_000), mode="append")
            transaction.connection.rollback()
        wait_until(lambda: len(place.rows_of(other)) == 1, "what was rolled back is gone", 10)
        database.run("DROP TABLE other")
        wait_until(lambda: place.names() == [], "all is gone", 10)
    assert place.store.unfinished_uploads() == []


class Writer(threading.Thread):
    """Adds batches until the server is gone, and knows which were acknowledged."""

    def __init__(self, server, number, rows_of_batch):
        super().__init__(daemon=True)
        self.server, self.number, self.size = server, number, rows_of_batch
        self.begun, self.acknowledged = 0, set()

    def batch(self, step):
        first = (self.number * 10_000 + step) * 100_000
        return numbers(first, first + self.size)

    def run(self):
        try:
            with Database(self.server) as database:
                while True:
                    self.begun += 1
                    database.ingest("t", self.batch(self.begun), mode="append")
                    self.acknowledged.add(self.begun)
        except Exception:  # Killed.
            return


@pytest.mark.timeout(900)
def test_what_was_acknowledged_survives_a_kill_without_the_copies(place):
    pick = random.Random(place.prefix)
    there = {}
    for number in range(4):
        server = place.serve()
        if not there:
            server.database.ingest("t", numbers(0, 1))
        writers = [Writer(server, number * 10 + one, size) for one, size in enumerate((6_000, 20_000, 3))]
        for writer in writers:
            writer.start()
        time.sleep(pick.uniform(0.5, 2.0))
        server.kill()
        for writer in writers:
            writer.join()
        place.lose_copies()
        with place.serve() as checked:
            found = dict(checked.database.rows("SELECT id / 100000, count(*) FROM t WHERE id > 0 GROUP BY 1"))
        for batch, count in there.items():
            assert found[batch] == count, "what was there is there"
        for writer in writers:
            for step in range(1, writer.begun + 1):
                batch = writer.number * 10_000 + step
                if step in writer.acknowledged:
                    assert found.get(batch) == writer.size, f"batch {step} of writer {writer.number} was acknowledged"
                assert found.get(batch, writer.size) == writer.size, "all of a batch or nothing"
        there = found
    assert len(there) > 8, "hardly anything was written"
    with place.serve() as server:
        table = settled(place, server.database)
        # What the killed ones were uploading is gone, and what earlier versions had, too.
        vacuumed(place, server.database, table)
        server.database.run("DROP TABLE t")
        wait_until(lambda: place.names() == [], "all is gone", 20)


def test_a_place_has_one_owner(place, tmp_path):
    setting = ["--set", f"storage.tables={place.address}"]
    environment = place.store.environment()
    with place.serve() as server:
        server.database.ingest("t", numbers(0, 10_000))
        log = start_that_fails(tmp_path / "second", *setting, environment=environment)
        assert "another data folder" in log and "storage.tables" in log, log
    # A copy of the folder, once the first has gone on: the two go different ways.
    shutil.copytree(place.data, tmp_path / "copy")
    with place.serve() as server:
        assert server.database.one("SELECT count(*) FROM t") == 10_000
    before = place.names()
    log = start_that_fails(tmp_path / "copy", *setting, environment=environment)
    assert "another copy of this data folder" in log, log
    # A catalog that is gone takes its tables for nobody's, and removes none of them.
    (place.data / "catalog.sqlite").rename(tmp_path / "catalog.sqlite")
    shutil.rmtree(place.data / "tables")
    log = start_that_fails(place.data, *setting, environment=environment)
    assert "another data folder" in log, log
    assert place.names() == before


def test_the_setting_is_needed_and_checked(place, tmp_path):
    with place.serve() as server:
        server.database.ingest("t", numbers(0, 10_000))
    log = start_that_fails(place.data)
    assert place.address in log and "bowshot backup" in log, log
    for settings, words in (
        ((f"storage.tables={place.address}",), "--data DIR"),
        (("storage.tables=/local/folder",), "expected the address of an object store"),
    ):
        arguments = [word for setting in settings for word in ("--set", setting)]
        code, _, err = bowshot("serve", "--flight", "127.0.0.1:0", "--http", "off", *arguments)
        assert code == 2 and words in err, err
    overlapping = ["--set", f"storage.tables={place.address}", "--set", "object_store.exchange=s3://lake/tables"]
    code, _, err = bowshot("serve", "--data", tmp_path / "x", "--flight", "127.0.0.1:0", "--http", "off", *overlapping)
    assert code == 2 and "object_store.exchange" in err, err


def test_backups_are_whole_by_themselves(place, tmp_path):
    with place.serve() as server:
        server.database.ingest("t", numbers(0, 20_000))
        server.database.run("DELETE FROM t WHERE id < 10", "INSERT INTO t VALUES (-1, 1, 'one')")
        expected = rows(server.database)
        settled(place, server.database)
    place.lose_copies()
    environment = place.store.environment()
    code, out, _ = bowshot("verify", "--data", place.data)
    assert code == 0 and f"only in `{place.address}`" in out, out
    unreachable = place.store.environment(endpoint="http://127.0.0.1:9") | {"BOWSHOT_OBJECT_STORE_TIMEOUT": "2s"}
    code, _, err = bowshot("backup", tmp_path / "none", "--data", place.data, environment=unreachable)
    assert code == 1 and "s3://lake" in err and not (tmp_path / "none").exists(), err
    code, _, err = bowshot("backup", tmp_path / "backup", "--data", place.data, environment=environment)
    assert code == 0, err
    code, _, err = bowshot("restore", tmp_path / "backup", "--data", tmp_path / "back")
    assert code == 0, err
    code, out, _ = bowshot("verify", "--data", tmp_path / "back", "--deep")
    assert code == 0, out
    with kept.Remote(data=tmp_path / "back") as server:
        assert rows(server.database) == expected
    # What was made of a backup does not get the place of the folder that it is of.
    log = start_that_fails(tmp_path / "back", "--set", f"storage.tables={place.address}", environment=environment)
    assert "another data folder" in log, log


def test_copies_take_no_more_room_than_they_may(place):
    with place.serve("storage.tables_cache_bytes=1MiB") as server:
        database, mistakes = server.database, []
        database.ingest("t", numbers(0, 100_000))
        for step in range(1, 10):
            database.ingest("t", numbers(step * 100_000, (step + 1) * 100_000), mode="append")

        def ask(ended):
            with Database(server) as own:
                while not ended.is_set():
                    for sql, answer in (("SELECT count(*) FROM t", 1_000_000), ("SELECT count(note) FROM t", 923_076),
                                        ("SELECT max(id) FROM t WHERE value = 999", 999_333)):
                        try:
                            found = own.one(sql)
                        except Exception as error:  # A copy that goes must not be missed.
                            found = str(error)
                        if found != answer:
                            mistakes.append((sql, found))

        with beside(*[ask] * 3):
            wait_until(lambda: sum(path.stat().st_size for path in place.copies()) <= 1 << 20, "few copies", 30)
            database.run("UPDATE t SET value = value WHERE id < 300000")
            wait_until(lambda: sum(path.stat().st_size for path in place.copies()) <= 1 << 20, "few copies again", 30)
        assert mistakes == []
