"""Answers with the join cache are those without it: random joins over tables that are changed meanwhile, both answers of
one snapshot. And: what is cached, foretold, brought up to date, kept over a restart, and left alone."""

import collections
import contextlib
import os
import random
import threading

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database
from join_cases import Named, Table, cases
from server import computing, wait_until

CASES = int(os.environ.get("BOWSHOT_JOIN_CASES", "100"))
SEED = int(os.environ.get("BOWSHOT_JOIN_SEED", "1"))
ON = {"BOWSHOT_JOIN_CACHE_ENABLED": "true"}
# Rows of a table that is changed while it is asked.
MAX_ROWS = 60
EAGER = {**ON, "BOWSHOT_JOIN_CACHE_FILL_AFTER": "1", "BOWSHOT_JOIN_CACHE_WAIT": "20s"}


@contextlib.contextmanager
def serving(*sources, data="memory", environment=EAGER):
    with computing(*sources, data=data, environment=environment) as server, Database(server) as db:
        yield server, db


def rows_of(db, sql):
    """The rows in an order of their own, or the error's kind."""
    try:
        rows = db.rows(sql)
    except Exception as error:
        return str(error).split(":")[0]
    return sorted(map(repr, rows))


def hits(db):
    return db.one("SELECT coalesce(sum(hits), 0) FROM bowshot.system.join_cache")


def wrong(db, sql, tables, seen=None):
    """The answers with and without the cache, of one snapshot, if the one with the cache is wrong. Where they differ, a
    third engine judges on the same snapshot: DataFusion 55.2 takes a filter above an outer join to the other side when
    both have a column of that name, which the cache, having no join left, does not. `seen` counts the answers, and those
    with rows."""
    db.run("BEGIN", "SET join_cache = 'on'")
    try:
        there = rows_of(db, sql)
        if seen is not None:
            seen.update({"answers": isinstance(there, list), "with rows": isinstance(there, list) and bool(there)})
        db.run("SET join_cache = 'off'")
        computed = rows_of(db, sql)
        if there == computed:
            return None
        with duckdb.connect() as judge:
            for table in tables:
                rows = db.arrow(f"SELECT * FROM {table.name}")
                judge.execute(f"CREATE TABLE {table.name} AS SELECT * FROM rows")
            truth = sorted(map(repr, judge.execute(sql).fetchall()))
        return None if there == truth else (sql, there, computed, truth)
    finally:
        db.run("ROLLBACK")


class Writer(threading.Thread):
    """Changes tables until it is told to stop."""

    def __init__(self, server, tables, seed, pause):
        super().__init__()
        self.server, self.tables, self.dice, self.pause = server, tables, random.Random(seed), pause
        self.stopping, self.failure, self.changes = threading.Event(), None, 0

    def database(self):
        return Database(self.server)

    def change(self):
        return self.dice.choice(self.tables).change(self.dice)

    def made(self, statement):
        """Counts a change that was made."""
        self.changes += 1

    def run(self):
        try:
            with self.database() as db:
                while not self.stopping.wait(self.pause):
                    with contextlib.suppress(Exception):
                        statement = self.change()
                        db.run(statement)
                        self.made(statement)
                        # However slow the machine is: joins of tables that only grow end in billions of rows.
                        table = self.dice.choice(self.tables).name
                        if db.one(f"SELECT count(*) FROM {table}") > MAX_ROWS:
                            db.run(f"DELETE FROM {table} LIMIT {MAX_ROWS // 2}")
        except Exception as error:
            self.failure = error

    def stop(self):
        self.stopping.set()
        self.join()
        assert self.failure is None and self.changes > 0


def differences(server, db, tables, seed, count, pause, seen):
    writer = Writer(server, tables, seed, pause) if pause else None
    if writer:
        writer.start()
    found = []
    try:
        for sql in cases(seed, tables, count):
            difference = wrong(db, sql, tables, seen)
            if difference:
                found.append(difference)
    finally:
        if writer:
            writer.stop()
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pause, wait", [
    (None, "20s"),
    (0.2, "0s"),
    pytest.param(0.2, "20s", marks=pytest.mark.long),
    pytest.param(0.01, "20s", marks=pytest.mark.long),
    pytest.param(None, "0s", marks=pytest.mark.long),
])
def test_random_joins_give_what_they_give_without_the_cache(pause, wait, tmp_path):
    """Without waiting, plans are taken apart where the tables of a cached join are, and learned from later."""
    seen, rounds = collections.Counter(), max(1, CASES // 200)
    with serving(data=tmp_path / "data", environment={**EAGER, "BOWSHOT_JOIN_CACHE_WAIT": wait}) as (server, db):
        for round_, seed in enumerate(range(SEED, SEED + rounds)):
            dice = random.Random(seed)
            tables = [Table(f"r{round_}_{name}", dice) for name in "abcd"]
            for table in tables:
                db.run(table.create(dice), table.insert(dice, dice.randint(1, 40)))
            found = differences(server, db, tables, seed, min(CASES, 200), pause, seen)
            assert not found, f"{len(found)} wrong, seed {seed}, the first: {found[0]}"
        asked, given = rounds * min(CASES, 200), server.metrics()["bowshot_join_cache_hits_total"]
        print(f"{asked} asked, {dict(seen)}, {given:.0f} given from the cache")
        assert seen["answers"] > 0.9 * asked and seen["with rows"] > asked / 4, (asked, seen)
        assert given > (asked / 4 if wait != "0s" and not pause else 0), f"{given} of {asked} were given from the cache"
        assert "the join cache steps aside" not in server.log()


def as_parquet(table, folder, name):
    pq.write_table(table, folder / f"{name}.parquet")


def as_delta(table, folder, name):
    deltalake.write_deltalake(folder / name, table)


def sales(folder, day, write=as_parquet, rows=50):
    """The two tables of a day."""
    keys = pa.array([place % 10 for place in range(rows)], pa.int64())
    write(pa.table({"store": keys, "amount": pa.array(range(rows))}), folder, f"sales{day}")
    names = pa.array([f"store {place}" for place in range(10)])
    write(pa.table({"id": pa.array(range(10), pa.int64()), "name": names}), folder, f"stores{day}")


def daily(day):
    return f"SELECT s.amount, t.name FROM sales{day} s JOIN stores{day} t ON s.store = t.id"


@pytest.mark.parametrize("write", [as_parquet, as_delta])
def test_the_third_day_is_computed_before_it_is_asked_for(write, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    sales(folder, 20210803, write)
    sales(folder, 20210804, write)
    with serving(folder, environment=ON) as (_, db):
        for day in (20210803, 20210804):
            # Files that were written a moment ago have no version that can be relied on.
            wait_until(lambda: "JoinCache: miss" in str(db.rows("EXPLAIN " + daily(day))), "files that have settled")
            assert len(db.rows(daily(day))) == 50
        sales(folder, 20210805, write)
        there = "SELECT count(*) FROM bowshot.system.join_cache WHERE tables = 'sales20210805, stores20210805' AND forecast"
        wait_until(lambda: db.one(there) == 1, "the join of the third day")
        before = hits(db)
        assert len(db.rows(daily(20210805))) == 50
        assert hits(db) == before + 1
        assert "JoinCache: hit" in str(db.rows("EXPLAIN " + daily(20210805)))


def test_narrower_queries_and_aggregates_use_the_wider_join(tmp_path):
    with serving() as (_, db):
        db.run("CREATE TABLE a (k BIGINT, x INT)", "INSERT INTO a VALUES (1, 10), (2, 20), (3, 30)")
        db.run("CREATE TABLE b (k BIGINT, y VARCHAR)", "INSERT INTO b VALUES (1, 'p'), (2, 'q'), (2, 'r')")
        assert len(db.rows("SELECT a.x, b.y, a.k FROM a JOIN b ON a.k = b.k")) == 3
        before = hits(db)
        for sql, rows in [
            ("SELECT u.y FROM b u, a v WHERE v.k = u.k", [("p",), ("q",), ("r",)]),
            ("SELECT y FROM a JOIN b USING (k) WHERE x > 15", [("q",), ("r",)]),
            ("SELECT sum(a.x) FROM b INNER JOIN a ON b.k = a.k", [(50,)]),
            ("SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE b.y = 'q' AND a.x = 20", [(1,)]),
        ]:
            assert sorted(db.rows(sql)) == rows, sql
        assert hits(db) == before + 4


def test_queries_do_not_wait_for_what_is_learned_of_them():
    eager = {**ON, "BOWSHOT_JOIN_CACHE_FILL_AFTER": "1"}
    sql = "SELECT x.k, v.n FROM a x JOIN v ON x.k = v.k"
    with serving(environment=eager) as (_, db):
        db.run("CREATE TABLE a (k BIGINT DEFAULT 7)", "INSERT INTO a VALUES (1), (2), (3)")
        db.run("CREATE TABLE b (k BIGINT, n BIGINT)", "INSERT INTO b VALUES (1, 10), (2, 20)")
        db.run("CREATE VIEW v AS SELECT k, n FROM b")
        assert sorted(db.rows(sql)) == [(1, 10), (2, 20)]
        # The history knows what has been asked, whoever learns it.
        assert db.rows("SELECT tables, count FROM bowshot.system.join_history") == [("a, b", 1)]
        wait_until(lambda: "JoinCache: hit" in str(db.rows("EXPLAIN " + sql)), "the join")
        before = hits(db)
        assert sorted(db.rows(sql)) == [(1, 10), (2, 20)]
        assert hits(db) == before + 1
        db.run("INSERT INTO b VALUES (3, 30)")
        assert sorted(db.rows(sql)) == [(1, 10), (2, 20), (3, 30)]
        wait_until(lambda: "JoinCache: hit" in str(db.rows("EXPLAIN " + sql)), "the newer join")


def test_what_may_change_is_never_cached():
    with serving() as (_, db):
        db.run("CREATE TABLE a (k BIGINT)", "INSERT INTO a VALUES (1)")
        for sql in [
            "SELECT random() FROM a x JOIN a y ON x.k = y.k AND random() < 2",
            "SELECT * FROM a JOIN bowshot.system.queries q ON a.k = q.rows",
            "SELECT * FROM a x JOIN (SELECT k FROM a LIMIT 1) y ON x.k = y.k",
        ]:
            db.rows(sql)
        assert db.rows("SELECT tables FROM bowshot.system.join_cache WHERE tables LIKE '%queries%'") == []
        assert "not cached" in str(db.rows("EXPLAIN SELECT * FROM a x JOIN a y ON x.k = y.k AND random() < 2"))
        db.run("BEGIN", "INSERT INTO a VALUES (2)")
        assert db.one("SELECT count(*) FROM a x JOIN a y ON x.k = y.k") == 2
        db.run("ROLLBACK")
        assert db.one("SELECT count(*) FROM a x JOIN a y ON x.k = y.k") == 1


def test_an_append_is_joined_by_itself():
    with serving() as (server, db):
        values = ", ".join(f"({place})" for place in range(100))
        db.run("CREATE TABLE a (k BIGINT)", f"INSERT INTO a VALUES {values}")
        sql = "SELECT x.k FROM a x JOIN a y ON x.k = y.k"
        assert len(db.rows(sql)) == 100
        db.run("INSERT INTO a VALUES (5), (1000)")
        # The first answer may be computed by itself; some look later the cached one is up to date.
        wait_until(lambda: len(db.rows(sql)) == 104 and server.metrics().get("bowshot_join_cache_updates_total", 0), "an update")
        before = hits(db)
        assert len(db.rows(sql)) == 104
        assert hits(db) == before + 1


@pytest.mark.parametrize(("first", "rows"), [(9_999, [(9_999, "p")]), (20_000, [])], ids=["one row", "empty"])
def test_cached_joins_of_lasting_tables_survive_a_restart(tmp_path, first, rows):
    data = tmp_path / "data"
    sql = "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k"
    with serving(data=data) as (_, db):
        # Few rows would move from the catalog into a file some time later, and be another version there.
        db.ingest("a", pa.table({"k": pa.array(range(10_000))}))
        db.ingest("b", pa.table({"k": pa.array(range(first, first + 10_000)), "y": ["p"] * 10_000}))
        assert db.rows(sql) == rows
        wait_until(lambda: db.one("SELECT count(*) FROM bowshot.system.join_cache WHERE disk_bytes > 0"), "a file")
    # Without waiting: the query is looked at because the joins of the disk are known.
    with serving(data=data, environment=ON) as (server, db):
        for uses in (1, 2, 3):
            assert db.rows(sql) == rows and hits(db) == uses
        assert "the join cache steps aside" not in server.log()


BY_TEXT = [
    ("SELECT b.city, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY b.city", "text_of"),
    ("SELECT b.city, a.word, sum(a.x) AS n FROM a JOIN b ON a.k = b.k GROUP BY b.city, a.word", "codes_together"),
    ("SELECT a.word, a.x % 3, max(b.city) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.word, a.x % 3", "text_of"),
    ("SELECT DISTINCT b.city, a.word FROM a JOIN b ON a.k = b.k", "codes_together"),
    ("SELECT a.word, count(DISTINCT b.city) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.word", "text_of"),
    ("SELECT sum(a.x) FROM a JOIN b ON a.k = b.k WHERE b.city = 'city 3'", "code_is_in"),
    ("SELECT sum(a.x) FROM a JOIN b ON a.k = b.k WHERE b.city LIKE '%1' AND a.word <> 'even'", "code_is_in"),
    ("SELECT sum(a.x) FROM a JOIN b ON a.k = b.k WHERE b.city = 'nowhere'", "code_is_in"),
    ("SELECT sum(a.x) FROM a JOIN b ON a.k = b.k WHERE b.city IS NULL", None),
]


def by_text(db, tables):
    for sql, mark in BY_TEXT:
        db.run("SET join_cache = 'on'")
        wait_until(lambda: "JoinCache: hit" in str(db.rows("EXPLAIN " + sql)), "the join")
        plan = str(db.rows("EXPLAIN " + sql))
        assert mark in plan if mark else "code_is_in" not in plan, sql
        assert wrong(db, sql, tables) is None
    db.run("SET join_cache = 'on'")


def test_texts_are_grouped_and_compared_by_their_codes(tmp_path):
    data, rows = tmp_path / "data", 30_000
    everything = "SELECT a.k, a.x, a.word, b.city FROM a JOIN b ON a.k = b.k"
    words = [[None, "odd", "even"][place % 3] for place in range(rows)]
    cities = [None if place % 7 == 0 else f"city {place % 13}" for place in range(rows)]
    with serving(data=data) as (server, db):
        db.ingest("a", pa.table({"k": [place % 1_000 for place in range(rows)], "x": range(rows), "word": words}))
        # Few rows would move from the catalog into a file some time later, and be another version there.
        db.ingest("b", pa.table({"k": range(rows), "city": cities}))
        assert len(db.rows(everything)) == rows
        by_text(db, [Named("a"), Named("b")])
        bytes_ = db.one("SELECT max(bytes) FROM bowshot.system.join_cache")
        more = pa.table({"k": [5, 7, 8] * 4_000, "x": range(12_000), "word": ["new", None, "odd"] * 4_000})
        db.ingest("a", more, mode="append")
        assert len(db.rows(everything)) == rows + 12_000
        by_text(db, [Named("a"), Named("b")])
        assert db.one("SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE a.word = 'new'") == 4_000
        assert server.metrics().get("bowshot_join_cache_updates_total", 0) > 0
        assert db.one("SELECT max(bytes) FROM bowshot.system.join_cache") < bytes_ * 42 / 30 * 1.03
        wait_until(lambda: db.one("SELECT count(*) FROM bowshot.system.join_cache WHERE disk_bytes > 0"), "a file")
    with serving(data=data) as (_, db):
        by_text(db, [Named("a"), Named("b")])
        assert db.one("SELECT min(place) FROM bowshot.system.join_cache") == "disk"


def test_joins_of_dropped_tables_leave_with_their_files(tmp_path):
    data = tmp_path / "data"
    with serving(data=data) as (_, db):
        db.ingest("a", pa.table({"k": pa.array(range(10_000))}))
        db.ingest("b", pa.table({"k": pa.array(range(10_000)), "y": ["secret"] * 10_000}))
        assert len(db.rows("SELECT a.k, b.y FROM a JOIN b ON a.k = b.k")) == 10_000
        folder = data / "join_cache"
        wait_until(lambda: list(folder.glob("*.arrow")), "a file")
        db.run("DROP TABLE b")
        wait_until(lambda: not list(folder.glob("*.arrow")), "the file of the dropped table to go")
        assert db.one("SELECT count(*) FROM bowshot.system.join_cache") == 0


def test_statements_steer_the_cache():
    with serving(environment=ON) as (_, db):
        db.run("CREATE TABLE a (k BIGINT)", "INSERT INTO a VALUES (1)")
        db.run("CALL join_cache_warm('SELECT x.k FROM a x JOIN a y ON x.k = y.k')")
        ids = "SELECT id FROM bowshot.system.join_cache"
        ((join,),) = wait_until(lambda: db.rows(ids), "the warmed join")
        db.run(f"CALL join_cache_pin({join})")
        assert db.rows("SELECT id FROM bowshot.system.join_cache WHERE pinned") == [(join,)]
        db.run(f"CALL join_cache_unpin({join})", f"CALL join_cache_drop({join})")
        assert db.rows(ids) == []
        with pytest.raises(Exception, match="not found"):
            db.run(f"CALL join_cache_drop({join})")
        db.run("CALL join_cache_clear()")
        assert db.rows("SELECT * FROM bowshot.system.join_history") == []
        db.run("SET join_cache = 'off'")
        assert "set join_cache off" in str(db.rows("EXPLAIN SELECT x.k FROM a x JOIN a y ON x.k = y.k"))
