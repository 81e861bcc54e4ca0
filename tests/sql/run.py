"""Runs our own SQL cases, `**/*.slt`, against the built server: one file is one session on a server of its own.

    run.py [--show] [--list] [--door NAME] [PART OF A FILE'S NAME …]

Reads `bowshot` from the folder in BOWSHOT_BIN. README.md describes the cases. Records that `known.toml` lists must fail, and
in the way that it says; they are counted apart. With `--door` the statements go in by another protocol (`doors.py`), whose
differences doors.toml lists by reason.
"""

import argparse
import pathlib
import re
import sys
import time
import tomllib

import doors
import slt
import values
from engines import Bowshot, Refused

HERE = pathlib.Path(__file__).resolve().parent


# Words of the inside, which no message may have.
INSIDE = re.compile(
    r"\bINTERNAL\b|DataFusion|arrow error|external error|internal error|likely caused by a bug|Utf8|LargeUtf8|Int(32|64)\b|Float64|ScalarValue|"
    r"Timestamp\(|Decimal128|SchemaError|ParserError|\bSome\(|LogicalPlan",
)


class Failure(Exception):
    """What is wrong with the answer to one record; `refused` if there was none but an error."""

    def __init__(self, message, refused=False):
        super().__init__(message)
        self.how = "refused" if refused else "wrong"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", help="only files whose path has one of these in it")
    arguments.add_argument("--show", action="store_true", help="print each record before it runs")
    arguments.add_argument("--list", action="store_true", help="print the failures as entries of known.toml")
    arguments.add_argument("--door", choices=sorted(doors.DOORS), help="send the statements by this protocol")
    chosen = arguments.parse_args()
    known = Known(tomllib.loads((HERE / "known.toml").read_text()).get("known", []))
    if chosen.door:
        known = Differing(known, tomllib.loads((HERE / "doors.toml").read_text())["differs"], chosen.door)
    passed, failed = 0, 0
    for path in sorted(HERE.rglob("*.slt")):
        name = str(path.relative_to(HERE))
        if chosen.parts and not any(part in name for part in chosen.parts):
            continue
        started = time.monotonic()
        good, failures = run_file(path, name, known, chosen)
        passed += good
        failed += len(failures)
        print(f"{name}: {good} of {good + len(failures)}, {time.monotonic() - started:.1f} s")
        for failure in failures:
            print(failure)
        sys.stdout.flush()
    if not chosen.parts:
        for entry in known.unused():
            failed += 1
            print(f"{known.file}: no case fails like this, take it from the list: {entry['file']}\n{indented(entry['sql'])}")
    print(f"{known.met} known to differ, see {known.file}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


class Known:
    """The list of records that do not come out right yet."""

    file = "known.toml"

    def __init__(self, entries):
        self.entries = {(entry["file"], entry["sql"].strip()): entry for entry in entries}
        self.found = set()
        self.met = 0

    def covers(self, name, record, failure):
        key = (name, record.sql.strip())
        if key not in self.entries or self.entries[key]["how"] != failure.how:
            return False
        self.found.add(key)
        self.met += 1
        return True

    def unused(self):
        return [entry for key, entry in self.entries.items() if key not in self.found]


class Differing:
    """What differs by another door: the records of known.toml, and those that a pattern of doors.toml finds."""

    file = "known.toml and doors.toml"

    def __init__(self, known, entries, door):
        self.known = known
        self.entries = [entry for entry in entries if door in entry["doors"]]
        self.found = set()
        self.met = 0

    def covers(self, name, record, failure):
        if self.known.covers(name, record, failure):
            self.met += 1
            return True
        for index, entry in enumerate(self.entries):
            texts = {"sql": record.sql, "says": str(failure), "file": name}
            if all(re.search(entry[key], text, re.IGNORECASE | re.DOTALL) for key, text in texts.items() if key in entry):
                self.found.add(index)
                self.met += 1
                return True
        return False

    def unused(self):
        unmet = [entry for index, entry in enumerate(self.entries) if index not in self.found]
        return [{"file": entry["reason"], "sql": str(entry)} for entry in unmet]


def run_file(path, name, known, chosen):
    from server import Server

    records = slt.parse(path.read_text())
    dialect = slt.header(records, "dialect") or "ansi"
    passed, failures = 0, []
    door = doors.DOORS.get(chosen.door)
    with Server(arguments=["--dialect", dialect, *(door.serve if door else [])]) as server:
        session = door(server, dialect) if door else Bowshot(server)
        for record in records:
            if record.kind == "end" or not record.runs_on("bowshot"):
                continue
            if chosen.show:
                print(f"{name}:{record.line}", flush=True)
            try:
                check(record, session)
                passed += 1
            except Failure as failure:
                if known.covers(name, record, failure):
                    continue
                if chosen.list:
                    quotes = "'''"
                    reason = str(failure).replace("\n", " ")[:200].replace('"', "`").replace("\\", "/")
                    print(f'[[known]]\nfile = "{name}"\nhow = "{failure.how}"')
                    print(f'sql = {quotes}\n{record.sql.strip()}{quotes}\nreason = "{reason}"\n')
                failures.append(f"  {name}:{record.line}: {failure}\n{indented(record.sql)}")
        session.close()
    return passed, failures


def check(record, session):
    """Runs one record; a Failure says how its answer differs."""
    try:
        answer = session.run(record.sql)
    except Refused as refused:
        other = record.note("or error")
        if other and re.search(other, str(refused), re.IGNORECASE):
            return
        if record.error is None:
            raise Failure(f"refused: {first_line(refused)}", refused=True) from None
        if not re.search(record.error, str(refused), re.IGNORECASE):
            raise Failure(f"another error than `{record.error}`: {first_line(refused)}") from None
        if inside := INSIDE.search(str(refused)):
            raise Failure(f"the message speaks of `{inside[0]}`: {first_line(refused)}") from None
        return
    if record.error is not None:
        raise Failure(f"no error, `{record.error}` is expected; got:\n{indented(lines_of(answer.rows))}")
    if record.kind == "query":
        compare(record, answer, not isinstance(session, (Bowshot, doors.Http)))


def compare(record, answer, loosely=False):
    if record.types and len(record.types) != len(answer.kinds):
        raise Failure(f"{len(answer.kinds)} columns, {len(record.types)} are expected:\n{indented(lines_of(answer.rows))}")
    expected = list(record.expected or [])
    if record.names:
        wanted = split(expected.pop(0) if expected else "", len(answer.names))
        if wanted != answer.names:
            raise Failure(f"columns are named {answer.names}, expected {wanted}")
    kinds = record.types or answer.kinds
    got = sorted_rows(answer.rows, kinds, record.sort)
    width = 1 if record.sort == "valuesort" else len(kinds)
    wanted = [split(line, width) for line in expected]
    if record.sort != "nosort":
        wanted = sorted_rows(wanted, kinds, record.sort)
    same, fits = (doors.same_loosely, doors.fits) if loosely else (values.same, values.fits)
    if not same_rows(wanted, got, kinds, same):
        raise Failure(f"expected\n{indented(lines_of(wanted))}\n  got\n{indented(lines_of(got))}")
    for place, (letter, kind) in enumerate(zip(record.types, answer.kinds), 1):
        if not fits(letter, kind):
            raise Failure(f"column {place} is of kind {kind}, {letter} is expected")


def same_rows(wanted, got, kinds, same=values.same):
    return len(wanted) == len(got) and all(same_row(left, right, kinds, same) for left, right in zip(wanted, got))


def same_row(wanted, got, kinds, same):
    if len(wanted) != len(got):
        return " ".join(wanted).split() == " ".join(got).split()
    return all(
        same(left, right, kind) or left.split() == right.split() for left, right, kind in zip(wanted, got, kinds)
    )


def sorted_rows(rows, kinds, sort):
    if sort == "rowsort":
        return sorted(rows, key=lambda row: values.sort_key(row, kinds))
    if sort == "valuesort":
        return sorted([cell] for row in rows for cell in row)
    return rows


def split(line, width):
    """A line of a case as cells: divided by tabs, else by two and more spaces, else by single ones."""
    for separator in (r"\t", r"\t| {2,}", r"\s+"):
        cells = [cell.strip() for cell in re.split(separator, line.strip())]
        if len(cells) == width:
            return cells
    return [line.strip()]


def lines_of(rows):
    return "\n".join("\t".join(row) for row in rows[:30]) if rows else "(no rows)"


def first_line(error):
    return str(error).strip().split("\n")[0][:300]


def indented(text):
    return "\n".join(f"      {line}" for line in text.split("\n"))


if __name__ == "__main__":
    sys.exit(main())
