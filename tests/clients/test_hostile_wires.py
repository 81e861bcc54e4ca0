"""Mutated conversations in PostgreSQL's and MySQL's protocols, see hostile_wires.py."""

import hostile_wires as wires
from server import Server

COUNT = 4_000


def test_mutated_conversations_leave_nothing():
    with Server(arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]) as server:
        wires.prepare(server)
        assert wires.check(server, COUNT, seed=1) == []
        wires.answers(server)
        assert wires.leftovers(server) == []
