"""Materialized views that the server suggests from its query log, and those that it makes and drops by itself."""

import pytest

from durable import Database
from server import computing, users_file, wait_until

SUGGESTED = "SELECT definition, queries, estimated_rows FROM bowshot.system.suggested_views"
OWN = "SELECT table_name, state, made_by, answered_queries, saved_ms FROM bowshot.system.materialized_views WHERE made_by = 'server'"

DAYS = 40


def serving(tmp_path, automatic, memory="256MiB", **options):
    environment = {"BOWSHOT_VIEWS_SUGGEST_EVERY": "1s", "BOWSHOT_VIEWS_AUTOMATIC": str(automatic).lower(), "BOWSHOT_VIEWS_MEMORY_BYTES": memory}
    return computing(data=tmp_path / "data", environment=environment, **options)


def fill(db):
    db.run(
        "CREATE TABLE sales AS SELECT i AS id, i % 40 AS day, i % 7 AS store, i % 100 AS price FROM generate_series(1, 1000000) AS r(i)",
        "CREATE TABLE stores AS SELECT i AS store, 'city ' || (i % 3)::VARCHAR AS city FROM generate_series(0, 6) AS r(i)",
    )


def by_day(day):
    return f"SELECT store, sum(price), count(*) FROM sales WHERE day < {day} GROUP BY store ORDER BY store"


def by_city(day):
    return f"SELECT city, max(price) FROM sales JOIN stores ON sales.store = stores.store WHERE day = {day} GROUP BY city"


def ask(db, query=by_day):
    return [db.rows(query(day)) for day in range(1, DAYS)]


def plan(db, sql):
    return str(db.rows(f"EXPLAIN {sql}"))


def test_what_repeats_with_other_filters_is_suggested(tmp_path):
    with serving(tmp_path, automatic=False) as server, Database(server) as db:
        fill(db)
        expected = ask(db)
        ask(db, by_city)
        # What a view would not make smaller, and what is asked once, is not suggested.
        for store in range(7):
            db.rows(f"SELECT count(*) FROM (SELECT id, count(*) AS c FROM sales WHERE store = {store} GROUP BY id) AS x")
        db.rows("SELECT price, count(*) FROM sales GROUP BY price")
        wait_until(lambda: len(db.rows(SUGGESTED)) >= 2, "both views are suggested")
        found = {definition: (queries, rows) for definition, queries, rows in db.rows(SUGGESTED)}
        ((over_day, (queries, rows)),) = [(text, about) for text, about in found.items() if "stores" not in text]
        assert queries == DAYS - 1 and 0 < rows <= 10_000, found
        db.run(f"CREATE MATERIALIZED VIEW made AS {over_day}")
        assert "main.made" in plan(db, by_day(3))
        assert ask(db) == expected
        # What a view answers is not suggested again.
        wait_until(lambda: all("stores" in text for text, *_ in db.rows(SUGGESTED)), "the view counts")
        assert db.rows(OWN) == []


def test_the_server_makes_refreshes_and_drops_its_views(tmp_path):
    with serving(tmp_path, automatic=True) as server, Database(server) as db:
        fill(db)
        expected = ask(db)
        wait_until(lambda: db.rows(OWN), "a view is made")
        wait_until(lambda: "bowshot_views" in plan(db, by_day(3)), "it answers")
        assert ask(db) == expected
        ((_, state, made_by, answered, saved),) = db.rows(OWN)
        assert (state, made_by) == ("fresh", "server") and answered >= DAYS - 1 and saved > 0
        db.run("INSERT INTO sales VALUES (1, 1, 1, 1000)")
        changed = db.rows(by_day(3))
        assert changed != expected[2]
        wait_until(lambda: "bowshot_views" in plan(db, by_day(3)), "it is refreshed")
        assert db.rows(by_day(3)) == changed
        # It is in nobody's way.
        db.run("ALTER TABLE sales ADD COLUMN more INT")
        wait_until(lambda: "bowshot_views" in plan(db, by_day(3)), "it is made anew")
        db.run("DROP TABLE sales")
        wait_until(lambda: db.rows(OWN) == [], "it is dropped")


def test_what_has_more_rows_than_the_first_ones_tell_is_not_made(tmp_path):
    with serving(tmp_path, automatic=True, memory="100KiB") as server, Database(server) as db:
        db.run("CREATE TABLE seen AS SELECT i / 100 AS key, i % 7 AS v FROM generate_series(1, 1000000) AS r(i)")
        ask(db, lambda key: f"SELECT max(v), min(v), count(*) FROM seen WHERE key > {key}")
        wait_until(lambda: db.rows(SUGGESTED), "it is suggested, and was looked at")
        ((_, _, rows),) = db.rows(SUGGESTED)
        assert rows < 2_000, "estimated by the first 100,000 rows, which are sorted"
        assert db.rows(OWN) == []


def test_nothing_of_it_is_there_after_a_restart(tmp_path):
    with serving(tmp_path, automatic=True) as server, Database(server) as db:
        fill(db)
        ask(db)
        wait_until(lambda: db.rows(OWN), "a view is made")
    with serving(tmp_path, automatic=False) as server, Database(server) as db:
        assert db.rows("SELECT * FROM bowshot.system.tables WHERE table_schema = 'bowshot_views'") == []


@pytest.mark.parametrize("policy", [False, True])
def test_users_have_what_their_tables_give_them(tmp_path, policy):
    users = users_file(tmp_path, tokens={"root": "r", "ada": "a"}, admins=("root",))
    with (
        serving(tmp_path, automatic=True, arguments=["--users-file", str(users)]) as server,
        Database(server, token="r") as root,
        Database(server, token="a") as ada,
    ):
        fill(root)
        # Nor do rights on all that is around a view give any on it, which shows what policies hide.
        root.run(
            "GRANT SELECT ON sales TO ada",
            "GRANT SELECT, CREATE ON CATALOG bowshot TO ada",
            "CREATE SCHEMA bowshot_views",
            "GRANT SELECT, CREATE ON SCHEMA bowshot_views TO ada",
        )
        if policy:
            root.run("CREATE ROW POLICY p ON sales FOR ada USING (store = 1)")
        expected = ask(root)
        wait_until(lambda: "bowshot_views" in plan(root, by_day(3)), "a view answers root")
        assert ("bowshot_views" in plan(ada, by_day(3))) == (not policy)
        mine = [row for row in expected[2] if row[0] == 1 or not policy]
        assert ada.rows(by_day(3)) == mine
        # Nobody but administrators sees the view or what is suggested.
        assert ada.rows("SELECT table_name FROM bowshot.system.materialized_views") == []
        with pytest.raises(Exception, match="suggested_views"):
            ada.rows("SELECT * FROM bowshot.system.suggested_views")
        ((name, *_),) = root.rows(OWN)
        with pytest.raises(Exception, match=name):
            ada.rows(f"SELECT * FROM bowshot.bowshot_views.{name}")
