"""What could make the join cache wrong, or a nuisance: settings of sessions, backups that are put back, folders of others,
conditions that fail, joins that nobody wants any more."""

import pathlib
import re
import shutil

import pyarrow as pa
import pytest

from durable import Database
from server import computing, wait_until
from test_join_cache import EAGER, ON, hits, serving

TEXTS = "CREATE TABLE t AS SELECT value AS k, '2021-01-0' || (1 + value % 9) || ' 00:00:00' AS t FROM generate_series(1, 900) AS s(value)"
MOMENTS = (
    "CREATE TABLE u AS SELECT 1609459200 + 3600 * value AS u, value % 7 AS v FROM generate_series(-48, 240) AS s(value)",
    "CREATE TABLE w AS SELECT value AS k, value % 5 AS x FROM generate_series(1, 900) AS s(value)",
)


def in_zone(db, zone, sql, cache):
    db.run(f"SET time_zone = '{zone}'", f"SET join_cache = '{cache}'")
    return db.rows(sql)


WIDE = "SELECT t.t, t.k, w.x FROM t JOIN w ON t.k = w.k"


@pytest.mark.parametrize("wide, sql, mark", [
    (None, "SELECT count(*), sum(v) FROM t JOIN u ON to_unixtime(t.t) = u.u", ""),
    (None, "SELECT count(*), sum(v) FROM t JOIN u ON to_unixtime(to_timestamp(t.t)) = u.u", ""),
    (WIDE, "SELECT count(*), sum(x) FROM t JOIN w ON t.k = w.k WHERE to_unixtime(t.t) >= 1609459200 + 86400", "code_is_in"),
    (WIDE, "SELECT count(*), sum(x) FROM t JOIN w ON t.k = w.k WHERE to_timestamp(t.t) >= TIMESTAMP '2021-01-02'", "code_is_in"),
])
def test_the_time_zone_of_the_session_counts(wide, sql, mark):
    with serving() as (_, db):
        db.run(TEXTS, *MOMENTS)
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            computed = in_zone(db, zone, sql, "off")
            in_zone(db, zone, wide or sql, "on")
            before = hits(db)
            for _ in range(3):
                assert in_zone(db, zone, sql, "on") == computed, zone
            assert hits(db) > before
            plan = str(db.rows(f"EXPLAIN {sql}"))
            assert "JoinCache: hit" in plan and mark in plan


@pytest.mark.parametrize("cached_meanwhile", [True, False])
def test_a_backup_that_is_put_back_brings_back_no_join_of_what_came_after_it(tmp_path, cached_meanwhile):
    """The same number of commits as were lost: tables have the same versions and the same numbers of segments then."""
    data, backup, cache = tmp_path / "data", tmp_path / "backup", tmp_path / "cache"
    environment = {**EAGER, "BOWSHOT_JOIN_CACHE_FOLDER": str(cache)}
    sql = "SELECT a.k, a.x, b.y FROM a JOIN b ON a.k = b.k ORDER BY 1"

    def rows(text):
        return pa.table({"k": pa.array(range(20_000)), "x": [text] * 20_000})

    with serving(data=data, environment=environment) as (_, db):
        db.ingest("a", rows("old"))
        db.ingest("b", pa.table({"k": pa.array(range(20_000)), "y": pa.array(range(20_000))}))
    shutil.copytree(data, backup)
    with serving(data=data, environment=environment) as (_, db):
        db.ingest("a", rows("lost"), mode="append")
        assert len(db.rows(sql)) == 40_000
        wait_until(lambda: list(cache.glob("[0-9]*.json")), "the join is on disk")
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    with serving(data=data, environment=environment if cached_meanwhile else {}) as (_, db):
        db.ingest("a", rows("kept"), mode="append")
    with serving(data=data, environment=environment) as (_, db):
        assert {row[1] for row in db.rows(sql)} == {"old", "kept"}


def test_two_servers_do_not_share_a_folder(tmp_path):
    environment = {**EAGER, "BOWSHOT_JOIN_CACHE_FOLDER": str(tmp_path / "cache")}
    with serving(environment=environment), serving(environment=environment) as (second, db):
        assert "used by another server" in second.log()
        db.run("CREATE TABLE a AS SELECT 1 AS k")
        assert db.one("SELECT count(*) FROM a JOIN a AS b ON a.k = b.k") == 1


def test_stricter_queries_use_a_join_of_keys_of_different_types():
    with serving() as (_, db):
        db.run(
            "CREATE TABLE a AS SELECT CAST(value AS INT) AS k, value % 10 AS x FROM generate_series(1, 500) AS s(value)",
            "CREATE TABLE b AS SELECT value AS k, 'y' || (value % 10) AS y FROM generate_series(1, 500) AS s(value)",
        )
        db.rows("SELECT a.k, a.x, b.y FROM a JOIN b ON a.k = b.k")
        sql = "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k WHERE b.y <> 'y4' AND a.x > 5 ORDER BY 1"
        db.run("SET join_cache = 'off'")
        computed = db.rows(sql)
        before = hits(db)
        db.run("SET join_cache = 'on'")
        assert db.rows(sql) == computed and hits(db) == before + 1


def test_a_pattern_that_is_none_fails_no_more_rows_than_without_the_cache():
    with serving() as (_, db):
        db.run(
            "CREATE TABLE a AS SELECT value AS k, CASE WHEN value = 7 THEN 're' ELSE 'text' END AS kind, "
            "CASE WHEN value = 7 THEN 'y.*' ELSE '(' END AS pat FROM generate_series(1, 20) AS s(value) ",
            "CREATE TABLE b AS SELECT value AS k, 'y' || value AS y FROM generate_series(1, 20) AS s(value)",
        )
        db.rows("SELECT a.k, a.kind, a.pat, b.y FROM a JOIN b ON a.k = b.k")
        sql = "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.kind = 're' AND b.y ~ a.pat"
        assert db.rows(sql) == [(7,)]
        text = "\n".join(str(row) for row in db.rows(f"EXPLAIN {sql}"))
        assert "may fail" in text


def looks(db):
    """Until joins have been looked after at least twice: the join of new tables is computed by the second look."""
    for name in ("x", "y"):
        db.run(f"CREATE TABLE {name} AS SELECT value AS k FROM generate_series(1, 10) AS s(value)")
    sql = "SELECT x.k FROM x JOIN y ON x.k = y.k"
    there = "SELECT count(*) FROM bowshot.system.join_cache WHERE tables = 'x, y'"
    for _ in range(2):
        db.rows(sql)
    wait_until(lambda: db.one(there) == 1, "the join", 60)
    for _ in range(2):
        version = db.one("SELECT max(id) FROM bowshot.system.join_cache WHERE tables = 'x, y'")
        db.run("INSERT INTO x VALUES (100)")
        newer = f"SELECT count(*) FROM bowshot.system.join_cache WHERE tables = 'x, y' AND id > {version}"
        wait_until(lambda: db.one(newer) == 1, "the next version of the join", 60)
    db.run("DROP TABLE x", "DROP TABLE y")
    wait_until(lambda: db.one(there) == 0, "the join of dropped tables to leave", 60)


def test_what_was_dropped_or_cleared_stays_away():
    with computing(environment={**ON, "BOWSHOT_JOIN_CACHE_FILL_AFTER": "2"}) as server, Database(server) as db:
        for day in (3, 4, 5):
            db.run(
                f"CREATE TABLE s2021080{day} AS SELECT value AS k, {day} AS x FROM generate_series(1, 100) AS s(value)",
                f"CREATE TABLE r2021080{day} AS SELECT value AS k, {day} AS y FROM generate_series(1, 100) AS s(value)",
            )
            if day < 5:
                for _ in range(3):
                    db.rows(f"SELECT s.k, x, y FROM s2021080{day} s JOIN r2021080{day} r ON s.k = r.k")

        def cached():
            return [row[0] for row in db.rows("SELECT id FROM bowshot.system.join_cache ORDER BY id")]

        foretold = "SELECT count(*) FROM bowshot.system.join_cache WHERE forecast"
        wait_until(lambda: db.one(foretold) == 1, "the join of the day that nobody has asked for", 30)
        [forecast] = [row[0] for row in db.rows("SELECT id FROM bowshot.system.join_cache WHERE forecast")]
        db.run(f"CALL join_cache_drop({forecast})")
        looks(db)
        assert forecast not in cached() and db.one(foretold) == 0
        db.run("CALL join_cache_clear()")
        looks(db)
        assert not cached(), "a join has come back by itself"


def test_a_pin_follows_the_newest_version_and_has_a_limit():
    with serving(environment={**EAGER, "BOWSHOT_JOIN_CACHE_MEMORY_BYTES": "7MiB"}) as (_, db):
        db.run(
            "CREATE TABLE a AS SELECT value AS k, value AS x FROM generate_series(1, 60000) AS s(value)",
            "CREATE TABLE b AS SELECT value AS k, value AS y FROM generate_series(1, 60000) AS s(value)",
            "CREATE TABLE c AS SELECT value AS k, value + 1 AS z, value + 2 AS zz, value * 3 AS zzz FROM generate_series(1, 60000) AS s(value)",
        )
        db.rows("SELECT a.k, x, y FROM a JOIN b ON a.k = b.k")

        def joins():
            return db.rows("SELECT id, pinned FROM bowshot.system.join_cache ORDER BY id")

        [(first, _)] = joins()
        db.run(f"CALL join_cache_pin({first})", "INSERT INTO a VALUES (1, 1)")
        db.rows("SELECT a.k, x, y FROM a JOIN b ON a.k = b.k")
        wait_until(lambda: [join for join, pinned in joins() if pinned and join != first], "the pinned join's next version")
        [(second, _)] = joins()
        db.rows("SELECT b.k, y, z, zz, zzz FROM b JOIN c ON b.k = c.k")
        (other,) = [join for join, _ in joins() if join != second]
        with pytest.raises(Exception, match="half of the join cache's memory"):
            db.run(f"CALL join_cache_pin({other})")
        db.run(f"CALL join_cache_unpin({second})", f"CALL join_cache_pin({other})")


def test_columns_that_are_computed_of_computed_ones_do_not_grow_without_end():
    """Replaced by what computes them, three of these would be eight million parts, over a gigabyte."""
    doubled = " + ".join(["x"] * 199)
    levels = "q0 AS (SELECT a.k, a.x FROM a JOIN b ON a.k = b.k)"
    for level in range(3):
        levels += f", q{level + 1} AS (SELECT k, ({doubled}) % 1000 AS x FROM q{level})"
    sql = f"WITH {levels} SELECT sum(x) FROM q3"
    with serving() as (server, db):
        for name in "ab":
            db.run(f"CREATE TABLE {name} AS SELECT value AS k, value % 3 AS x FROM generate_series(1, 1000) AS v(value)")
        assert "JoinCache: miss: the join of `a`, `b`" in str(db.rows(f"EXPLAIN {sql}"))
        assert db.rows(sql) == db.rows(f"SELECT sum(x * {199**3} % 1000) FROM a")
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
        assert int(peak) < 600_000


def test_what_a_plan_computes_once_is_not_computed_for_each_use_of_it():
    """Over columns of tables, nine times doubled is 511 additions."""
    levels = "q0 AS (SELECT a.k, a.x FROM a JOIN b ON a.k = b.k)"
    for level in range(9):
        levels += f", q{level + 1} AS (SELECT k, x + x AS x FROM q{level})"
    sql = f"WITH {levels} SELECT sum(x) FROM q9"
    with serving() as (_, db):
        for name in "ab":
            db.run(f"CREATE TABLE {name} AS SELECT value AS k, value % 3 AS x FROM generate_series(1, 1000) AS v(value)")
        assert db.rows(sql) == db.rows(f"SELECT sum(x * {2**9}) FROM a")
        plan = str(db.rows(f"EXPLAIN {sql}"))
        assert "JoinCache: hit" in plan and plan.count(" + ") < 60, plan
        before = hits(db)
        assert db.rows(sql) == db.rows(f"SELECT sum(x * {2**9}) FROM a")
        assert hits(db) == before + 1
