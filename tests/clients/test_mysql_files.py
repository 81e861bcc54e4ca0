"""MySQL's protocol where files of the client go into tables (`LOAD DATA LOCAL INFILE`), and where packets are compressed."""

import contextlib
import datetime
import decimal
import os
import threading
import time

import mysql.connector
import pymysql
import pytest

from test_mysql import connector_to, pymysql_to, rows

D = decimal.Decimal


@pytest.mark.parametrize("client", ["pymysql", "connector"])
def test_files_of_the_client_become_rows(served, table, tmp_path, client):
    to = {"pymysql": lambda: pymysql_to(served, local_infile=True), "connector": lambda: connector_to(served, allow_local_infile=True)}
    file = tmp_path / "rows.txt"
    with contextlib.closing(to[client]()) as connection:
        rows(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY, name TEXT, price DECIMAL(9, 2), day DATE, at DATETIME(6), raw BLOB)")
        file.write_bytes(
            b"1\tplain\t1.50\t2024-02-29\t2024-02-29 12:30:00.25\tabc\n"
            b"2\ta\\tb\\\nc \xc3\xa4\t\\N\t\\N\t\\N\t\n"
        )
        rows(connection, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table}")
        file.write_bytes(b'id;name\r\n3;"x;\r\n""y"\r\n4;NULL\r\n')
        rows(
            connection,
            f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE main.{table} FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' "
            "LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (id, name)",
        )
        assert rows(connection, f"SELECT id, name, price, day, at, raw FROM {table} ORDER BY id") == [
            (1, "plain", D("1.50"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 0, 250000), b"abc"),
            (2, "a\tb\nc \u00e4", None, None, None, b""),
            (3, 'x;\r\n"y', None, None, None, None),
            (4, None, None, None, None, None),
        ]


def test_a_file_counts_whole_or_not_at_all(served, table, tmp_path):
    file = tmp_path / "rows.csv"
    with contextlib.closing(pymysql_to(served, local_infile=True)) as connection:
        rows(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY, name TEXT)")
        statement = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table} FIELDS TERMINATED BY ','"
        many = "".join(f"{n},name {n}\n" for n in range(300_000))
        for bad, number in [("x,not a number\n", 1366), ("7\n", 1261), ("7,a,b\n", 1262), ("7,twice\n", 1062)]:
            file.write_text(many + bad)
            with pytest.raises(pymysql.err.Error) as caught:
                rows(connection, statement)
            assert caught.value.args[0] == number, caught.value
            file.write_text(bad + many)
            with pytest.raises(pymysql.err.Error) as caught:
                rows(connection, statement)
            assert caught.value.args[0] == number, caught.value
            assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)], "and the connection goes on"
        file.write_text(many)
        rows(connection, "BEGIN")
        rows(connection, statement)
        assert rows(connection, f"SELECT count(*), sum(id) FROM {table}") == [(300_000, 300_000 * 299_999 // 2)]
        rows(connection, "ROLLBACK")
        assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)]
    with contextlib.closing(pymysql_to(served)) as connection, pytest.raises(pymysql.err.Error) as caught:
        rows(connection, statement)
    assert caught.value.args[0] == 3948, "nobody is asked for a file who has not said that it may be"


def test_a_kill_in_the_middle_of_a_file_keeps_none_of_it(served, table, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with contextlib.closing(pymysql_to(served, local_infile=True)) as connection, contextlib.closing(pymysql_to(served)) as other:
        rows(connection, f"CREATE TABLE {table} (id INT)")

        def send():
            with open(pipe, "w") as file:
                file.write("".join(f"{n}\n" for n in range(100_000)))
                file.flush()
                time.sleep(0.3)
                rows(other, f"KILL QUERY {connection.thread_id()}")
                file.write("1\n" * 1_000)

        for _ in range(5):
            sender = threading.Thread(target=send)
            sender.start()
            with pytest.raises(pymysql.err.Error) as caught:
                rows(connection, f"LOAD DATA LOCAL INFILE '{pipe}' INTO TABLE {table}")
            sender.join()
            assert caught.value.args[0] == 1317
            assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)]


def test_compressed(served, table, tmp_path):
    with contextlib.closing(connector_to(served, compress=True, allow_local_infile=True)) as connection:
        rows(connection, f"CREATE TABLE {table} (id INT, name TEXT)")
        file = tmp_path / "rows.txt"
        file.write_text("".join(f"{n}\tname {n}\n" for n in range(200_000)))
        rows(connection, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table}")
        rows(connection, f"INSERT INTO {table} VALUES (%s, %s)", (200_000, "x" * 3_000_000))
        found = rows(connection, f"SELECT id, name FROM {table} ORDER BY id")
        assert len(found) == 200_001 and found[199_999] == (199_999, "name 199999") and len(found[-1][1]) == 3_000_000
        with pytest.raises(mysql.connector.Error):
            rows(connection, "SELECT * FROM nothing_there")
        assert rows(connection, "SELECT 1") == [(1,)]
        connection.cmd_reset_connection()
        assert rows(connection, "SELECT 2") == [(2,)]
