"""Lets PostgreSQL and DuckDB decide what cases expect, and writes their answers into the files.

    decide.py [--check] [FILE.slt …]

Every record runs in both, but a query that one of them decides runs there alone. The note `# decided by: WHO` in the first comment of a
file, or in a comment right before a record, says whose answer counts: `both` (the default: they must agree), `postgres`, `duckdb`,
several names (each record is right by one of them; where neither PostgreSQL nor DuckDB has the form, or has had one before that changes
rows, it is taken as it stands), or `hand`, `mysql`, `sqlite` (nothing is written; a comment says why). Column kinds are filled in where
a record has none. With `--check` nothing is written, and a record that would change is a failure.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import run
import slt
from engines import Cluster, DuckDB, Postgres, Refused


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("files", nargs="*", type=pathlib.Path, help="all that stand here, if none is named")
    arguments.add_argument("--check", action="store_true", help="change nothing, complain instead")
    chosen = arguments.parse_args()
    cluster = Cluster()
    decided, complaints = 0, []
    files = [path.resolve() for path in chosen.files] or sorted(pathlib.Path(__file__).resolve().parent.rglob("*.slt"))
    place = tempfile.TemporaryDirectory()
    os.chdir(place.name)  # some statements make files
    try:
        for path in files:
            text = path.read_text()
            records = slt.parse(text)
            count, found = decide_file(path, records, cluster)
            decided += count
            complaints.extend(found)
            after = slt.written(records).rstrip("\n") + "\n"
            if after != text and chosen.check:
                complaints.append(f"{path}: the references say something else")
            elif after != text:
                path.write_text(after)
    finally:
        cluster.close()
        os.chdir("/")
        place.cleanup()
    for complaint in complaints:
        print(complaint)
    print(f"{decided} passed, {len(complaints)} failed")
    return 1 if complaints else 0


def decide_file(path, records, cluster):
    file_who = slt.header(records, "decided by") or "both"
    if file_who.startswith("hand") and not any(record.note("decided by") for record in records[1:]):
        return 0, []
    engines = [Postgres(cluster), DuckDB()]
    engines[0].run("SET statement_timeout = '60s'")
    decided, complaints = 0, []
    astray = set()  # what has refused a change has other rows from there on
    for record in records:
        if record.kind == "end":
            continue
        who = record.note("decided by") or file_who
        who = "any" if "," in who and not who.startswith("hand") else who.split()[0].rstrip(";.,")
        judged = who not in ("hand", "mysql", "sqlite") and record.runs_on("bowshot")
        if not judged and (record.kind == "query" or record.error is not None):
            continue  # it changes nothing
        # The other one may take minutes for what it does not decide.
        asked = {who} if record.sql[:6].upper() == "SELECT" and who in ("postgres", "duckdb") else {"postgres", "duckdb"}
        answers = {engine.name: attempt(engine, record) for engine in engines if engine.name in asked and record.runs_on(engine.name)}
        if who == "any" and record.error is None:
            if record.kind == "statement":
                astray.update(name for name, answer in answers.items() if isinstance(answer, Refused))
            answers = {name: answer for name, answer in answers.items() if name not in astray}
        if not judged:
            continue
        complaint = decide(record, who, answers)
        if complaint:
            complaints.append(f"{path}:{record.line}: {complaint}\n{run.indented(record.sql)}")
        else:
            decided += 1
    for engine in engines:
        engine.close()
    return decided, complaints


def attempt(engine, record):
    try:
        return engine.run(record.sql)
    except Refused as refused:
        return refused


def decide(record, who, answers):
    """Writes the answer into the record, or says why it cannot."""
    if who == "any":
        return any_of(record, answers)
    chosen = [answers[name] for name in (["postgres", "duckdb"] if who == "both" else [who]) if name in answers]
    if not chosen:
        return f"`{who}` does not run it"
    refused = [answer for answer in chosen if isinstance(answer, Refused)]
    if record.error is not None:
        return None if len(refused) == len(chosen) else f"must fail, but does not in all of {who}"
    if refused:
        return f"refused: {run.first_line(refused[0])}"
    if record.kind == "statement":
        return None
    lines = [lines_of(record, answer) for answer in chosen]
    if len(lines) > 1 and not run.same_rows(*[cells(record, answer) for answer in chosen], record.types or merged(chosen)):
        shown = [run.indented("\n".join(found)) for found in lines]
        return f"PostgreSQL says\n{shown[0]}\n  DuckDB says\n{shown[1]}"
    record.types = record.types or merged(chosen)
    record.expected = min(lines, key=lambda found: sum(map(len, found)))
    return None


def any_of(record, answers):
    """A record that is right by one of the databases stays as it is."""
    given = [answer for answer in answers.values() if not isinstance(answer, Refused)]
    if record.error is not None:
        return None if len(given) < max(1, len(answers)) else "must fail, but fails nowhere"
    if record.kind == "statement" or not given or record.expected is None:
        return None if record.kind == "statement" or record.expected is not None else "nobody has an answer"
    for answer in given:
        try:
            run.compare(record, answer)
            return None
        except run.Failure as failure:
            complaint = str(failure)
    return complaint


def merged(chosen):
    """The kinds of the columns: R where one has it, since PostgreSQL's `numeric` is also what a whole number becomes."""
    return "".join("R" if set(kinds) == {"I", "R"} else kinds[0] for kinds in zip(*[answer.kinds for answer in chosen]))


def cells(record, answer):
    return run.sorted_rows(answer.rows, record.types or answer.kinds, record.sort)


def lines_of(record, answer):
    lines = ["\t".join(row) for row in cells(record, answer)]
    return ["\t".join(answer.names), *lines] if record.names else lines


if __name__ == "__main__":
    sys.exit(main())
