"""A script that Doris publishes for its own Arrow Flight SQL front end, as it is, by ADBC in dialect `mysql`; and what stands in it
beside columns is kept, over MySQL's protocol too."""

import adbc_driver_flightsql.dbapi
import pyarrow.flight as flight
import pymysql
import pytest

import protobuf
from server import Server

CREATE = """CREATE TABLE arrow_flight_sql_test
    (
         k0 INT,
         k1 DOUBLE,
         K2 varchar(32) NULL DEFAULT "" COMMENT "",
         k3 DECIMAL(27,9) DEFAULT "0",
         k4 BIGINT NULL DEFAULT '10',
         k5 DATE,
    )
    DISTRIBUTED BY HASH(k5) BUCKETS 5
    PROPERTIES("replication_num" = "1");"""
INSERT = """INSERT INTO arrow_flight_sql_test VALUES
        ('0', 0.1, "ID", 0.0001, 9999999999, '2023-10-21'),
        ('1', 0.20, "ID_1", 1.00000001, 0, '2023-10-21'),
        ('2', 3.4, "ID_1", 3.1, 123456, '2023-10-22'),
        ('3', 4, "ID", 4, 4, '2023-10-22'),
        ('4', 122345.54321, "ID", 122345.54321, 5, '2023-10-22');"""
CLAUSES = 'DISTRIBUTED BY HASH(k5) BUCKETS 5 PROPERTIES("replication_num" = "1")'


@pytest.fixture
def served():
    with Server(arguments=["--mysql", "127.0.0.1:0"]) as server:
        yield server


def read(client, sql):
    """GetFlightInfo and DoGet, as clients do that prepare nothing."""
    command = protobuf.any_of("CommandStatementQuery", protobuf.field(1, sql))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    table = client.do_get(info.endpoints[0].ticket).read_all()
    assert table.schema.equals(info.schema)
    return table.to_pydict()


def test_the_script_runs_as_it_is(served):
    with adbc_driver_flightsql.dbapi.connect(served.grpc_tcp.replace("grpc+tcp", "grpc"), autocommit=True) as connection:
        with connection.cursor() as cursor:

            def run(sql):
                cursor.execute(sql)
                return cursor.fetch_arrow_table().to_pydict()

            def done(sql):
                """By `execute`, which prepares: Doris answers with a row, so it is no update."""
                assert run(sql) == {"StatusResult": ["0"]}, sql

            run("SET dialect = mysql")
            done("DROP DATABASE IF EXISTS arrow_flight_sql FORCE;")
            assert "arrow_flight_sql" not in run("show databases;")["Database"]
            done("create database arrow_flight_sql;")
            assert "arrow_flight_sql" in run("show databases;")["Database"]
            done("use arrow_flight_sql;")
            done(CREATE)
            done(INSERT)
            [text] = list(run("show create table arrow_flight_sql_test;").values())[1]
            assert " ".join(text.split()).endswith(CLAUSES)
            assert run("show tables;") == {"Tables_in_arrow_flight_sql": ["arrow_flight_sql_test"]}
            assert "exec_mem_limit" in run("show variables like '%exec_mem_limit%';")["Variable_name"]
            done("set exec_mem_limit=2000;")
            assert run("show variables like '%exec_mem_limit%';")["Value"] == ["2000"]
            assert run("select * from arrow_flight_sql_test order by k0;")["k0"] == [0, 1, 2, 3, 4]
            sums = run("select k5, sum(k1), count(1), avg(k3) from arrow_flight_sql_test group by k5;")
            assert sorted(sums["count(1)"]) == [2, 3]


def test_statements_without_rows_answer_a_status(served):
    with flight.connect(served.grpc_tcp) as client:
        assert read(client, "SET dialect = ansi") == {}
        assert read(client, "SET dialect = mysql") == {"StatusResult": ["0"]}
        for sql in ("CREATE DATABASE d", "USE d", CREATE, INSERT, "SET exec_mem_limit = 2000", "DROP DATABASE d FORCE"):
            assert read(client, sql) == {"StatusResult": ["0"]}, sql
        assert read(client, "SELECT 1 AS Total") == {"Total": [1]}


def test_what_stands_beside_the_columns_is_kept(served):
    place = {"host": "127.0.0.1", "port": served.mysql_port, "user": "root", "autocommit": True}
    with pymysql.connect(**place) as connection, connection.cursor() as cursor:

        def rows(sql):
            cursor.execute(sql)
            return cursor.fetchall()

        rows("CREATE DATABASE d")
        rows("USE d")
        rows(CREATE)
        [(name, text)] = rows("SHOW CREATE TABLE arrow_flight_sql_test")
        lines = [" ".join(line.split()) for line in text.splitlines()]
        assert name == "arrow_flight_sql_test"
        assert lines[3:6] == ["`k2` varchar(32) DEFAULT '',", "`k3` decimal(27,9) DEFAULT '0',", "`k4` bigint DEFAULT '10',"]
        assert " ".join(text.split()).endswith(f") {CLAUSES}")
        # The text makes the same table again.
        rows("DROP TABLE arrow_flight_sql_test")
        rows(text)
        assert rows("SHOW CREATE TABLE arrow_flight_sql_test") == ((name, text),)
        defaults = {row[0]: row[4] for row in rows("DESCRIBE arrow_flight_sql_test")}
        assert (defaults["k2"], defaults["k4"], defaults["k0"]) == ("", "10", None)
        rows("CREATE TABLE olap (k INT, v BIGINT) ENGINE=OLAP DUPLICATE KEY(k) COMMENT 'it''s' DISTRIBUTED BY HASH(k) BUCKETS 3")
        [(_, text)] = rows("SHOW CREATE TABLE olap")
        assert text.endswith(") ENGINE=OLAP DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 3 COMMENT='it''s'")
        assert rows("SHOW CREATE DATABASE d") == (("d", "CREATE DATABASE `d`"),)
        [status] = rows("SHOW TABLE STATUS LIKE 'olap'")
        assert len(status) == 18 and (status[0], status[17]) == ("olap", "it's")
