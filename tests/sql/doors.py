"""The other ways into Bowshot behind the same face as `engines.Bowshot`: PostgreSQL's protocol, simple and extended, MySQL's, and
HTTP. What a protocol has no type for comes as text or JSON there; `same_loosely` compares those.

`doors.toml` lists what differs, by reason.
"""

import http.client
import json
import re
import urllib.parse

import values
from engines import KINDS, Answer, Bowshot, Refused, cell, storage


class Flight(Bowshot):
    name = "flight"
    serve = []

    def __init__(self, server, _dialect):
        super().__init__(server)


class PostgresSimple:
    """One text, answered in text (`Query`)."""

    name = "postgres"
    serve = ["--pg", "127.0.0.1:0"]

    def __init__(self, server, dialect):
        import psycopg

        self.connection = psycopg.connect(
            host="127.0.0.1", port=server.pg_port, user="test", dbname="bowshot", options=f"-c dialect={dialect}", autocommit=True
        )
        self.run("SET TimeZone = 'UTC'")

    def send(self, sql):
        return self.connection.pgconn.exec_(sql)

    def run(self, sql):
        from psycopg.pq import ExecStatus

        result = self.send(sql.encode())
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY):
            raise Refused(message(result))
        if result.status != ExecStatus.TUPLES_OK:
            return Answer([], "", [], result.command_tuples)
        columns = range(result.nfields)
        oids = [result.ftype(column) for column in columns]
        rows = [[cell(oid, result.get_value(row, column)) for column, oid in enumerate(oids)] for row in range(result.ntuples)]
        return Answer([result.fname(column).decode() for column in columns], "".join(KINDS.get(o, "T") for o in oids), rows)

    def close(self):
        self.connection.close()


class PostgresExtended(PostgresSimple):
    """Parsed, described and executed (`Parse`, `Bind`, `Describe`, `Execute`)."""

    name = "postgres-extended"

    def send(self, sql):
        return self.connection.pgconn.exec_params(sql, None)


def message(result):
    from psycopg.pq import DiagnosticField

    parts = [result.error_field(field) for field in (DiagnosticField.MESSAGE_PRIMARY, DiagnosticField.MESSAGE_HINT)]
    return "; ".join(part.decode() for part in parts if part)


class MySql:
    """One text, answered in text (`COM_QUERY`)."""

    name = "mysql"
    serve = ["--mysql", "127.0.0.1:0"]

    def __init__(self, server, dialect):
        import pymysql

        self.Error = pymysql.err.Error
        self.connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="test", database="main", autocommit=True, conv={})
        self.run("SET time_zone = '+00:00'")
        self.run(f"SET dialect = '{dialect}'")

    def run(self, sql):
        # SET is MySQL's there.
        if zone := re.fullmatch(r"SET TIME ZONE '(.*)'", sql.strip(), re.IGNORECASE):
            sql = f"SET time_zone = '{zone[1]}'"
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql)
            except self.Error as error:
                raise Refused(str(error.args[1] if len(error.args) > 1 else error)) from None
            if cursor.description is None:
                return Answer([], "", [], cursor.rowcount)
            fields = cursor._result.fields
            kinds = "".join(mysql_kind(field) for field in fields)
            rows = [[mysql_cell(field, value) for field, value in zip(fields, row)] for row in cursor.fetchall()]
            return Answer([field.name for field in fields], kinds, rows)

    def close(self):
        self.connection.close()


def mysql_kind(field):
    if field.type_code == 1 and field.length == 1:
        return "B"
    if field.type_code in (0, 1, 2, 3, 8, 9, 13, 246):
        return "R" if field.type_code in (0, 246) else "I"
    return {4: "R", 5: "R", 7: "D", 10: "D", 11: "D", 12: "D", 6: "?"}.get(field.type_code, "T")


def mysql_cell(field, value):
    if value is None:
        return values.NULL
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if mysql_kind(field) == "B":
        return {"0": "false", "1": "true"}[value]
    if field.type_code in (4, 5):
        return values.floating(float(value))
    if field.type_code in (7, 11, 12) and "." in value:
        value = value.rstrip("0").rstrip(".")
    return value if value else "(empty)"


class Http:
    """`POST /v1/sql` in a session, answered as an Arrow stream."""

    name = "http"
    serve = []

    def __init__(self, server, dialect):
        place = urllib.parse.urlsplit(server.http)
        self.client = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        self.client.request("POST", "/v1/sessions", json.dumps({"options": {"dialect": dialect}}), {"content-type": "application/json"})
        answer = self.client.getresponse()
        told = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(told)
        self.headers = {
            "x-bowshot-session": json.loads(told)["session"], "content-type": "application/sql",
            "accept": "application/vnd.apache.arrow.stream",
        }  # fmt: skip

    def run(self, sql):
        import pyarrow

        self.client.request("POST", "/v1/sql", sql.encode(), self.headers)
        answer = self.client.getresponse()
        body = answer.read()
        if answer.status not in (200, 204):
            error = json.loads(body)["error"]
            raise Refused("; ".join(filter(None, (error["message"], error.get("hint")))))
        if answer.status == 204 or not body:
            return Answer([], "", [])
        try:
            table = pyarrow.ipc.open_stream(body).read_all()
        except pyarrow.ArrowInvalid as error:  # it was cut off, since the query failed while it was running
            raise Refused(f"the stream ends early: {error}") from None
        kinds = "".join(values.kind_of(storage(field.type)) for field in table.schema)
        return Answer(table.schema.names, kinds, values.rows(table))

    def close(self):
        self.client.close()


DOORS = {door.name: door for door in (Flight, PostgresSimple, PostgresExtended, MySql, Http)}


def fits(wanted, got):
    """As `values.fits`; a number may be of another sort, and anything may be text."""
    return values.fits(wanted, got) or (wanted in "IR" and got in "IR") or got == "T"


def same_loosely(wanted, got, kind):
    """Whether two texts are the same value where one of them may be JSON, or has no time zone."""
    return values.same(wanted, got, kind) or values.same(wanted, got, "R") or plain(wanted) == plain(got)


def plain(text):
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\bnull\b", "NULL", text.replace("\\\\", "\\").replace("=", ":"))
    text = re.sub(r"(\d)T(\d)", r"\1 \2", text)
    text = re.sub(r"(\.\d*?)0+\b", r"\1", text)
    return re.sub(r"[\s\"{}\[\]]|\(empty\)|\+00(:00)?\b|\.0\b|\.(?!\d)", "", text).lower()
