"""Random statements on Bowshot, DuckDB and PostgreSQL: the same rows, or it is a difference.

    run.py [--seed N] [--count N] [--minutes N] [--long] [--one N] [--most N]

Every round makes random tables in all three and runs random statements over them; a number names a statement for good, and
`--one N` runs it alone and shows everything. What PostgreSQL and DuckDB agree on is right. Where one of them lacks the
form (CANNOT), the other one decides; a statement that either refuses for another reason, or on which they differ, is counted
and not judged. A difference is made small before it is shown. known.toml lists what is known to differ, by reason. Without
options it runs the short fixed mode of continuous integration.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import resource
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import compare  # noqa: E402
import queries  # noqa: E402
import schemas  # noqa: E402
import tree  # noqa: E402
from engines import Bowshot, Cluster, DuckDB, Postgres, Refused  # noqa: E402

ROUND = 50  # statements over the tables of one round
SHORT = 1000  # statements of the fixed mode
SLOW = 5  # seconds
MEMORY = 4 << 30  # bytes: tables are small, so that a server that asks for more has gone astray, and ends


# What the references cannot do although it means something: then the other one decides alone. Any other refusal leaves the
# statement open.
CANNOT = re.compile("FULL JOIN is only supported|could not determine polymorphic type|Not implemented Error")


class Crashed(Exception):
    """Bowshot's process has ended."""


class Three:
    """The databases, with the tables of one round in each."""

    def __init__(self):
        self.cluster = Cluster()
        self.server = None
        self.references = [Postgres(self.cluster), DuckDB()]
        self.references[0].run("SET statement_timeout = '10s'")
        self.tables = []
        self.start()

    def start(self):
        from server import Server

        if self.server is not None and self.server.alive():
            self.bowshot.close()
            self.server.stop()
        self.server = Server()
        resource.prlimit(self.server.process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        self.bowshot = Bowshot(self.server)

    def make(self, tables):
        """The tables of a round, and nothing else."""
        self.tables = tables
        for engine in [*self.references, self.bowshot]:
            self.forget(engine)
            engine.run("CREATE SCHEMA s1")
            for table in tables:
                for statement in table.script():
                    engine.run(statement)

    def forget(self, engine):
        for statement in ["ROLLBACK", "DROP SCHEMA IF EXISTS s1 CASCADE", *[f"DROP TABLE IF EXISTS t{n}" for n in range(4)]]:
            try:
                engine.run(statement)
            except Refused:
                pass

    def answers(self, sql, changed):
        """What each says: an Answer, or the refusal."""
        return [self.timed(engine, sql, changed) for engine in [*self.references, self.bowshot]]

    def timed(self, engine, sql, changed):
        """Tells of a statement that takes long, whoever it is that takes so long."""
        started = time.monotonic()
        answer = self.ask(engine, sql, changed)
        if (took := time.monotonic() - started) > SLOW:
            print(f"\n-- {engine.name} took {took:.0f} s for\n{sql};", flush=True)
        return answer

    def ask(self, engine, sql, changed):
        try:
            if changed is None:
                return engine.run(sql)
            return self.change(engine, sql, changed)
        except Refused as refused:
            if engine is self.bowshot and not self.server.alive():
                raise Crashed(str(refused)) from None
            return refused

    def change(self, engine, sql, changed):
        """The rows of the changed table, in a transaction that is taken back."""
        engine.run("BEGIN")
        try:
            engine.run(sql)
            return engine.run(f"SELECT * FROM {changed.path}")
        finally:
            engine.run("ROLLBACK")

    def close(self):
        self.bowshot.close()
        self.server.stop()
        for engine in self.references:
            engine.close()
        self.cluster.close()


def verdict(answers):
    """(`same`, `open`, `wrong`, `refused` or `accepted`, and the answer that is right)."""
    postgres, duckdb, ours = answers
    given = [answer for answer in (postgres, duckdb) if not isinstance(answer, Refused)]
    refusals = [answer for answer in (postgres, duckdb) if isinstance(answer, Refused)]
    if any(not CANNOT.search(str(refusal)) for refusal in refusals):
        return "open", None
    if not given or (len(given) == 2 and not compare.same(*given)):
        return "open", None
    if isinstance(ours, Refused):
        return "refused", given[0]
    return ("same" if compare.same(given[0], ours) else "wrong"), given[0]


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.three = Three()
        self.counts = collections.Counter()
        self.known = [
            (re.compile(entry.get("sql", "")), re.compile(entry.get("message", "")), entry["how"], entry["reason"])
            for entry in tomllib.loads((HERE / "known.toml").read_text())["known"]
        ]
        self.shown = collections.Counter()

    def statement(self, number):
        """The tables and the statement of a number."""
        tables = schemas.random_tables(random.Random(f"tables {number // ROUND}"))
        maker = queries.Maker(random.Random(f"statement {number}"), list(tables))
        return tables, maker.statement()

    def all(self, numbers):
        made = None
        for number in numbers:
            tables, (root, changed) = self.statement(number)
            if made != number // ROUND:
                self.three.make(tables)
                made = number // ROUND
            try:
                self.judge(number, root, changed)
            except Crashed as crash:
                reason = self.is_known(root.text(), "ended", [])
                self.counts[f"known: {reason}" if reason else "wrong"] += 1
                if reason is None:
                    print(f"\n== {number}: the server has ended: {crash}\n{root.text()};", flush=True)
                self.three.start()
                made = None

    def judge(self, number, root, changed):
        sql = root.text()
        answers = self.three.answers(sql, changed)
        how, right = verdict(answers)
        if how == "refused" and (reason := self.is_known(sql, how, answers)):
            how = f"known: {reason}"
        elif how == "wrong" and (reason := self.is_known(sql, how, answers)):
            how = f"known: {reason}"
        self.counts[how] += 1
        if self.arguments.one is not None:
            self.show(number, sql, changed, answers)
        elif how in ("wrong", "refused"):
            self.report(number, root, changed, how, answers)

    def is_known(self, sql, how, answers):
        if how == "wrong":
            message = "; ".join(", ".join(row) for row in answers[2].rows)
        else:
            message = str(answers[2]) if answers else ""
        for statement, said, which, reason in self.known:
            if which == how and statement.search(sql) and said.search(message):
                return reason
        return None

    def report(self, number, root, changed, how, answers):
        """Shows a difference; of many refusals with one message only the first few."""
        kind = re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+", "…", str(answers[2]))[:80] if how == "refused" else ""
        self.shown[how, kind] += 1
        if how == "refused" and self.shown[how, kind] > 2:
            return
        if how == "wrong" and self.shown[how, kind] > self.arguments.most:
            return

        def holds():
            now = self.three.answers(root.text(), changed)
            if verdict(now)[0] != how or self.is_known(root.text(), how, now):
                return False
            return how == "wrong" or kind[:25] in re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+", "…", str(now[2]))

        tree.shrink(root, holds, tries=300 if how == "wrong" else 60)
        sql = root.text()
        if how == "wrong":
            self.fewer_rows(sql, changed, how)
        print(f"\n== {number}: {how}")
        self.show(number, sql, changed, self.three.answers(sql, changed))
        self.three.make(self.statement(number)[0])

    def fewer_rows(self, sql, changed, how):
        """Takes tables and rows away while the difference stays."""
        for table in self.three.tables:
            for place in reversed(range(len(table.rows))):
                row = table.rows.pop(place)
                self.three.make(self.three.tables)
                if verdict(self.three.answers(sql, changed))[0] != how:
                    table.rows.insert(place, row)
        self.three.make(self.three.tables)

    def show(self, number, sql, changed, answers):
        for table in self.three.tables:
            if re.search(rf"(?<![\w.]){re.escape(table.path)}\b", sql):
                print("".join(f"{statement};\n" for statement in table.script()), end="")
        print(f"{sql};" + (f"  -- then SELECT * FROM {changed.path}" if changed else ""))
        for name, answer in zip(["postgres", "duckdb", "bowshot"], answers):
            if isinstance(answer, Refused):
                print(f"  {name}: {str(answer).strip().splitlines()[0][:300]}")
            else:
                print(f"  {name}: " + ("; ".join(", ".join(row) for row in sorted(answer.rows)[:12]) or "(no rows)"))
        sys.stdout.flush()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=0, help="the number of the first statement, in thousands")
    arguments.add_argument("--count", type=int, help="how many statements")
    arguments.add_argument("--minutes", type=float, help="for how long")
    arguments.add_argument("--long", action="store_true", help="add the counts to results.json")
    arguments.add_argument("--one", type=int, help="this one, with every answer")
    arguments.add_argument("--most", type=int, default=20, help="how many wrong answers to make small and show")
    chosen = arguments.parse_args()
    run = Run(chosen)
    started = time.monotonic()
    try:
        run.all(numbers(chosen, started))
    finally:
        run.three.close()
    return summary(run, chosen, time.monotonic() - started)


def numbers(chosen, started):
    if chosen.one is not None:
        yield chosen.one
        return
    count = chosen.count or (10**9 if chosen.minutes else SHORT)
    for number in range(chosen.seed * 1000, chosen.seed * 1000 + count):
        if chosen.minutes and time.monotonic() > started + chosen.minutes * 60:
            return
        yield number


def summary(run, chosen, seconds):
    counts = run.counts
    total = sum(counts.values())
    print(f"\n{total} statements in {seconds:.0f} s")
    for how, count in sorted(counts.items()):
        print(f"  {count:8} {how}")
    judged = total - counts["open"]
    bad = counts["wrong"] + counts["refused"]
    if chosen.long:
        path = HERE / "results.json"
        results = json.loads(path.read_text()) if path.exists() else []
        results.append({"from": chosen.seed * 1000, "statements": total, "minutes": round(seconds / 60), **dict(sorted(counts.items()))})
        path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"{judged - bad} passed, {bad} failed")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
