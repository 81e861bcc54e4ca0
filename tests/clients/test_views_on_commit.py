"""Materialized views that are refreshed by the commits of their tables: after every commit, also of several writers at once and up to
a kill, the rows of each view are those of its query. BOWSHOT_VIEW_HISTORIES is the number of histories."""

import random
import threading
import zlib

import pyarrow as pa
import pytest

from durable import Database
from server import Server, computing, wait_until
from view_cases import HISTORIES, STEPS, VIEWS, about, bag, begin, change, numbered

OVER_VIEWS = {
    "over": "SELECT g, c + 1 AS more FROM grouped WHERE c > 1",
    "over_both": "SELECT grouped.g, filtered.id, grouped.s FROM grouped JOIN filtered ON grouped.g = filtered.g",
}
# What is the same in every snapshot.
TOTALS = "SELECT (SELECT count(*) FROM t), (SELECT coalesce(sum(c), 0) FROM grouped), (SELECT count(*) FROM bag)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with computing(data=tmp_path_factory.mktemp("views") / "data") as server:
        yield server


@pytest.fixture
def db(server):
    with Database(server) as db:
        db.run("SET materialized_view_rewrite = off")
        yield db


def create(db, views):
    db.run(*(f"CREATE MATERIALIZED VIEW {name} REFRESH ON COMMIT AS {sql}" for name, sql in views.items()))


def check(db, views, why=None):
    for name, sql in views.items():
        assert bag(db.rows(f"SELECT * FROM {name}")) == bag(db.rows(sql)), (name, why)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_views_are_their_queries_after_each_commit(db, seed):
    dice, numbers, views = random.Random(seed), numbered(9), {**VIEWS, **OVER_VIEWS}
    begin(db, f"commits_{seed}")
    create(db, views)
    for at in range(STEPS):
        change(db, dice, numbers)
        if at == STEPS // 2:
            db.run("ALTER TABLE t ADD COLUMN more INT")
        check(db, views, at)
        if at < STEPS // 2:
            assert all(about(db, name)["incremental"] for name in VIEWS if about(db, name)["reason"] != "the view was made"), at
    assert {about(db, name)["state"] for name in views} == {"fresh"}
    assert about(db, "grouped")["refresh"] == "on commit"


def test_the_view_is_as_before_until_the_commit(db):
    begin(db, "until")
    create(db, {"v": "SELECT k, count(*) AS c FROM u GROUP BY k"})
    before = bag(db.rows("SELECT * FROM v"))
    db.run("BEGIN", "INSERT INTO u VALUES (9, 'x')", "INSERT INTO u VALUES (9, 'y')", "DELETE FROM u WHERE k = 0")
    assert bag(db.rows("SELECT * FROM v")) == before
    db.run("ROLLBACK")
    assert bag(db.rows("SELECT * FROM v")) == before
    db.run("BEGIN", "INSERT INTO u VALUES (9, 'x')", "INSERT INTO u VALUES (9, 'y')", "DELETE FROM u WHERE name = 'x'", "COMMIT")
    assert bag(db.rows("SELECT * FROM v")) == bag([*before, (9, 1)])


def test_a_view_that_is_made_and_refreshed_in_a_transaction(db):
    begin(db, "within")
    query = "SELECT k, count(*) AS c FROM u GROUP BY k"
    db.run("BEGIN", "INSERT INTO u VALUES (5, 'x')")
    create(db, {"v": query})
    db.run("INSERT INTO u VALUES (5, 'y')", "REFRESH MATERIALIZED VIEW v", "INSERT INTO u VALUES (6, 'z')", "REFRESH MATERIALIZED VIEW v", "DELETE FROM u WHERE k = 0", "COMMIT")
    check(db, {"v": query})
    db.run("INSERT INTO u VALUES (5, 'w')", "BEGIN", "INSERT INTO u VALUES (5, 'v')", "DELETE FROM u WHERE name = 'v'", "COMMIT")
    check(db, {"v": query})
    assert about(db, "v")["state"] == "fresh"


def test_rows_that_are_ingested_are_in_the_view(db):
    begin(db, "ingested")
    query = "SELECT k, count(*) AS c FROM u GROUP BY k"
    create(db, {"v": query})
    rows = pa.table({"k": pa.array([i % 7 for i in range(9_000)], pa.int32()), "name": ["many"] * 9_000})
    db.ingest("u", rows, mode="append")
    check(db, {"v": query})
    assert about(db, "v")["incremental"]


def is_done(db, steps):
    """Whether a transaction was the first to change its rows; what views are refreshed keeps nobody from that."""
    try:
        db.run(*steps)
    except Exception as error:
        if "table" in str(error) and "by another transaction" in str(error) and len(steps) > 1:
            return False
        raise
    return True


def writer(server, schema, first, errors):
    """Rows of groups that others change too, each statement or a few of them a commit."""
    dice = random.Random(first)
    try:
        with Database(server) as db:
            db.run(f"SET schema = '{schema}'")
            for number in range(first, first + 15):
                insert = f"INSERT INTO t VALUES ({number}, {number % 4}, '{'abc'[number % 3]}', {number}, {number % 6})"
                steps = [insert] if dice.random() < 0.5 else ["BEGIN", insert, f"DELETE FROM t WHERE id = {number - 2}", "COMMIT"]
                while not is_done(db, steps):
                    db.run("ROLLBACK")
    except Exception as error:
        errors.append(error)


def test_writers_of_the_same_groups_lose_nothing(server, db):
    begin(db, "together")
    create(db, {name: VIEWS[name] for name in ("grouped", "bag", "joined_groups")})
    errors = []
    threads = [threading.Thread(target=writer, args=(server, "together", first, errors)) for first in (1000, 2000, 3000)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        ((rows, in_groups, in_bag),) = db.rows(TOTALS)
        assert rows == in_groups == in_bag
    for thread in threads:
        thread.join()
    assert not errors, errors
    check(db, {name: VIEWS[name] for name in ("grouped", "bag", "joined_groups")})


def test_a_kill_leaves_the_rows_and_the_view_or_neither(tmp_path):
    views = {name: VIEWS[name] for name in ("grouped", "bag")}
    for round_number in range(3):
        with Server(data=tmp_path / "data") as server:
            with Database(server) as db:
                if round_number == 0:
                    begin(db, "killed")
                    create(db, views)
                db.run("SET schema = 'killed'", "SET materialized_view_rewrite = off")
                check(db, views)
                before = db.one("SELECT count(*) FROM t")
                first = 1000 * (round_number + 1)
                threads = [threading.Thread(target=writer, args=(server, "killed", first + 100 * n, [])) for n in range(2)]
                for thread in threads:
                    thread.start()
                wait_until(lambda: db.one("SELECT count(*) FROM t") >= before + 4, "some rows are there")
                server.kill()
            for thread in threads:
                thread.join()
    with Server(data=tmp_path / "data") as server, Database(server) as db:
        db.run("SET schema = 'killed'", "SET materialized_view_rewrite = off")
        check(db, views)
        assert {about(db, name)["state"] for name in views} == {"fresh"}


@pytest.mark.parametrize(("query", "reason"), [
    ("SELECT count(*) AS c FROM t", "without GROUP BY"),
    ("SELECT k FROM t EXCEPT SELECT k FROM u", "join"),
    ("SELECT k, price::DOUBLE AS x FROM t", "column `x`"),
])
def test_what_cannot_be_computed_in_part_is_refused_with_the_reason(db, request, query, reason):
    begin(db, f"refused_{zlib.crc32(request.node.name.encode())}")
    with pytest.raises(Exception, match=reason) as refused:
        db.run(f"CREATE MATERIALIZED VIEW v REFRESH ON COMMIT AS {query}")
    assert "REFRESH EVERY" in str(refused.value) and "REFRESH MANUAL" in str(refused.value)
    db.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    with pytest.raises(Exception, match=reason):
        db.run("ALTER MATERIALIZED VIEW v SET REFRESH ON COMMIT")


def test_a_stale_view_is_refreshed_when_it_is_set_to_on_commit(db):
    begin(db, "later")
    query = "SELECT k, count(*) AS c FROM u GROUP BY k"
    db.run(f"CREATE MATERIALIZED VIEW v AS {query}", "INSERT INTO u VALUES (7, 'x')", "ALTER MATERIALIZED VIEW v SET REFRESH ON COMMIT")
    check(db, {"v": query})
    db.run("INSERT INTO u VALUES (8, 'x')")
    check(db, {"v": query})
    db.run("ALTER MATERIALIZED VIEW v SET REFRESH MANUAL", "INSERT INTO u VALUES (8, 'x')")
    assert about(db, "v")["state"] == "stale"


def test_a_table_that_such_a_view_reads_stays_under_its_name(db):
    begin(db, "named")
    create(db, {"v": "SELECT k, count(*) AS c FROM u GROUP BY k"})
    for statement in ("DROP TABLE u", "ALTER TABLE u RENAME TO w", "ALTER TABLE u DROP COLUMN k"):
        with pytest.raises(Exception, match="cannot refresh materialized view"):
            db.run(statement)
    check(db, {"v": "SELECT k, count(*) AS c FROM u GROUP BY k"})
    db.run("ALTER MATERIALIZED VIEW v SET REFRESH MANUAL", "DROP TABLE u", "DROP MATERIALIZED VIEW v")


def test_a_view_follows_what_its_query_means(db):
    begin(db, "meant")
    query = "SELECT k, count(*) AS c FROM some GROUP BY k"
    db.run("CREATE VIEW some AS SELECT k FROM u WHERE k < 2")
    create(db, {"v": query})
    db.run("CREATE OR REPLACE VIEW some AS SELECT k FROM u WHERE k > 0")
    check(db, {"v": query})
    db.run("INSERT INTO u VALUES (3, 'x')", "TRUNCATE TABLE u", "INSERT INTO u VALUES (1, 'x')")
    check(db, {"v": query})
