"""A cached join never shows a row that its reader may not see: random joins of views that show each user something else,
asked by several users, while rows and views change. Each answer is compared with that without the cache, of one snapshot."""

import contextlib
import hashlib
import random

import pytest

from durable import Database
from join_cases import EVERYBODY, USERS, Owned, View, cases
from server import computing
from test_join_cache import CASES, EAGER, SEED, Writer, hits, wrong


@contextlib.contextmanager
def serving(folder):
    """A server that knows the users, and a connection of each."""
    file = folder / "users.toml"
    hashed = {user: hashlib.sha256(token(user).encode()).hexdigest() for user in USERS}
    file.write_text("".join(f'[[tokens]]\nuser = "{user}"\nsha256 = "{digest}"\n' for user, digest in hashed.items()))
    with (
        computing(data=folder / "data", environment=EAGER, arguments=["--users-file", str(file)]) as server,
        contextlib.ExitStack() as stack,
    ):
        yield server, {user: stack.enter_context(Database(server, token=token(user))) for user in USERS}


def token(user):
    return f"the token of {user}"


def test_current_user_is_who_asks(tmp_path):
    with serving(tmp_path) as (_, users):
        for user, db in users.items():
            assert db.rows("SELECT current_user, session_user AS s, upper(current_user) AS u") == [(user, user, user.upper())]
            assert db.arrow("SELECT current_user").column_names == ["current_user"]
            db.run("SET dialect = 'mysql'")
            assert db.rows("SELECT current_user()") == [(user,)]
            db.run("SET dialect = 'ansi'")
        users["ada"].run("CREATE TABLE own (current_user VARCHAR)", "INSERT INTO own VALUES ('a column')")
        assert users["bob"].rows('SELECT "current_user" FROM own') == [("a column",)]


def test_the_same_text_gives_every_user_their_own_rows(tmp_path):
    with serving(tmp_path) as (_, users):
        users["ada"].run(
            "CREATE TABLE accounts (id BIGINT, owner VARCHAR)",
            "CREATE TABLE payments (account BIGINT, amount BIGINT)",
            "INSERT INTO accounts VALUES " + ", ".join(f"({at}, '{(*USERS, EVERYBODY)[at % 4]}')" for at in range(400)),
            "INSERT INTO payments VALUES " + ", ".join(f"({at % 400}, {at})" for at in range(2_000)),
            "CREATE VIEW mine AS SELECT * FROM accounts WHERE owner = current_user",
        )
        sql = "SELECT owner, count(*) AS n FROM mine JOIN payments ON id = account GROUP BY owner"
        for _ in range(3):
            for user, db in users.items():
                assert db.rows(sql) == [(user, 500)]
        assert hits(users["ada"]) >= len(USERS)
        # A view that shows other rows from now on, of joins that are cached.
        users["ada"].run("CREATE OR REPLACE VIEW mine AS SELECT * FROM accounts WHERE owner = 'all'")
        for db in users.values():
            assert db.rows(sql) == [("all", 500)]


class PolicyWriter(Writer):
    """Changes rows, and what the views show."""

    def __init__(self, server, tables, views, seed, pause):
        super().__init__(server, tables, seed, pause)
        self.views = views

    def database(self):
        return Database(self.server, token=token("ada"))

    def change(self):
        return self.dice.choice(self.views).define(self.dice) if self.dice.random() < 0.3 else super().change()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pause", [None, 0.02])
def test_random_joins_of_views_give_each_user_what_they_give_without_the_cache(pause, tmp_path):
    with serving(tmp_path) as (server, users):
        db = users["ada"]
        db.run("CREATE TABLE members (k BIGINT, name VARCHAR)")
        db.run("INSERT INTO members VALUES " + ", ".join(f"({at % 10}, '{USERS[at % 3]}')" for at in range(12)))
        for round_, seed in enumerate(range(SEED, SEED + max(1, CASES // 200))):
            dice = random.Random(seed)
            tables = [Owned(f"u{round_}_{name}", dice) for name in "abc"]
            views = [View(f"v{round_}_{name}", table) for name, table in zip("abc", tables)]
            for table, view in zip(tables, views):
                db.run(table.create(dice), table.insert(dice, dice.randint(1, 40)), view.define(dice))
            found = asked_by_all(server, users, tables, views, seed, pause)
            assert not found, f"{len(found)} wrong, seed {seed}, the first: {found[0]}"
        assert hits(db) > 0
        assert "the join cache steps aside" not in server.log()


def asked_by_all(server, users, tables, views, seed, pause):
    writer = PolicyWriter(server, tables, views, seed, pause) if pause else None
    if writer:
        writer.start()
    try:
        asked = ((user, sql) for sql in cases(seed, views, min(CASES, 200) // len(USERS)) for user in USERS)
        return [(user, *found) for user, sql in asked if (found := wrong(users[user], sql, views))]
    finally:
        if writer:
            writer.stop()
