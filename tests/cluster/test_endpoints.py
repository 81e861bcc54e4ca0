"""Endpoints on the nodes that make the rows: exact rows wherever and however they are read, for nobody else, and nothing left."""

import concurrent.futures
import contextlib
import time

import adbc_driver_flightsql.dbapi as dbapi
import endpoints
import nodes
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from endpoints import EVERYTHING, LARGE, ROWS, SPREAD, Client, idle, in_order, places, rest

# Where they are not: one node has the order, the few rows, or all of them.
TOGETHER = ["SELECT x FROM t ORDER BY x", "SELECT x FROM t LIMIT 1000", "SELECT count(*) FROM t", "SELECT 1"]
ADA, BOB = ("ada", nodes.PASSWORD), ("bob", nodes.PASSWORD)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return endpoints.write(tmp_path_factory.mktemp("endpoints") / "t")


@pytest.fixture(scope="module")
def members(table):
    with endpoints.started(table, **endpoints.STEADY) as members:
        yield members


@pytest.fixture(scope="module")
def answers(table):
    return endpoints.answers(table)


@pytest.mark.parametrize("sql", SPREAD)
def test_endpoints_are_read_in_parallel_from_the_nodes(members, answers, sql):
    for asked in members:
        with Client(asked.grpc_tcp) as client:
            info = client.info(sql)
            others = {member.grpc_tcp for member in members} - {asked.grpc_tcp}
            assert set(places(info)) == {None, *others} and len(info.endpoints) == 3
            assert in_order(client.all_of(info)) == answers[sql]
    idle(members)


@pytest.mark.parametrize(
    "option", ["join_order = 'query'", "join_cache = false", "result_cache = false", "key_lookups = false", "common_subplans = false", "time_zone = '+02:00'"]
)
def test_options_of_a_session_keep_no_plan_on_one_node(members, answers, option):
    with contextlib.closing(dbapi.connect(members[0].grpc_tcp, autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET {option}")
        cursor.execute(f"EXPLAIN {SPREAD[1]}")
        plans = [text for _, text in cursor.fetchall()]
        assert any("Stage" in text for text in plans), plans
        cursor.execute(SPREAD[1])
        assert in_order(cursor.fetch_arrow_table()) == answers[SPREAD[1]]
    idle(members)


@pytest.mark.parametrize("sql", SPREAD)
def test_endpoints_are_read_one_after_another(members, answers, sql):
    with Client(members[0].grpc_tcp) as client:
        info = client.info(sql)
        rows = [client.reader(endpoint).read_all() for endpoint in reversed(info.endpoints)]
        assert in_order(pa.concat_tables(rows)) == answers[sql]
    idle(members)


def test_endpoints_that_are_opened_at_once_are_read_one_after_another(members, answers):
    """As JDBC does it."""
    with Client(members[0].grpc_tcp) as client:
        for sql in SPREAD:
            readers = [client.reader(endpoint) for endpoint in client.info(sql).endpoints]
            assert in_order(pa.concat_tables([reader.read_all() for reader in readers])) == answers[sql]
    idle(members)


def test_a_client_that_reaches_one_node_gets_everything_there(members, answers):
    with Client(members[0].grpc_tcp) as client:
        for member in members:
            for sql in SPREAD:
                assert in_order(client.run(sql, at=member.grpc_tcp)) == answers[sql], member.grpc_tcp
    idle(members)


def test_one_endpoint_is_at_the_node_that_was_asked(members, answers):
    for number in (None, "1"):
        with Client(members[0].grpc_tcp, endpoints=number) as client:
            for sql in SPREAD:
                info = client.info(sql)
                assert places(info) == [None]
                assert in_order(client.all_of(info)) == answers[sql]
    # Fewer than there are nodes.
    with Client(members[0].grpc_tcp, endpoints="2") as client:
        assert set(places(client.info(EVERYTHING))) == {None}


def test_small_and_ordered_results_are_at_the_node_that_was_asked(members):
    with Client(members[0].grpc_tcp) as client:
        for sql in TOGETHER:
            info = client.info(sql)
            assert places(info) == [None], sql
            client.all_of(info)
        keys = client.run(TOGETHER[0])["x"].to_pylist()
        assert keys == list(range(ROWS))
    idle(members)


def test_adbc_reads_from_all_nodes(members, answers):
    for number in ("auto", "1"):
        options = {"adbc.flight.sql.session.option.endpoints": number}
        with dbapi.connect(members[0].grpc_tcp, conn_kwargs=options) as connection, connection.cursor() as cursor:
            for sql in SPREAD:
                cursor.execute(sql)
                assert in_order(cursor.fetch_arrow_table()) == answers[sql]
            partitions, schema = cursor.adbc_execute_partitions(EVERYTHING)
            assert len(partitions) == (3 if number == "auto" else 1)
            rows = []
            for partition in partitions:
                cursor.adbc_read_partition(partition)
                rows.append(cursor.fetch_arrow_table())
            assert in_order(pa.concat_tables(rows)) == answers[EVERYTHING]
    idle(members)


def test_statements_are_in_the_log_with_their_rows(members):
    sql = EVERYTHING + " WHERE x >= 0"
    with Client(members[1].grpc_tcp) as client:
        assert client.parallel(sql).num_rows == ROWS

    def logged():
        ended = f"outcome IN ('finished', 'failed', 'cancelled') AND statement = '{sql}'"
        return members[1].rows(f"SELECT outcome, rows FROM system.queries WHERE {ended}")

    assert nodes.wait_until(logged, "a line in the log") == [["finished", ROWS]]
    assert members[2].rows(f"SELECT count(*) FROM system.queries WHERE statement = '{sql}'") == [[0]]


def test_an_endpoint_is_read_once(members):
    with Client(members[0].grpc_tcp) as client:
        info = client.info(EVERYTHING)
        client.all_of(info)
        for endpoint in info.endpoints:
            with pytest.raises((flight.FlightError, pa.ArrowException), match="has been read|not found"):
                client.reader(endpoint).read_all()


def test_a_reader_that_leaves_leaves_nothing(members):
    with Client(members[0].grpc_tcp) as client:
        readers = [client.reader(endpoint) for endpoint in client.info(EVERYTHING).endpoints]
        for reader in readers:
            reader.read_chunk()
            reader.cancel()
    idle(members)


def test_stages_are_seen_while_they_run(members):
    asked = "SELECT stage, task, node, exchange, query_id IS NOT NULL FROM system.query_stages ORDER BY 1, 2"
    addresses = sorted(address for (address,) in members[0].rows("SELECT address FROM system.nodes"))
    slow = "SELECT g % 10, sum(length(encode(sha256(repeat(s, 300)), 'hex'))) FROM t GROUP BY 1"
    with Client(members[0].grpc_tcp) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.run, slow)
        rows = nodes.wait_until(lambda: members[0].rows(asked), "stages", 10)
        assert rows[0][3] == "client" and all(row[4] for row in rows), rows
        for stage in {row[0] for row in rows[1:]}:
            assert sorted(row[2] for row in rows if row[0] == stage) == addresses, rows
        assert {row[3] for row in rows[1:]} == {"shuffle", "coalesce"}, rows
        assert answer.result().num_rows == 10
    idle(members)
    assert members[0].rows(asked) == []


def test_a_statement_that_is_cancelled_ends_everywhere(members):
    with Client(members[0].grpc_tcp) as client:
        for all_made in (False, True):
            info = client.info(LARGE)
            if all_made:
                # All rows are on disk: a reader has a part of a file then.
                made = "SELECT max(rows) FROM system.queries WHERE outcome = 'waiting'"
                nodes.wait_until(lambda: members[0].rows(made) == [[ROWS]], "all rows", 30)
            reader = client.reader(info.endpoints[-1])
            reader.read_chunk()
            client.cancel(info)
            # Before anything ends by itself.
            idle(members, 5)
            for endpoint in info.endpoints[:-1]:
                with pytest.raises(flight.FlightCancelledError, match="cancelled"):
                    rest(client.reader(endpoint))
            with pytest.raises(flight.FlightCancelledError, match="cancelled"):
                rest(reader)
    idle(members)


def test_an_error_in_one_part_ends_all(members):
    sql = f"SELECT x, 1 / (x - {ROWS - 3}) AS y FROM t"
    with Client(members[0].grpc_tcp) as client:
        failed = []
        try:
            readers = [client.reader(endpoint) for endpoint in client.info(sql).endpoints]
        except (pa.ArrowException, flight.FlightError) as error:
            failed, readers = [str(error)], []
        for reader in readers:
            try:
                reader.read_all()
            except (pa.ArrowException, flight.FlightError) as error:
                failed.append(str(error))
        assert failed and any("zero" in error for error in failed), failed
    idle(members)


def test_a_result_that_nobody_reads_expires(table):
    with endpoints.started(table, limits__result_timeout="2s", **endpoints.STEADY) as members:
        with Client(members[0].grpc_tcp) as client:
            # What one endpoint's reader takes its time for keeps the others.
            info = client.info(EVERYTHING)
            first = client.reader(info.endpoints[0])
            first.read_chunk()
            time.sleep(5)
            assert rest(first) and all(client.reader(end).read_all().num_rows for end in info.endpoints[1:])
            info = client.info(EVERYTHING)
            time.sleep(5)
            for endpoint in info.endpoints:
                with pytest.raises((flight.FlightError, pa.ArrowException), match="expired|not found"):
                    client.reader(endpoint).read_all()
        idle(members)


def test_readers_that_let_rows_lie_are_cut_off(table):
    with endpoints.started(table, limits__reader_timeout="2s", **endpoints.STEADY) as members:
        with Client(members[0].grpc_tcp) as client:
            readers = [client.reader(endpoint) for endpoint in client.info(EVERYTHING).endpoints]
            for reader in readers:
                reader.read_chunk()
            idle(members, 20)
            ends = []
            for reader in readers:
                try:
                    reader.read_all()
                except Exception as error:
                    ends.append(str(error))
            assert any("read no rows" in end for end in ends), ends


@pytest.fixture(scope="module", params=["secret", "certificates"])
def guarded(request, table, tmp_path_factory):
    """Three nodes with two users."""
    folder = tmp_path_factory.mktemp("users")
    proof = nodes.secret()
    if request.param == "certificates":
        proof = nodes.certificate(folder / "authority", "one", first=True)
    more = nodes.users_file(folder, ada=False, bob=False)
    with endpoints.started(table, proof=proof, more=more, user=ADA, **endpoints.STEADY) as members:
        yield members


def test_tickets_are_for_one_user(guarded, answers):
    with Client(guarded[0].grpc_tcp, user=ADA) as one, Client(guarded[0].grpc_tcp, user=BOB) as other:
        info = one.info(EVERYTHING)
        for endpoint in info.endpoints:
            for member in guarded:
                with pytest.raises((flight.FlightError, pa.ArrowException), match="not found"):
                    other.reader(endpoint, at=member.grpc_tcp).read_all()
                # A ticket is no credential.
                with flight.connect(member.grpc_tcp) as nobody:
                    with pytest.raises(flight.FlightUnauthenticatedError):
                        nobody.do_get(endpoint.ticket).read_all()
        # Nothing of that has taken anything from whom it belongs to.
        assert in_order(one.all_of(info)) == answers[EVERYTHING]
    idle(guarded)


def test_adbc_logs_in_at_each_node(guarded, answers):
    options = {"adbc.flight.sql.session.option.endpoints": "auto"}
    login = {"username": ADA[0], "password": ADA[1]}
    with dbapi.connect(guarded[0].grpc_tcp, db_kwargs=login, conn_kwargs=options) as connection:
        with connection.cursor() as cursor:
            cursor.execute(EVERYTHING)
            assert in_order(cursor.fetch_arrow_table()) == answers[EVERYTHING]
    idle(guarded)


def test_forged_tickets_are_refused(guarded):
    with Client(guarded[0].grpc_tcp, user=ADA) as client:
        info = client.info(EVERYTHING)
        for endpoint in info.endpoints:
            good = endpoint.ticket.ticket
            # The query, the endpoint's number, the run, the nodes, the time and the signature are at the end, in this order.
            for place in (-120, -90, -80, -60, -45, -35, -20, -1):
                forged = bytearray(good)
                forged[place] ^= 1
                for member in guarded:
                    with pytest.raises((flight.FlightError, pa.ArrowException)):
                        client.reader(flight.FlightEndpoint(bytes(forged), []), at=member.grpc_tcp).read_all()
        assert client.all_of(info).num_rows == ROWS
    idle(guarded)
