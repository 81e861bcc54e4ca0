"""Functions of SQL run with the rights of who calls them: policies and masks hold in them, and no function gives what a query does not."""

import pytest

from world import DOORS, create_users, refused

SETUP = [
    "CREATE SCHEMA tools",
    "CREATE TABLE tools.people (id INTEGER, region VARCHAR, pay INTEGER)",
    "INSERT INTO tools.people VALUES (1, 'eu', 10), (2, 'us', 20)",
    "CREATE TABLE tools.hidden (id INTEGER)",
    *create_users("ada", "bob"),
    "GRANT SELECT ON tools.people TO ada",
    "CREATE ROW POLICY eu ON tools.people FOR ada USING (region = 'eu')",
    "CREATE FUNCTION tools.total() RETURNS BIGINT RETURN (SELECT sum(pay) FROM tools.people)",
    "CREATE FUNCTION tools.pay_of(wanted INT) RETURNS TABLE (pay INT) RETURN SELECT pay FROM tools.people WHERE id = wanted",
    "CREATE FUNCTION tools.count_hidden() RETURNS BIGINT RETURN (SELECT count(*) FROM tools.hidden)",
]


@pytest.mark.parametrize("door", DOORS)
def test_policies_of_the_caller_hold_in_functions(made, door):
    root, ada = made.at("root", door), made.at("ada", door)
    assert root.rows("SELECT tools.total()") == [("30",)]
    assert ada.rows("SELECT tools.total()") == [("10",)]
    assert ada.rows("SELECT pay FROM tools.pay_of(2)") == []
    assert root.rows("SELECT pay FROM tools.pay_of(2)") == [("20",)]


def test_a_function_gives_no_right(made):
    ada = made.at("ada")
    refused(ada, "SELECT tools.count_hidden()", "hidden")


def test_functions_are_known_to_who_may_know_something_in_their_schema(made):
    root, ada, bob = (made.at(user) for user in ("root", "ada", "bob"))
    known = "SELECT count(*) FROM system.functions WHERE function_schema = 'tools'"
    assert [root.rows(known), ada.rows(known), bob.rows(known)] == [[("3",)], [("3",)], [("0",)]]
    refused(bob, "SELECT tools.total()", "total")
    refused(bob, "DROP FUNCTION tools.total", "does not exist")


def test_functions_are_made_and_dropped_by_who_may(made):
    root, ada = made.at("root"), made.at("ada")
    refused(ada, "CREATE FUNCTION tools.mine() RETURNS INT RETURN 1", "may not create anything")
    refused(ada, "DROP FUNCTION tools.total", "may not drop function")
    root.rows("GRANT CREATE ON SCHEMA tools TO ada")
    refused(ada, "CREATE OR REPLACE FUNCTION tools.total() RETURNS INT RETURN 1", "the name is taken")
    ada.rows("CREATE FUNCTION tools.mine() RETURNS INT RETURN 1")
    ada.rows("CREATE OR REPLACE FUNCTION tools.mine() RETURNS INT RETURN 2")
    assert root.rows("SELECT owner FROM system.functions WHERE function_name = 'mine'") == [("ada",)]
    ada.rows("DROP FUNCTION tools.mine")
    root.rows("REVOKE CREATE ON SCHEMA tools FROM ada")


def test_who_sees_a_part_of_a_table_does_not_clone_it(made):
    root, ada = made.at("root"), made.at("ada")
    root.rows("GRANT CREATE ON SCHEMA main TO ada")
    refused(ada, "CREATE TABLE main.mine CLONE tools.people", "sees a part")
    refused(ada, "CREATE TABLE main.mine CLONE tools.hidden", "hidden")
    root.rows("CREATE TABLE main.all_of_it CLONE tools.people")
    root.rows("DROP TABLE main.all_of_it")
    root.rows("REVOKE CREATE ON SCHEMA main FROM ada")
