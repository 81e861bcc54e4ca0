"""Rules of access are kept by one node, and clients may ask any: where one has rules, none is open."""

import contextlib

import nodes
import http_sql
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from server import wait_until

ADA, BOB = ("ada", nodes.PASSWORD), ("bob", nodes.PASSWORD)


@contextlib.contextmanager
def two_nodes(folder, source, *arguments):
    """With Ada, an admin, and Bob, and a table `t`."""
    users = nodes.users_file(folder, ada=True, bob=False)
    more = {"more": [*users, *arguments], "sources": [f"t={source}"], "user": ADA}
    proof = nodes.secret()
    with (
        nodes.Node(proof, data=folder / "first", **more) as first,
        nodes.Node(proof, join=[first.cluster], data=folder / "second", **more) as second,
    ):
        nodes.all_alive([first, second])
        yield first, second


@pytest.fixture
def members(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    with two_nodes(tmp_path, tmp_path / "t.csv") as both:
        yield both


def is_refused(node, sql, user):
    return http_sql.answered(node, sql, http_sql.basic(*user))[0] in (403, 404)


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
    wait_until(lambda: "another node has access rules" in second.log(), "the log says so")
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


def test_parts_of_plans_come_with_what_their_user_may_see(tmp_path):
    """A plan is authorised by the node that was asked. The others run its parts, whatever their own rules say of its user: they
    neither add rows nor take any away."""
    (tmp_path / "t").mkdir()
    for number in range(4):
        part = pa.table({"x": range(number * 20_000, (number + 1) * 20_000), "g": [row % 7 for row in range(20_000)]})
        parquet.write_table(part, tmp_path / "t" / f"{number}.parquet", row_group_size=5_000)
    with two_nodes(tmp_path, tmp_path / "t", "--set", "cluster.bytes_per_thread=1") as (first, second):
        for sql in ("CREATE ROLE readers", "GRANT readers TO bob", "GRANT SELECT ON t TO readers"):
            first.rows(sql)
        groups = "SELECT g, count(*) FROM t GROUP BY g ORDER BY g"
        wait_until(lambda: is_refused(second, groups, BOB), "nothing is granted there", 10)
        expected = second.rows(groups)
        lines = [line for _, line in first.rows("EXPLAIN " + groups, BOB)]
        assert any("Stage" in line and "tasks=2" in line for line in lines), lines
        assert first.rows(groups, BOB) == expected and len(expected) == 7
        assert is_refused(second, groups, BOB), "who asks there is judged there"
        # Other rules there change nothing of what the first one says, and the other way round.
        second.rows("CREATE ROW POLICY few ON t FOR bob USING (x < 10)")
        second.rows("GRANT SELECT ON t TO bob")
        assert first.rows(groups, BOB) == expected
        assert second.rows("SELECT count(*) FROM t", BOB) == [[10]]
        first.rows("CREATE ROW POLICY fewer ON t FOR readers USING (x < 3)")
        assert first.rows("SELECT count(*) FROM t", BOB) == [[3]] and second.rows("SELECT count(*) FROM t", BOB) == [[10]]
        first.rows("REVOKE SELECT ON t FROM readers")
        assert is_refused(first, groups, BOB)
