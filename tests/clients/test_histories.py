"""The judge of `test_isolation.py` itself: it passes what a store with snapshots does, and finds every known anomaly."""

import random

import pytest

from histories import Transaction, complaints

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
LOST = [
    transaction("a", ("read", "x", ()), ("append", "x", 1)),
    transaction("b", ("read", "x", ()), ("append", "x", 2)),
]


@pytest.mark.parametrize(
    ("transactions", "final", "words"),
    [
        (SKEW, {"x": [1], "y": [2]}, None),
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
