"""Transactions that change the same rows, by their primary key: they wait for one another, go on with what was committed, and lose nothing."""

import random
import socket
import time

import psycopg
import pymysql
import pytest

from row_locks import Client, clients, in_background, joined
from server import Server, together

LISTENERS = ("--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0")
CLIENTS, TURNS = 8, 25


@pytest.fixture(scope="module", params=["memory", "durable"])
def server(request, tmp_path_factory):
    data = "memory" if request.param == "memory" else tmp_path_factory.mktemp("locks") / "data"
    with Server(data=data, arguments=LISTENERS) as server:
        yield server
        assert server.alive(), server.log()[-5000:]
        server.wait_idle(5.0)


@pytest.fixture(params=["postgres", "mysql"])
def protocol(request):
    return request.param


@pytest.fixture
def pair(server, protocol):
    with clients(server, protocol) as pair:
        pair[0].run("DROP TABLE IF EXISTS locked", "CREATE TABLE locked (id INT PRIMARY KEY, x BIGINT)")
        pair[0].run("INSERT INTO locked VALUES (1, 0), (2, 0), (3, 0)")
        yield pair


def test_increments_are_not_lost(server, pair, protocol):
    """In transactions of several statements, of single ones, after FOR UPDATE, and by statements that lock nothing."""
    counts = []

    def work(kind):
        with Client(server, protocol) as client:
            for turn in range(TURNS):
                if kind == "alone":
                    client.run("UPDATE locked SET x = x + 1 WHERE id = 1")
                elif kind == "transaction":
                    client.run("BEGIN", f"UPDATE locked SET x = x + 1 WHERE id = {2 + turn % 2}", "SELECT x FROM locked WHERE id = 2")
                    client.run("UPDATE locked SET x = x + 1 WHERE id = 1", "COMMIT")
                    counts.append(1)
                elif kind == "read":
                    client.run("BEGIN")
                    try:
                        x = client.one("SELECT x FROM locked WHERE id = 1 FOR UPDATE")
                        client.run(f"UPDATE locked SET x = {x + 1} WHERE id = 1", "COMMIT")
                    except (psycopg.errors.SerializationFailure, pymysql.err.OperationalError):
                        # Somebody who locks nothing was first.
                        client.run("ROLLBACK")
                        continue
                else:
                    client.run("UPDATE locked SET x = x + 1 WHERE id < 2")
                counts.append(1)

    kinds = ["alone", "transaction", "read"] * 2
    together(*(lambda kind=kind: work(kind) for kind in kinds))
    # Who waits for locks is in nobody's way.
    assert len(counts) == TURNS * (len(kinds) + 2)
    together(*(lambda kind=kind: work(kind) for kind in ("read", "other", "alone")))
    assert pair[0].one("SELECT sum(x) FROM locked") == len(counts)


def test_transactions_of_a_bank_commit(server, protocol):
    """pgbench's: all of them change the one branch, many the same teller, few the same account. Who overtakes the background, which moves
    rows into files meanwhile, may have to run again."""
    conflicts, most_conflicts = [], 0 if "memory" in server.command else CLIENTS

    with Client(server, protocol) as client:
        for table, rows in (("branches", 1), ("tellers", 10), ("accounts", 2000)):
            client.run(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (id INT PRIMARY KEY, balance BIGINT)")
            client.run(f"INSERT INTO {table} VALUES {', '.join(f'({row}, 0)' for row in range(rows))}")
        client.run("DROP TABLE IF EXISTS history", "CREATE TABLE history (teller INT, account INT, delta BIGINT)")

    def work(seed):
        choose = random.Random(seed)
        with Client(server, protocol) as client:
            done = 0
            while done < TURNS:
                account, teller, delta = choose.randrange(2000), choose.randrange(10), choose.randrange(-5000, 5000)
                try:
                    client.run("BEGIN", f"UPDATE accounts SET balance = balance + {delta} WHERE id = {account}")
                    client.run(f"SELECT balance FROM accounts WHERE id = {account}")
                    client.run(f"UPDATE tellers SET balance = balance + {delta} WHERE id = {teller}")
                    client.run(f"UPDATE branches SET balance = balance + {delta} WHERE id = 0")
                    client.run(f"INSERT INTO history VALUES ({teller}, {account}, {delta})", "COMMIT")
                except (psycopg.errors.SerializationFailure, pymysql.err.OperationalError) as error:
                    conflicts.append(error)
                    client.run("ROLLBACK")
                else:
                    done += 1

    together(*(lambda seed=seed: work(seed) for seed in range(CLIENTS)))
    assert len(conflicts) <= most_conflicts, conflicts
    with Client(server, protocol) as client:
        total = client.one("SELECT sum(delta) FROM history")
        assert [client.one(f"SELECT sum(balance) FROM {table}") for table in ("branches", "tellers", "accounts")] == [total] * 3
        assert client.one("SELECT count(*) FROM history") == CLIENTS * TURNS
        assert [client.one(f"SELECT count(*) FROM {table}") for table in ("branches", "tellers", "accounts")] == [1, 10, 2000]
        sums = "SELECT h.account, sum(h.delta) AS s FROM history AS h GROUP BY h.account"
        assert client.run(f"SELECT * FROM ({sums}) AS h JOIN accounts AS a ON a.id = h.account WHERE a.balance <> h.s") in ([], ())


def test_a_transaction_outlasts_many_commits_of_others(server, pair):
    one, other = pair
    one.run(f"INSERT INTO locked VALUES {', '.join(f'({row}, 0)' for row in range(4, 604))}")
    one.run("BEGIN", "UPDATE locked SET x = x + 1 WHERE id = 4")
    for first, last in ((5, "UPDATE locked SET x = x + 1 WHERE id = 4"), (305, "COMMIT")):
        for row in range(first, first + 200):
            other.run(f"UPDATE locked SET x = x + 1 WHERE id = {row}")
        one.run(last)
    assert list(other.run("SELECT x, count(*) FROM locked GROUP BY x ORDER BY x")) == [(0, 202), (1, 400), (2, 1)]


def test_each_statement_sees_what_is_committed(server, pair):
    one, other = pair
    one.run("BEGIN")
    assert one.one("SELECT x FROM locked WHERE id = 1") == 0
    other.run("UPDATE locked SET x = 5 WHERE id = 1")
    assert one.one("SELECT x FROM locked WHERE id = 1") == 5
    one.run("UPDATE locked SET x = x + 10 WHERE id = 2", "SAVEPOINT here", "UPDATE locked SET x = x + 100 WHERE id = 2")
    other.run("UPDATE locked SET x = 7 WHERE id = 3")
    # Its own changes stay, with those of others beside them, and a savepoint takes back no change of others.
    assert list(one.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 5), (2, 110), (3, 7)]
    one.run("ROLLBACK TO SAVEPOINT here")
    other.run("UPDATE locked SET x = 6 WHERE id = 1")
    assert list(one.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 6), (2, 10), (3, 7)]
    assert list(other.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 6), (2, 0), (3, 7)]
    one.run("COMMIT")
    assert list(other.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 6), (2, 10), (3, 7)]
    # At the other level a transaction has one state, unless its first statement waits for a row.
    one.run("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ" if one.protocol == "postgres"
            else "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    one.run("BEGIN")
    assert one.one("SELECT x FROM locked WHERE id = 1") == 6
    other.run("UPDATE locked SET x = 8 WHERE id = 1")
    assert one.one("SELECT x FROM locked WHERE id = 1") == 6
    one.run("UPDATE locked SET x = x + 1 WHERE id = 1")
    assert one.code("COMMIT") in ("40001", 1213)
    assert other.one("SELECT x FROM locked WHERE id = 1") == 8
    other.run("BEGIN", "UPDATE locked SET x = 9 WHERE id = 1")
    one.run("BEGIN")
    waits = in_background(lambda: one.run("UPDATE locked SET x = x + 1 WHERE id = 1"))
    other.run("COMMIT")
    joined(waits)
    one.run("COMMIT")
    assert other.one("SELECT x FROM locked WHERE id = 1") == 10


@pytest.mark.parametrize("change", ["UPDATE locked SET x = x + 1 WHERE id = 1", "DELETE FROM locked WHERE id = 1", "SELECT x FROM locked WHERE id = 1 FOR UPDATE"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_locked_row_is_waited_for(pair, change, end):
    one, other = pair
    one.run("BEGIN", change)
    # Others are free, and reading waits for nobody.
    other.run("UPDATE locked SET x = x + 1 WHERE id = 2")
    assert other.one("SELECT x FROM locked WHERE id = 1") == 0
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
    one.run(end)
    joined(waits)
    changed = end == "COMMIT" and not change.startswith("SELECT")
    expected = {"U": [11], "D": []}[change[0]] if changed else [10]
    assert [x for (x,) in one.run("SELECT x FROM locked WHERE id = 1")] == expected


def test_a_deadlock_ends_one(pair):
    one, other = pair
    one.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 1")
    other.run("BEGIN", "UPDATE locked SET x = 2 WHERE id = 2")
    waits = in_background(lambda: one.run("UPDATE locked SET x = 1 WHERE id = 2"))
    assert other.code("UPDATE locked SET x = 2 WHERE id = 1") in ("40P01", 1213)
    joined(waits)
    one.run("COMMIT")
    other.run("ROLLBACK")
    assert list(other.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 1), (2, 1), (3, 0)]
    other.run("BEGIN", "UPDATE locked SET x = 2 WHERE id = 1", "COMMIT")


def test_what_cannot_wait_ends_at_once(pair):
    one, other = pair
    one.run("BEGIN", "SELECT x FROM locked WHERE id = 1 FOR UPDATE")
    began = time.monotonic()
    assert other.code("SELECT x FROM locked WHERE id = 1 FOR UPDATE NOWAIT") in ("55P03", 1205)
    assert time.monotonic() - began < 5
    assert list(other.run("SELECT x FROM locked WHERE id = 1 FOR UPDATE SKIP LOCKED")) == []
    assert list(other.run("SELECT x FROM locked WHERE id = 2 FOR UPDATE SKIP LOCKED")) == [(0,)]
    other.run("SET lock_timeout = '200ms'" if other.protocol == "postgres" else "SET innodb_lock_wait_timeout = 1")
    assert other.code("UPDATE locked SET x = 1 WHERE id = 1") in ("55P03", 1205)
    assert other.code("SELECT x FROM locked WHERE id = 1 FOR SHARE") in ("55P03", 1205)
    one.run("ROLLBACK")
    other.run("UPDATE locked SET x = 1 WHERE id = 1")


def test_a_lock_goes_with_its_connection(server, pair):
    one, other = pair
    with Client(server, one.protocol) as lost:
        lost.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 1")
        waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
        fileno = lost.connection.pgconn.socket if one.protocol == "postgres" else lost.connection._sock.fileno()
        with socket.socket(fileno=fileno) as wire:
            wire.shutdown(socket.SHUT_RDWR)
            joined(waits)
            wire.detach()
    assert one.one("SELECT x FROM locked WHERE id = 1") == 10


@pytest.mark.parametrize("protocol", ["postgres"])
def test_who_stops_to_wait_leaves_the_queue(server, pair):
    one, other = pair
    one.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 1")
    ended = []
    waits = in_background(lambda: ended.append(other.code("UPDATE locked SET x = 2 WHERE id = 1")))
    with Client(server, "postgres") as third:
        last = in_background(lambda: third.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
        other.connection.cancel()
        joined(waits)
        assert ended == ["57014"] and last.is_alive()
        one.run("COMMIT")
        joined(last)
    assert one.one("SELECT x FROM locked WHERE id = 1") == 11


def test_who_has_locked_a_row_to_read_it_writes_over_no_change_of_others(pair):
    """A statement that does not name its rows by the key waits for nobody."""
    one, other = pair
    for ends in ("UPDATE locked SET x = 1 WHERE id = 1", "COMMIT"):
        one.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 3")
        x = one.one("SELECT x FROM locked WHERE id = 1 FOR UPDATE")
        other.run("UPDATE locked SET x = x + 1 WHERE id < 2")
        assert one.code(ends) in ("40001", 1213)
        if ends != "COMMIT":
            # It has ended, and is not tried again and again.
            began = time.monotonic()
            assert one.code("SELECT x FROM locked") in ("25P02", 1213)
            assert time.monotonic() - began < 1
        one.run("ROLLBACK")
        assert list(one.run("SELECT id, x FROM locked ORDER BY id")) == [(1, x + 1), (2, 0), (3, 0)]


@pytest.mark.parametrize("query", [
    "SELECT x FROM locked WHERE id IN (1, 2) FOR UPDATE",
    "SELECT x FROM locked WHERE x = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
])
def test_for_update_of_rows_that_are_named_otherwise_loses_no_change(pair, query):
    one, other = pair
    one.run("BEGIN")
    assert one.run(query)[0][0] == 0
    # Rows that come are nobody's change.
    other.run("INSERT INTO locked VALUES (4, 0)")
    one.run("UPDATE locked SET x = 10 WHERE id = 1", "COMMIT", "UPDATE locked SET x = 0 WHERE id = 1")
    for ends in ("UPDATE locked SET x = 5 WHERE id = 1", "COMMIT"):
        one.run("BEGIN", "UPDATE locked SET x = 7 WHERE id = 3")
        x = one.run(query)[0][0]
        other.run("UPDATE locked SET x = x + 1 WHERE id = 2", "UPDATE locked SET x = x - 1 WHERE id = 2")
        assert one.code(ends) in ("40001", 1213)
        one.run("ROLLBACK")
    assert list(one.run("SELECT id, x FROM locked ORDER BY id")) == [(1, x), (2, 0), (3, 0), (4, 0)]


def test_a_savepoint_gives_back_later_locks(pair):
    one, other = pair
    one.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 1", "SAVEPOINT here", "UPDATE locked SET x = 1 WHERE id IN (1, 3)")
    one.run("UPDATE locked SET x = 1 WHERE id = 2", "SELECT x FROM locked WHERE id = 3 FOR UPDATE")
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 2"))
    one.run("ROLLBACK TO SAVEPOINT here")
    joined(waits)
    other.run("UPDATE locked SET x = x + 10 WHERE id >= 3")
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
    # What was locked before, read anew.
    assert one.one("SELECT x FROM locked WHERE id = 1 FOR UPDATE") == 1
    one.run("UPDATE locked SET x = x + 1 WHERE id = 2", "COMMIT")
    joined(waits)
    assert list(one.run("SELECT id, x FROM locked ORDER BY id")) == [(1, 11), (2, 11), (3, 10)]


def test_a_failed_block_gives_back_its_locks(pair):
    """All, or those since the last savepoint. In MySQL's protocol a statement fails alone."""
    one, other = pair
    one.run("BEGIN", "UPDATE locked SET x = 1 WHERE id = 1")
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
    assert one.code("SELECT nothing FROM locked") in ("42703", 1054)
    if one.protocol == "mysql":
        waits.join(0.3)
        assert waits.is_alive()
        one.run("ROLLBACK")
    joined(waits)
    one.run("ROLLBACK")
    if one.protocol == "mysql":
        return
    one.run("BEGIN", "UPDATE locked SET x = x + 1 WHERE id = 1", "SAVEPOINT here", "UPDATE locked SET x = 1 WHERE id = 2")
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 2"))
    assert one.code("SELECT nothing FROM locked") == "42703"
    joined(waits)
    waits = in_background(lambda: other.run("UPDATE locked SET x = x + 10 WHERE id = 1"))
    one.run("ROLLBACK TO SAVEPOINT here", "COMMIT")
    joined(waits)
    assert one.run("SELECT id, x FROM locked ORDER BY id") == [(1, 21), (2, 10), (3, 0)]


def test_for_update_of_locks_only_what_it_names(pair):
    one, other = pair
    one.run("DROP TABLE IF EXISTS beside", "CREATE TABLE beside (id INT PRIMARY KEY, y BIGINT)", "INSERT INTO beside VALUES (1, 0)")
    query = "SELECT l.x FROM locked AS l JOIN beside AS b ON b.id = l.id FOR UPDATE OF"
    for of, fails in (("b", False), ("l", True), ("b, l", True)):
        one.run("BEGIN", f"{query} {of}")
        other.run("UPDATE locked SET x = x + 1 WHERE id = 1")
        if fails:
            assert one.code("UPDATE beside SET y = y + 1 WHERE id = 1") in ("40001", 1213)
            one.run("ROLLBACK")
        else:
            one.run("UPDATE beside SET y = y + 1 WHERE id = 1", "COMMIT")
    assert one.one("SELECT y FROM beside") == 1
    assert one.code(f"{query} locked") in ("42P01", 1146)


def test_a_row_is_watched_although_it_was_locked_before(pair):
    """Its own change, of no row as yet, is in nobody's way."""
    one, other = pair
    one.run("BEGIN", "DELETE FROM locked WHERE id = 9")
    other.run("INSERT INTO locked VALUES (9, 0)")
    x = one.one("SELECT x FROM locked WHERE id = 9 FOR UPDATE")
    other.run("UPDATE locked SET x = x + 1 WHERE id > 8")
    assert one.code(f"UPDATE locked SET x = {x + 5} WHERE id = 9") in ("40001", 1213)
    one.run("ROLLBACK")
    assert one.one("SELECT x FROM locked WHERE id = 9") == 1


def test_a_transaction_that_waited_first_keeps_its_state_behind_a_savepoint(pair):
    one, other = pair
    one.run("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ" if one.protocol == "postgres"
            else "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    other.run("BEGIN", "UPDATE locked SET x = 5 WHERE id = 1")
    one.run("BEGIN", "SAVEPOINT here")
    waits = in_background(lambda: one.run("UPDATE locked SET x = x + 1 WHERE id = 1"))
    other.run("COMMIT")
    joined(waits)
    assert one.one("SELECT x FROM locked WHERE id = 1") == 6
    one.run("ROLLBACK TO SAVEPOINT here")
    assert one.one("SELECT x FROM locked WHERE id = 1") == 5
    one.run("ROLLBACK")


def test_who_only_reads_locks_nothing(pair):
    one, other = pair
    for sql in ("SELECT x FROM locked WHERE id = 1 FOR UPDATE", "SELECT x FROM locked WHERE id < 2 FOR SHARE", "UPDATE locked SET x = 1 WHERE id = 1"):
        one.run("START TRANSACTION READ ONLY")
        assert one.code(sql) in ("25006", 1792)
        other.run("SELECT x FROM locked WHERE id = 1 FOR UPDATE NOWAIT")
        one.run("ROLLBACK")
