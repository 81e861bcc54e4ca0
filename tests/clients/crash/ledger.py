"""What clients know about what they wrote: for each thing that they change, the states that it may be in.

A change that was acknowledged leads from each of them to the next; one whose answer never came leads to the next or not.
After a restart one of the states must be found, and is from then on the only one.
"""

import collections
import json
import threading

ABSENT = None


class Ledger:
    """Keys are tuples whose first part is the kind of thing; states are numbers, tuples or `ABSENT`."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.possible = {}
        self.counts = collections.Counter()
        self.complaints = []
        self.journal = open(path, "a", buffering=1)

    def note(self, **what):
        """One line for the person who reads the journal of a round that failed; written before it is needed."""
        self.journal.write(json.dumps(what, default=str) + "\n")

    def add(self, key, state=ABSENT):
        with self.lock:
            self.possible.setdefault(key, {state})

    def sent(self, key, what):
        self.note(event="sent", key=key, what=what)

    def acknowledged(self, key, change):
        self._change(key, "acknowledged", lambda states: {change(state) for state in states})

    def unknown(self, key, change):
        self._change(key, "unknown", lambda states: states | {change(state) for state in states})

    def refused(self, key, why):
        self.counts["refused"] += 1
        self.note(event="refused", key=key, why=why)

    def _change(self, key, event, onto):
        with self.lock:
            self.counts[event] += 1
            self.possible[key] = onto(self.possible[key])
            self.note(event=event, key=key, possible=sorted(self.possible[key], key=repr))

    def complain(self, complaint):
        with self.lock:
            self.complaints.append(complaint)
        self.note(event="complaint", complaint=complaint)

    def states(self, kind):
        """Key and possible states of every thing of a kind."""
        with self.lock:
            return {key: set(states) for key, states in self.possible.items() if key[0] == kind}

    def only(self, key):
        """The state of a thing of which nothing is unknown, else `ABSENT`."""
        with self.lock:
            states = self.possible.get(key, set())
            return next(iter(states)) if len(states) == 1 else ABSENT

    def settle(self, kind, found):
        """Compares all things of a kind with what a server has; gives complaints. `found` maps keys to states and lacks
        those that are absent."""
        complaints = []
        with self.lock:
            for key in [key for key in self.possible if key[0] == kind]:
                state = found.get(key, ABSENT)
                if state not in self.possible[key]:
                    expected = " or ".join(map(repr, sorted(self.possible[key], key=repr)))
                    complaints.append(f"{key} is {state!r}, not {expected}")
                self.possible[key] = {state}
            for key in found.keys() - self.possible.keys():
                complaints.append(f"{key} is {found[key]!r}, and nobody wrote it")
        return complaints

    def forget(self, kind, keep):
        """Drops things that are absent for good, but for the newest `keep`, whose coming back would be noticed."""
        with self.lock:
            absent = [key for key, states in self.possible.items() if key[0] == kind and states == {ABSENT}]
            for key in absent[:-keep] if keep else absent:
                del self.possible[key]

    def close(self):
        self.journal.close()
