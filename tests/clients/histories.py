"""Recorded transactions over lists that only grow, and the question whether snapshot isolation explains what they saw.

Every append adds an element that nobody else adds. So the final list of a key tells in which order its writers committed,
and any list that was read tells after which of them. From that follow, between transactions, the edges

    ww  the other one appended next
    wr  the other one read what this one appended last
    rw  the other one appended next after what this one read
    rt  the other one began after this one had been told of its commit

and the rule (Cerone and Gotsman): snapshot isolation holds if and only if no cycle lacks two rw edges in a row. Write skew
is such a cycle with two in a row, so it passes.
"""

import bisect
import collections
import dataclasses


@dataclasses.dataclass
class Transaction:
    """What one transaction did, in order: `("read", key, elements)` and `("append", key, element)`."""

    name: str
    steps: list = dataclasses.field(default_factory=list)
    # None while nobody knows, as after a commit without an answer.
    committed: bool = False
    # Before its first statement was sent, after the answer to its end came.
    began: float = 0.0
    ended: float = 0.0

    def read(self, key, elements):
        self.steps.append(("read", key, tuple(elements)))

    def append(self, key, element):
        self.steps.append(("append", key, element))

    def appended(self, key):
        return tuple(value for step, of, value in self.steps if step == "append" and of == key)


def complaints(transactions, final):
    """What snapshot isolation does not explain; `final` maps keys to lists at the end."""
    history = History(transactions, final)
    return history.lost_or_made_up() + history.bad_reads() + history.bad_writes() + history.cycle()


class History:
    def __init__(self, transactions, final):
        self.transactions = transactions
        self.final = {key: tuple(elements) for key, elements in final.items()}
        self.writer = {}
        for transaction in transactions:
            for step, key, value in transaction.steps:
                if step == "append":
                    assert (key, value) not in self.writer, "elements must be unique"
                    self.writer[key, value] = transaction

    def lost_or_made_up(self):
        found = []
        for transaction in self.transactions:
            for step, key, value in transaction.steps:
                times = self.final[key].count(value)
                if step == "append" and times != (1 if transaction.committed else 0):
                    word = "committed" if transaction.committed else "rolled back"
                    found.append(f"{transaction.name} {word} {value} on {key}, which is there {times} times at the end")
        for key, elements in self.final.items():
            found += [f"nobody appended {value} to {key}" for value in elements if (key, value) not in self.writer]
        return found

    def base(self, key, elements, own):
        """A read without what its own transaction had appended before; None if that is not at its end."""
        if not own:
            return elements
        return elements[: -len(own)] if elements[-len(own) :] == own else None

    def reads(self, transaction):
        """Key, base and own appends so far of every read."""
        own = collections.defaultdict(tuple)
        for step, key, value in transaction.steps:
            if step == "append":
                own[key] += (value,)
            else:
                yield key, self.base(key, value, own[key]), value

    def bad_reads(self):
        found = []
        for transaction in self.transactions:
            first = {}
            for key, base, elements in self.reads(transaction):
                where = f"{transaction.name} read {list(elements)[-6:]} of {key}"
                if base is None:
                    found.append(f"{where} without its own appends")
                    continue
                if base != self.final[key][: len(base)]:
                    found.append(f"{where}, which is no beginning of what was committed (dirty, or another order)")
                elif self.within_one(key, len(base)):
                    found.append(f"{where}, half of a transaction")
                if first.setdefault(key, base) != base:
                    found.append(f"{where} after {list(first[key])[-6:]} in the same transaction (not repeatable)")
        return found

    def within_one(self, key, length):
        """Whether the list was cut between two appends of one transaction."""
        elements = self.final[key]
        if not 0 < length < len(elements):
            return False
        before, after = self.writer.get((key, elements[length - 1])), self.writer.get((key, elements[length]))
        return before is not None and before is after

    def bad_writes(self):
        """A committed transaction must have read the state onto which it wrote."""
        found = []
        for transaction in self.transactions:
            if not transaction.committed:
                continue
            for key, base, _ in self.reads(transaction):
                own = transaction.appended(key)
                if not own or base is None or own[0] not in self.final[key]:
                    continue
                place = self.final[key].index(own[0])
                if self.final[key][place : place + len(own)] != own:
                    found.append(f"the appends of {transaction.name} to {key} are torn apart")
                if place != len(base):
                    found.append(f"{transaction.name} read {len(base)} elements of {key} and wrote after {place} (lost update)")
        return found

    def edges(self):
        """Pairs of transactions, by place: dependencies (ww, wr) and anti-dependencies (rw)."""
        place = {id(transaction): number for number, transaction in enumerate(self.transactions)}
        writer = lambda key, value: place.get(id(self.writer.get((key, value))))
        depends, anti = set(), set()
        for key, elements in self.final.items():
            depends.update((writer(key, one), writer(key, two)) for one, two in zip(elements, elements[1:]))
        for number, transaction in enumerate(self.transactions):
            for key, base, _ in self.reads(transaction):
                if base is None:
                    continue
                if base:
                    depends.add((writer(key, base[-1]), number))
                if len(base) < len(self.final[key]):
                    anti.add((number, writer(key, self.final[key][len(base)])))
        clean = lambda pairs: [(one, two) for one, two in pairs if one != two and None not in (one, two)]
        return clean(depends), clean(anti)

    def times(self):
        """Real time as dependencies: each transaction that began hangs on the newest end before it, ends form a chain."""
        count = len(self.transactions)
        ends = sorted((t.ended, number) for number, t in enumerate(self.transactions) if t.committed)
        edges = []
        for rank, (_, number) in enumerate(ends):
            edges.append((number, count + rank))
            if rank:
                edges.append((count + rank - 1, count + rank))
        moments = [moment for moment, _ in ends]
        for number, transaction in enumerate(self.transactions):
            rank = bisect.bisect_left(moments, transaction.began)
            if rank:
                edges.append((count + rank - 1, number))
        return edges

    def cycle(self):
        """A cycle without two rw edges in a row. A node says whether one has just been taken."""
        depends, anti = self.edges()
        onward = collections.defaultdict(list)
        for one, two in depends + self.times():
            onward[one, False].append(((two, False), "depends"))
            onward[one, True].append(((two, False), "depends"))
        for one, two in anti:
            onward[one, False].append(((two, True), "rw"))
        found = find_cycle(onward)
        if found is None:
            return []
        names = [self.transactions[node].name for (node, _) in found if node < len(self.transactions)]
        return [f"no snapshots explain: {' -> '.join(names)}"]


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
            for other, _ in rest:
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
