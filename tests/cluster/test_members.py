"""Nodes that come, stop, die, return and leave, as every other node sees it."""

import nodes
import http_sql
import pytest
from nodes import Node


@pytest.mark.parametrize("number", [3, 5])
def test_all_nodes_see_all_nodes(number):
    with nodes.cluster(number) as members:
        identifiers = [row for row in members[0].rows("SELECT node_id FROM system.nodes")]
        for member in members:
            assert member.rows("SELECT node_id FROM system.nodes") == identifiers
            [[skew, build, threads]] = member.rows("SELECT max(abs(clock_skew_ms)), count(DISTINCT build), min(threads) FROM system.nodes")
            assert skew < 5_000 and build == 1 and threads >= 1
            assert member.get("/ready")[0] == 200
        _, _, metrics = members[0].get("/metrics")
        assert f'bowshot_cluster_members{{state="alive"}} {number}' in metrics, metrics


def test_one_that_is_killed_is_dead_and_its_successor_alive():
    proof = nodes.secret()
    with nodes.cluster(3, proof) as members:
        first, second, third = members
        port, identifier = third.cluster, third.identifier()
        third.kill()
        expected = {first.cluster: "alive", second.cluster: "alive", port: "suspect"}
        first.until(expected)
        expected[port] = "dead"
        first.until(expected)
        second.until(expected)
        with Node(proof, join=[first.cluster], listen=port) as successor:
            nodes.all_alive([first, second, successor])
            assert successor.identifier() != identifier
            assert first.rows(f"SELECT count(*) FROM system.nodes WHERE node_id = '{identifier}'") == [[0]]


def test_a_list_of_nodes_may_start_in_any_order():
    proof = nodes.secret()
    with Node(proof) as first:
        port = first.cluster
    # Nobody is there yet.
    with Node(proof, join=[port]) as second, Node(proof, listen=port, join=[second.cluster]) as first:
        nodes.all_alive([first, second])


def test_who_is_no_admin_sees_no_nodes(tmp_path):
    more = [*nodes.users_file(tmp_path, root=True, ada=False), "--set", "access.enforced=true"]
    sql = "SELECT state FROM system.nodes"
    # Before there is any rule, all users are alike.
    with Node(nodes.secret(), more=more) as node:
        assert node.rows(sql, user=("root", nodes.PASSWORD)) == [["alive"]]
        assert http_sql.answered(node, sql, http_sql.basic("ada", nodes.PASSWORD))[0] == 404
