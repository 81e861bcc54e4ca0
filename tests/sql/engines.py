"""Bowshot, DuckDB and PostgreSQL behind one face: SQL in, column names, kinds and rows of text out."""

import dataclasses
import datetime
import pathlib
import re
import signal
import sys
import threading
import warnings

import values

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from postgres_server import PostgresServer  # noqa: E402


class Refused(Exception):
    """The database answered with an error; the text is its message."""


@dataclasses.dataclass
class Answer:
    names: list
    kinds: str
    rows: list
    changed: int | None = None


class Bowshot:
    """A session over ADBC Flight SQL."""

    name = "bowshot"

    def __init__(self, server):
        import adbc_driver_flightsql.dbapi as dbapi
        import adbc_driver_manager

        self.Error = adbc_driver_manager.Error
        self.connection = dbapi.connect(server.grpc_tcp, autocommit=True)

    def run(self, sql):
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql)
                changed = cursor.rowcount
                table = cursor.fetch_arrow_table() if cursor.description is not None else None
            except self.Error as error:
                raise Refused(str(error)) from None
            if table is None:
                return Answer([], "", [], changed)
            kinds = "".join(values.kind_of(storage(field.type)) for field in table.schema)
            return Answer(table.schema.names, kinds, values.rows(table), changed)

    def close(self):
        self.connection.close()


def storage(type_):
    return getattr(type_, "storage_type", type_)


class DuckDB:
    """In one thread and little memory: a statement that asks for more ends with an error instead of the machine."""

    name = "duckdb"
    SECONDS = 10
    CONFIG = {"threads": 1, "memory_limit": "2GB", "max_temp_directory_size": "0KB"}

    def __init__(self):
        import duckdb

        self.Error = duckdb.Error
        self.connect = lambda: duckdb.connect(config=self.CONFIG)
        self.open()

    def open(self):
        self.connection = self.connect()
        self.connection.execute("SET TimeZone = 'UTC'; SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")

    def run(self, sql):
        watch = threading.Timer(self.SECONDS, self.connection.interrupt)
        watch.start()
        try:
            self.connection.execute(sql)
            if self.connection.description is None:
                return Answer([], "", [])
            table = self.fetched()
        except (self.Error, MemoryError) as error:
            if "database has been invalidated" in str(error):  # by a fault of its own; all tables are gone with it
                self.open()
            raise Refused(str(error) or "out of memory") from None
        finally:
            watch.cancel()
        kinds = "".join(values.kind_of(storage(field.type)) for field in table.schema)
        return Answer(table.schema.names, kinds, values.rows(table))

    def fetched(self):
        with warnings.catch_warnings():  # it advises another way, which cannot run several statements
            warnings.simplefilter("ignore")
            return self.connection.to_arrow_table()

    def close(self):
        self.connection.close()


KINDS = {16: "B", 20: "I", 21: "I", 23: "I", 26: "I", 700: "R", 701: "R", 1700: "R", 1082: "D", 1083: "D", 1114: "D", 1184: "D", 1266: "D"}
ARRAYS = {1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1231: 1700, 1009: 25, 1182: 1082, 1115: 1114}


class Postgres:
    name = "postgres"

    def __init__(self, cluster):
        self.database = cluster.new_database()
        self.connection = cluster.by_socket(self.database)
        self.run("SET TimeZone = 'UTC'")

    def run(self, sql):
        import psycopg

        cursor = self.connection.cursor()
        try:
            cursor.execute(sql)
        except psycopg.Error as error:
            raise Refused(str(error).split("\n")[0]) from None
        result = cursor.pgresult
        if not cursor.description:
            return Answer([], "", [], cursor.rowcount)
        oids = [result.ftype(column) for column in range(result.nfields)]
        rows = [[cell(oid, result.get_value(row, column)) for column, oid in enumerate(oids)] for row in range(result.ntuples)]
        return Answer([column.name for column in cursor.description], "".join(KINDS.get(o, "T") for o in oids), rows)

    def close(self):
        self.connection.close()


def cell(oid, raw):
    """A value as PostgreSQL writes it, in our words."""
    if raw is None:
        return values.NULL
    text = raw.decode()
    if oid == 16:
        return {"t": "true", "f": "false"}[text]
    if oid in (700, 701):
        return values.floating(float(text))
    if oid == 1700 and text in ("NaN", "Infinity", "-Infinity"):
        return values.floating(float(text))
    if oid == 1184:
        return instant(text)
    if oid in ARRAYS:
        return array(ARRAYS[oid], text)
    return text if text else "(empty)"


def instant(text):
    """A timestamp with time zone in UTC, whatever the time zone of the session."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d)(?::(\d\d))?", text)
    if not found or found[3] in ("+00", "-00"):
        return text
    minutes = int(found[3]) * 60 + int(found[3][0] + (found[4] or "0"))
    moment = datetime.datetime.fromisoformat(found[1]) - datetime.timedelta(minutes=minutes)
    return f"{moment}{found[2] or ''}+00"


def array(oid, text):
    """`{1,NULL,"a b"}` as `[1, NULL, a b]`."""
    out, index = [], 0
    while index < len(text):
        letter = text[index]
        if letter in "{}":
            out.append("[" if letter == "{" else "]")
            index += 1
        elif letter == ",":
            out.append(", ")
            index += 1
        elif letter == '"':
            end, word = index + 1, ""
            while text[end] != '"':
                end += text[end] == "\\"
                word += text[end]
                end += 1
            out.append(cell(oid, word.encode()))
            index = end + 1
        else:
            end = index
            while text[end] not in ",}":
                end += 1
            word = text[index:end]
            out.append(values.NULL if word == "NULL" else cell(oid, word.encode()))
            index = end
    return "".join(out)


class Cluster(PostgresServer):
    """A PostgreSQL server of our own with any number of databases."""

    def __init__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `close` runs
        super().__init__()
        self.databases = 0
        self.main = self.by_socket("postgres")

    def new_database(self):
        self.databases += 1
        self.main.execute(f"CREATE DATABASE d{self.databases}")
        return f"d{self.databases}"
