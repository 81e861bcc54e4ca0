"""Kept results on disk: what was given again is there after a restart, and after it had to leave memory."""

import time

import pyarrow as pa
import pyarrow.parquet as pq

from durable import Database
from server import Server, wait_until
from test_result_cache import ROWS, SLOW, hits, is_given


def test_what_was_given_again_survives_a_restart(tmp_path):
    """Tables of ours and files; a table that has changed, and what was never given again are computed. What
    takes less than 5 ms is not worth a file: each of them takes several times that."""
    folder = tmp_path / "files"
    folder.mkdir()
    words = pa.array([f"word {n % 97}" for n in range(ROWS)])
    pq.write_table(pa.table({"x": pa.array(range(ROWS)), "word": words}), folder / "f.parquet")
    durable = SLOW
    files = "SELECT word, count(*) AS n, sum(x) AS s FROM f GROUP BY word ORDER BY word"
    joined = "SELECT t.word, count(*) AS n FROM t JOIN f ON t.x = f.x WHERE t.word LIKE '%7%' GROUP BY t.word ORDER BY 1"
    changed = "SELECT word, max(y) AS m FROM other GROUP BY word ORDER BY word"
    once = "SELECT word, min(x) AS m FROM t GROUP BY word ORDER BY word"
    kept = tmp_path / "data" / "result_cache"

    def on_disk():
        return len(list(kept.glob("*.json")))

    with Server(folder, data=tmp_path / "data") as server, Database(server) as db:
        for name, column in (("t", "x"), ("other", "y")):
            db.run(f"CREATE TABLE {name} AS SELECT value AS {column}, 'word ' || CAST(value % 97 AS VARCHAR) AS word "
                   f"FROM generate_series(1, {ROWS}) AS s(value)")
        wait_until(lambda: "ResultCache: miss" in str(db.rows("EXPLAIN " + files)), "a file that has settled")
        answers = {sql: db.rows(sql) for sql in (durable, files, joined, changed, once)}
        for sql in (durable, files, joined, changed):
            assert db.rows(sql) == answers[sql]
        wait_until(lambda: on_disk() == 4, "files of results")
    with Server(folder, data=tmp_path / "data") as server, Database(server) as db:
        db.run("INSERT INTO other VALUES (1000000, 'word 5')")
        assert "ResultCache: miss" in str(db.rows("EXPLAIN " + changed))
        assert db.rows(changed) != answers[changed]
        wait_until(lambda: "ResultCache: hit" in str(db.rows("EXPLAIN " + files)), "a file that has settled")
        for sql in (durable, files, joined):
            assert "ResultCache: hit: the result is on disk" in str(db.rows("EXPLAIN " + sql)), sql
            assert db.rows(sql) == answers[sql]
            assert "ResultCache: hit: the result is there" in str(db.rows("EXPLAIN " + sql)), sql
        assert server.metrics()["bowshot_result_cache_restored_total"] == 3
        assert server.metrics()["bowshot_result_cache_disk_bytes"] > 0
        assert db.rows(once) == answers[once] and hits(db) == 3
        with Database(server) as other:
            other.run("SET time_zone = 'Asia/Tokyo'")
            assert "ResultCache: miss" in str(other.rows("EXPLAIN " + durable))
    with Server(folder, data=tmp_path / "data") as server, Database(server) as db:
        db.run("CALL result_cache_clear()")
        wait_until(lambda: not on_disk(), "no file")
    for budget in ("DISK", "MEMORY"):
        with Server(folder, data=tmp_path / "data") as server, Database(server) as db:
            assert is_given(db, durable)
            wait_until(on_disk, "a file")
        environment = {f"BOWSHOT_RESULT_CACHE_{budget}_BYTES": "0"}
        with Server(folder, data=tmp_path / "data", environment=environment) as server, Database(server) as db:
            assert not on_disk(), "nobody could make the server forget it"
            assert is_given(db, durable) == (budget == "DISK")
            time.sleep(0.3)
            assert not on_disk()


def test_results_that_had_to_leave_memory_come_back_from_disk(tmp_path):
    environment = {"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "1MiB"}
    with Server(data=tmp_path / "data", environment=environment) as server, Database(server) as db:
        db.run(f"CREATE TABLE t AS SELECT value AS x, value % 7 AS y FROM generate_series(1, {ROWS}) AS s(value)")
        first = "SELECT x FROM t WHERE y = 3 ORDER BY sin(x), cos(x) LIMIT 3000"
        answer = db.rows(first)
        wait_until(lambda: is_given(db, first), "a result that is kept")
        wait_until(lambda: server.metrics().get("bowshot_result_cache_disk_bytes", 0) > 0, "its file")
        for bound in range(1000):
            db.rows(f"SELECT x FROM t WHERE y = 3 ORDER BY sin(x), cos(x) LIMIT {3001 + bound}")
            if "on disk" in str(db.rows("EXPLAIN " + first)):
                break
        else:
            raise AssertionError("it never left memory")
        assert db.rows(first) == answer
        assert server.metrics()["bowshot_result_cache_restored_total"] == 1
