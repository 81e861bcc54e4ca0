"""Tables of other databases: faults on the way, many connections, several nodes."""

import signal
import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import pytest

import databases
import nodes
from databases import Reader, Source, driver, eventually, seconds_of, six_at_once
from durable import Database
from server import BUSY_FACTOR, beside


def test_a_database_that_is_not_there_fails_its_own_tables_alone(folder, sources):
    gone = Source("gone", "postgres", "public", {"uri": f'"postgres://127.0.0.1:{databases.free_port()}/d"', "timeout": '"2s"'}, None, [])
    missing = Source("missing", "sqlite", "main", {"uri": f'"{folder}/no.db"'}, None, [])
    nowhere = Source("nowhere", "flightsql", "main", {"uri": f'"grpc://127.0.0.1:{databases.free_port()}"', "timeout": '"2s"', "connect_timeout": '"2s"'}, None, [])
    broken = Source("broken", "postgres", "public", {"uri": '"postgres://127.0.0.1:1/d"'}, None, [])
    bad_driver = broken.config().replace(str(driver("postgres")), "/nowhere/libx.so")
    config = "\n".join([gone.config(), missing.config(), nowhere.config(), bad_driver, sources["lite"].config()])
    with Reader(folder, config) as server:
        for table, word in (("gone.public.t", "cannot be reached"), ("missing.main.t", "cannot be reached"), ("nowhere.main.t", "reached"),
                            ("broken.public.t", "no usable driver")):
            taken = seconds_of(lambda: server.refused(f"SELECT * FROM {table}"))
            assert taken < 8 * BUSY_FACTOR, (table, taken)
            assert word in server.refused(f"SELECT * FROM {table}"), table
        assert server.rows("SELECT count(*) FROM lite.main.things")[0][0] == 600
        names = {row[0] for row in server.rows("SELECT DISTINCT table_catalog FROM information_schema.tables WHERE table_name IN ('t', 'things')")}
        assert "lite" in names and "gone" not in names
        problems = dict(server.rows("SELECT name, problem FROM system.databases"))
        assert problems["lite"] is None and "cannot be reached" in problems["gone"] and "driver" in problems["broken"], problems


def test_a_slow_database_is_given_up(folder, postgres):
    postgres.run("CREATE OR REPLACE VIEW slow AS SELECT 1 AS x FROM pg_sleep(600)")
    source = Source("pg", "postgres", "public", {"uri": f'"{postgres.uri}"', "user": '"owner"', "timeout": '"1500ms"', "pool": "2"}, None, [])
    with Reader(folder, source.config()) as server:
        for _ in range(3):
            start = time.monotonic()
            assert "did not answer within" in server.refused("SELECT x FROM pg.public.slow")
            assert time.monotonic() - start < 6 * BUSY_FACTOR
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow%' AND state = 'active' AND pid <> pg_backend_pid()"
        eventually(lambda: postgres.rows(running) == [(0,)], "what nobody waits for is cancelled")
        assert server.rows("SELECT count(*) FROM pg.public.things WHERE id < 10") == [(10,)]


@pytest.fixture(scope="module")
def large(postgres):
    postgres.run("DROP TABLE IF EXISTS large", "CREATE TABLE large (id bigint PRIMARY KEY, v int, t text)",
                 "INSERT INTO large SELECT g, g % 1000, 'row ' || g FROM generate_series(1, 250000) g", "ANALYZE large")


def test_large_tables_are_read_over_several_connections_at_one_moment(reader, postgres, large):
    shown = reader.explained("SELECT sum(v) FROM pg.public.large")
    assert "parts=" in shown and '"id" <' in shown, shown

    def change(ended):
        """Every transaction keeps the sum and moves rows from one range into another."""
        with postgres.connect() as connection, connection.cursor() as cursor:
            number = 0
            while not ended.is_set():
                number += 1
                cursor.execute(f"UPDATE large SET id = CASE WHEN id = {number} THEN {number + 1000000} ELSE id - 1000000 END "
                               f"WHERE id IN ({number}, {number + 1000000 - 1})")

    with beside(change):
        for _ in range(5):
            assert reader.rows("SELECT count(*), sum(v), count(DISTINCT t) FROM pg.public.large") == [(250_000, 124_875_000, 250_000)]
    assert reader.rows("SELECT count(*) FROM pg.public.large WHERE v = 7") == [(250,)]


def test_rows_that_nobody_reads_are_not_asked_for(reader, postgres, large):
    running = ("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%endless%' "
               "AND pid <> pg_backend_pid()")
    postgres.run("CREATE OR REPLACE VIEW endless AS SELECT g, repeat('x', 100) AS t FROM generate_series(1, 1000000) g, generate_series(1, 1000) h")
    connection = dbapi.connect(reader.grpc_tcp)
    cursor = connection.cursor()
    cursor.execute("SELECT g, t FROM pg.public.endless")
    batches = cursor.fetch_record_batch()
    assert next(iter(batches)).num_rows > 0
    # Back pressure: the server holds a few batches and no more.
    time.sleep(0.5)
    assert postgres.rows(running) == [(1,)]
    batches.close()
    cursor.close()
    connection.close()
    eventually(lambda: postgres.rows(running) == [(0,)], "the statement has ended")
    reader.wait_idle(10)


def test_a_database_that_is_killed_while_it_is_read(folder, sources):
    cluster = databases.Postgres()
    try:
        cluster.run("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g",
                    "CREATE VIEW endless AS SELECT g AS a, repeat('x', 100) AS t FROM generate_series(1, 1000000) g, generate_series(1, 1000) h")
        source = Source("pg", "postgres", "public", {"uri": f'"{cluster.uri}"', "user": '"owner"', "timeout": '"5s"'}, None, [])
        with Reader(folder, source.config() + sources["lite"].config()) as server:
            assert server.rows("SELECT sum(a) FROM pg.public.t") == [(500_500,)]
            words = []
            asking = threading.Thread(target=lambda: words.append(server.refused("SELECT sum(a) FROM pg.public.endless", Database(server))))
            asking.start()
            time.sleep(1)
            cluster.stop(signal.SIGQUIT)
            asking.join(20 * BUSY_FACTOR)
            assert words and "`pg`" in words[0], words
            assert "cannot be reached" in server.refused("SELECT sum(a) FROM pg.public.t")
            assert server.rows("SELECT count(*) FROM lite.main.things") == [(600,)]
            cluster.start()
            assert server.rows("SELECT sum(a) FROM pg.public.t") == [(500_500,)]
            server.wait_idle(10)
    finally:
        cluster.close()


def test_all_connections_taken(folder, postgres):
    postgres.run("CREATE OR REPLACE VIEW naps AS SELECT 1 AS x FROM pg_sleep(1)")
    source = Source("pg", "postgres", "public", {"uri": f'"{postgres.uri}"', "user": '"owner"', "timeout": '"20s"', "pool": "2"}, None, [])
    with Reader(folder, source.config()) as server:
        answers, taken = six_at_once(server, "SELECT x FROM pg.public.naps")
        assert answers == [[(1,)]] * 6 and taken > 2.5, taken


def test_scans_stay_on_the_node_that_was_asked(folder, sources):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = folder / "orders.parquet"
    parquet.write_table(pa.table({"id": list(range(200_000)), "t": [f"text {number}" for number in range(200_000)]}), path, row_group_size=20_000)
    config = folder / "nodes.toml"
    config.write_text(sources["pg"].config())
    more = ["--config", config, "--set", "cluster.bytes_per_thread=1", "--set", "engine.threads=2"]
    with nodes.cluster(2, more=more, sources=[path]) as (first, second):
        alone = "SELECT count(*), sum(id) FROM orders"
        both = "SELECT count(*), sum(p.i) FROM orders o JOIN pg.public.things p ON o.id = p.id"
        shown = {sql: "".join(str(row) for row in first.rows(f"EXPLAIN {sql}")) for sql in (alone, both)}
        assert "Stage" in shown[alone], shown[alone]
        # The rest of the plan runs on both; who reads the database is a task of the node that was asked.
        stages = shown[both].split("Nodes:")[1].split("┌─────")
        assert [stage.split()[3] for stage in stages if "DatabaseScan" in stage] == ["tasks=1,"], stages
        assert [tuple(row) for row in first.rows(both)] == [tuple(sources["pg"].rows("SELECT count(*), sum(i) FROM things WHERE id < 200000")[0])]
        connections = "SELECT connections FROM system.databases"
        assert first.rows(connections)[0][0] > 0 and second.rows(connections) == [[0]]
