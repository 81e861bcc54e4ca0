"""Snapshot isolation as clients see it, over tables in memory and durable ones: random transactions of several protocols
at once, written down and judged by `histories.py`, and the promises of docs/how-to/tables.md one by one.

BOWSHOT_TEST_ISOLATION_TRANSACTIONS (of each connection) and BOWSHOT_TEST_ISOLATION_SEED choose how many, and which.
"""

import os
import time

import adbc_driver_flightsql.dbapi as dbapi
import pytest

from durable import Database, rows_of
from histories import complaints
from isolation import Run
from random_transactions import LISTENERS, TABLES, WIRES, Lists, Worker, is_conflict
from server import Server, beside, together

TRANSACTIONS = int(os.environ.get("BOWSHOT_TEST_ISOLATION_TRANSACTIONS", "60"))
SEED = int(os.environ.get("BOWSHOT_TEST_ISOLATION_SEED", "1"))
KILLED_ROUNDS = 3


@pytest.fixture(scope="module", params=["memory", "durable"])
def shared(request, tmp_path_factory):
    data = "memory" if request.param == "memory" else tmp_path_factory.mktemp("isolation") / "data"
    with Server(data=data, arguments=LISTENERS) as server:
        server.is_durable = request.param == "durable"
        yield server


@pytest.fixture
def server(shared):
    yield shared
    assert shared.alive(), shared.log()[-5000:]
    shared.wait_idle(5.0)


@pytest.fixture
def db(server):
    with Database(server) as database:
        yield database


@pytest.fixture
def other(server):
    with Database(server) as database:
        yield database


def test_random_transactions(server, db, table):
    print(f"seed {SEED}")
    lists = Lists(table, [0, 1])
    db.run(*lists.create(), *lists.fill())
    workers = [Worker(server, lists, SEED, f"t{number}", wire) for number, wire in enumerate(WIRES)]

    def move(ended):
        """Rows that move from the catalog to files, and from file to file, are the same rows."""
        with Database(server) as mover:
            while not ended.wait(0.1):
                for name in TABLES:
                    try:
                        mover.run(f"OPTIMIZE {table}_{name}")
                    except dbapi.Error as error:
                        assert is_conflict(error), error

    with beside(*([move] if server.is_durable else [])):
        together(*(lambda worker=worker: worker.run(TRANSACTIONS) for worker in workers))
    final = lists.read(db.rows)
    done = [transaction for worker in workers for transaction in worker.done]
    assert complaints(done, final) == [], f"seed {SEED}"
    committed = sum(transaction.committed for transaction in done)
    assert committed > len(done) / 10, f"{committed} of {len(done)} were committed"
    assert sum(worker.conflicts for worker in workers), "nobody was in another's way: nothing was tested"


# What the driver says when the server dies while it asks whether there are transactions, and of a connection that it had half made.
@pytest.mark.filterwarnings("ignore:Cannot disable autocommit")
@pytest.mark.filterwarnings("ignore:A adbc_driver_manager.dbapi.Connection was not explicitly close:ResourceWarning")
def test_random_transactions_on_a_server_that_is_killed():
    assert Run(SEED, quiet=True).rounds(KILLED_ROUNDS) > 10 * KILLED_ROUNDS, "the load hardly ran"


def test_increments_are_not_lost(server, db, table):
    db.run(f"CREATE TABLE {table} (n BIGINT)", f"INSERT INTO {table} VALUES (0)")
    counts = []

    def one_by_one():
        with Database(server) as own:
            for _ in range(TRANSACTIONS // 3):
                own.run(f"UPDATE {table} SET n = n + 1")
                counts.append(1)

    def read_and_write():
        """The classic: what was read is written back, in two statements."""
        with Database(server) as own:
            for _ in range(TRANSACTIONS // 3):
                own.run("BEGIN")
                n = own.one(f"SELECT n FROM {table}")
                own.run(f"UPDATE {table} SET n = {n + 1}")
                try:
                    own.run("COMMIT")
                    counts.append(1)
                except dbapi.Error as error:
                    assert is_conflict(error), error

    together(one_by_one, one_by_one, read_and_write, read_and_write)
    assert db.one(f"SELECT n FROM {table}") == len(counts) >= 2 * (TRANSACTIONS // 3)


def test_a_transaction_sees_no_new_rows(db, other, table):
    db.run(f"CREATE TABLE {table} AS SELECT value AS x FROM generate_series(1, 100) AS s(value)", "BEGIN")
    sql = f"SELECT count(*), sum(x) FROM {table} WHERE x > 50"
    before = db.rows(sql)
    other.run(f"INSERT INTO {table} VALUES (1000)", f"DELETE FROM {table} WHERE x = 60", f"UPDATE {table} SET x = x + 500 WHERE x < 10")
    assert db.rows(sql) == before != other.rows(sql)
    db.run("COMMIT")
    assert db.rows(sql) == other.rows(sql)


def test_a_transaction_begins_with_its_first_statement(db, other, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", "BEGIN")
    other.run(f"INSERT INTO {table} VALUES (1)")
    assert db.rows(f"SELECT x FROM {table}") == [(1,)]
    other.run(f"INSERT INTO {table} VALUES (2)")
    assert db.rows(f"SELECT x FROM {table}") == [(1,)]
    db.run("ROLLBACK")


def test_what_the_server_does_by_itself_is_nobodys_conflict(server, db, table):
    """Few rows move from the catalog to a file after a while. Nobody has changed them, so a transaction that did goes on."""
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"INSERT INTO {table} VALUES (1)", "BEGIN", f"UPDATE {table} SET x = 2")
    if server.is_durable:
        folder = db.location(table)
        # A server may as well wait for the transaction: then there is nothing to see.
        deadline = time.monotonic() + 8
        while not rows_of(folder) and time.monotonic() < deadline:
            db.rows(f"SELECT x FROM {table}")
            time.sleep(0.1)
    db.run("COMMIT")
    assert db.rows(f"SELECT x FROM {table}") == [(2,)]


def leave_both(db, other, table, begin):
    """Each of two transactions writes what only the other one has read: both doctors see the other on call, and both leave."""
    for doctor in ("ann", "bob"):
        db.run(f"CREATE TABLE {table}_{doctor} (on_call BOOLEAN)", f"INSERT INTO {table}_{doctor} VALUES (true)")
    both = f"SELECT a.on_call AND b.on_call FROM {table}_ann a, {table}_bob b"
    for connection, doctor in ((db, "ann"), (other, "bob")):
        connection.run(begin)
        assert connection.one(both)
        connection.run(f"UPDATE {table}_{doctor} SET on_call = false")
    db.run("COMMIT")


def test_write_skew_is_allowed_below_serializable(db, other, table):
    leave_both(db, other, table, "BEGIN")
    other.run("COMMIT")
    assert db.rows(f"SELECT a.on_call, b.on_call FROM {table}_ann a, {table}_bob b") == [(False, False)]


def test_write_skew_is_refused_in_serializable_transactions(db, other, table):
    leave_both(db, other, table, "BEGIN ISOLATION LEVEL SERIALIZABLE")
    with pytest.raises(Exception, match="could not serialize access"):
        other.run("COMMIT")
    assert db.rows(f"SELECT a.on_call, b.on_call FROM {table}_ann a, {table}_bob b") == [(False, True)]
    other.run("BEGIN ISOLATION LEVEL SERIALIZABLE", f"UPDATE {table}_bob SET on_call = NOT on_call", "COMMIT")


def test_what_a_serializable_transaction_reads_counts_wherever_it_is_read(db, other, table):
    """Through views, subqueries, prepared statements and what was computed before; what it only adds rows to does not."""
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"CREATE TABLE {table}_out (n BIGINT)")
    db.run(f"CREATE VIEW {table}_view AS SELECT count(*) AS n FROM {table}")
    reads = (
        f"SELECT n FROM {table}_view",
        f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {table})",
        f"INSERT INTO {table}_out SELECT n FROM {table}_view",
        f"DELETE FROM {table} WHERE x < 0",
        f"DELETE FROM {table}_out WHERE n IN (SELECT x FROM {table})",
    )
    db.run(f"PREPARE counts AS SELECT count(*) FROM {table}")
    db.rows("EXECUTE counts")
    for read in (*reads, "EXECUTE counts"):
        db.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
        (db.rows if read.startswith(("SELECT", "EXECUTE")) else db.run)(read)
        db.run(f"INSERT INTO {table}_out VALUES (0)")
        other.run(f"INSERT INTO {table} VALUES (1)")
        with pytest.raises(Exception, match="could not serialize access"):
            db.run("COMMIT")
    # Neither what only reads, nor what only adds rows.
    db.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
    db.rows(f"SELECT count(*) FROM {table}")
    other.run(f"INSERT INTO {table} VALUES (2)")
    db.run("COMMIT", "BEGIN ISOLATION LEVEL SERIALIZABLE", f"INSERT INTO {table} VALUES (3)")
    other.run(f"INSERT INTO {table} VALUES (4)")
    db.run("COMMIT")


def test_the_level_of_a_session_holds_for_its_transactions(db, other, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"CREATE TABLE {table}_out (n BIGINT)")
    db.run("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert db.rows("SHOW TRANSACTION ISOLATION LEVEL") == [("serializable",)]
    db.run("BEGIN")
    db.rows(f"SELECT count(*) FROM {table}")
    with pytest.raises(Exception, match="before any query"):
        db.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    other.run(f"INSERT INTO {table} VALUES (1)")
    db.run(f"INSERT INTO {table}_out VALUES (1)")
    with pytest.raises(Exception, match="could not serialize access"):
        db.run("COMMIT")
    # A transaction of its own level, chosen right after its begin.
    db.run("BEGIN", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    db.rows(f"SELECT count(*) FROM {table}")
    other.run(f"INSERT INTO {table} VALUES (1)")
    db.run(f"INSERT INTO {table}_out VALUES (1)", "COMMIT")
    assert db.rows("SHOW transaction_isolation") == [("serializable",)]


def test_a_transaction_of_the_driver_takes_its_level(server, db, table):
    db.run(f"CREATE TABLE {table} (x BIGINT)", f"CREATE TABLE {table}_out (n BIGINT)")
    with Database(server, autocommit=False) as manual:
        manual.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        manual.rows(f"SELECT count(*) FROM {table}")
        db.run(f"INSERT INTO {table} VALUES (1)")
        manual.run(f"INSERT INTO {table}_out VALUES (1)")
        with pytest.raises(Exception, match="could not serialize access"):
            manual.connection.commit()
    assert db.rows(f"SELECT n FROM {table}_out") == []
