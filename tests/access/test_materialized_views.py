"""Queries that are answered from materialized views give nobody more than their tables do, and nobody learns of a view by them."""

import pytest

from server import wait_until
from world import Refused, create_users, do, world

USERS = create_users("ada", "bob", "carl")
QUERY = "SELECT region, count(*) AS c FROM people GROUP BY region"


@pytest.fixture
def made(tmp_path):
    setup = [
        *USERS,
        "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU', 'x'), (2, 'US', 'y'), (3, 'US', 'z')) AS v(id, region, ssn)",
        f"CREATE MATERIALIZED VIEW by_region AS {QUERY}",
    ]
    with world(tmp_path, setup) as made:
        yield made


def reads_view(connection):
    return "by_region" in str(connection.rows(f"EXPLAIN {QUERY}"))


def test_who_reads_all_of_the_tables_is_answered_from_the_view(made):
    root, ada = made.at("root"), made.at("ada")
    assert reads_view(root)
    do(root, "GRANT SELECT ON people TO ada")
    assert not reads_view(ada), "EXPLAIN would tell the name of the view"
    assert sorted(ada.rows(QUERY)) == [("EU", "1"), ("US", "2")]
    do(root, "GRANT SELECT ON by_region TO ada")
    assert reads_view(ada)
    assert sorted(ada.rows(QUERY)) == [("EU", "1"), ("US", "2")]


@pytest.mark.parametrize(("rules", "expected"), [
    (["GRANT SELECT ON people TO ada", "CREATE ROW POLICY p ON people FOR ada USING (region = 'EU')"], [("EU", "1")]),
    (["GRANT SELECT ON people TO ada", "CREATE MASK m ON people (region) FOR ada USING ('hidden')"], [("hidden", "3")]),
    (["GRANT SELECT (region) ON people TO ada"], [("EU", "1"), ("US", "2")]),
])
def test_who_reads_a_part_is_not(made, rules, expected):
    root, ada = made.at("root"), made.at("ada")
    do(root, "GRANT SELECT ON by_region TO ada", *rules)
    assert not reads_view(ada)
    assert sorted(ada.rows(QUERY)) == expected
    # What others have been answered with before changes nothing.
    assert reads_view(root)
    assert sorted(ada.rows(QUERY)) == expected


def test_who_may_read_only_the_view_cannot_ask_the_table(made):
    do(made.at("root"), "GRANT SELECT ON by_region TO ada")
    with pytest.raises(Refused):
        made.at("ada").rows(QUERY)


def test_a_view_of_somebody_who_sees_a_part_answers_nobody_else(made):
    root, bob = made.at("root"), made.at("bob")
    do(
        root,
        "DROP MATERIALIZED VIEW by_region",
        "CREATE SCHEMA ws",
        "GRANT CREATE ON SCHEMA ws TO bob",
        "GRANT SELECT ON people TO bob",
        "CREATE ROW POLICY p ON people FOR bob USING (region = 'EU')",
    )
    do(bob, "CREATE MATERIALIZED VIEW ws.by_region AS SELECT region, count(*) AS c FROM main.people GROUP BY region")
    assert bob.rows("SELECT * FROM ws.by_region") == [("EU", "1")]
    assert not reads_view(root)
    assert sorted(root.rows(QUERY)) == [("EU", "1"), ("US", "2")]


def test_only_the_owner_learns_what_a_view_shows(made):
    root, ada = made.at("root"), made.at("ada")
    do(root, "GRANT SELECT ON by_region TO ada")
    sql = "SELECT state, sources FROM bowshot.system.materialized_views WHERE table_name = 'by_region'"
    ((state, sources),) = root.rows(sql)
    assert state == "fresh" and sources.startswith("bowshot.main.people version "), sources
    assert ada.rows(sql) == [(None, None)]
    for statement in ("REFRESH MATERIALIZED VIEW by_region", "EXPLAIN REFRESH MATERIALIZED VIEW by_region", "ALTER MATERIALIZED VIEW by_region SET REFRESH MANUAL"):
        with pytest.raises(Refused):
            ada.rows(statement)


def on_commit(made):
    root = made.at("root")
    do(root, "DROP MATERIALIZED VIEW by_region", f"CREATE MATERIALIZED VIEW by_region REFRESH ON COMMIT AS {QUERY}")
    return root


def test_who_changes_a_table_needs_no_right_on_a_view_that_shows_all_of_it(made):
    root, ada = on_commit(made), made.at("ada")
    do(root, "GRANT SELECT, INSERT ON people TO ada", "CREATE ROW POLICY p ON people FOR ada USING (region = 'EU')")
    do(ada, "INSERT INTO people VALUES (4, 'EU', 'w')")
    assert sorted(root.rows("SELECT * FROM by_region")) == [("EU", "2"), ("US", "2")]
    with pytest.raises(Refused):
        ada.rows("SELECT * FROM by_region")


def test_only_who_owns_the_tables_lets_their_commits_refresh_a_view(made):
    root, bob = made.at("root"), made.at("bob")
    do(root, "CREATE SCHEMA ws", "GRANT CREATE ON SCHEMA ws TO bob", "GRANT SELECT ON people TO bob")
    query = "SELECT region, count(*) AS c FROM main.people GROUP BY region"
    with pytest.raises(Refused, match="does not own"):
        do(bob, f"CREATE MATERIALIZED VIEW ws.v REFRESH ON COMMIT AS {query}")
    do(bob, f"CREATE MATERIALIZED VIEW ws.v AS {query}")
    with pytest.raises(Refused, match="does not own"):
        do(bob, "ALTER MATERIALIZED VIEW ws.v SET REFRESH ON COMMIT")


def test_a_view_that_cannot_be_refreshed_tells_strangers_nothing(made):
    root, ada, carl = on_commit(made), made.at("ada"), made.at("carl")
    do(root, "GRANT INSERT ON people TO carl", "ALTER MATERIALIZED VIEW by_region OWNER TO ada")
    with pytest.raises(Refused, match="cannot refresh a materialized view on commit") as refused:
        do(carl, "INSERT INTO people VALUES (4, 'EU', 'w')")
    assert "by_region" not in str(refused.value)
    do(root, "GRANT SELECT ON people TO ada")
    do(carl, "INSERT INTO people VALUES (4, 'EU', 'w')")
    assert sorted(root.rows("SELECT * FROM by_region")) == [("EU", "2"), ("US", "2")]
    assert ada.rows("SELECT count(*) FROM by_region") == [("2",)]


def test_the_server_refreshes_the_view_of_a_role(made):
    root = made.at("root")
    do(
        root,
        "CREATE ROLE team",
        "GRANT SELECT ON people TO team",
        "ALTER MATERIALIZED VIEW by_region SET REFRESH EVERY '1 second'",
        "ALTER MATERIALIZED VIEW by_region OWNER TO team",
        "INSERT INTO people VALUES (4, 'EU', 'w')",
    )
    wait_until(lambda: sorted(root.rows("SELECT * FROM by_region")) == [("EU", "2"), ("US", "2")], "the view is refreshed")
    with pytest.raises(Refused):
        do(made.at("ada"), "SELECT * FROM by_region")
