"""Runs our own SQL cases, `**/*.slt`, against the built server by every protocol (`doors.py`): one file is one session on a server of
its own.

    run.py [--show] [--list] [--door NAME] [PART OF A FILE'S NAME …]

Reads `bowshot` from the folder in BOWSHOT_BIN. README.md describes the cases. Records that `known.toml` lists must fail, and
in the way that it says; they are counted apart. What differs by another protocol than Flight is listed in doors.toml, by reason.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import tomllib

import doors
import slt
import values
from engines import Bowshot, Refused

HERE = pathlib.Path(__file__).resolve().parent


# Words of the inside, which no message may have.
INSIDE = re.compile(
    r"\bINTERNAL\b|DataFusion|arrow error|external error|internal error|likely caused by a bug|Utf8|LargeUtf8|Int(32|64)\b|Float64|ScalarValue|"
    r"Timestamp\(|Decimal128|SchemaError|ParserError|\bSome\(|LogicalPlan|regex parse error",
)


class Failure(Exception):
    """What is wrong with the answer to one record: `wrong`, `refused` if there was none but an error, or `ended` if there was none at all."""

    def __init__(self, message, how="wrong"):
        super().__init__(message)
        self.how = how


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", help="only files whose path has one of these in it")
    arguments.add_argument("--show", action="store_true", help="print each record before it runs")
    arguments.add_argument("--list", action="store_true", help="print the failures over Flight as entries of known.toml")
    arguments.add_argument("--door", choices=list(doors.DOORS), help="send the statements by this protocol alone")
    chosen = arguments.parse_args()
    names = [chosen.door] if chosen.door else ["flight"] if chosen.list else list(doors.DOORS)
    listed = tomllib.loads((HERE / "known.toml").read_text()).get("known", [])
    differs = tomllib.loads((HERE / "doors.toml").read_text())["differs"]
    known = {name: Known(listed) if name == "flight" else Differing(Known(listed), differs, name) for name in names}
    files = [str(path.relative_to(HERE)) for path in sorted(HERE.rglob("*.slt"))]
    files = [file for file in files if not chosen.parts or any(part in file for part in chosen.parts)]
    passed, failed = 0, 0
    runs = [(file, name) for file in files for name in names]
    # Nothing is measured, and each server waits for its client most of the time.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        for (file, name), (good, failures) in zip(runs, pool.map(lambda run: run_file(*run, chosen.show), runs)):
            failures = [found for found in failures if not known[name].covers(file, *found)]
            passed += good
            failed += len(failures)
            print(f"{file} by {name}: {good} of {good + len(failures)}")
            for record, failure in failures:
                print(entry(file, record, failure) if chosen.list else failure_text(file, name, record, failure))
            sys.stdout.flush()
    for name, expected in known.items() if not chosen.parts else ():
        for unmet in expected.unused():
            failed += 1
            print(f"FAILED {name}: {expected.file}: no case fails like this, take it from the list: {unmet['file']}\n{indented(unmet['sql'])}")
    print(f"{sum(expected.met for expected in known.values())} known to differ, see known.toml and doors.toml")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def failure_text(file, name, record, failure):
    return f"FAILED {name} {file}:{record.line}: {failure}\n{indented(record.sql)}"


def entry(file, record, failure):
    """A failure as known.toml lists it."""
    quotes = "'''"
    reason = str(failure).replace("\n", " ")[:200].replace('"', "`").replace("\\", "/")
    return f'[[known]]\nfile = "{file}"\nhow = "{failure.how}"\nsql = {quotes}\n{record.sql.strip()}{quotes}\nreason = "{reason}"\n'


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
        if failure.how == "ended":
            return False
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


def run_file(file, name, show):
    """How many records pass, and those that fail with what is wrong with them."""
    from server import Server

    records = slt.parse((HERE / file).read_text())
    dialect = slt.header(records, "dialect") or "ansi"
    door = doors.DOORS[name]
    passed, failures, record = 0, [], records[0]
    try:
        with Server(arguments=["--dialect", dialect, *door.serve]) as server:
            session = door(server, dialect)
            for record in records:
                if record.kind == "end" or not record.runs_on("bowshot"):
                    continue
                if show:
                    print(f"{name} {file}:{record.line}", flush=True)
                try:
                    check(record, session)
                    passed += 1
                except Failure as failure:
                    failures.append((record, failure))
            session.close()
    except Exception as error:  # the server or the connection is gone: the rest of the file has not run
        failures.append((record, Failure(f"ended: {type(error).__name__}: {error}", how="ended")))
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
            raise Failure(f"refused: {first_line(refused)}", how="refused") from None
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
    return all(same(left, right, kind) or left.split() == right.split() for left, right, kind in zip(wanted, got, kinds))


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
