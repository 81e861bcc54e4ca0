"""What clients of a protocol send by themselves, replayed (`recorded_postgres.py`, `recorded_mysql.py`): how our answers are held
against those of the server that the protocol is from.

An answer is None for what has none, an `error` with its `message`, or `columns` and `rows`. What is kept of the other server's is
the names of the columns, and the rows where Bowshot's are the same, so that they stay the same.
"""

import collections
import dataclasses
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "recorded"
# Answers with more rows are kept without them.
MOST_ROWS = 40


@dataclasses.dataclass
class Statement:
    client: str
    kind: str
    text: str


@dataclasses.dataclass
class Recording:
    """`statements()` gives all statements, `of_bowshot()` and `of_the_other()` the answers to them."""

    other: str
    file: pathlib.Path
    statements: object
    of_bowshot: object
    of_the_other: object

    def answers(self):
        """Statement, their answer and ours, of what they answer."""
        whole = zip(self.statements(), json.loads(self.file.read_text()), self.of_bowshot(), strict=True)
        return [entry for entry in whole if entry[1] and "error" not in entry[1]]

    def count(self):
        counts = collections.defaultdict(collections.Counter)
        for statement, theirs, ours in zip(self.statements(), json.loads(self.file.read_text()), self.of_bowshot(), strict=True):
            if theirs:
                counts[statement.client][f"no answer of {self.other}" if "error" in theirs else verdict(theirs, ours)] += 1
        for client, verdicts in [*counts.items(), ("all", sum(counts.values(), collections.Counter()))]:
            print(f"{client}: {', '.join(f'{number} {what}' for what, number in verdicts.most_common())}")

    def decide(self):
        kept = [keep(*both) for both in zip(self.of_the_other(), self.of_bowshot(), strict=True)]
        lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in kept)
        self.file.write_text(f"[\n{lines}\n]\n")

    def main(self):
        self.count() if "count" in sys.argv else self.decide()


def keep(theirs, ours):
    if theirs is None or "error" in theirs:
        return theirs and {"error": theirs["error"]}
    if theirs["rows"] == ours.get("rows") and len(theirs["rows"]) <= MOST_ROWS:
        return theirs
    return {"columns": theirs["columns"]}


def verdict(theirs, ours):
    """How an answer is like theirs, which is no error."""
    if "error" in ours:
        return "refused"
    if theirs["columns"] != ours["columns"]:
        return "other columns"
    if "rows" not in theirs:
        return "the same columns"
    return "the same rows" if theirs["rows"] == ours["rows"] else "other rows"
