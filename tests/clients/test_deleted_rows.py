"""Changes of many rows of durable tables, whose files stay: compared with DuckDB, over restarts, OPTIMIZE and VACUUM."""

import random

import duckdb
import pyarrow as pa
import pytest

from delta import by_deltalake
from durable import restarts
from server import wait_until

ROWS, SLICES, SLICE_ROWS = 200_000, 12, 10_000
ASKED = (
    "SELECT count(*) FROM t",
    "SELECT count(v), min(id), max(id), min(v), max(v) FROM t",
    "SELECT g, count(*), sum(v), sum(length(word)) FROM t GROUP BY g ORDER BY g",
    "SELECT id, v, word FROM t WHERE id % 997 = 0 ORDER BY id",
    "SELECT count(*), sum(v) FROM t WHERE id IN (SELECT id FROM chosen)",
)
SLICE = "SELECT id FROM chosen WHERE slice = {slice}"
CHANGES = (
    f"DELETE FROM t WHERE id IN ({SLICE})",
    "DELETE FROM t WHERE id % 37 = {slice}",
    "DELETE FROM t WHERE id BETWEEN {slice} * 10000 AND {slice} * 10000 + 4321 AND word IS NOT NULL",
    f"UPDATE t SET v = v + 1000 WHERE id IN ({SLICE})",
    "UPDATE t SET word = 'changed ' || word, v = NULL WHERE v % 41 = {slice}",
    "UPDATE t SET v = c.slice FROM chosen AS c WHERE c.id = t.id AND c.slice = {slice} AND t.g < 7",
    f"MERGE INTO t USING ({SLICE}) AS s ON t.id = s.id WHEN MATCHED AND t.v % 2 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET word = 'met' WHEN NOT MATCHED THEN INSERT (id, g, v, word) VALUES (s.id, 3, -1, 'new')",
)


@pytest.fixture(params=["stopped", "killed"])
def restart(request, data):
    yield from restarts(data, request.param)


def tables(chance):
    ids = range(ROWS)
    rows = {"id": ids, "g": [n % 10 for n in ids], "v": [None if n % 11 == 0 else n * 3 for n in ids]}
    rows = pa.table({name: pa.array(values, pa.int64()) for name, values in rows.items()})
    rows = rows.append_column("word", pa.array([f"word {n % 997}" for n in ids]))
    chosen = chance.sample(range(ROWS + ROWS // 10), SLICES * SLICE_ROWS)
    slices = [at // SLICE_ROWS for at in range(len(chosen))]
    return {"t": rows, "chosen": pa.table({"id": chosen, "slice": slices})}


def assert_same(db, other, asked=ASKED):
    for sql in asked:
        assert db.rows(sql) == other.execute(sql).fetchall(), sql


def files(db):
    return {path.name for path in db.location("t").glob("*.parquet")}


def history(db, column):
    sql = f"SELECT {column} FROM bowshot.system.table_history WHERE table_name = 't' ORDER BY version"
    return [value for (value,) in db.rows(sql)]


def test_a_file_stays_when_many_of_its_rows_go(restart):
    db = restart()
    for name, rows in tables(random.Random(1)).items():
        db.ingest(name, rows)
    before, there, version = files(db), db.one("SELECT count(*) FROM t"), history(db, "version")[-1]
    gone = db.run("DELETE FROM t WHERE id IN (SELECT id FROM chosen WHERE slice = 0)")
    assert 4096 < gone <= SLICE_ROWS
    assert files(db) == before or "OPTIMIZE" in history(db, "operation")
    db = restart()
    assert db.one("SELECT count(*) FROM t") == there - gone
    assert db.one(f"SELECT count(*) FROM t FOR VERSION AS OF {version}") == there


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
def test_random_changes_are_those_of_duckdb(restart, key):
    chance = random.Random(45)
    db = restart()
    with duckdb.connect() as other:
        for name, rows in tables(chance).items():
            columns = "id BIGINT, slice BIGINT" if name == "chosen" else f"id BIGINT {key}, g BIGINT, v BIGINT, word VARCHAR"
            db.run(f"CREATE TABLE {name} ({columns})")
            db.ingest(name, rows, "append")
            other.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        for upkeep in (None, "OPTIMIZE t", "VACUUM t RETAIN 0 HOURS", None):
            for change in chance.sample(CHANGES, 5):
                sql = change.format(slice=chance.randrange(SLICES))
                assert db.run(sql) == other.execute(sql).fetchone()[0], sql
                assert_same(db, other)
            if upkeep:
                db.run(upkeep)
                assert_same(db, other)
            db = restart()
            assert_same(db, other, (*ASKED, "SELECT id, g, v, word FROM t ORDER BY id"))
        db.run("OPTIMIZE t")
        folder, there = db.location("t"), db.one("SELECT count(*) FROM t")
        wait_until(lambda: by_deltalake(folder).num_rows == there, "others see the rows that are left", 10)
