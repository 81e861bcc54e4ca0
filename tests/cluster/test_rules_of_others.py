"""Rules of access are kept by one node, and clients may ask any: where one has rules, none is open."""

import urllib.error

import nodes
import pytest
from server import wait_until

ADA, BOB = ("ada", "a password"), ("bob", "a password")


@pytest.fixture
def members(tmp_path):
    hashed = nodes.run("hash-password", said="a password").stdout.strip()
    users = tmp_path / "users.toml"
    entry = '[[users]]\nname = "{}"\npassword_hash = "{}"\nadmin = {}\n'
    users.write_text(entry.format("ada", hashed, "true") + entry.format("bob", hashed, "false"))
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    more = {"more": ["--users-file", users], "sources": [f"t={tmp_path / 't.csv'}"], "user": ADA}
    proof = nodes.secret()
    with (
        nodes.Node(proof, data=tmp_path / "first", **more) as first,
        nodes.Node(proof, join=[first.cluster], data=tmp_path / "second", **more) as second,
    ):
        nodes.all_alive([first, second])
        yield first, second


def is_refused(node, sql, user):
    try:
        node.rows(sql, user)
    except urllib.error.HTTPError as error:
        return error.code in (403, 404)
    return False


def test_a_node_without_rules_is_not_open_beside_one_with_rules(members):
    first, second = members
    count = "SELECT count(*) FROM t"
    assert [node.rows(count, BOB) for node in members] == [[[2]], [[2]]]
    first.rows("CREATE ROLE readers")
    assert is_refused(first, count, BOB)
    wait_until(lambda: is_refused(second, count, BOB), "rights are needed there too", 10)
    # Admins may do everything, and see why.
    assert second.rows(count) == [[2]]
    assert second.rows("SELECT this_node, guarded FROM system.nodes ORDER BY 1") == [[False, True], [True, False]]
    assert "another node has rules of access" in second.log()
    # The same rules there give the same rights.
    for node in members:
        node.rows("GRANT SELECT ON t TO bob")
        assert node.rows(count, BOB) == [[2]]
    # What one node forgets, the other one has not.
    first.rows("REVOKE SELECT ON t FROM bob")
    first.rows("DROP ROLE readers")
    assert second.rows(count, BOB) == [[2]]
    second.rows("REVOKE SELECT ON t FROM bob")
    assert is_refused(second, count, BOB)


def test_rows_that_were_made_before_are_not_handed_out(members):
    first, second = members
    assert second.rows("SELECT a FROM t ORDER BY a", BOB) == [[1], [2]]
    first.rows("CREATE ROW POLICY mine ON t FOR bob USING (a = 1)")
    first.rows("GRANT SELECT ON t TO bob")
    assert first.rows("SELECT a FROM t", BOB) == [[1]]
    wait_until(lambda: is_refused(second, "SELECT a FROM t", BOB), "rights are needed there too", 10)
