"""Recorded transactions over lists that only grow, and the question whether snapshot isolation explains what they saw.

Every append adds an element that nobody else adds. So the final list of a key tells in which order its writers committed,
and any list that was read tells after which of them. From that follow, between transactions, the edges

    ww  the other one appended next
    wr  the other one read what this one appended
    rw  the other one appended what this one has not read
    rt  the other one began after this one had been told of its commit

and the rule (Cerone and Gotsman): snapshot isolation holds if and only if no cycle lacks two rw edges in a row. Write skew
is such a cycle with two in a row (G2-item), so it passes, but where the one that has read is a writer and serializable: nobody may
have changed what it read before it commits. Anomalies have the names of Adya and of Elle.
"""

import bisect
import collections
import dataclasses
import functools
import math


class Rows(tuple):
    """Elements that are a row each, and so have no order."""

    def __new__(cls, elements=()):
        return super().__new__(cls, sorted(elements))


@dataclasses.dataclass
class Transaction:
    """What one transaction did, in order: `("read", key, elements)`, `("append", key, element)`, and `("undo", None, appends)`."""

    name: str
    steps: list = dataclasses.field(default_factory=list)
    # None while nobody knows, as after a commit without an answer: what is there at the end tells.
    committed: bool | None = False
    serializable: bool = False
    # Before its first statement was sent, after the answer to its end came.
    began: float = 0.0
    ended: float = math.inf

    def read(self, key, elements):
        self.steps.append(("read", key, elements if isinstance(elements, Rows) else tuple(elements)))

    def append(self, key, element):
        self.steps.append(("append", key, element))

    def undo(self, length):
        """All appends after the first `length` steps are gone, as after ROLLBACK TO SAVEPOINT."""
        gone = frozenset((key, value) for step, key, value in self.steps[length:] if step == "append")
        self.steps.append(("undo", None, gone))

    @property
    def undone(self):
        return frozenset().union(*(value for step, _, value in self.steps if step == "undo"))

    def appended(self, key=None):
        """Elements that a commit makes visible: those of a key, or pairs of key and element."""
        undone = self.undone
        kept = [(of, value) for step, of, value in self.steps if step == "append" and (of, value) not in undone]
        return tuple(kept) if key is None else tuple(value for of, value in kept if of == key)


def complaints(transactions, final):
    """What snapshot isolation does not explain; `final` maps keys to lists at the end."""
    history = History(transactions, final)
    return history.lost_or_made_up() + history.bad_reads() + history.bad_writes() + history.cycle()


# Edges that may be in a cycle, and what it is then called; each only where those before it find nothing.
CYCLES = [
    ({"ww"}, "G0, writes in two orders"),
    ({"ww", "wr"}, "G1c, two have read what the other one wrote"),
    ({"ww", "wr", "rw"}, "G-single, no snapshots explain"),
    ({"ww", "wr", "rw", "rt"}, "no snapshots explain in real time"),
    ({"ww", "wr", "rw", "rt", "serial"}, "G2-item, no order explains serializable transactions"),
]


class History:
    def __init__(self, transactions, final):
        self.transactions = transactions
        self.final = {key: elements if isinstance(elements, Rows) else tuple(elements) for key, elements in final.items()}
        self.writer = {}
        for transaction in transactions:
            for step, key, value in transaction.steps:
                if step == "append":
                    assert (key, value) not in self.writer, "elements must be unique"
                    self.writer[key, value] = transaction
            if transaction.committed is None:
                transaction.committed = any(value in self.final[key] for key, value in transaction.appended())

    def lost_or_made_up(self):
        found = []
        for transaction in self.transactions:
            kept = transaction.appended() if transaction.committed else ()
            for step, key, value in transaction.steps:
                times = self.final[key].count(value) if step == "append" else 0
                if step == "append" and times != ((key, value) in kept):
                    word = "committed" if (key, value) in kept else "rolled back"
                    found.append(f"{transaction.name} {word} {value} on {key}, which is there {times} times at the end")
        for key, elements in self.final.items():
            found += [f"nobody appended {value} to {key}" for value in elements if (key, value) not in self.writer]
        return found

    def base(self, elements, own):
        """A read without what its own transaction had appended before; None if that is not at its end."""
        if not own:
            return elements
        if isinstance(elements, Rows):
            return Rows(value for value in elements if value not in own) if set(own) <= set(elements) else None
        return elements[: -len(own)] if elements[-len(own) :] == own else None

    def reads(self, transaction):
        """Key, base and elements of every read."""
        own = collections.defaultdict(tuple)
        for step, key, value in transaction.steps:
            if step == "append":
                own[key] += (value,)
            elif step == "undo":
                own = collections.defaultdict(
                    tuple, {of: tuple(one for one in values if (of, one) not in value) for of, values in own.items()}
                )
            else:
                yield key, self.base(value, own[key]), value

    def bad_reads(self):
        found = []
        for transaction in self.transactions:
            first = {}
            for key, base, elements in self.reads(transaction):
                where = f"{transaction.name} read {list(elements)[-6:]} of {key}"
                if len(set(elements)) < len(elements):
                    found.append(f"{where}, an element twice")
                elif base is None:
                    found.append(f"{where} without its own appends")
                elif why := self.bad_base(key, base):
                    found.append(f"{where}, {why}")
                if base is not None and first.setdefault(key, base) != base:
                    found.append(f"{where} after {list(first[key])[-6:]} in the same transaction (not repeatable)")
        return found

    def bad_base(self, key, base):
        for value in base:
            writer = self.writer.get((key, value))
            if writer is None:
                return f"of which nobody appended {value}"
            if not writer.committed:
                return f"of which {writer.name} rolled {value} back (G1a, aborted read)"
            if (key, value) in writer.undone:
                return f"of which {writer.name} rolled {value} back to a savepoint (G1b, intermediate read)"
        final = self.final[key]
        if not set(base) <= set(final) if isinstance(final, Rows) else base != final[: len(base)]:
            return "which is no beginning of what was committed (incompatible orders)"
        for value in base if isinstance(final, Rows) else base[-1:]:
            if not set(self.writer[key, value].appended(key)) <= set(base):
                return "half of a transaction (G1b, intermediate read)"
        return None

    def bad_writes(self):
        """A committed transaction must have read the state onto which it wrote."""
        found = []
        for transaction in self.transactions:
            if not transaction.committed:
                continue
            for key, base, _ in self.reads(transaction):
                own = transaction.appended(key)
                if not own or base is None or isinstance(base, Rows) or own[0] not in self.final[key]:
                    continue
                place = self.final[key].index(own[0])
                if self.final[key][place : place + len(own)] != own:
                    found.append(f"the appends of {transaction.name} to {key} are torn apart")
                if place != len(base):
                    found.append(f"{transaction.name} read {len(base)} elements of {key} and wrote after {place} (lost update)")
        return found

    def dependencies(self):
        """Kind and both transactions of every edge but those of time; None where nobody wrote an element."""
        for key, final in self.final.items():
            if not isinstance(final, Rows):
                yield from (("ww", self.writer.get((key, one)), self.writer.get((key, two))) for one, two in zip(final, final[1:]))
        for transaction in self.transactions:
            for key, base, _ in self.reads(transaction):
                if base is None:
                    continue
                final = self.final[key]
                rows = isinstance(final, Rows)
                seen = base if rows else base[-1:]
                missed = set(final) - set(base) if rows else final[len(base) :][:1]
                yield from (("wr", self.writer.get((key, value)), transaction) for value in seen)
                yield from (("rw", transaction, self.writer.get((key, value))) for value in missed)

    @functools.cached_property
    def edges(self):
        """Kind and both ends. A transaction has two nodes: its snapshot, which is even, and its commit, which follows."""
        place = {id(transaction): 2 * number for number, transaction in enumerate(self.transactions)}
        edges = {("", snapshot, snapshot + 1) for snapshot in place.values()}
        for kind, one, two in self.dependencies():
            if one is two or one is None or two is None:
                continue
            if kind != "rw":
                edges.add((kind, place[id(one)] + 1, place[id(two)]))
                continue
            edges.add((kind, place[id(one)], place[id(two)] + 1))
            if one.serializable and one.committed and one.appended():
                edges.add(("serial", place[id(one)] + 1, place[id(two)] + 1))
        return edges | self.times()

    def times(self):
        """Real time as edges: each transaction that began hangs on the newest end before it, ends form a chain."""
        first = 2 * len(self.transactions)
        ends = sorted((t.ended, number) for number, t in enumerate(self.transactions) if t.committed)
        edges = {("rt", 2 * number + 1, first + rank) for rank, (_, number) in enumerate(ends)}
        edges |= {("rt", first + rank - 1, first + rank) for rank in range(1, len(ends))}
        moments = [moment for moment, _ in ends]
        for number, transaction in enumerate(self.transactions):
            rank = bisect.bisect_left(moments, transaction.began)
            if rank:
                edges.add(("rt", first + rank - 1, 2 * number))
        return edges

    def cycle(self):
        for kinds, name in CYCLES:
            onward = collections.defaultdict(list)
            for kind, one, two in sorted(self.edges):
                if not kind or kind in kinds:
                    onward[one].append(two)
            if found := find_cycle(onward):
                nodes = [node // 2 for node in found if node < 2 * len(self.transactions)]
                names = [self.transactions[node].name for place, node in enumerate(nodes) if node != nodes[place - 1]]
                return [f"{name}: {' -> '.join(names)}"]
        return []


def find_cycle(onward):
    """The nodes of some cycle, or None; without recursion, since chains are long."""
    done, path, place = set(), [], {}
    for root in list(onward):
        if root in done:
            continue
        stack = [(root, iter(onward[root]))]
        path.append(root)
        place[root] = 0
        while stack:
            node, rest = stack[-1]
            for other in rest:
                if other in place:
                    return path[place[other] :]
                if other not in done:
                    stack.append((other, iter(onward.get(other, []))))
                    place[other] = len(path)
                    path.append(other)
                    break
            else:
                stack.pop()
                done.add(node)
                del place[node]
                path.pop()
    return None
