"""`table_changes` of durable tables: what each commit has done, and what others do while somebody follows."""

import random
from collections import Counter

import adbc_driver_flightsql.dbapi as dbapi
import psycopg
import pyarrow as pa
import pytest

from durable import Database, let_go, restarts
from server import Server

ROWS = pa.table({
    "id": pa.array(range(6_000), pa.int64()),
    "n": pa.array([0] * 6_000, pa.int64()),
    "words": pa.array([[f"word {n % 7}"] for n in range(6_000)], pa.list_(pa.string())),
})
COLUMNS = "id, n, array_to_string(words, ',')"
FOLLOW = "SELECT id, _change_type, _commit_version FROM table_changes('t', {}, follow => true) WHERE id < 1000"


@pytest.fixture
def restart(data):
    yield from restarts(data, "killed")


@pytest.fixture
def server(tmp_path):
    with Server(data=tmp_path / "data", arguments=["--pg", "127.0.0.1:0"]) as server:
        yield server


@pytest.fixture
def db(server):
    with Database(server) as db:
        yield db


def newest(db, table="t"):
    return db.one(f"SELECT max(version) FROM bowshot.system.table_history WHERE table_name = '{table}'")


def one_change(chance):
    id, many = chance.randrange(6_500), chance.randrange(2, 9)
    return chance.choice([
        f"INSERT INTO t VALUES ({id}, {many}, ['a', NULL])",
        f"INSERT INTO t SELECT id, n, words FROM t WHERE id = {id} OR id = 3",
        f"UPDATE t SET n = n + 1 WHERE id % 1000 = {id % 1000}",
        f"UPDATE t SET n = n + 1 WHERE id % {many} = 0",
        "UPDATE t SET n = n WHERE id < 5",
        f"DELETE FROM t WHERE id = {id}",
        f"DELETE FROM t WHERE id % 97 = {many}",
        f"MERGE INTO t USING (SELECT {id} AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 9 "
        f"WHEN NOT MATCHED THEN INSERT (id, n, words) VALUES (s.id, 1, NULL)",
        "OPTIMIZE t",
    ])


@pytest.mark.parametrize("seed", range(3))
def test_the_changes_lead_from_one_state_to_the_next(restart, seed):
    chance, db = random.Random(seed), restart()
    db.ingest("t", ROWS)
    for step in range(24):
        db.run(one_change(chance))
        if step % 8 == 7:
            db = restart()
    last = newest(db)
    ends = [(0, last), (last, last), *(sorted((chance.randrange(last), chance.randrange(last))) for _ in range(4))]
    for start, end in ends:
        rows = Counter(db.rows(f"SELECT {COLUMNS} FROM t FOR VERSION AS OF {start}"))
        if start < end:
            changes = db.rows(f"SELECT {COLUMNS}, _change_type, _commit_version FROM table_changes('t', {start + 1}, {end})")
            assert {kind for *_, kind, _ in changes} <= {"insert", "delete"}
            assert all(start < version <= end for *_, version in changes)
            for *row, kind, _ in changes:
                rows[tuple(row)] += 1 if kind == "insert" else -1
        assert +rows == Counter(db.rows(f"SELECT {COLUMNS} FROM t FOR VERSION AS OF {end}")), (start, end)
        assert all(count >= 0 for count in rows.values())
    moved = "SELECT version FROM bowshot.system.table_history WHERE table_name = 't' AND operation = 'OPTIMIZE'"
    for (version,) in db.rows(moved):
        assert db.rows(f"SELECT id FROM table_changes('t', {version}, {version})") == []


def test_which_ranges_there_are(db):
    db.run("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (1)", "UPDATE t SET id = 2", "COMMENT ON TABLE t IS 'x'")
    changes = "SELECT id, _change_type, _commit_version FROM table_changes('t', {}) ORDER BY 3, 2"
    assert db.rows(changes.format("0")) == [(1, "insert", 1), (1, "delete", 2), (2, "insert", 2)]
    assert db.rows(changes.format("'2000-01-01', '2999-01-01'")) == db.rows(changes.format(0))
    assert db.rows(changes.format("'2999-01-01'")) == db.rows(changes.format(newest(db) + 1)) == []
    assert db.one("SELECT count(DISTINCT _commit_timestamp) FROM table_changes('t', 1, 2)") == 2
    for given, words in {"99": "has no version 99", "0, 99": "has no version 99", "3, 1": "ends before"}.items():
        with pytest.raises(dbapi.Error, match=words):
            db.rows(changes.format(given))
    db.run("ALTER TABLE t ADD COLUMN more BIGINT", "INSERT INTO t VALUES (3, 4)")
    with pytest.raises(dbapi.Error, match="different columns"):
        db.rows(changes.format(0))
    last = db.one("SELECT max(version) FROM bowshot.system.table_history WHERE table_name = 't' AND operation = 'INSERT'")
    assert db.rows(changes.format(last)) == [(3, "insert", last)]
    db.run("VACUUM t RETAIN 0 HOURS")
    with pytest.raises(dbapi.Error, match="the oldest version is"):
        db.rows(changes.format(1))
    db.run("CREATE TABLE fleeting (x BIGINT) WITH (storage = 'memory')")
    with pytest.raises(dbapi.Error, match="does not record changes"):
        db.rows("SELECT * FROM table_changes('fleeting', 0)")


def test_a_follower_goes_on_where_its_connection_broke(server, db):
    db.run("CREATE TABLE t (id BIGINT)")
    seen, start = [], 1
    for _ in range(3):
        db.run(f"INSERT INTO t VALUES ({len(seen)}), (5000)")
        follower = Database(server)
        cursor = follower.connection.cursor()
        cursor.execute(FOLLOW.format(start))
        for _ in range(4):
            row = cursor.fetchone()
            seen.append(row)
            db.run(f"INSERT INTO t VALUES ({len(seen)})", "OPTIMIZE t")
        start = seen[-1][2] + 1
        let_go(cursor)
        follower.close()
        # What nobody reads is there for whoever goes on.
        row = db.rows(f"SELECT id, _change_type, _commit_version FROM table_changes('t', {start}, {newest(db)}) WHERE id < 1000")
        assert row == [(len(seen), "insert", row[0][2])]
        seen.append(row[0])
        start = row[0][2] + 1
    assert [kind for _, kind, _ in seen] == ["insert"] * len(seen)
    versions = [version for *_, version in seen]
    assert versions == sorted(set(versions))
    told = Counter(id for id, *_ in seen)
    assert told == Counter(id for (id,) in db.rows(f"SELECT id FROM t WHERE id < 1000 AND id <= {seen[-1][0]}"))
    server.wait_idle()


def test_following_ends_with_the_table(server, db):
    db.run("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (1)")
    with Database(server) as follower:
        cursor = follower.connection.cursor()
        cursor.execute(FOLLOW.format(0))
        assert cursor.fetchone() == (1, "insert", 1)
        db.run("DROP TABLE t")
        with pytest.raises(Exception, match="dropped or renamed"):
            cursor.fetchone()
        let_go(cursor)


def test_a_cursor_of_postgres_follows(server, db):
    db.run("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (0)")
    address = f"host=127.0.0.1 port={server.pg_port} user=any dbname=bowshot sslmode=disable"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DECLARE c CURSOR WITH HOLD FOR {FOLLOW.format(1)}")
        for id in range(3):
            assert connection.execute("FETCH 1 FROM c").fetchone()[:2] == (id, "insert")
            db.run(f"INSERT INTO t VALUES ({id + 1})")
        connection.execute("CLOSE c")


def test_what_waits_for_an_end_does_not_follow(db):
    db.run("CREATE TABLE t (id BIGINT)", "CREATE TABLE u (id BIGINT)")
    followed = "SELECT id FROM table_changes('t', 0, follow => true)"
    for sql in (f"INSERT INTO u {followed}", f"CREATE MATERIALIZED VIEW m AS {followed}", f"CREATE TABLE c AS {followed}"):
        with pytest.raises(dbapi.Error, match="follow"):
            db.run(sql)
    with pytest.raises(dbapi.Error):
        db.rows(f"SELECT count(*) FROM ({followed})")
    db.run("BEGIN")
    with pytest.raises(dbapi.Error, match="in a transaction"):
        db.rows(followed)
    db.run("ROLLBACK")
