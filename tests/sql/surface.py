"""Tries every entry of surface.jsonl: common functions, forms and statements, as users of PostgreSQL, DuckDB, MySQL and Spark
write them.

    surface.py [--list] [PART OF AN ENTRY …]

An entry passes when it is answered, and with the value in `expected` if it has one. What Bowshot does not do on purpose is in
surface-refused.toml: patterns of entries with the reason, which docs/reference/sql.md shows; such an entry must be refused,
and one that is answered makes the list wrong. Together these must be 95 % of all. An entry that changes something runs on a
server of its own; each finds the tables s1 and s2 with columns g (text) and v (integer), and what it says in `before`.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import tomllib

import values
from engines import Bowshot, Refused

HERE = pathlib.Path(__file__).resolve().parent
FLOOR = 0.95
TABLES = ["CREATE TABLE {name} (g TEXT, v INT)", "INSERT INTO {name} VALUES ('a', 1), ('a', 2), ('b', 3)"]
READS = re.compile(r"\s*\(?(SELECT|WITH|VALUES|TABLE|FROM|PIVOT|UNPIVOT|SHOW|EXPLAIN|SUMMARIZE)\b", re.IGNORECASE)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", help="only entries that have one of these in their text")
    arguments.add_argument("--list", action="store_true", help="print the outcome of every entry")
    chosen = arguments.parse_args()
    entries = [json.loads(line) for line in (HERE / "surface.jsonl").read_text().splitlines()]
    if chosen.parts:
        entries = [entry for entry in entries if any(part in entry["sql"] for part in chosen.parts)]
    outcomes = [judged(entry, outcome, refusals()) for entry, outcome in zip(entries, run_all(entries))]
    return report(entries, outcomes, chosen)


def refusals():
    listed = tomllib.loads((HERE / "surface-refused.toml").read_text())
    return [(re.compile(entry["pattern"]), entry["reason"]) for entry in listed["refused"]]


def run_all(entries):
    """What became of each: None if it is right, else what is wrong with it."""
    from server import Server

    with tempfile.TemporaryDirectory() as folder:
        environment = {"BOWSHOT_STORAGE_EXCHANGE_FOLDER": folder}
        files(pathlib.Path(folder))
        with Server(environment=environment) as shared, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            prepared(shared)

            def outcome(entry):
                if READS.match(entry["sql"]) and not entry.get("before"):
                    return run(shared, entry)
                with Server(environment=environment) as own:
                    prepared(own)
                    return run(own, entry)

            yield from pool.map(outcome, entries)


def files(folder):
    """What entries that read files find in the exchange folder."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = pa.table({"g": ["a", "b"], "v": pa.array([1, 2], pa.int32())})
    pyarrow.csv.write_csv(rows, folder / "x.csv")
    pyarrow.parquet.write_table(rows, folder / "x.parquet")
    (folder / "x.json").write_text('{"g": "a", "v": 1}\n{"g": "b", "v": 2}\n')


def prepared(server):
    session = Bowshot(server)
    for name in ("s1", "s2"):
        for statement in TABLES:
            session.run(statement.format(name=name))
    session.close()


def run(server, entry):
    session = Bowshot(server)
    try:
        for statement in entry.get("before", []):
            try:
                session.run(statement)
            except Refused as refused:
                return f"refused: before it, {statement}: {first_line(refused)}"
        try:
            answer = session.run(entry["sql"])
        except Refused as refused:
            return f"refused: {first_line(refused)}"
        expected = entry.get("expected")
        if expected is None:
            return None
        got = answer.rows[0][0] if answer.rows and answer.rows[0] else "(no rows)"
        return None if agrees(expected, got) else f"wrong: {got}, expected {expected}"
    finally:
        session.close()


def agrees(expected, got):
    """An expectation may leave off the end of a value: `3.14`, `2024-05-06`; spaces in JSON mean nothing."""
    if values.same(expected, got, "R") or (got != values.NULL and got.startswith(expected)):
        return True
    return expected[:1] in "[{" and "".join(expected.split()) == "".join(got.split())


def judged(entry, outcome, listed):
    reason = next((reason for pattern, reason in listed if pattern.search(entry["sql"])), None)
    if outcome is None:
        return ("failed", "answered, so its line in surface-refused.toml must go") if reason else ("passed", "")
    if reason and outcome.startswith("refused"):
        return "refused", reason
    return "failed", outcome


def report(entries, outcomes, chosen):
    count = {"passed": 0, "refused": 0, "failed": 0}
    for entry, (how, why) in zip(entries, outcomes):
        count[how] += 1
        if how == "failed" or chosen.list:
            print(f"{how.upper()} [{entry['area']}] {entry['sql']}\n    {why}")
    explained = count["passed"] + count["refused"]
    share = explained / max(1, len(entries))
    print(f"{count['passed']} answered, {count['refused']} refused with a reason, {count['failed']} neither: {share:.1%}")
    enough = share >= FLOOR or bool(chosen.parts)
    print(f"{explained} passed, {0 if enough else count['failed']} failed")
    return 0 if enough else 1


def first_line(error):
    return str(error).strip().split("\n")[0][:200]


if __name__ == "__main__":
    sys.exit(main())
