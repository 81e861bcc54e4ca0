"""Joins that are too large for the cache: parts of them are cached instead, and the next part is foretold. And: EXPLAIN says
why a join is computed."""

import datetime

import pyarrow as pa

from join_cases import Named
from server import wait_until
from test_join_cache import ON, hits, serving, wrong

ROWS = 40_000
# Three days of rows are more than half of it, one day is less.
SMALL = {**ON, "BOWSHOT_JOIN_CACHE_MEMORY_BYTES": "4MiB"}


def rows_of_day(day):
    days = pa.array([datetime.date(2021, 8, day)] * ROWS, pa.date32())
    return pa.table({"day": days, "k": range(ROWS), "x": [day] * ROWS})


def of_day(day):
    return f"SELECT log.k, log.x, other.y FROM log JOIN other ON log.k = other.k WHERE log.day = DATE '2021-08-0{day}'"


def plan(db, sql):
    return "\n".join(str(row) for row in db.rows("EXPLAIN " + sql))


def days(db, *numbers):
    for number in numbers:
        assert len(db.rows(of_day(number))) == ROWS


def test_the_next_part_of_a_table_is_computed_before_it_is_asked_for():
    with serving(environment=SMALL) as (server, db):
        db.ingest("other", pa.table({"k": range(ROWS), "y": range(ROWS)}))
        db.ingest("log", rows_of_day(2))
        for day in (3, 4):
            db.ingest("log", rows_of_day(day), mode="append")
        days(db, 3, 4)
        wait_until(lambda: "a join is too large for the cache" in server.log(), "the whole join is tried")
        everything = of_day(4).split(" WHERE")[0]
        wait_until(lambda: "a cached join may have" in plan(db, everything), "the end of that")
        assert "it was asked for 0 times" in plan(db, of_day(4))
        days(db, 3, 4, 4)
        foretold = "SELECT count(*) FROM bowshot.system.cache_forecasts WHERE reason = 'foretold'"
        wait_until(lambda: db.one(foretold) == 1, "a forecast of the next day")
        db.ingest("log", rows_of_day(5), mode="append")
        wait_until(lambda: "JoinCache: hit" in plan(db, of_day(5)), "the join of the next day", 60)
        before = hits(db)
        assert wrong(db, of_day(5), [Named("log"), Named("other")]) is None
        assert hits(db) == before + 1
        # The day before was asked for twice; it is of another version now, and comes back when it is asked for.
        db.run("SET join_cache = 'on'")
        days(db, 4)
        wait_until(lambda: "JoinCache: hit" in plan(db, of_day(4)), "the join of a day that was asked for", 60)
        assert wrong(db, of_day(4), [Named("log"), Named("other")]) is None
        db.run("SET join_cache = 'on'")
        assert "the cached one lacks rows" in plan(db, of_day(2))
        assert server.log().count("a join is too large for the cache") == 1


def test_explain_says_why_a_join_is_computed():
    still = {**ON, "BOWSHOT_JOIN_CACHE_FILL_AFTER": "2", "BOWSHOT_JOIN_CACHE_FORECAST": "false"}
    with serving(environment=still) as (_, db):
        for name in "abcd":
            db.run(f"CREATE TABLE {name} AS SELECT value AS k, value % 10 AS x FROM generate_series(1, 100) AS s(value)")
        pair = "SELECT a.k, b.k FROM a JOIN b ON a.k = b.k"
        assert "it was asked for 0 times, and is cached after 2" in plan(db, pair)
        db.rows(pair)
        assert "it was asked for 1 times" in plan(db, pair)
        db.rows(pair)
        wait_until(lambda: "JoinCache: hit" in plan(db, pair), "the join")
        assert "the cached one lacks columns" in plan(db, "SELECT a.x, b.k FROM a JOIN b ON a.k = b.k")
        three = plan(db, f"SELECT c.x, p.* FROM ({pair.replace('b.k FROM', 'b.k AS j FROM')}) p JOIN c ON p.k = c.k")
        assert "JoinCache: miss: the join of `a`, `b`, `c`" in three and "JoinCache: hit: the join of `a`, `b`" in three
        some = "SELECT c.k, d.x FROM c JOIN d ON c.k = d.k"
        assert "only its first rows are wanted" in plan(db, some + " LIMIT 3")
        for _ in range(2):
            db.rows(some + " WHERE c.x > 5")
        wait_until(lambda: "JoinCache: hit" in plan(db, some + " WHERE c.x > 5"), "the narrow join")
        assert "the cached one lacks rows" in plan(db, some)
        db.run("INSERT INTO a VALUES (1000, 1)")
        assert "the cached one is of another version of `a`" in plan(db, pair)
        db.run("SET join_cache = 'off'")
        assert "the session has set join_cache off" in plan(db, pair)
