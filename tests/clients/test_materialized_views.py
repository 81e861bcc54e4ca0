"""Materialized views through the real server: random histories of their tables, with each view compared with its query after each
refresh; queries that are answered from views, with the same answers as without."""

import random
import zlib

import pytest

from durable import Database
from server import Server, computing, wait_until
from view_cases import HISTORIES, QUERIES, STEPS, VIEWS, about, bag, begin, change, numbered


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with computing(data=tmp_path_factory.mktemp("views") / "data") as server:
        yield server


@pytest.fixture
def db(server):
    db = Database(server)
    yield db
    db.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_views_are_their_queries_after_each_refresh(db, seed):
    dice, numbers = random.Random(seed), numbered(9)
    begin(db, f"history_{seed}")
    db.run(*(f"CREATE MATERIALIZED VIEW {name} AS {sql}" for name, sql in VIEWS.items()))
    for at in range(STEPS):
        change(db, dice, numbers)
        altered = at == STEPS // 2
        if altered:
            db.run("ALTER TABLE t ADD COLUMN more INT")
        for name, sql in VIEWS.items():
            # Views are refreshed at different times, over one or several changes.
            if dice.random() < 0.3:
                continue
            db.run("SET materialized_view_rewrite = off")
            expected = bag(db.rows(sql))
            db.run(f"REFRESH MATERIALIZED VIEW {name}")
            assert bag(db.rows(f"SELECT * FROM {name}")) == expected, (at, name)
            db.run("SET materialized_view_rewrite = on")
            assert bag(db.rows(sql)) == expected, (at, name)
            found = about(db, name)
            assert found["state"] == "fresh", found
            if at < STEPS // 2:
                assert found["incremental"], found
        for sql in QUERIES:
            answers = []
            for switch in ("on", "off"):
                db.run(f"SET materialized_view_rewrite = {switch}")
                answers.append(bag(db.rows(sql)))
            assert answers[0] == answers[1], sql


@pytest.fixture
def sales(db, table):
    schema = f"s_{zlib.crc32(table.encode())}"
    db.run(
        f"CREATE SCHEMA {schema}",
        f"SET schema = '{schema}'",
        "CREATE TABLE sales (day INT, store VARCHAR, price DECIMAL(10, 2), note VARCHAR)",
        "INSERT INTO sales SELECT i % 10, 's' || (i % 3)::VARCHAR, i, 'x' FROM generate_series(0, 99) AS r(i)",
        "CREATE MATERIALIZED VIEW by_day AS SELECT day, store, count(*) AS c, sum(price) AS p FROM sales GROUP BY day, store",
    )
    yield db


def plan(db, sql):
    return "\n".join(str(line) for line in db.rows(f"EXPLAIN {sql}"))


ROLLED_UP = "SELECT store, sum(price), count(*) FROM sales WHERE day < 5 GROUP BY store"


def test_explain_names_the_view_that_answers(sales):
    assert "by_day" in plan(sales, ROLLED_UP)
    assert "by_day" in plan(sales, "SELECT day, store, sum(price) FROM sales GROUP BY day, store")
    for sql in [
        "SELECT note, count(*) FROM sales GROUP BY note",
        "SELECT store, avg(price) FROM sales GROUP BY store",
        "SELECT store, count(*) FROM sales WHERE price > 5 GROUP BY store",
        "SELECT store, count(DISTINCT price) FROM sales GROUP BY store",
    ]:
        assert "by_day" not in plan(sales, sql), sql
    sales.run("SET materialized_view_rewrite = off")
    assert "by_day" not in plan(sales, ROLLED_UP)
    sales.run("RESET materialized_view_rewrite")


def test_a_stale_view_answers_only_who_accepts_its_age(sales):
    before = bag(sales.rows(ROLLED_UP))
    sales.run("INSERT INTO sales VALUES (1, 's1', 1000, 'x')")
    assert about(sales, "by_day")["state"] == "stale"
    assert "by_day" not in plan(sales, ROLLED_UP)
    assert bag(sales.rows(ROLLED_UP)) != before
    sales.run("SET max_staleness_ms = 3600000")
    assert "by_day" in plan(sales, ROLLED_UP)
    assert bag(sales.rows(ROLLED_UP)) == before
    sales.run("RESET max_staleness_ms", "REFRESH MATERIALIZED VIEW by_day")
    assert "by_day" in plan(sales, ROLLED_UP)
    assert bag(sales.rows(ROLLED_UP)) != before


def test_a_transaction_sees_its_own_changes(sales):
    sales.run("BEGIN", "INSERT INTO sales VALUES (1, 'mine', 1000, 'x')")
    assert "by_day" not in plan(sales, ROLLED_UP)
    assert any(store == "mine" for store, *_ in sales.rows(ROLLED_UP))
    sales.run("ROLLBACK")
    assert "by_day" in plan(sales, ROLLED_UP)


def test_an_earlier_state_is_not_answered_from_the_view_of_now(sales):
    sales.run("INSERT INTO sales VALUES (1, 's1', 1000, 'x')", "REFRESH MATERIALIZED VIEW by_day")
    earlier = "SELECT store, sum(price), count(*) FROM sales FOR VERSION AS OF 1 WHERE day < 5 GROUP BY store"
    assert "by_day" not in plan(sales, earlier)
    assert bag(sales.rows(earlier)) != bag(sales.rows(ROLLED_UP))


@pytest.mark.parametrize("statements", [
    ["OPTIMIZE sales"],
    # Beside a change of another table, or nothing would be committed.
    ["CREATE TABLE other (x INT)", "BEGIN", "INSERT INTO sales (day) VALUES (77)", "DELETE FROM sales WHERE day = 77", "INSERT INTO other VALUES (1)", "COMMIT"],
], ids=["maintenance", "nothing in the end"])
def test_what_changes_no_rows_makes_no_view_stale(sales, statements):
    sales.run(*statements)
    assert about(sales, "by_day")["state"] == "fresh"
    assert "by_day" in plan(sales, ROLLED_UP)


def test_columns_beside_all_columns_of_another_table_keep_their_names(sales):
    query = "SELECT s.note, v.* FROM sales AS s JOIN by_day AS v ON s.day = v.day AND s.store = v.store WHERE s.day = 3 AND s.price < 10"
    for kind in ("MATERIALIZED VIEW", "VIEW", "TABLE"):
        sales.run(f"CREATE {kind} beside AS {query}")
        assert sales.rows("SELECT note, day, c FROM beside") == [("x", 3, 4)], kind
        with pytest.raises(Exception, match="column `day` is there twice"):
            sales.run(f"CREATE {kind} twice AS SELECT s.day, v.* FROM sales AS s JOIN by_day AS v ON s.day = v.day")
        sales.run(f"DROP {kind} beside")


def test_named_columns_may_be_alike_in_the_query(sales):
    query = "SELECT store, sum(price), sum(day) FROM sales GROUP BY store"
    sales.run(f"CREATE MATERIALIZED VIEW sums (store, prices, days) AS {query}", "INSERT INTO sales VALUES (1, 's1', 1000, 'x')")
    assert sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW sums") == [("incremental", None)]
    sales.run("REFRESH MATERIALIZED VIEW sums", "ALTER MATERIALIZED VIEW sums SET REFRESH ON COMMIT", "DELETE FROM sales WHERE day = 2")
    assert bag(sales.rows("SELECT * FROM sums")) == bag(sales.rows(query))
    sales.run("DROP MATERIALIZED VIEW sums")


@pytest.mark.parametrize(("query", "reason"), [
    ("SELECT day, price / 3.0::DOUBLE AS x FROM sales", "column `x`"),
    ("SELECT count(*) AS c FROM sales", "without GROUP BY"),
    ("SELECT day FROM sales LIMIT 1", "step"),
    ("SELECT day FROM sales EXCEPT SELECT 1", "join"),
    ("SELECT d.day FROM (SELECT DISTINCT day, price::DOUBLE AS x FROM sales) AS d", "column `x`"),
    ("SELECT count(*) AS c FROM sales GROUP BY day", "do not show"),
    ("SELECT day, now() AS x FROM sales", "something else the next time"),
])
def test_why_all_rows_are_computed(sales, query, reason):
    sales.run(f"CREATE MATERIALIZED VIEW other AS {query}", "INSERT INTO sales VALUES (1, 's1', 1000, 'x')")
    ((extent, why),) = sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW other")
    assert (extent, reason in why) == ("full", True), why
    sales.run("REFRESH MATERIALIZED VIEW other")
    assert about(sales, "other")["reason"] == why
    sales.run("DROP MATERIALIZED VIEW other")


@pytest.mark.parametrize(("before", "query", "after", "expected"), [
    (
        ["CREATE VIEW some AS SELECT day FROM sales WHERE day < 2"],
        "SELECT day, count(*) AS c FROM some GROUP BY day",
        ["CREATE OR REPLACE VIEW some AS SELECT day FROM sales WHERE day > 7"],
        [(8, 10), (9, 10)],
    ),
    (
        ["CREATE FUNCTION moved(x INT) RETURNS INT RETURN x * 0"],
        "SELECT moved(day) AS d, count(*) AS c FROM sales GROUP BY moved(day)",
        ["CREATE OR REPLACE FUNCTION moved(x INT) RETURNS INT RETURN x * 0 + 1"],
        [(1, 100)],
    ),
    (
        ["CREATE TABLE one AS SELECT 1 AS k, 10 AS v", "CREATE TABLE two AS SELECT 1 AS k, 20 AS v"],
        "SELECT one.k, sum(one.v) AS v FROM one JOIN two ON one.k = two.k GROUP BY one.k",
        ["ALTER TABLE one RENAME TO three", "ALTER TABLE two RENAME TO one", "ALTER TABLE three RENAME TO two"],
        [(1, 20)],
    ),
], ids=["view", "function", "names"])
def test_a_query_that_means_something_else_has_other_rows(sales, before, query, after, expected):
    sales.run(*before, f"CREATE MATERIALIZED VIEW meant AS {query}", *after)
    assert about(sales, "meant")["state"] == "stale"
    assert "meant" not in plan(sales, query)
    assert bag(sales.rows(query)) == expected
    ((extent, reason),) = sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW meant")
    assert (extent, "means something else" in reason) == ("full", True)
    sales.run("REFRESH MATERIALIZED VIEW meant")
    assert bag(sales.rows("SELECT * FROM meant")) == expected
    assert "meant" in plan(sales, query)
    assert sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW meant") == [("nothing", None)]


def test_many_changed_rows_are_computed_as_a_whole(sales):
    counted, copied = "SELECT g, count(*) AS c FROM wide GROUP BY g", "SELECT k, g FROM wide WHERE g < 3"
    sales.run("CREATE TABLE wide AS SELECT i AS k, i % 7 AS g FROM generate_series(1, 40000) AS r(i)")
    sales.run(f"CREATE MATERIALIZED VIEW counted AS {counted}", f"CREATE MATERIALIZED VIEW copied AS {copied}")
    for change, expected in (
        ("UPDATE wide SET g = g + 1 WHERE k <= 3000", ("incremental", "incremental")),
        ("INSERT INTO wide SELECT k + 50000, g FROM wide WHERE k <= 20000", ("full", "incremental")),
        ("UPDATE wide SET g = g + 1 WHERE k <= 12000", ("full", "full")),
    ):
        sales.run(change)
        for view, query, extent in zip(("counted", "copied"), (counted, copied), expected):
            ((refreshed, reason),) = sales.rows(f"EXPLAIN REFRESH MATERIALIZED VIEW {view}")
            assert (refreshed, "more than an eighth" in (reason or "")) == (extent, extent == "full")
            sales.run(f"REFRESH MATERIALIZED VIEW {view}")
            assert bag(sales.rows(f"SELECT * FROM {view}")) == bag(sales.rows(query))


def test_a_view_keeps_the_columns_of_its_query(sales):
    query = "SELECT day, count(*), sum(price) FROM sales GROUP BY day"
    sales.run("CREATE MATERIALIZED VIEW whole AS SELECT day, count(*) AS c, sum(price) AS p FROM sales GROUP BY day")
    expected = bag(sales.rows(query))
    for change in ("ADD COLUMN more INT", "DROP COLUMN c", "ALTER COLUMN p TYPE DECIMAL(38, 0)"):
        with pytest.raises(Exception, match="columns of its query"):
            sales.run(f"ALTER TABLE whole {change}")
    sales.run("ALTER TABLE whole RENAME COLUMN c TO counted")
    assert "whole" in plan(sales, query)
    assert bag(sales.rows(query)) == expected


def test_a_view_answers_sessions_of_its_dialect(sales):
    query = "SELECT day, concat(store, note) AS t FROM sales WHERE note IS NULL"
    sales.run("INSERT INTO sales VALUES (1, 's1', 1, NULL)", f"CREATE MATERIALIZED VIEW texts AS {query}")
    assert "texts" in plan(sales, query)
    assert sales.rows(query) == [(1, "s1")]
    sales.run("SET dialect = 'mysql'")
    assert sales.rows(query) == [(1, None)]
    sales.run("SET dialect = 'ansi'")
    assert "texts" in plan(sales, query)


def test_what_depends_on_the_time_zone_is_computed_as_a_whole(sales):
    sales.run("SET TIME ZONE 'UTC'", "CREATE TABLE moments (n BIGINT, at TIMESTAMPTZ)")
    sales.run("INSERT INTO moments VALUES (0, '2020-01-01 01:00:00+00')")
    hours, days = "SELECT extract(hour FROM to_timestamp(n)) AS h FROM moments", "SELECT at::DATE AS d, count(*) AS c FROM moments GROUP BY at::DATE"
    latest = "SELECT n, max(at) AS m, count(at) AS c FROM moments WHERE at IS NOT NULL GROUP BY n"
    for name, query in (("hours", hours), ("days", days), ("latest", latest)):
        sales.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    sales.run("SET TIME ZONE 'America/New_York'")
    assert sales.rows(hours) == [(19,)]
    sales.run("INSERT INTO moments VALUES (0, '2019-12-31 22:00:00+00')")
    ((extent, reason),) = sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW days")
    assert (extent, "time zone" in reason) == ("full", True)
    assert sales.rows("EXPLAIN REFRESH MATERIALIZED VIEW latest") == [("incremental", None)]
    sales.run("REFRESH MATERIALIZED VIEW days")
    assert sales.rows("SELECT d::VARCHAR, c FROM days") == [("2019-12-31", 2)]
    sales.run("SET TIME ZONE 'UTC'")


@pytest.mark.parametrize(("kind", "one", "other"), [("DOUBLE", "0", "-0"), ("REAL", "-0", "0"), ("JSON", '{"a": 1}', '{"a":1}'), ("JSONB", '{"a": 1.0}', '{"a": 1}')])
def test_values_that_are_equal_but_not_the_same(sales, kind, one, other):
    query = "SELECT id, length(x::VARCHAR) AS s FROM pairs"
    sales.run(f"CREATE TABLE pairs (id INT, x {kind})", f"INSERT INTO pairs SELECT i, '{one}'::{kind} FROM generate_series(0, 3) AS r(i)")
    sales.run(f"CREATE MATERIALIZED VIEW texts AS {query}", f"UPDATE pairs SET x = '{other}'::{kind} WHERE id < 2", "REFRESH MATERIALIZED VIEW texts")
    assert about(sales, "texts")["incremental"]
    sales.run("SET materialized_view_rewrite = off")
    assert bag(sales.rows("SELECT * FROM texts")) == bag(sales.rows(query))
    sales.run("RESET materialized_view_rewrite", "DROP MATERIALIZED VIEW texts")


def test_the_server_refreshes_by_itself(sales):
    sales.run(
        "CREATE MATERIALIZED VIEW automatic REFRESH EVERY '1 second' AS SELECT day, count(*) AS c FROM sales GROUP BY day",
        "INSERT INTO sales VALUES (77, 's1', 1000, 'x')",
    )
    wait_until(lambda: about(sales, "automatic")["state"] == "fresh", "the view is refreshed")
    assert sales.rows("SELECT c FROM automatic WHERE day = 77") == [(1,)]
    sales.run("ALTER MATERIALIZED VIEW automatic SET REFRESH MANUAL")
    assert about(sales, "automatic")["refresh"] == "manual"
    sales.run("ALTER MATERIALIZED VIEW automatic SET REFRESH EVERY '90 minutes'")
    assert about(sales, "automatic")["refresh"] == "every 90 minutes"


def test_the_server_refreshes_what_means_something_else(sales):
    sales.run(
        "CREATE VIEW some AS SELECT day FROM sales WHERE day < 2",
        "CREATE MATERIALIZED VIEW automatic REFRESH EVERY '1 second' AS SELECT day, count(*) AS c FROM some GROUP BY day",
        "CREATE OR REPLACE VIEW some AS SELECT day FROM sales WHERE day > 8",
    )
    wait_until(lambda: sales.rows("SELECT * FROM automatic") == [(9, 10)], "the view is refreshed")
    assert about(sales, "automatic")["state"] == "fresh"


def test_how_long_a_view_has_been_stale(sales):
    lag = "SELECT lag_ms FROM bowshot.system.materialized_views WHERE table_name = 'by_day' AND table_schema = current_schema()"
    assert sales.rows(lag) == [(0.0,)]
    sales.run("INSERT INTO sales VALUES (1, 's1', 1000, 'x')")
    first = sales.one(lag)
    sales.run("INSERT INTO sales VALUES (1, 's1', 1000, 'x')")
    assert sales.one(lag) >= first
    sales.run("REFRESH MATERIALIZED VIEW by_day")
    assert sales.rows(lag) == [(0.0,)]


def test_what_a_view_shows_is_kept_over_a_restart(tmp_path):
    for start in range(2):
        with Server(data=tmp_path / "data") as server:
            db = Database(server)
            if start == 0:
                db.run(
                    "CREATE TABLE t AS SELECT i AS k FROM generate_series(0, 9) AS r(i)",
                    "CREATE MATERIALIZED VIEW v REFRESH EVERY '2 days' AS SELECT k % 2 AS odd, count(*) AS c FROM t GROUP BY k % 2",
                )
            assert about(db, "v")["state"] == "fresh"
            assert "main.v" in plan(db, "SELECT k % 2, count(*) FROM t GROUP BY k % 2")
            db.close()
    with Server(data=tmp_path / "data") as server:
        db = Database(server)
        db.run("INSERT INTO t VALUES (11)", "REFRESH MATERIALIZED VIEW v")
        assert about(db, "v")["incremental"]
        assert bag(db.rows("SELECT * FROM v")) == [(0, 5), (1, 6)]
        db.close()


def test_a_view_over_tables_in_memory_is_computed_as_a_whole():
    with Server() as server:
        db = Database(server)
        db.run("CREATE TABLE t AS SELECT 1 AS x", "CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
        assert about(db, "v")["state"] == "unknown"
        db.run("INSERT INTO t VALUES (2)", "REFRESH MATERIALIZED VIEW v")
        assert bag(db.rows("SELECT x FROM v")) == [(1,), (2,)]
        assert "in memory" in about(db, "v")["reason"]
        db.close()
