"""The judge of `test_isolation.py` itself: it passes what a store with snapshots does, and finds every known anomaly."""

import dataclasses
import random

import pytest

from histories import Rows, Transaction, complaints

KEYS = ["x", "y", "z"]


class Store:
    """A small store whose transactions take turns; `flaw` names what it does wrong."""

    def __init__(self, flaw=None):
        self.flaw = flaw
        self.lists = {key: () for key in KEYS}
        self.clock = 0
        self.changed = dict.fromkeys(KEYS, 0)

    def tick(self):
        self.clock += 1
        return float(self.clock)


class Session:
    def __init__(self, store, name):
        self.store, self.log = store, Transaction(name, began=store.tick())
        self.began, self.snapshot, self.own = store.clock, dict(store.lists), {}

    def list(self, key):
        flaw, store = self.store.flaw, self.store
        base = store.lists[key] if flaw in ("not repeatable", "dirty") else self.snapshot[key]
        if flaw == "fork" and key == "y":
            base = store.lists[key]
        if flaw == "stale" and len(base) > 1 and self.log.name.endswith("0"):
            base = base[:-1]
        return base + tuple(self.own.get(key, ()))

    def read(self, key):
        self.log.read(key, self.list(key))

    def append(self, key, element):
        self.log.append(key, element)
        if self.store.flaw == "dirty":
            self.store.lists[key] += (element,)
        else:
            self.own.setdefault(key, []).append(element)

    def end(self, commit):
        store = self.store
        conflict = any(store.changed[key] > self.began for key in self.own) and store.flaw != "lost update"
        self.log.committed = commit and not conflict
        if self.log.committed:
            for key, elements in self.own.items():
                base = self.snapshot[key] if store.flaw == "lost update" else store.lists[key]
                store.lists[key] = base + tuple(elements)
                store.changed[key] = store.tick()
        self.log.ended = store.tick()


def history(seed, flaw=None):
    rng, store, logs, open_sessions = random.Random(seed), Store(flaw), [], []
    for number in range(60):
        if len(open_sessions) < 4:
            open_sessions.append(Session(store, f"t{number}"))
        session = rng.choice(open_sessions)
        for step in range(rng.randrange(1, 3)):
            key = rng.choice(KEYS)
            session.append(key, f"{number}.{step}") if rng.random() < 0.4 else session.read(key)
        if rng.random() < 0.4:
            session.end(rng.random() < 0.8)
            logs.append(session.log)
            open_sessions.remove(session)
    for session in open_sessions:
        session.end(False)
        logs.append(session.log)
    return logs, store.lists


@pytest.mark.parametrize("seed", range(50))
def test_a_store_with_snapshots_passes(seed):
    assert complaints(*history(seed)) == []


@pytest.mark.parametrize("flaw", ["not repeatable", "dirty", "lost update", "fork", "stale"])
def test_flaws_are_found(flaw):
    found = [complaints(*history(seed, flaw)) for seed in range(40)]
    assert sum(map(bool, found)) >= 20


def transaction(name, *steps, **facts):
    """Steps are `rx` with the list that was read of x, `ax` with an element for it, or `undo` with a number of steps."""
    log = Transaction(name, **{"committed": True, "ended": 1.0, **facts})
    for step, value in steps:
        log.undo(value) if step == "undo" else {"r": log.read, "a": log.append}[step[0]](step[1:], value)
    return log


SKEW = [
    transaction("a", ("rx", ()), ("ry", ()), ("ax", 1)),
    transaction("b", ("rx", ()), ("ry", ()), ("ay", 2)),
]
LONG_FORK = [
    transaction("a", ("ax", 1)),
    transaction("b", ("ay", 2)),
    transaction("c", ("rx", (1,)), ("ry", ())),
    transaction("d", ("rx", ()), ("ry", (2,))),
]
HALF = [
    transaction("a", ("ax", 1), ("ay", 2)),
    transaction("b", ("rx", (1,)), ("ry", ())),
]
OLD = [
    transaction("a", ("ax", 1), began=0, ended=1),
    transaction("b", ("rx", ()), began=2, ended=3),
]
WRITES = [transaction("a", ("ax", 1), ("ay", 3)), transaction("b", ("ax", 2), ("ay", 4))]
FLOW = [transaction("a", ("ax", 1), ("ry", (2,))), transaction("b", ("ay", 2), ("rx", (1,)))]
UNDONE = transaction("a", ("ax", 1), ("ax", 2), ("rx", (1, 2)), ("undo", 1), ("rx", (1,)), ("ax", 3))
# The reader has seen b and not a, and a has not seen b.
READ_ONLY = [
    transaction("a", ("rx", ()), ("ry", ()), ("ax", 1)),
    transaction("b", ("ay", 2)),
    transaction("c", ("rx", ()), ("ry", (2,)), serializable=True),
]
LOST = [
    transaction("a", ("rx", ()), ("ax", 1)),
    transaction("b", ("rx", ()), ("ax", 2)),
]


def serializable(transactions):
    return [dataclasses.replace(one, serializable=True) for one in transactions]


def reads_of(elements, **facts):
    """One transaction appends 1 and 2 to x, another one reads it."""
    return [transaction("a", ("ax", 1), ("ax", 2), **facts), transaction("b", ("rx", elements))]


@pytest.mark.parametrize(
    ("transactions", "final", "words"),
    [
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
    ],
)  # fmt: skip
def test_known_anomalies(transactions, final, words):
    # The judge decides about those of whom nobody knows.
    transactions = [dataclasses.replace(one) for one in transactions]
    found = complaints(transactions, final)
    assert (words is None and not found) or (words and any(words in complaint for complaint in found)), found
