"""What clients of MySQL send by themselves, recorded once (`recorded/mysql.txt`: one statement a line, by client): replayed over
PyMySQL, which sends the texts as they are.

    python recorded_mysql.py          writes what MariaDB answers
    python recorded_mysql.py count    tells how much of it Bowshot answers so

What is written, is in `recordings.py`. MariaDB is started with Bowshot's defaults.
"""

import contextlib

import pymysql

from mariadb_server import MariaDbServer
from recordings import FOLDER, Recording, Statement
from server import Server

# What the recording has taken for granted.
BEFORE = [
    "CREATE DATABASE IF NOT EXISTS d",
    "USE d",
    "DROP TABLE IF EXISTS pd1",
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(50))",
    "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
]
LIKE_BOWSHOT = [
    "--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--sql-mode=", "--max-allowed-packet=64M",
    "--query-cache-type=OFF", "--query-cache-size=0", "--default-time-zone=+00:00",
]  # fmt: skip


def statements():
    client = ""
    for line in (FOLDER / "mysql.txt").read_text().splitlines():
        if line.startswith("## "):
            client = line[3:]
        elif line.startswith(("Query ", "Prepare ", "Execute ", "Init DB ")):
            verb, _, text = line.replace("Init DB", "Use", 1).partition(" ")
            yield Statement(client, verb, f"USE {text}" if verb == "Use" else text)


def replayed(port):
    """The answers to all of them, each client on a connection of its own, over the same tables; None for what is only prepared."""
    answers, last, connection = [], None, None
    for statement in statements():
        if statement.client != last:
            if connection:
                connection.close()
            last = statement.client
            place = {"host": "127.0.0.1", "port": port, "user": "root", "autocommit": True}
            connection = pymysql.connect(**place, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
            for sql in BEFORE:
                assert "error" not in (told := answer(connection, sql)), told
        answers.append(None if statement.kind == "Prepare" else answer(connection, statement.text))
    connection.close()
    return answers


def answer(connection, sql):
    """Names of the columns and rows of the last result; for an error its number and message."""
    with contextlib.closing(connection.cursor()) as cursor:
        try:
            cursor.execute(sql)
            while cursor.nextset():
                pass
        except pymysql.err.Error as error:
            return {"error": error.args[0], "message": str(error.args[-1])}
        columns = [column[0] for column in cursor.description or ()]
        rows = [[value if value is None else str(value) for value in row] for row in cursor.fetchall()]
        return {"columns": columns, "rows": rows}


def of_bowshot():
    """Its answers to all statements."""
    with Server(arguments=["--mysql", "127.0.0.1:0"]) as server:
        return replayed(server.mysql_port)


def of_mariadb():
    with contextlib.closing(MariaDbServer(*LIKE_BOWSHOT)) as server:
        return replayed(server.port)


RECORDING = Recording("MariaDB", FOLDER / "mysql.json", statements, of_bowshot, of_mariadb)

if __name__ == "__main__":
    RECORDING.main()
