"""Mutated conversations in PostgreSQL's and MySQL's protocols, see hostile_wires.py."""

from hostile_wires import Wires

COUNT = 3_000


def test_mutated_conversations_leave_nothing(tmp_path):
    with Wires(tmp_path) as wires:
        failures, _, _ = wires.check(COUNT, seed=1)
    assert failures == []
