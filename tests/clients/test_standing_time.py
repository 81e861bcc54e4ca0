"""Every step of a statement ends when it should: planning too, and others do not notice."""

import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow.flight as flight
import pytest

from durable import Database, cursor_of
from server import Server, beside, users_file, wait_until
from watch import is_quiet

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module")
def shared(data_folder):
    with Server(data_folder, environment={"BOWSHOT_LIMITS_PLANNING_TIMEOUT": "5s"}) as server:
        yield server


def join_of_many(tables=280):
    """Takes seconds to plan."""
    joins = " ".join(f"JOIN nation n{i} ON n{i}.n_nationkey = n{i - 1}.n_nationkey" for i in range(1, tables))
    return f"SELECT count(*) FROM nation n0 {joins}"


def columns(count):
    return "SELECT " + ", ".join(f"n_nationkey + {i} AS c{i}" for i in range(count)) + " FROM nation"


LONG_PLANNING = {
    "a join of 280 tables": join_of_many(),
    "10,000 columns": columns(10_000),
    "constants that take long": "SELECT levenshtein(repeat('a', 30000), repeat('b', 30000))",
}


@pytest.mark.parametrize("what", LONG_PLANNING)
def test_the_deadline_covers_planning(shared, what):
    with Database(shared) as db:
        db.run("SET statement_timeout_ms = 50")
        began = time.monotonic()
        try:
            db.rows(LONG_PLANNING[what])
        except Exception as error:
            assert "longer than" in str(error), error
        assert time.monotonic() - began < 1.0
    shared.wait_idle(2)


@pytest.mark.parametrize("what", LONG_PLANNING)
def test_the_deadline_covers_prepared_statements(shared, what):
    with dbapi.connect(shared.grpc_tcp, autocommit=True) as connection:
        with cursor_of(connection) as cursor:
            cursor.execute("SET statement_timeout_ms = 50")
        with cursor_of(connection) as cursor:
            began = time.monotonic()
            try:
                cursor.adbc_prepare(LONG_PLANNING[what])
            except Exception as error:
                assert "longer than" in str(error), error
            assert time.monotonic() - began < 1.0
    shared.wait_idle(2)


@pytest.fixture
def of_two(data_folder, tmp_path):
    """A server of two users, and their tokens."""
    tokens = {name: f"token-of-{name}" for name in ("ada", "ben")}
    with Server(data_folder, arguments=["--users-file", users_file(tmp_path, tokens=tokens)]) as server:
        yield server, tokens


def test_others_do_not_notice_that_somebody_plans(of_two):
    (shared, tokens), waits = of_two, []
    of_ada = {"adbc.flight.sql.authorization_header": f"Bearer {tokens['ada']}"}

    def plan(ended):
        with dbapi.connect(shared.grpc_tcp, db_kwargs=of_ada, autocommit=True) as connection:
            while not ended.is_set():
                with cursor_of(connection) as cursor:
                    try:
                        cursor.execute("SET statement_timeout_ms = 2000")
                        cursor.execute(join_of_many())
                        cursor.fetchall()
                    except Exception:
                        pass

    with beside(*[plan] * 8):
        time.sleep(0.5)
        with Database(shared, token=tokens["ben"]) as db:
            for _ in range(30):
                began = time.monotonic()
                assert db.one("SELECT 1") == 1
                waits.append(time.monotonic() - began)
                status, _, _ = shared.get("/health")
                assert status == 200
    waits.sort()
    assert waits[len(waits) // 2] < 0.25 and waits[-1] < 2, waits


def test_who_leaves_while_a_statement_is_planned_holds_nothing(shared):
    with flight.connect(shared.grpc_tcp) as client:
        options = flight.FlightCallOptions(timeout=0.2)
        with pytest.raises(Exception):
            client.do_get(flight.Ticket(join_of_many().encode()), options).read_all()
    assert shared.metrics()["bowshot_running_queries"] <= 1
    shared.wait_idle(1)


def test_a_nested_loop_ends_with_its_query(shared):
    sql = (
        "SELECT count(*) FROM generate_series(1, 300000) a(x) JOIN generate_series(1, 300000) b(y)"
        " ON a.x * 7 + b.y < -1 - a.x"
    )

    wait_until(lambda: is_quiet(shared), "nothing burns of what was planned before", 30)
    with Database(shared) as db:
        db.run("SET statement_timeout_ms = 300")
        with pytest.raises(Exception, match="longer than"):
            db.rows(sql)
    shared.wait_idle(1)
    wait_until(lambda: is_quiet(shared), "nothing burns", 5)


def test_what_runs_is_shown(shared):
    errors = []

    def run():
        with Database(shared) as other:
            other.run("SET statement_timeout_ms = 3000")
            try:
                other.rows("SELECT count(*) FROM generate_series(1, 100000000000) AS endless(x) WHERE x % 7 = 9")
            except Exception as caught:
                errors.append(str(caught))

    thread = threading.Thread(target=run)
    thread.start()
    own = "FROM system.queries WHERE statement LIKE '%endless%' AND statement NOT LIKE '%LIKE%'"
    with Database(shared) as db:
        # Before it runs the driver prepares it, which is another query.
        wait_until(lambda: db.rows(f"SELECT query_id {own} AND outcome = 'running'"), "it runs")
        assert db.one(f"SELECT duration_ms > 0 AND memory_bytes >= 0 {own}")
        thread.join()
        assert errors and "longer than" in errors[0]
        assert {outcome for (outcome,) in db.rows(f"SELECT outcome {own}")} == {"failed"}
