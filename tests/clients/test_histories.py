"""The judge of `test_isolation.py` itself: it finds every known anomaly, and complains of nothing else."""

import dataclasses

import pytest

from histories import Rows, Transaction, complaints


def transaction(name, *steps, **facts):
    """Steps are `rx` with the list that was read of x, `ax` with an element for it, or `undo` with a number of steps."""
    log = Transaction(name, **{"committed": True, "ended": 1.0, **facts})
    for step, value in steps:
        log.undo(value) if step == "undo" else {"r": log.read, "a": log.append}[step[0]](step[1:], value)
    return log


SKEW = [transaction("a", ("rx", ()), ("ry", ()), ("ax", 1)), transaction("b", ("rx", ()), ("ry", ()), ("ay", 2))]
LONG_FORK = [
    transaction("a", ("ax", 1)),
    transaction("b", ("ay", 2)),
    transaction("c", ("rx", (1,)), ("ry", ())),
    transaction("d", ("rx", ()), ("ry", (2,))),
]
HALF = [transaction("a", ("ax", 1), ("ay", 2)), transaction("b", ("rx", (1,)), ("ry", ()))]
OLD = [transaction("a", ("ax", 1), began=0, ended=1), transaction("b", ("rx", ()), began=2, ended=3)]
WRITES = [transaction("a", ("ax", 1), ("ay", 3)), transaction("b", ("ax", 2), ("ay", 4))]
FLOW = [transaction("a", ("ax", 1), ("ry", (2,))), transaction("b", ("ay", 2), ("rx", (1,)))]
UNDONE = transaction("a", ("ax", 1), ("ax", 2), ("rx", (1, 2)), ("undo", 1), ("rx", (1,)), ("ax", 3))
# The reader has seen b and not a, and a has not seen b.
READ_ONLY = [
    transaction("a", ("rx", ()), ("ry", ()), ("ax", 1)),
    transaction("b", ("ay", 2)),
    transaction("c", ("rx", ()), ("ry", (2,)), serializable=True),
]
LOST = [transaction("a", ("rx", ()), ("ax", 1)), transaction("b", ("rx", ()), ("ax", 2))]


def serializable(transactions):
    return [dataclasses.replace(one, serializable=True) for one in transactions]


def reads_of(elements, **facts):
    """One transaction appends 1 and 2 to x, another one reads it."""
    return [transaction("a", ("ax", 1), ("ax", 2), **facts), transaction("b", ("rx", elements))]


@pytest.mark.parametrize(("transactions", "final", "words"), [
    (WRITES, {"x": [1, 2], "y": [3, 4]}, None),
    (WRITES, {"x": [1, 2], "y": [4, 3]}, "G0"),
    (reads_of((1, 2)), {"x": [1, 2]}, None),
    (reads_of((1, 2), committed=False), {"x": []}, "G1a"),
    (reads_of((1, 2), committed=False), {"x": [1, 2]}, "1 times at the end"),
    (reads_of((1,)), {"x": [1, 2]}, "half of a transaction (G1b"),
    (reads_of(Rows([1])), {"x": Rows([1, 2])}, "half of a transaction (G1b"),
    (reads_of((2, 1)), {"x": [1, 2]}, "incompatible orders"),
    (reads_of(Rows([2, 1])), {"x": Rows([1, 2])}, None),
    (reads_of((1, 2, 2)), {"x": [1, 2]}, "twice"),
    (reads_of((1, 2)), {"x": [1, 2, 2]}, "2 times at the end"),
    (reads_of((1, 2, 9)), {"x": [1, 2]}, "nobody appended 9"),
    ([UNDONE], {"x": [1, 3]}, None),
    ([UNDONE], {"x": [1, 2, 3]}, "rolled back 2"),
    ([UNDONE, transaction("b", ("rx", (1, 2)))], {"x": [1, 3]}, "back to a savepoint (G1b"),
    (FLOW, {"x": [1], "y": [2]}, "G1c"),
    (SKEW, {"x": [1], "y": [2]}, None),
    (serializable(SKEW), {"x": [1], "y": [2]}, "G2-item"),
    ([SKEW[0], *serializable(SKEW[1:])], {"x": [1], "y": [2]}, None),
    (READ_ONLY, {"x": [1], "y": [2]}, None),
    (LONG_FORK, {"x": [1], "y": [2]}, "no snapshots"),
    (LONG_FORK, {"x": Rows([1]), "y": Rows([2])}, "no snapshots"),
    (HALF, {"x": [1], "y": [2]}, "G-single"),
    (OLD, {"x": [1]}, "in real time"),
    (LOST, {"x": [1, 2]}, "lost update"),
    (LOST, {"x": [2]}, "0 times at the end"),
    # Nobody knows whether it was committed: all or nothing of it is there.
    (reads_of((), committed=None), {"x": []}, None),
    (reads_of((1, 2), committed=None), {"x": [1, 2]}, None),
    (reads_of((1, 2), committed=None), {"x": []}, "G1a"),
    (reads_of((), committed=None), {"x": [1]}, "0 times at the end"),
    ([transaction("a", ("ax", 1), ("rx", ()))], {"x": [1]}, "its own appends"),
    ([transaction("a", ("rx", ()), ("rx", (1,))), transaction("b", ("ax", 1))], {"x": [1]}, "not repeatable"),
    ([], {"x": [1]}, "nobody appended"),
])  # fmt: skip
def test_known_anomalies(transactions, final, words):
    # The judge decides about those of whom nobody knows.
    transactions = [dataclasses.replace(one) for one in transactions]
    found = complaints(transactions, final)
    assert (words is None and not found) or (words and any(words in complaint for complaint in found)), found
