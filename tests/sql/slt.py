"""Reads and writes files of cases in the format of sqllogictest; README.md describes what we make of it.

A file is a list of records. Comments and blank lines are kept, so that `decide.py` can write a file back with other
expectations and nothing else changed.
"""

import dataclasses
import re

SORTS = ("nosort", "rowsort", "valuesort")


@dataclasses.dataclass
class Record:
    """A statement or a query with what is expected of it, and the lines that stood before it."""

    line: int
    before: list
    kind: str  # statement, query, or end (what stands behind the last record)
    sql: str = ""
    error: str | None = None  # a pattern, if the record must fail
    types: str = ""
    sort: str = "nosort"
    label: str = ""
    names: bool = False
    expected: list | None = None
    only: list = dataclasses.field(default_factory=list)
    skip: list = dataclasses.field(default_factory=list)

    def runs_on(self, engine):
        return engine not in self.skip and (not self.only or engine in self.only)

    def note(self, key):
        """The value of a comment `# key: value` right before the record."""
        return note(self.before, key)


def note(lines, key):
    for line in lines:
        found = re.match(rf"#\s*{re.escape(key)}:\s*(.+)", line)
        if found:
            return found.group(1).strip()
    return None


def header(records, key):
    """The value of a comment `# key: value` in the first comments of a file (those up to the first blank line)."""
    first = records[0].before if records else []
    until = first.index("") if "" in first else len(first)
    return note(first[:until], key)


def parse(text, engine="bowshot"):
    """The records of a file; a `halt` that concerns the engine ends it."""
    records, before, only, skip = [], [], [], []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        words = line.split()
        index += 1
        if not words or line.startswith("#"):
            before.append(line)
            continue
        if words[0] in ("onlyif", "skipif"):
            (only if words[0] == "onlyif" else skip).append(words[1])
            before.append(line)
            continue
        if words[0] == "halt":
            if Record(index, [], "end", only=only, skip=skip).runs_on(engine):
                break
            before, only, skip = [], [], []
            continue
        if words[0] in ("hash-threshold", "control"):
            before.append(line)
            continue
        record = start(words, line, index, before)
        record.only, record.skip = only, skip
        before, only, skip = [], [], []
        index = body(record, lines, index)
        records.append(record)
    records.append(Record(len(lines), before, "end"))
    return records


def start(words, line, number, before):
    record = Record(number, before, words[0])
    if words[0] not in ("statement", "query"):
        raise ValueError(f"line {number}: `{line}` begins no record")
    rest = words[1:]
    if rest and rest[0] == "error":
        record.error = line.split("error", 1)[1].strip()
    elif words[0] == "query":
        for word in rest:
            if word in SORTS:
                record.sort = word
            elif word == "names":
                record.names = True
            elif not record.types and re.fullmatch(r"[IRTBD?]+", word):
                record.types = word
            else:
                record.label = word
    elif rest != ["ok"]:
        raise ValueError(f"line {number}: `{line}`: `statement ok` or `statement error PATTERN`")
    return record


def body(record, lines, index):
    sql = []
    while index < len(lines) and lines[index].strip() and lines[index] != "----":
        sql.append(lines[index])
        index += 1
    record.sql = "\n".join(sql)
    if index < len(lines) and lines[index] == "----":
        index += 1
        record.expected = []
        while index < len(lines) and lines[index] != "":
            record.expected.append(lines[index])
            index += 1
    return index


def written(records):
    """The text of a file."""
    out = []
    for record in records:
        out.extend(record.before)
        if record.kind == "end":
            break
        out.append(first_line(record))
        out.append(record.sql)
        if record.expected is not None:
            out.append("----")
            out.extend(record.expected)
    return "\n".join(out)


def first_line(record):
    if record.error is not None:
        return f"{record.kind} error {record.error}".rstrip()
    if record.kind == "statement":
        return "statement ok"
    words = ["query", record.types, record.sort if record.sort != "nosort" else "", "names" if record.names else ""]
    return " ".join(word for word in [*words, record.label] if word)
