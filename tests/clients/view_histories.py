"""`python view_histories.py --histories N`: random histories of tables under materialized views, on a server that is killed.

A history is a schema of its own: changes, transactions, rollbacks, MERGE and DDL of its tables, under views of which commits refresh
some, the server some and statements the rest. After each step the rows of a view are those of its query, and random queries have the same
rows with and without the views, for an administrator and for a user whom a row policy leaves a part. Between a commit and the refreshes
after it the server is killed now and then. Prints what it has found, and `N passed, N failed`."""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

from durable import Database
from server import Server, users_file
from test_materialized_views import QUERIES, VIEWS, bag, begin, change, numbered

STEPS = 8
QUERIES_OF_A_STEP = 4
KILLED = 0.02
DEFINED = 0.2
TOKENS = {"root": "token-of-root", "ada": "token-of-ada"}
POLICY = "g = 'a' OR n > 2"
DDL = [
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS more INT",
    "ALTER TABLE t DROP COLUMN IF EXISTS more",
    "ALTER TABLE u RENAME TO w",
    "CREATE OR REPLACE VIEW some AS SELECT g, n FROM t WHERE n < 3",
    "CREATE OR REPLACE VIEW some AS SELECT g, n FROM t WHERE n > 1",
    "TRUNCATE TABLE u",
    "DROP TABLE u",
    "VACUUM t RETAIN 0 HOURS",
]
# What DDL may be answered with where a view needs what it takes away.
REFUSED = "cannot refresh materialized view"
OVER_A_VIEW = "SELECT g, count(*) AS c, sum(n) AS s FROM some GROUP BY g"


class Failed(AssertionError):
    """A view, or a query that one answers, has other rows than its tables give."""


def random_query(dice):
    """A grouping, perhaps of a join, with conditions and aggregates of any kind."""
    joined = dice.random() < 0.4
    source = "t JOIN u ON t.k = u.k" if joined else "t"
    groups = dice.sample(["t.g", "t.k", "t.k % 2", *(["u.name"] if joined else [])], dice.randrange(3))
    aggregates = ["count(*)", "count(t.n)", "sum(t.n)", "sum(t.price)", "min(t.n)", "max(t.price)", "avg(t.price)", "count(DISTINCT t.g)"]
    conditions = ["t.g = 'a'", "t.g <> 'b'", "t.n IS NOT NULL", "t.n > 2", "t.k IN (1, 2)", "t.k % 2 = 0", "t.price > 3", "t.g IS NULL"]
    chosen = dice.sample(conditions, dice.choice([0, 0, 1, 2]))
    where = f" WHERE {' AND '.join(chosen)}" if chosen else ""
    columns = ", ".join([*groups, *dice.sample(aggregates, dice.randrange(1, 4))])
    return f"SELECT {columns} FROM {source}{where}" + (f" GROUP BY {', '.join(groups)}" if groups else "")


class Run:
    def __init__(self, seed):
        self.seed = seed
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-views-"))
        self.counts = {"steps": 0, "refreshes": 0, "comparisons": 0, "refused": 0, "kills": 0}
        self.users = users_file(self.folder, tokens=TOKENS, admins=("root",))
        self.start()

    def start(self):
        # Views of the server too, as soon as the log has anything for them.
        settings = {"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0", "BOWSHOT_VIEWS_AUTOMATIC": "true", "BOWSHOT_VIEWS_SUGGEST_EVERY": "1s"}
        arguments = ["--users-file", str(self.users)]
        self.server = Server(data=self.folder / "data", arguments=arguments, environment=settings)
        self.db, self.ada = (Database(self.server, token=TOKENS[name]) for name in ("root", "ada"))

    def kill(self, schema):
        self.counts["kills"] += 1
        self.end()
        self.start()
        self.db.run(f"SET schema = '{schema}'")
        self.ada.run(f"SET schema = '{schema}'")

    def end(self):
        self.server.kill()
        self.db.close()
        self.ada.close()

    def history(self, number):
        dice, schema = random.Random(f"{self.seed}/{number}"), f"history_{number}"
        numbers, views = numbered(9), {**VIEWS, "over_a_view": OVER_A_VIEW}
        begin(self.db, schema)
        self.db.run("CREATE VIEW some AS SELECT g, n FROM t", *(f"GRANT SELECT ON {table} TO ada" for table in ("t", "u")))
        self.db.run(f"CREATE ROW POLICY p ON t FOR ada USING ({POLICY})")
        self.ada.run(f"SET schema = '{schema}'")
        modes = {name: dice.choice(["ON COMMIT", "MANUAL", "EVERY '1 second'"]) for name in views}
        for name, query in views.items():
            self.db.run(f"CREATE MATERIALIZED VIEW {name} REFRESH {modes[name]} AS {query}", f"GRANT SELECT ON {name} TO ada")
        for step in range(STEPS):
            self.counts["steps"] += 1
            if dice.random() < DEFINED:
                self.define(dice.choice(DDL))
            change(self.db, dice, numbers)
            if dice.random() < KILLED:
                self.kill(schema)
            self.check(dice, views, modes, (number, step))
        self.db.run("SET schema = 'main'", f"DROP SCHEMA {schema} CASCADE")

    def define(self, sql):
        """A definition, and what brings back the names that the other statements of the history need."""
        try:
            self.db.run(sql)
        except Exception as error:
            if REFUSED not in str(error):
                raise
            self.counts["refused"] += 1
            return
        again = {
            "ALTER TABLE u RENAME TO w": ["ALTER TABLE w RENAME TO u"],
            "DROP TABLE u": ["CREATE TABLE u (k INT, name VARCHAR)", "INSERT INTO u VALUES (1, 'again')", "GRANT SELECT ON u TO ada"],
        }
        self.db.run(*again.get(sql, []))

    def check(self, dice, views, modes, place):
        for name, query in views.items():
            self.db.run("SET materialized_view_rewrite = off")
            expected = bag(self.db.rows(query))
            if modes[name] != "ON COMMIT":
                if dice.random() < 0.5:
                    continue
                self.db.run(f"REFRESH MATERIALIZED VIEW {name}")
                self.counts["refreshes"] += 1
            self.compare(expected, bag(self.db.rows(f"SELECT * FROM {name}")), (place, name))
        queries = [dice.choice(QUERIES) if dice.random() < 0.5 else random_query(dice) for _ in range(QUERIES_OF_A_STEP)]
        for sql in [*queries, *dice.sample(list(views.values()), 2)]:
            for db in (self.db, self.ada):
                if db is self.ada and " some " in sql:
                    continue
                answers = []
                for switch in ("on", "off"):
                    db.run(f"SET materialized_view_rewrite = {switch}")
                    answers.append(bag(db.rows(sql)))
                self.compare(answers[1], answers[0], (place, "ada" if db is self.ada else "root", sql))
        count = "SELECT count(*), sum(n), min(price) FROM t"
        self.ada.run("SET materialized_view_rewrite = on")
        self.compare(self.db.rows(f"{count} WHERE {POLICY}"), self.ada.rows(count), (place, "the policy"))

    def compare(self, expected, found, what):
        self.counts["comparisons"] += 1
        if expected != found:
            raise Failed(f"{what}: expected {expected}, found {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="the history to begin with, to see a failure again")
    given = parser.parse_args()
    run = Run(given.seed)
    print(f"seed {given.seed}, folder {run.folder}", file=sys.stderr, flush=True)
    done = 0
    try:
        for number in range(given.first, given.first + given.histories):
            run.history(number)
            done += 1
    except Exception as error:
        log = run.server.log()[-5000:] if not run.server.killed else ""
        print(f"history {given.first + done} of seed {given.seed}: {type(error).__name__}: {error}\nkept: {run.folder}; log:\n{log}")
        print(f"again: python view_histories.py --seed {given.seed} --first {given.first + done} --histories 1")
        print(f"{done} passed, 1 failed")
        return 1
    finally:
        if not run.server.killed:
            run.end()
    shutil.rmtree(run.folder)
    counts = ", ".join(f"{count} {name}" for name, count in run.counts.items())
    print(f"{given.histories} histories of seed {given.seed}: {counts}")
    print(f"{done} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
