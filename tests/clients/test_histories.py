"""The judge of `test_isolation.py` itself: it finds every known anomaly, and passes what snapshot isolation allows."""

import pytest

from histories import Transaction, complaints


def transaction(name, *steps, began=0.0, ended=1.0, committed=True):
    log = Transaction(name, committed=committed, began=began, ended=ended)
    for step, key, value in steps:
        getattr(log, step)(key, value)
    return log


SKEW = [
    transaction("a", ("read", "x", ()), ("read", "y", ()), ("append", "x", 1)),
    transaction("b", ("read", "x", ()), ("read", "y", ()), ("append", "y", 2)),
]
LONG_FORK = [
    transaction("a", ("append", "x", 1)),
    transaction("b", ("append", "y", 2)),
    transaction("c", ("read", "x", (1,)), ("read", "y", ())),
    transaction("d", ("read", "x", ()), ("read", "y", (2,))),
]
HALF = [
    transaction("a", ("append", "x", 1), ("append", "y", 2)),
    transaction("b", ("read", "x", (1,)), ("read", "y", ())),
]
OLD = [
    transaction("a", ("append", "x", 1), began=0, ended=1),
    transaction("b", ("read", "x", ()), began=2, ended=3),
]
UNREPEATABLE = [
    transaction("a", ("append", "x", 1)),
    transaction("b", ("read", "x", ()), ("read", "x", (1,))),
]
DIRTY = [
    transaction("a", ("append", "x", 1), committed=False),
    transaction("b", ("read", "x", (1,))),
]
ONE_AFTER_ANOTHER = [
    transaction("a", ("append", "x", 1), ("append", "y", 2), began=0, ended=1),
    transaction("b", ("read", "x", (1,)), ("append", "x", 3), ("read", "x", (1, 3)), began=2, ended=3),
]
LOST = [
    transaction("a", ("read", "x", ()), ("append", "x", 1)),
    transaction("b", ("read", "x", ()), ("append", "x", 2)),
]


@pytest.mark.parametrize(
    ("transactions", "final", "words"),
    [
        (SKEW, {"x": [1], "y": [2]}, None),
        (ONE_AFTER_ANOTHER, {"x": [1, 3], "y": [2]}, None),
        (UNREPEATABLE, {"x": [1]}, "not repeatable"),
        (DIRTY, {"x": []}, "dirty"),
        (LONG_FORK, {"x": [1], "y": [2]}, "no snapshots"),
        (HALF, {"x": [1], "y": [2]}, "no snapshots"),
        (OLD, {"x": [1]}, "no snapshots"),
        (LOST, {"x": [1, 2]}, "lost update"),
        (LOST, {"x": [2]}, "0 times at the end"),
        ([transaction("a", ("append", "x", 1), committed=False)], {"x": [1]}, "1 times at the end"),
        ([transaction("a", ("append", "x", 1), ("append", "x", 2)), transaction("b", ("read", "x", (1,)))],
         {"x": [1, 2]}, "half of a transaction"),
        ([transaction("a", ("append", "x", 1), ("read", "x", ()))], {"x": [1]}, "its own appends"),
        ([], {"x": [1]}, "nobody appended"),
    ],
)  # fmt: skip
def test_known_anomalies(transactions, final, words):
    found = complaints(transactions, final)
    assert (words is None and not found) or any(words in complaint for complaint in found), found
