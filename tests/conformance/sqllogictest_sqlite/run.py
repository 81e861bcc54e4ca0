"""Runs files of SQLite's sqllogictest against the built server, each in a session on a server of its own.

    run.py [--corpus FOLDER] [--show] [PART OF A FILE'S NAME …]

Without `--corpus` it runs the sample that stands beside this file. Results are written as SQLite's own runner writes them:
one value a line, whole numbers by `%d`, others by `%.3f`, many of them as one MD5 sum. A wrong answer is always a failure.
A refusal is one too, but where RULES says why: then its records are counted with that reason.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "sql"), str(HERE.parent)]

import result  # noqa: E402
import slt  # noqa: E402
import values  # noqa: E402
from engines import Bowshot, Refused  # noqa: E402

# What Bowshot refuses on purpose: a pattern of the statement, and the reason.
RULES = [
    (r"^\s*(CREATE|DROP)\s+(UNIQUE\s+)?INDEX\b|^\s*REINDEX\b", "there are no indexes: tables are columns with statistics"),
    (r"^\s*(CREATE|DROP)\s+(TEMP\s+|TEMPORARY\s+)?TRIGGER\b", "there are no triggers"),
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", help="only files whose path has one of these in it")
    arguments.add_argument("--corpus", type=pathlib.Path, default=HERE / "sample")
    arguments.add_argument("--show", action="store_true", help="print each record before it runs")
    chosen = arguments.parse_args()
    passed, failed, excused = 0, [], collections.Counter()
    names = [str(path.relative_to(chosen.corpus)) for path in sorted(chosen.corpus.rglob("*.test"))]
    names = [name for name in names if not chosen.parts or any(part in name for part in chosen.parts)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda name: run_file(chosen.corpus / name, name, chosen.show), names)
        for name, (good, bad, known) in zip(names, runs):
            passed += good
            failed.extend(bad)
            excused.update(known)
            print(f"{name}: {good} passed, {len(bad)} failed, {sum(known.values())} refused for a reason")
            for test, reason in bad[:10]:
                print(f"  {test}: {reason}")
            sys.stdout.flush()
    result.write(passed, failed, sorted(excused.items()), "record")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


def run_file(path, name, show):
    from server import Server

    passed, failed, excused = 0, [], collections.Counter()
    with Server() as server:
        session = Bowshot(server)
        for record in slt.parse(path.read_text()):
            if record.kind == "end" or not record.runs_on("bowshot"):
                continue
            if show:
                print(f"{name}:{record.line}", flush=True)
            fault = check(record, session)
            if fault is None:
                passed += 1
            elif (reason := excuse(record, fault)) is not None:
                excused[reason] += 1
            else:
                failed.append((f"{name}/{record.line}", f"{fault} in `{' '.join(record.sql.split())[:160]}`"))
        session.close()
    return passed, failed, excused


def excuse(record, fault):
    """Why a statement may be refused. Nothing excuses an answer that is wrong."""
    if not fault.startswith("refused"):
        return None
    return next((reason for pattern, reason in RULES if re.search(pattern, record.sql, re.IGNORECASE)), None)


def check(record, session):
    """None if the answer is right, else what is wrong with it."""
    try:
        answer = session.run(record.sql)
    except Refused as refused:
        return None if record.error is not None else f"refused: {str(refused).strip().splitlines()[0][:160]}"
    if record.error is not None:
        return "no error where one is expected"
    if record.kind == "statement":
        return None
    if len(answer.kinds) != len(record.types):
        return f"{len(answer.kinds)} columns instead of {len(record.types)}"
    rows = [[cell(kind, value) for kind, value in zip(record.types, row)] for row in answer.rows]
    if record.sort == "rowsort":
        rows.sort()
    found = [value for row in rows for value in row]
    if record.sort == "valuesort":
        found.sort()
    return differ(record.expected or [], found)


def differ(expected, found):
    hashed = re.fullmatch(r"(\d+) values hashing to ([0-9a-f]{32})", expected[0]) if len(expected) == 1 else None
    if hashed:
        digest = hashlib.md5("".join(f"{value}\n" for value in found).encode()).hexdigest()
        if int(hashed[1]) == len(found) and digest == hashed[2]:
            return None
        return f"wrong: {len(found)} values of sum {digest}, expected {expected[0]}; they begin {found[:6]}"
    return None if expected == found else f"wrong: {found[:12]}, expected {expected[:12]}"


def cell(kind, text):
    """A value as `I`, `R` or `T` of SQLite's runner."""
    if text == values.NULL:
        return text
    if kind == "I":
        return str(whole(text))
    if kind == "R":
        return f"{float(number(text)):.3f}"
    return "".join(letter if " " <= letter <= "~" else "@" for letter in text)


def number(text):
    return {"true": "1", "false": "0"}.get(text, text)


def whole(text):
    try:
        return int(number(text))
    except ValueError:
        pass
    try:
        return int(float(text))
    except ValueError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
