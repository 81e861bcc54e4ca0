"""Columns that are kept decoded, through the real server: never stale, whoever writes beside. Their budget is checked in
bowshot-formats, decoded_columns/cache.rs."""

import concurrent.futures
import os
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database
from server import computing, wait_until

ROWS = 300_000


def numbers(first=0, rows=ROWS):
    k = np.arange(first, first + rows)
    return pa.table({"k": k, "g": k % 10, "x": k / 7, "s": pa.array([f"text {n % 1000}" for n in k])})


def write(path, table, row_group_size=50_000):
    """Beside the file, then renamed; old enough to count as one that stays."""
    beside = path.with_suffix(".tmp")
    pq.write_table(table, beside, row_group_size=row_group_size)
    beside.rename(path)
    time.sleep(0.1)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "n.parquet"
    write(path, numbers())
    return path


def kept_bytes(server):
    return server.metrics().get("bowshot_column_cache_bytes", 0)


def test_durable_tables_show_each_commit(tmp_path):
    with computing(data=tmp_path) as server, Database(server) as db:
        db.run("CREATE TABLE t (k BIGINT, g BIGINT, x DOUBLE, s TEXT)")
        db.ingest("t", numbers(), mode="append")
        expected = {n: n % 10 for n in range(ROWS)}
        question = "SELECT count(*), sum(g), min(k), max(k) FROM t"

        def right():
            for _ in range(3):
                assert db.rows(question) == [(len(expected), sum(expected.values()), min(expected), max(expected))]

        right()
        assert kept_bytes(server) > 500_000
        db.run("DELETE FROM t WHERE k % 3 = 0")
        expected = {k: g for k, g in expected.items() if k % 3}
        right()
        db.run("UPDATE t SET g = 100 WHERE k < 1000")
        expected = {k: 100 if k < 1000 else g for k, g in expected.items()}
        right()
        db.ingest("t", numbers(ROWS, 100_000), mode="append")
        expected |= {n: n % 10 for n in range(ROWS, ROWS + 100_000)}
        right()
        db.run("ALTER TABLE t ADD COLUMN late BIGINT")
        for _ in range(3):
            assert db.rows("SELECT count(late), count(*) FROM t") == [(0, len(expected))]
        db.run("OPTIMIZE t")
        right()
        db.run("DROP TABLE t")


def same_each_time(db, sql, rows):
    for scan in range(5):
        assert db.rows(sql) == rows, f"scan {scan + 1}: {sql}"


def test_a_join_does_not_lose_zeros_that_are_equal(tmp_path):
    n = np.arange(ROWS)
    write(tmp_path / "t.parquet", pa.table({"x": np.where(n % 1000 == 0, -0.0, n + 0.5), "k": n}))
    write(tmp_path / "d.parquet", pa.table({"x": [0.0, 1e9]}))
    with computing(tmp_path / "t.parquet", tmp_path / "d.parquet") as server, Database(server) as db:
        same_each_time(db, "SELECT count(*), sum(k) FROM d JOIN t ON d.x = t.x", [(300, sum(range(0, ROWS, 1000)))])
        same_each_time(db, "SELECT count(*) FROM d WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.x = d.x)", [(1,)])


def test_conditions_on_the_keys_of_a_semi_join_reach_their_partners(tmp_path):
    """Each edge and its way back: what is asked of `src` is to be asked of the other's `dst`."""
    k = np.arange(100_000)
    there, back = (k, k + 1_000_000), (k + 1_000_000, k)
    edges = pa.table({"src": np.concatenate([there[0], back[0]]), "dst": np.concatenate([there[1], back[1]])})
    edges = edges.take(np.random.default_rng(7).permutation(edges.num_rows))
    write(tmp_path / "edges.parquet", edges)
    write(tmp_path / "nodes.parquet", pa.table({"id": k, "kind": pa.array(np.where(k % 5000 == 0, "x", "y"))}))
    sql = """SELECT count(*), sum(m.dst) FROM nodes n JOIN (
        SELECT * FROM edges e WHERE EXISTS (SELECT 1 FROM edges r WHERE r.src = e.dst AND r.dst = e.src)) m
        ON n.id = m.src WHERE n.kind = 'x'"""
    with computing(tmp_path / "edges.parquet", tmp_path / "nodes.parquet") as server, Database(server) as db:
        same_each_time(db, sql, [(20, sum(range(1_000_000, 1_100_000, 5000)))])


def test_rows_that_a_condition_takes_away_cannot_fail_a_query(tmp_path):
    """Pages of old rows are skipped by the index at the first scan; a kept column has all rows."""
    ts = np.arange(ROWS)
    table = pa.table({"ts": ts, "bytes": ts * 3, "requests": np.where(ts < 40_000, 0, 3), "wide": ts, "more": ts})
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=ROWS, write_page_index=True, data_page_size=8 << 10)
    time.sleep(0.1)
    with computing(path) as server, Database(server) as db:
        sql = "SELECT count(*), sum(q) FROM (SELECT ts, bytes / requests AS q FROM log WHERE ts >= 200000)"
        same_each_time(db, sql, [(100_000, sum(range(200_000, 300_000)))])
        rows = [(n, n) for n in range(299_990, 300_000)]
        same_each_time(db, "SELECT ts, bytes / requests FROM log WHERE ts >= 299990 ORDER BY ts", rows)


def test_cut_and_cancelled_scans_leave_the_cache_whole(file):
    with computing(file) as server, Database(server) as db:
        expected = db.arrow("SELECT * FROM n ORDER BY k")
        before = kept_bytes(server)
        for _ in range(5):
            other = Database(server)
            with other.connection.cursor() as cursor:
                cursor.execute("SELECT * FROM n")
                reader = cursor.fetch_record_batch()
                reader.read_next_batch()
                cursor.adbc_cancel()
            other.close()
        wait_until(lambda: server.metrics().get("bowshot_queries_running", 0) == 0, "the scans end")
        assert kept_bytes(server) >= before
        for _ in range(3):
            assert db.arrow("SELECT * FROM n ORDER BY k") == expected


def test_many_clients_and_a_busy_writer_see_whole_versions(tmp_path):
    path = tmp_path / "n.parquet"
    write(path, numbers(0, 100_000))
    arguments = ["--set", "storage.refresh=20ms", "--set", "storage.column_cache_bytes=4MiB"]
    with computing(path, arguments=arguments) as server:
        until = time.monotonic() + 5
        last = []

        def read(_):
            seen = 0
            with Database(server) as db:
                # Until it has the last one: when that comes, a busy disk decides.
                while not last or seen != last[0]:
                    assert time.monotonic() < until + 60, f"{seen} is the newest"
                    try:
                        least, most, rows, texts = db.rows("SELECT min(k + 0), max(k + 0), count(k + 0), count(s || '') FROM n")[0]
                    except Exception as error:
                        assert "run the query again" in str(error), error
                        continue
                    assert (most - least + 1, rows, texts) == (100_000, 100_000, 100_000)
                    assert least >= seen, "an older version after a newer one"
                    seen = least
            return seen

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            reads = pool.map(read, range(4))
            version = 0
            while time.monotonic() < until:
                version += 1
                write(path, numbers(version, 100_000))
                os.sync()
            last.append(version)
            assert list(reads) == [version] * 4
