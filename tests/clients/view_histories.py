"""`python view_histories.py --histories N`: random histories of tables under materialized views, on a server that is killed.

A history is some ten changes: statements, transactions, several writers at once, DDL. After each commit a view that commits refresh has the
rows of its query, at the end of the history all views do, after REFRESH. Random queries, most of them made of a view's, have equal rows with and
without the views; a user with row policies and masks sees what root sees of the tables filtered by hand. Each 20 histories have tables and
views of their own. Prints counts and `N passed, N failed`. A failure repeats by its seed, but for when writers and the server's refreshes come."""

import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import psycopg
from psycopg.pq import ExecStatus

from random_transactions import is_conflict
from random_views import SNAPSHOT, World
from server import Server, users_file

HISTORIES_OF_A_WORLD, CHANGES, KILLED = 20, 10, 0.003
# Older rows are deleted, so that tables stay small.
KEPT_IDS = 40
PASSWORDS = {"root": "password-of-root", "eve": "password-of-eve"}
ON, OFF = (f"SET materialized_view_rewrite = {switch}" for switch in ("on", "off"))
OF_WORLD = "FROM bowshot.system.materialized_views WHERE table_schema = current_schema()"
NO_CACHE = {"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0"}
SERVERS = [{}, NO_CACHE, NO_CACHE | {"BOWSHOT_ENGINE_PLAN_CACHE_ENTRIES": "0"}]


class Failed(AssertionError):
    """A view, or a query that one answers, has other rows than its tables give."""


class Connection:
    """A text of several statements is one round trip. Rows are bytes, in order."""

    def __init__(self, server, user, log):
        self.name, self.log = user, log
        self.connection = psycopg.connect(**server.postgres(user=user, password=PASSWORDS[user]), autocommit=True)

    def run(self, *statements):
        return self.results("; ".join(statements), self.connection.pgconn.send_query)

    def results(self, text, send, *parameters):
        self.log.append(f"{self.name}: {text}")
        send(text.encode(), *parameters)
        results, error = [], None
        while (result := self.connection.pgconn.get_result()) is not None:
            if result.status == ExecStatus.TUPLES_OK:
                rows = (tuple(result.get_value(row, at) for at in range(result.nfields)) for row in range(result.ntuples))
                results.append(sorted(rows, key=str))
            elif result.status == ExecStatus.FATAL_ERROR:
                error = result.error_message.decode(errors="replace").strip()
        if error:
            self.log.append(f"-- {error}")
            raise psycopg.DatabaseError(error)
        return results


class Run:
    def __init__(self, seed):
        self.seed, self.counts, self.log, self.world, self.connections = seed, collections.Counter(), [], None, []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-views-"))
        self.users = users_file(self.folder, passwords=PASSWORDS, admins=("root",))
        self.start(random.Random(seed))

    def start(self, dice):
        # Not when the server is killed: writers may still wait for it.
        for connection in self.connections:
            connection.connection.close()
        settings = {"BOWSHOT_VIEWS_AUTOMATIC": "true", "BOWSHOT_VIEWS_SUGGEST_EVERY": "10s", **dice.choice(SERVERS)}
        arguments = ["--users-file", self.users, "--pg", "127.0.0.1:0"]
        self.server = Server(data=self.folder / "data", arguments=arguments, environment=settings)
        self.connections = [Connection(self.server, user, self.log) for user in ("root", "eve", "root", "root", "root")]
        self.root, self.eve, *self.writers = self.connections
        if self.world:
            self.enter()

    def kill(self):
        self.counts["kills"] += 1
        self.log.append("-- kill -9")
        self.server.kill()

    def enter(self):
        for connection in self.connections:
            connection.run(f"SET schema = '{self.world.schema}'", ON)
        for at, text in enumerate(self.world.prepared):
            self.root.results(f"{self.world.schema}_{at}", self.root.connection.pgconn.send_prepare, text.encode())

    def create(self, number):
        """A world of its own."""
        if self.world:
            self.count()
            self.root.run("SET schema = 'main'", f"DROP SCHEMA {self.world.schema} CASCADE")
        self.log.clear()
        dice = random.Random(f"{self.seed}/world/{number}")
        self.world = world = World(dice, f"world_{number}")
        statements = [f"CREATE SCHEMA {world.schema}", f"SET schema = '{world.schema}'"]
        for table, columns in world.tables.items():
            names = [f"id BIGINT{' PRIMARY KEY' if world.keyed[table] else ''}", *(f"{name} {kind}" for name, kind in columns.items())]
            statements += [f"CREATE TABLE {table} ({', '.join(names)})", f"INSERT INTO {table} VALUES {', '.join(world.rows(table, 5))}"]
        for statement in [*statements, world.plain[0], *world.rights]:
            self.root.run(statement)
        for view, query in world.views.items():
            mode = dice.choice(["ON COMMIT", "ON COMMIT", "MANUAL", "MANUAL", "EVERY '1 second'"])
            # Each makes every commit slower.
            mode = "MANUAL" if list(world.modes.values()).count(mode) > 1 else mode
            try:
                self.root.run(f"CREATE MATERIALIZED VIEW {view} REFRESH {mode} AS {query}")
            except psycopg.DatabaseError as error:
                if "or `REFRESH MANUAL`" not in str(error):
                    raise
                self.counts["refused"], mode = self.counts["refused"] + 1, "MANUAL"
                self.root.run(f"CREATE MATERIALIZED VIEW {view} AS {query}")
            world.modes[view] = mode
            if dice.random() < 0.8:
                self.root.run(f"GRANT SELECT ON {view} TO eve")
        self.enter()

    def history(self, number):
        if not self.world or number % HISTORIES_OF_A_WORLD == 0:
            self.create(number // HISTORIES_OF_A_WORLD)
        self.log.append(f"-- history {number}")
        world, done = self.world, 0
        dice = world.dice = random.Random(f"{self.seed}/{number}")
        for table in world.tables:
            self.attempt(self.root, f"DELETE FROM {table} WHERE id % 100000 < {world.newest - KEPT_IDS}")
        while done < CHANGES:
            done += dice.choices([self.statements, self.transaction, self.together, self.define], [4, 3, 1, 2])[0]()
            if dice.random() < KILLED:
                self.kill()
                self.start(dice)
            self.check_commits()
        self.counts["changes"] += done
        self.check()

    def attempt(self, connection, *statements):
        """Whether it went well; somebody else, such as a refresh of the server, may have been first."""
        try:
            connection.run(*statements)
        except psycopg.DatabaseError as error:
            if not is_conflict(error) and "would have the primary key" not in str(error):
                raise
            self.counts["conflicts"] += 1
            connection.run("ROLLBACK")
            return False
        return True

    def until_done(self, *statements):
        for statement in statements:
            while not self.attempt(self.root, statement):
                pass

    def statements(self):
        statements = [self.world.change() for _ in range(self.world.dice.randrange(1, 4))]
        self.attempt(self.root, *statements)
        return len(statements)

    def transaction(self):
        statements, end = self.world.transaction()
        dice, done = self.world.dice, self.attempt(self.root, *statements)
        if done and dice.random() < 0.5:
            self.same_rows("in a transaction", self.world.random_query())
        if done and dice.random() < 0.2:
            self.attempt(self.root, f"REFRESH MATERIALIZED VIEW {dice.choice(list(self.world.views))}")
        self.attempt(self.root, end)
        return len(statements)

    def together(self):
        """Three writers at once, of whom a kill may leave any prefix."""
        work, errors = [[self.world.transaction() for _ in range(2)] for _ in self.writers], []

        def write(connection, transactions):
            try:
                for statements, end in transactions:
                    self.attempt(connection, *statements, end)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=pair) for pair in zip(self.writers, work, strict=True)]
        for thread in threads:
            thread.start()
        self.check_commits()
        if killed := self.world.dice.random() < KILLED:
            self.kill()
        for thread in threads:
            thread.join()
        if killed:
            self.start(self.world.dice)
        elif errors:
            raise errors[0]
        return sum(len(statements) for transactions in work for statements, _ in transactions)

    def define(self):
        first, *others = self.world.definition()
        try:
            if self.attempt(self.root, first):
                self.until_done(*others)
                if first.startswith("DROP"):
                    self.world.modes[first.split()[-1]] = "MANUAL"
        except psycopg.DatabaseError as error:
            if "cannot refresh materialized view" not in str(error):
                raise
            self.counts["refused"] += 1
        return 1

    def check_commits(self):
        views = [view for view, mode in self.world.modes.items() if mode == "ON COMMIT"]
        if views:
            self.check_views([self.world.dice.choice(views)])

    def check_views(self, views, states=None):
        """The rows of views are those of their queries, in one snapshot; with states, only of those that call themselves fresh."""
        texts = [sql for view in views for sql in (f"SELECT * FROM {view}", self.world.views[view])]
        rows = self.root.run(SNAPSHOT, OFF, *texts, "COMMIT")
        for view, found, expected in zip(views, rows[::2], rows[1::2], strict=True):
            if states is None or states[view] == "fresh":
                self.compare(f"{view}: {self.world.views[view]}", expected, found)

    def states(self):
        return {view.decode(): state.decode() for view, state in self.root.run(f"SELECT table_name, state {OF_WORLD}")[0]}

    def same_rows(self, what, *queries):
        texts = [query.text(self.world.dice).format(**self.world.real) for query in queries]
        rows = self.root.run(OFF, *texts, ON, *texts)
        for text, expected, found in zip(texts, rows, rows[len(texts) :], strict=False):
            self.compare(f"{what}: {text}", expected, found)

    def check(self):
        world, dice, send = self.world, self.world.dice, self.root.connection.pgconn.send_query_prepared
        if dice.random() < 0.3:
            self.check_views([view for view, mode in world.modes.items() if mode == "MANUAL" and not world.follows(view)], self.states())
        refreshed = [view for view, mode in world.modes.items() if mode != "ON COMMIT" and dice.random() < 0.6]
        refreshed = [view for view in refreshed if not world.follows(view) or world.base[view] in refreshed]
        self.until_done(*(f"REFRESH MATERIALIZED VIEW {view}" for view in refreshed))
        self.counts["refreshes"] += len(refreshed)
        shown = [view for view, mode in world.modes.items() if mode == "ON COMMIT" or view in refreshed]
        self.check_views(shown)
        if dice.random() < 0.3 and (stale := {view: state for view, state in self.states().items() if view in shown and state != "fresh"}):
            raise Failed(f"not fresh after REFRESH: {stale}")
        self.same_rows("root", *(world.random_query() for _ in range(2)))
        at = dice.randrange(len(world.prepared))
        expected = self.root.run(OFF, world.prepared[at], ON)[0]
        self.compare(f"prepared: {world.prepared[at]}", expected, self.root.results(f"{world.schema}_{at}", send, [])[0])
        template = world.random_query().text(dice)
        expected, text = self.root.run(OFF, template.format(**world.hers), ON)[0], template.format(**world.real)
        for found in self.eve.run(ON, text, OFF, text):
            self.compare(f"eve: {text}", expected, found)

    def count(self):
        """Of the world that ends; a server that was killed has forgotten its answers."""
        sums = f"count(*) FILTER (WHERE incremental), count(*) FILTER (WHERE NOT incremental), coalesce(sum(answered_queries), 0) {OF_WORLD}"
        for name, value in zip(("incremental views", "others", "queries answered"), self.root.run(f"SELECT {sums}")[0][0], strict=True):
            self.counts[name] += int(value)

    def compare(self, what, expected, found):
        self.counts["comparisons"] += 1
        if expected != found:
            expected, found = collections.Counter(expected), collections.Counter(found)
            raise Failed(f"{what}\n  missing {list((expected - found).elements())[:5]}\n  more {list((found - expected).elements())[:5]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="the history to begin with, the first of its world, to see a failure again")
    given = parser.parse_args()
    run, began, done, failed = Run(given.seed), time.monotonic(), 0, 0
    print(f"seed {given.seed}, folder {run.folder}", file=sys.stderr, flush=True)
    counts = lambda: f"{done} histories of seed {given.seed}, {done / (time.monotonic() - began):.1f} a second: " + ", ".join(f"{count} {name}" for name, count in run.counts.items())
    told = began
    try:
        for done in range(given.histories):
            run.history(given.first + done)
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(counts(), file=sys.stderr, flush=True)
        done = given.histories
    except Exception as error:
        failed, number, file = 1, given.first + done, run.folder / "statements.sql"
        file.write_text(";\n".join(run.log) + ";\n")
        print(f"history {number} of seed {given.seed}: {type(error).__name__}: {error}\nlog:\n{'' if run.server.killed else run.server.log()[-3000:]}")
        print("\n".join(run.log[-12:]), f"all statements of its world: {file}", sep="\n")
        print(f"again: python view_histories.py --seed {given.seed} --first {number // HISTORIES_OF_A_WORLD * HISTORIES_OF_A_WORLD} --histories {number % HISTORIES_OF_A_WORLD + 1}")
    finally:
        if not run.server.killed:
            run.kill()
    if not failed:
        shutil.rmtree(run.folder)
    print(f"{counts()}\n{done} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
