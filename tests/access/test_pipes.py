"""Pipes load with the rights of who has made them, only who may name files makes one, and others keep their rights."""

import pytest

from server import wait_until
from world import create_users, refused, world

PIPE = "CREATE PIPE p EVERY '1 second' AS COPY INTO t FROM '*.csv'"


@pytest.fixture
def made(tmp_path):
    (tmp_path / "in").mkdir()
    setup = [*create_users("ada", "carl"), "ALTER USER carl ADMIN", "CREATE TABLE t (n BIGINT)", "GRANT INSERT, SELECT ON t TO ada"]
    with world(tmp_path, setup, environment={"BOWSHOT_STORAGE_READ_FOLDER": str(tmp_path / "in")}) as made:
        yield made


def test_who_may_not_name_files_makes_no_pipe(made):
    ada, root = made.at("ada"), made.at("root")
    refused(ada, PIPE, "only administrators may name files")
    root.rows(PIPE)
    for statement in ("ALTER PIPE p PAUSE", "ALTER PIPE p REFRESH", "ALTER PIPE p RETRY", "DROP PIPE p"):
        refused(ada, statement, "not found")
    ada.rows("DROP PIPE IF EXISTS p")
    assert ada.rows("SELECT name FROM system.pipes") == []
    assert root.rows("SELECT name, owner FROM system.pipes") == [("p", "root")]


def test_an_owner_who_loses_the_right_loads_nothing(made, tmp_path):
    carl, root = made.at("carl"), made.at("root")
    carl.rows(PIPE)
    (tmp_path / "in" / "a.csv").write_text("n\n1\n")
    wait_until(lambda: root.rows("SELECT n FROM t") == [("1",)], "the file is loaded", 30.0)
    root.rows("ALTER USER carl NOADMIN")
    (tmp_path / "in" / "b.csv").write_text("n\n2\n")
    wait_until(lambda: root.rows("SELECT state FROM system.pipes") == [("failed",)], "the pipe fails", 30.0)
    assert "only administrators may name files" in root.rows("SELECT last_error FROM system.pipes")[0][0]
    assert root.rows("SELECT n FROM t") == [("1",)]
    root.rows("ALTER USER carl ADMIN")
    wait_until(lambda: root.rows("SELECT n FROM t ORDER BY n") == [("1",), ("2",)], "the file is loaded", 30.0)
    root.rows("DROP USER carl")
    (tmp_path / "in" / "c.csv").write_text("n\n3\n")
    wait_until(lambda: root.rows("SELECT state FROM system.pipes") == [("failed",)], "the pipe fails", 30.0)
    assert "is not a user" in root.rows("SELECT last_error FROM system.pipes")[0][0]


def test_a_pipe_changes_no_rights_of_who_follows_a_part(made):
    ada, root = made.at("ada", "postgres"), made.at("root")
    root.rows("CREATE TABLE partly (id BIGINT, hidden BIGINT)")
    root.rows("INSERT INTO partly VALUES (1, 1)")
    root.rows("GRANT SELECT (id) ON partly TO ada")
    ada.rows("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM table_changes('partly', 1, follow => true)")
    assert ada.rows("FETCH 1 FROM c") == [("1",)]
    root.rows(PIPE)
    root.rows("INSERT INTO partly VALUES (2, 2)")
    assert ada.rows("FETCH 1 FROM c") == [("2",)]
    root.rows("REVOKE SELECT ON partly FROM ada")
    root.rows("INSERT INTO partly VALUES (3, 3)")
    refused(ada, "FETCH 1 FROM c", "access rules have changed")
