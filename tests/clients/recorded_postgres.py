"""What 13 clients of PostgreSQL send by themselves, recorded once (`recorded/postgres.txt`): replayed over libpq alone, so that
no client stands between the texts and the server.

    python recorded_postgres.py          writes what PostgreSQL 18 answers
    python recorded_postgres.py count    tells how much of it Bowshot answers so

What other clients are known to ask is in `recorded/postgres-known.txt`; what is written, in `recordings.py`. PostgreSQL has a user, a
database and a schema of Bowshot's names for it, and Bowshot's defaults; the numbers of tables, schemas and of the database are told as
their names.
Texts are one to a line: `S` for the simple protocol, `X` for the extended one, with a parameter for each `$n`.
"""

import re
import tomllib

from psycopg import pq

from postgres_server import PostgresServer
from recordings import FOLDER, MOST_ROWS, Recording, Statement

TEXTS = [FOLDER / "postgres.txt", FOLDER / "postgres-known.txt"]

# The tables of the recording, and their numbers in it.
TABLES = [
    "CREATE SCHEMA IF NOT EXISTS public",
    "DROP TABLE IF EXISTS pd1",
    "DROP TABLE IF EXISTS public.ad1",
    "DROP VIEW IF EXISTS w",
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)",
    "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
    "CREATE VIEW w AS SELECT id FROM t",
]
NUMBERS = {"16384": "t", "16390": "w", "16394": "pd1"}
# What PostgreSQL is given to be like Bowshot, beside a database `bowshot`.
LIKE_BOWSHOT = [
    "CREATE ROLE anonymous LOGIN CREATEDB",
    "GRANT ALL ON DATABASE bowshot TO anonymous",
    "CREATE SCHEMA main AUTHORIZATION anonymous",
    "CREATE SCHEMA system AUTHORIZATION anonymous",
    "ALTER SCHEMA public OWNER TO anonymous",
    "GRANT SELECT ON pg_subscription TO anonymous",
    "ALTER ROLE anonymous SET search_path = main",
    "ALTER ROLE anonymous SET jit = off",
]
# Things whose numbers are told as their names.
NAMED = b"""
    SELECT oid, '<' || relname || '>' FROM pg_class WHERE relname IN ('t', 'w', 'pd1', 'ad1', 't_pkey')
    UNION ALL SELECT oid, '<' || nspname || '>' FROM pg_namespace WHERE nspname IN ('main', 'public', 'information_schema')
    UNION ALL SELECT oid, '<database>' FROM pg_database WHERE datname = 'bowshot'
"""

# COPY without rows in the binary form.
EMPTY = b"PGCOPY\n\xff\r\n\x00" + bytes(8) + b"\xff\xff"

# Values of parameters, by a part of the text.
VALUES = tomllib.loads((FOLDER / "values.toml").read_text())


def statements():
    client, found = None, []
    for line in "".join(path.read_text() for path in TEXTS).splitlines():
        if line.startswith("## "):
            client = line[3:]
        elif line.startswith(("   S ", "   X ")):
            found.append(Statement(client, line[3], line[5:]))
    return found


class Replay:
    """Statements on a server, each client on a connection of its own."""

    def __init__(self, conninfo):
        self.conninfo = conninfo
        self.client, self.connection = None, None
        # Asks for numbers outside of the transactions of the clients.
        self.aside = pq.PGconn.connect(conninfo.encode())
        assert self.aside.status == pq.ConnStatus.OK, self.aside.error_message
        for text in TABLES:
            result = self.aside.exec_(text.encode())
            assert result.status == pq.ExecStatus.COMMAND_OK, (text, result.error_message)

    def run(self, statement):
        """Names of columns and rows; for an error its code and message."""
        if statement.client != self.client:
            self.close()
            self.client = statement.client
            self.connection = pq.PGconn.connect(self.conninfo.encode())
        answer = self.answer(statement)
        if self.connection.status != pq.ConnStatus.OK:
            self.connection = pq.PGconn.connect(self.conninfo.encode())
        elif self.connection.transaction_status == pq.TransactionStatus.INERROR:
            self.connection.exec_(b"ROLLBACK")
            self.connection.exec_(b"BEGIN")
        return answer

    def answer(self, statement):
        text = self.with_numbers(statement.text)
        if statement.kind == "S":
            return self.told(self.connection.exec_(text.encode()))
        values = next((values for part, values in VALUES.items() if part in statement.text), [])
        values = [value if value is None else self.with_numbers(value) for value in values]
        prepared = self.connection.prepare(b"", text.encode())
        if prepared.status != pq.ExecStatus.COMMAND_OK:
            return self.told(prepared)
        count = self.connection.describe_prepared(b"").nparams
        values = [*values, *[None] * count][:count]
        return self.told(self.connection.exec_prepared(b"", [value if value is None else value.encode() for value in values]))

    def with_numbers(self, text):
        for number, table in NUMBERS.items():
            if number in text:
                found = self.connection.exec_(f"SELECT to_regclass('{table}')::oid".encode())
                oid = found.get_value(0, 0) if found.ntuples else None
                text = text.replace(number, oid.decode() if oid else "1")
        # The tables are where tables are made.
        return re.sub(r"\bpublic\.(t|pd1)\b", r"main.\1", text)

    def told(self, result):
        while result.status == pq.ExecStatus.COPY_OUT:
            size, _ = self.connection.get_copy_data(0)
            if size < 0:
                result = self.connection.get_result()
        while result.status == pq.ExecStatus.COPY_IN:
            if result.binary_tuples:
                self.connection.put_copy_data(EMPTY)
            self.connection.put_copy_end()
            result = self.connection.get_result()
        while self.connection.get_result():
            pass
        if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY):
            field = pq.DiagnosticField
            return {
                "error": (result.error_field(field.SQLSTATE) or b"").decode(),
                "message": (result.error_field(field.MESSAGE_PRIMARY) or result.error_message).decode(),
            }
        named = self.names() if 0 < result.ntuples <= MOST_ROWS else {}
        texts = lambda row: [
            None if (value := result.get_value(row, column)) is None else named.get(value, value).decode()
            for column in range(result.nfields)
        ]
        return {
            "columns": [(result.fname(column) or b"").decode() for column in range(result.nfields)],
            "rows": [texts(row) for row in range(result.ntuples)],
        }

    def names(self):
        """The names of things by their numbers."""
        found = self.aside.exec_(NAMED)
        return {found.get_value(row, 0): found.get_value(row, 1) for row in range(found.ntuples)}

    def close(self):
        if self.connection:
            self.connection.finish()
            self.connection = None

    def end(self):
        self.close()
        self.aside.finish()


def of_bowshot():
    """Its answers to all statements."""
    from server import Server

    with Server(arguments=["--pg", "127.0.0.1:0"]) as server:
        replay = Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot")
        answers = [replay.run(statement) for statement in statements()]
        replay.end()
    return answers


def of_postgres():
    """PostgreSQL's answers."""
    cluster = PostgresServer()
    try:
        with cluster.by_socket("postgres") as connection:
            connection.execute("CREATE DATABASE bowshot")
        with cluster.by_socket("bowshot") as connection:
            for text in LIKE_BOWSHOT:
                connection.execute(text)
        replay = Replay(f"host={cluster.folder} user=anonymous dbname=bowshot")
        answers = [replay.run(statement) for statement in statements()]
        replay.end()
    finally:
        cluster.close()
    return answers


RECORDING = Recording("PostgreSQL", FOLDER / "postgres.json", statements, of_bowshot, of_postgres)

if __name__ == "__main__":
    RECORDING.main()
