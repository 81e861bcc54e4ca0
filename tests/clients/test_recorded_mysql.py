"""What clients of MySQL have sent to MariaDB by themselves (`recorded/mysql.txt`: one statement a line, by client) is answered."""

import contextlib
import pathlib

import pymysql
import pytest

from server import Server

RECORDED = pathlib.Path(__file__).parent / "recorded" / "mysql.txt"
# What the recording has taken for granted.
BEFORE = [
    "CREATE DATABASE IF NOT EXISTS d",
    "USE d",
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(50))",
]
# Statements that Bowshot refuses, by a part of them, and why.
REFUSED = {
    "/*M!100100": "a comment for MariaDB alone: MySQL calls it an empty query, too",
    "LOCK TABLES": "transactions have snapshot isolation and take no locks",
    "INFORMATION_SCHEMA.FILES": "there is no such table",
    "ROUTINE_COMMENT": "there is no such column",
    "utf8mb3_general_ci": "texts are ordered by their bytes",
    "R.TABLE_NAME": "the table of a constraint is not told",
    "SELECT engine, table_type": "there is no such column",
}
# Of those that MariaDB answers.
FLOOR = 0.9
# The table is not there yet, as pandas wants to know.
REFUSED_BY_ALL = "DESCRIBE `d`.`pd1`"


def recorded():
    client = ""
    for line in RECORDED.read_text().splitlines():
        if line.startswith("## "):
            client = line[3:]
        elif line.startswith(("Query ", "Prepare ", "Execute ", "Init DB ")):
            verb, _, text = line.replace("Init DB", "Use", 1).partition(" ")
            yield client, verb, f"USE {text}" if verb == "Use" else text


@pytest.fixture(scope="module")
def answered():
    with Server(arguments=["--mysql", "127.0.0.1:0"]) as server:
        place = {"host": "127.0.0.1", "port": server.mysql_port, "user": "ada", "database": "main"}
        flag = pymysql.constants.CLIENT.MULTI_STATEMENTS
        told, last = [], None
        connection = None
        for client, verb, text in recorded():
            if text == REFUSED_BY_ALL:
                continue
            if client != last:
                if connection:
                    connection.close()
                connection, last = pymysql.connect(**place, client_flag=flag, autocommit=True), client
                for sql in BEFORE:
                    run(connection, sql)
            told.append((client, text, None if verb == "Prepare" else run(connection, text)))
        connection.close()
    return told


def run(connection, sql):
    """The error, if there is one."""
    with contextlib.closing(connection.cursor()) as cursor:
        try:
            cursor.execute(sql)
            while cursor.nextset():
                pass
        except pymysql.err.Error as error:
            return error
    return None


def test_all_but_a_few_are_answered(answered):
    failed = [(client, text, error) for client, text, error in answered if error]
    unexplained = [entry for entry in failed if not any(part in entry[1] for part in REFUSED)]
    assert not unexplained, "\n".join(f"{client}: {error}: {text[:200]}" for client, text, error in unexplained)
    assert len(failed) <= (1 - FLOOR) * len(answered)
