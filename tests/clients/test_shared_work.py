"""Work that a query does once instead of several times, or not at all, through the real server: equal parts are computed once, coarser
grouping sets from the finest one, rows are grouped before they are joined, and windows do not sort what they need not, with the same
answers as without."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database
from server import computing

ROWS = 120_000
TWICE = "WITH s AS (SELECT item, day, sum(price) AS p, count(*) AS n FROM sales GROUP BY item, day)"
QUERIES = [
    f"{TWICE} SELECT a.item, a.p, b.p, a.n FROM s a JOIN s b ON a.item = b.item AND a.day = b.day - 1",
    f"{TWICE} SELECT (SELECT max(p) FROM s), (SELECT max(p) FROM s), count(*) FROM s WHERE n > 1",
    f"{TWICE}, r AS (SELECT item, day, rank() OVER (PARTITION BY item ORDER BY p DESC, day) AS place FROM s) "
    "SELECT a.item, a.day, b.day FROM r a, r b WHERE a.item = b.item AND a.place = b.place + 1 AND b.place <= 3",
    f"{TWICE} SELECT * FROM s WHERE p > 9 UNION ALL SELECT * FROM s WHERE p > 9",
    f"{TWICE} SELECT item FROM s WHERE p > (SELECT avg(p) FROM s) EXCEPT SELECT item FROM s WHERE n = 1",
    "SELECT count(*) FROM (SELECT DISTINCT item FROM sales) a, (SELECT DISTINCT item FROM sales) b WHERE a.item = b.item",
    # Groups that differ in conditions on a key, also behind a union, and with a condition that both have.
    "WITH s AS (SELECT i.kind, s.store, sum(s.price) AS p, count(*) AS n FROM sales s JOIN items i ON s.item = i.item WHERE i.name <> 'name 3' "
    "GROUP BY i.kind, s.store) SELECT a.store, a.p, b.p, b.n FROM s a JOIN s b ON a.store = b.store WHERE a.kind = 'kind 0' AND b.kind = 'kind 1'",
    "WITH s AS (SELECT kind, day, sum(price) AS p FROM (SELECT i.kind, s.day, s.price FROM sales s JOIN items i ON s.item = i.item "
    "UNION SELECT i.kind, s.day + 1, s.price FROM sales s JOIN items i ON s.item = i.item + 1) d GROUP BY kind, day) "
    "SELECT a.day, a.p, b.p FROM s a LEFT JOIN s b ON a.day = b.day AND b.kind = 'kind 2' WHERE a.kind = 'kind 0'",
    "SELECT item % 7 AS i, day % 5 AS d, grouping(item % 7) AS g, sum(price), avg(price), count(note), min(note), max(day) "
    "FROM sales GROUP BY ROLLUP (item % 7, day % 5)",
    "SELECT store, day % 3 AS d, sum(price) FILTER (WHERE item > 5), count(*), stddev(price::double) FROM sales GROUP BY CUBE (store, day % 3)",
    "SELECT store, day, sum(price) FROM sales WHERE note = 'note 7x' GROUP BY ROLLUP (store, day)",
    "SELECT store, note, count(*) FROM sales GROUP BY GROUPING SETS ((store, note), (note), (note), ())",
]

GROUPED_FIRST = [
    "SELECT i.name, sum(s.price), avg(s.price), count(*), min(s.note), max(s.day) FROM sales s JOIN items i ON s.item = i.item GROUP BY i.name",
    "SELECT i.name, i.kind, sum(s.price) FILTER (WHERE s.day > 9), stddev(s.price::double) FROM sales s LEFT JOIN items i ON s.item = i.item "
    "GROUP BY i.name, i.kind",
    "SELECT i.name, i.kind, sum(s.price), count(s.note) FROM sales s JOIN items i ON s.item = i.item GROUP BY ROLLUP (i.name, i.kind)",
    "SELECT upper(i.name) AS n, sum(s.price - 1) FROM sales s JOIN items i ON s.item = i.item JOIN items j ON j.item = i.item + 1 "
    "WHERE s.day < 30 GROUP BY upper(i.name) HAVING count(*) > 5",
]

# With the operator that the plan has in the place of a sort of all rows.
WINDOWS = [
    ("RankedRowsExec", "SELECT * FROM (SELECT item, day, price, rank() OVER (PARTITION BY item ORDER BY price DESC NULLS LAST) AS r FROM sales) t WHERE r <= 3"),
    ("RankedRowsExec", "SELECT item, r AS day FROM (SELECT item, day, dense_rank() OVER (PARTITION BY store, note ORDER BY day) AS r FROM sales) t WHERE r < 3"),
    (
        "RankedRowsExec",
        "SELECT * FROM (SELECT store, item, row_number() OVER (PARTITION BY store ORDER BY sum(price), item) AS n FROM sales "
        "GROUP BY ROLLUP (store, item)) t WHERE n = 1",
    ),
    ("RankedRowsExec", "SELECT * FROM (SELECT item, day, rank() OVER (ORDER BY price DESC NULLS LAST) AS r FROM sales WHERE store = 'store 2') t WHERE r < 11"),
    ("PartitionTotalsExec", "SELECT item, day, price, avg(price) OVER (PARTITION BY item) AS a, count(note) OVER (PARTITION BY item) AS n FROM sales"),
    ("PartitionTotalsExec", "SELECT store, item, sum(price) * 100 / sum(sum(price)) OVER (PARTITION BY store) AS part FROM sales GROUP BY store, item"),
    (
        "PartitionTotalsExec",
        "SELECT * FROM (SELECT store, note, sum(price) AS p, avg(sum(price)) OVER (PARTITION BY store) AS a, min(note) OVER (PARTITION BY store) AS m "
        "FROM sales GROUP BY store, note) t WHERE abs(p - a) > 5",
    ),
]
WINDOW_OPTIONS = ("ranked_windows", "hashed_windows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    dice = np.random.default_rng(11)
    prices = pa.array(dice.integers(0, 10_000, ROWS), mask=dice.random(ROWS) < 0.05)
    columns = {
        "item": dice.integers(0, 500, ROWS),
        "day": dice.integers(0, 60, ROWS),
        "store": pa.array([f"store {n}" if n else None for n in dice.integers(0, 6, ROWS)]),
        "price": prices.cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
        "note": pa.array([f"note {n}" if n else None for n in dice.integers(0, 40, ROWS)]),
    }
    pq.write_table(pa.table(columns), folder / "sales.parquet", row_group_size=20_000)
    # Some items are not there, some twice.
    items = {"item": [n for n in range(450) for _ in range(1 + (n % 9 == 0))]}
    items["name"] = [None if n % 17 == 0 else f"name {n % 40}" for n in items["item"]]
    items["kind"] = [f"kind {n % 3}" for n in items["item"]]
    pq.write_table(pa.table(items), folder / "items.parquet")
    return folder


def alike(rows):
    """Rows in an order of their own. Floating-point numbers are added in any order."""
    rounded = [tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows]
    return sorted(rounded, key=lambda row: [(v is None, str(v)) for v in row])


def plan_of(db, sql):
    return db.rows(f"EXPLAIN {sql}")[-1][1]


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_the_same_either_way(folder, sql):
    with computing(folder) as server, Database(server) as db:
        shared = db.rows(sql)
        assert "ComputedOnceExec" in plan_of(db, sql) or "GroupingSetsExec" in plan_of(db, sql)
        db.run("SET common_subplans = false", "SET grouping_set_cascade = false")
        plan = plan_of(db, sql)
        assert "ComputedOnceExec" not in plan and "GroupingSetsExec" not in plan
        assert alike(db.rows(sql)) == alike(shared)
        assert shared


@pytest.mark.parametrize("sql", GROUPED_FIRST)
def test_rows_are_grouped_before_they_are_joined(folder, sql):
    with computing(folder) as server, Database(server) as db:
        first, plan = alike(db.rows(sql)), plan_of(db, sql)
        assert "mode=Partial, " in plan.partition("HashJoinExec")[2], plan
        db.run("SET eager_aggregation = false")
        plan = plan_of(db, sql)
        assert "mode=Partial, " not in plan.partition("HashJoinExec")[2], plan
        assert alike(db.rows(sql)) == first
        assert first


@pytest.mark.parametrize(("operator", "sql"), WINDOWS)
def test_windows_do_not_sort_all_rows(folder, operator, sql):
    with computing(folder) as server, Database(server) as db:
        first = alike(db.rows(sql))
        assert operator in plan_of(db, sql)
        db.run(*(f"SET {option} = false" for option in WINDOW_OPTIONS))
        assert operator not in plan_of(db, sql)
        assert alike(db.rows(sql)) == first
        assert first


def test_windows_of_filters_and_other_functions_stay(folder):
    for operator, sql in [
        ("RankedRowsExec", "SELECT * FROM (SELECT item, rank() OVER w AS r, lead(day) OVER w AS l FROM sales WINDOW w AS (PARTITION BY item ORDER BY day)) t WHERE r <= 3"),
        ("PartitionTotalsExec", "SELECT item, sum(price) FILTER (WHERE day > 3) OVER (PARTITION BY item) FROM sales"),
        ("PartitionTotalsExec", "SELECT item, day, sum(price) OVER (PARTITION BY item) FROM sales ORDER BY item, day"),
    ]:
        with computing(folder) as server, Database(server) as db:
            first = alike(db.rows(sql))
            assert operator not in plan_of(db, sql)
            db.run(*(f"SET {option} = false" for option in WINDOW_OPTIONS))
            assert alike(db.rows(sql)) == first


def test_windows_that_memory_does_not_hold(tmp_path):
    """Rows go to files; where there are too many partitions for a hash table, they are sorted."""
    rows = 600_000
    table = pa.table({"k": np.arange(rows) * 7919 % rows, "text": pa.array([f"{n:0100d}" for n in range(rows)])})
    pq.write_table(table, tmp_path / "wide.parquet")
    with computing(tmp_path, environment={"BOWSHOT_LIMITS_QUERY_MEMORY_BYTES": "96MiB"}) as server, Database(server) as db:
        for key, groups in [("k % 100", 100), ("k", rows)]:
            sql = f"SELECT count(*), sum(n), max(m) FROM (SELECT count(*) OVER (PARTITION BY g) AS n, max(text) OVER (PARTITION BY g) AS m FROM (SELECT {key} AS g, text FROM wide) t) w"
            assert db.rows(sql) == [(rows, rows * (rows // groups), f"{rows - 1:0100d}")]


def test_rows_that_a_join_takes_away_are_not_computed(tmp_path):
    with computing(data=tmp_path / "data") as server, Database(server) as db:
        db.run("CREATE TABLE facts (k BIGINT, v BIGINT)", "CREATE TABLE names (k BIGINT, name VARCHAR)")
        db.run("INSERT INTO facts SELECT n % 100, n % 100 FROM generate_series(1, 100000) AS s(n)")
        db.run("INSERT INTO names SELECT n, 'name ' || n FROM generate_series(1, 99) AS s(n)")
        rows = db.rows("SELECT name, sum(100 / f.v) FROM facts f JOIN names ON f.k = names.k GROUP BY name")
        assert len(rows) == 99


def test_equal_parts_are_read_from_disk_once(folder):
    sql = QUERIES[0]
    with computing(folder) as server, Database(server) as db:
        plan = db.rows(f"EXPLAIN ANALYZE {sql}")[-1][1]
        read = [line for line in plan.splitlines() if "DataSourceExec" in line]
        assert len(read) == 2
        # The second reader's own scan never starts.
        assert sum("output_rows=120" in line or "output_rows=1.2" in line for line in read) == 1, plan


def test_rows_that_memory_does_not_hold_are_shared_from_files(tmp_path):
    rows = 600_000
    dice = np.random.default_rng(5)
    table = pa.table({"k": np.arange(rows), "text": pa.array([f"{n:040d}" for n in dice.integers(0, 1 << 60, rows)])})
    pq.write_table(table, tmp_path / "wide.parquet")
    sql = (
        "WITH s AS (SELECT k, text, count(*) AS n FROM wide GROUP BY k, text) "
        "SELECT count(*), sum(n), max(text) FROM (SELECT * FROM s UNION ALL SELECT * FROM s) AS twice"
    )
    with computing(tmp_path, environment={"BOWSHOT_LIMITS_QUERY_MEMORY_BYTES": "64MiB"}) as server, Database(server) as db:
        assert "ComputedOnceExec" in plan_of(db, sql)
        ((count, total, greatest),) = db.rows(sql)
        assert (count, total, greatest) == (2 * rows, 2 * rows, max(table["text"].to_pylist()))


def test_totals_over_the_same_joins_are_computed_together(folder):
    total = "(SELECT {} FROM sales s JOIN items i ON s.item = i.item WHERE i.kind = '{}' AND s.day < 50) AS {}"
    sql = "SELECT * FROM " + ", ".join(
        total.format(functions, kind, name)
        for functions, kind, name in [
            ("count(*), sum(s.price)", "kind 0", "a"),
            ("count(*), sum(s.price), count(s.price) FILTER (WHERE s.price > 5)", "kind 1", "b"),
            ("avg(s.price), max(s.price)", "kind 2", "c"),
            ("count(*), sum(s.price)", "no kind", "d"),
        ]
    )
    with computing(folder) as server, Database(server) as db:
        together = db.rows(sql)
        assert plan_of(db, sql).count("ComputedOnceExec") == 4
        db.run("SET common_subplans = false")
        assert "ComputedOnceExec" not in plan_of(db, sql)
        assert db.rows(sql) == together
        assert together[0][-2:] == (0, None)


def test_joins_that_memory_does_not_hold_sort_their_sides(tmp_path):
    rows = 2_500_000
    texts = pa.array([f"{n * 7919 % rows:060d}" for n in range(rows)])
    pq.write_table(pa.table({"k": np.arange(rows), "text": texts}), tmp_path / "wide.parquet")
    with computing(tmp_path, environment={"BOWSHOT_LIMITS_QUERY_MEMORY_BYTES": "128MiB"}) as server, Database(server) as db:
        for join, expected in [("JOIN", rows - 9), ("LEFT JOIN", rows)]:
            sql = f"SELECT count(*), count(b.k), max(a.text), max(b.text) FROM wide a {join} wide b ON a.k = b.k + 9"
            assert db.rows(sql) == [(expected, rows - 9, f"{rows - 1:060d}", max(texts[:-9].to_pylist()))]
        assert "planned with sorted joins" in server.log()


def test_totals_of_no_rows(tmp_path):
    """A part of the rows is empty in most of these, and all of them in some."""
    functions = "avg(x), avg(d), sum(x), count(*), count(x), min(x), max(d), stddev(x), corr(x, x), bool_and(x > 0)"
    with computing(data=tmp_path / "data") as server, Database(server) as db:
        db.run("CREATE TABLE t (n INT, a INT, b INT, x DOUBLE, d DECIMAL(12, 2))")
        db.run("INSERT INTO t SELECT n, n % 7, n % 3, CASE WHEN n % 2 = 0 THEN n END, CASE WHEN n % 2 = 0 THEN n END FROM generate_series(1, 3000) AS s(n)")
        for condition in ["n = 5", "n = 6", "n < 0", "a = 4", "true"]:
            for sets in ["ROLLUP (a, b)", "CUBE (a, b)", "GROUPING SETS ((), ())", "GROUPING SETS ((a, b), (), ())"]:
                sql = f"SELECT {functions} FROM t WHERE {condition} GROUP BY {sets}"
                db.run("SET grouping_set_cascade = true")
                cascaded = alike(db.rows(sql))
                db.run("SET grouping_set_cascade = false")
                assert alike(db.rows(sql)) == cascaded, sql


def test_values_in_the_order_of_rows_stay_in_it(folder):
    with computing(folder) as server, Database(server) as db:
        for function in ["string_agg(note, ',')", "array_agg(day)", "first_value(day)", "mode(day)", "count(DISTINCT day)"]:
            assert "GroupingSetsExec" not in plan_of(db, f"SELECT store, {function} FROM sales GROUP BY ROLLUP (store, item % 3)")


def test_each_run_of_a_prepared_statement_computes_anew(tmp_path):
    with computing(data=tmp_path / "data") as server, Database(server) as db:
        db.run("CREATE TABLE t (k BIGINT, v BIGINT)", "INSERT INTO t VALUES (1, 1), (1, 2), (2, 5)")
        sql = "WITH s AS (SELECT k, sum(v) AS v FROM t WHERE v > ? GROUP BY k) SELECT sum(a.v * b.v) FROM s a JOIN s b ON a.k = b.k"
        cursor = db.connection.cursor()
        for least, expected in [(0, 9 + 25), (1, 4 + 25), (2, 25)]:
            cursor.execute(sql, (least,))
            assert cursor.fetchall() == [(expected,)]
        db.run("INSERT INTO t VALUES (3, 10)")
        cursor.execute(sql, (2,))
        assert cursor.fetchall() == [(25 + 100,)]
        cursor.close()


def test_random_functions_are_drawn_for_each_query(folder):
    drawn = "SELECT item, sum(random()) AS r FROM sales GROUP BY item"
    with computing(folder) as server, Database(server) as db:
        sql = f"SELECT count(*) FROM ({drawn}) a JOIN ({drawn}) b ON a.item = b.item WHERE a.r = b.r"
        assert db.rows(sql)[0][0] < 5


def test_random_statements(folder):
    """Two to four readers of one grouped query, with conditions of their own in half of them."""
    dice = random.Random(3)
    with computing(folder) as server, Database(server) as db:
        for _ in range(40):
            keys = dice.sample(["item % 50", "day", "store", "note"], dice.randint(1, 3))
            named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
            grouped = ", ".join(keys)
            if dice.random() < 0.4:
                grouped = f"ROLLUP ({grouped})"
            query = f"SELECT {named}, sum(price) AS p, count(*) AS n FROM sales GROUP BY {grouped}"
            readers = [
                f"SELECT k0, p, n FROM s WHERE {dice.choice(['true', 'true', 'n > 300', 'k0 IS NULL', 'p > 5000'])}"
                for _ in range(dice.randint(2, 4))
            ]
            sql = f"WITH s AS ({query}) " + dice.choice([" UNION ALL ", " UNION ", " INTERSECT "]).join(readers)
            db.run("SET common_subplans = true", "SET grouping_set_cascade = true")
            shared = alike(db.rows(sql))
            db.run("SET common_subplans = false", "SET grouping_set_cascade = false")
            assert alike(db.rows(sql)) == shared, sql
