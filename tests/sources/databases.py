"""Other databases that tests are run against: PostgreSQL of the machine, files of SQLite and DuckDB, another Bowshot."""

import ctypes.util
import datetime
import decimal
import importlib.util
import pathlib
import random
import sqlite3
import sys
import sysconfig
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("clients", "cluster")]

from durable import Database, refused  # noqa: E402
from postgres_server import PostgresServer, installed  # noqa: E402
from server import Server, free_port, together, wait_until  # noqa: E402

# A word that must never be seen again.
PASSWORD = "kept s3cret' of%the tests"

def driver(kind):
    """The shared library that a package carries."""
    if kind == "duckdb":
        return pathlib.Path(importlib.util.find_spec("_duckdb").origin)
    package = f"adbc_driver_{'postgresql' if kind == 'postgres' else kind}"
    folder = pathlib.Path(importlib.util.find_spec(package).origin).parent
    return next(folder.glob("libadbc_driver_*.so"))


def python_library():
    """DuckDB's library is in its module for Python, which wants those of Python to be there."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    for candidate in (pathlib.Path(folder) / name, pathlib.Path("/usr/lib/x86_64-linux-gnu") / name):
        if candidate.exists():
            return str(candidate)
    found = ctypes.util.find_library(f"python{sys.version_info.major}.{sys.version_info.minor}")
    assert found, f"{name} is nowhere"
    return found


class Postgres(PostgresServer):
    """With a user who has a password and one who has none."""

    RULES = "local all all trust\nhost all owner 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"

    def __init__(self):
        # Not the embedded one, which lacks XML.
        super().__init__(user="owner", port=free_port(), rules=self.RULES, programs=installed())

    @property
    def uri(self):
        return f"postgres://127.0.0.1:{self.port}/postgres"

    def connect(self):
        import adbc_driver_postgresql.dbapi as dbapi

        return dbapi.connect(f"postgresql://owner@127.0.0.1:{self.port}/postgres", autocommit=True)

    def run(self, *statements):
        with self.connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def rows(self, sql):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()


def text(value):
    """A value as one text, whichever library gives it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "nan" if value != value else repr(value + 0.0)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value)


def texts(rows):
    return sorted([tuple(text(value) for value in row) for row in rows])


class Source:
    """A database with the table `things` in it, and how it is asked itself."""

    def __init__(self, name, kind, schema, entry, rows, columns, words=lambda sql: sql):
        self.name, self.kind, self.schema, self.entry = name, kind, schema, entry
        self.rows, self.columns, self.words = rows, columns, words

    @property
    def table(self):
        return f"{self.name}.{self.schema}.things"

    def config(self):
        lines = ["[[databases]]", f'name = "{self.name}"', f'kind = "{self.kind}"', f'driver = "{driver(self.kind)}"']
        return "\n".join([*lines, *(f"{key} = {value}" for key, value in self.entry.items())]) + "\n"


TEXTS = ["", "a", "A", "ab", "it's", "a\"b", "back\\slash", "50%", "under_score", "ä", "Ä", "日本", "🚀", " a", "a ", "--", "'; DROP TABLE x; --",
         "line\nbreak", "{}", "$1", "?"]


def things(count=600, seed=7):
    """Rows of all that the sources have in common."""
    random_ = random.Random(seed)

    def maybe(value):
        return None if random_.random() < 0.12 else value

    for number in range(count):
        yield {
            "id": number,
            "i": maybe(random_.randint(-20, 20)),
            "big": maybe(random_.choice([0, 1, -1, 2**31, -2**40, 2**62, 2**63 - 1, -2**63, random_.randint(-10**6, 10**6)])),
            "d": maybe(decimal.Decimal(random_.randint(-10**6, 10**6)) / 100),
            "t": maybe(random_.choice(TEXTS)),
            "day": maybe(datetime.date(2024, 1, 1) + datetime.timedelta(days=random_.randint(-400, 400))),
            "moment": maybe(datetime.datetime(2024, 1, 1) + datetime.timedelta(microseconds=random_.randint(-10**13, 10**13))),
            "b": maybe(random_.random() < 0.5),
            "f": maybe(random_.choice([0.0, 1.5, -2.25, 1e10, 0.1, round(random_.uniform(-100, 100), 3)])),
        }


ALL = ["id", "i", "big", "d", "t", "day", "moment", "b", "f"]


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    if isinstance(value, (int, float, decimal.Decimal)):
        return f"({value})"
    return "'" + value.replace("'", "''") + "'"


def conditions(source, random_, depth=0):
    """A condition in SQL that all databases read, with what some need written otherwise."""
    draw = random_.random()
    if depth < 3 and draw < 0.45:
        word = random_.choice(["AND", "OR"])
        return f"({conditions(source, random_, depth + 1)} {word} {conditions(source, random_, depth + 1)})"
    if depth < 3 and draw < 0.55:
        return f"(NOT {conditions(source, random_, depth + 1)})"
    column = random_.choice(source.columns)
    compare = random_.choice(["=", "<>", "<", "<=", ">", ">="])
    if random_.random() < 0.12:
        return f"{column} IS {random_.choice(['', 'NOT '])}NULL"
    values = {
        "id": lambda: random_.randint(-5, 620), "i": lambda: random_.randint(-22, 22),
        "big": lambda: random_.choice([0, 1, -1, 2**31, -2**40, 2**62, 2**63 - 1, random_.randint(-10**6, 10**6)]),
        "d": lambda: decimal.Decimal(random_.randint(-10**6, 10**6)) / 100,
        "t": lambda: random_.choice(TEXTS), "day": lambda: datetime.date(2024, 1, 1) + datetime.timedelta(days=random_.randint(-400, 400)),
        "moment": lambda: datetime.datetime(2024, 1, 1) + datetime.timedelta(microseconds=random_.randint(-10**13, 10**13)),
        "b": lambda: random_.random() < 0.5, "f": lambda: random_.choice([0.0, 1.5, -2.25, 0.1, round(random_.uniform(-100, 100), 3)]),
    }[column]
    if column == "b":
        return random_.choice(["b", "(NOT b)", f"b = {literal(values())}"])
    if column == "t" and random_.random() < 0.2 and source.kind != "sqlite":
        return f"t LIKE {literal(random_.choice(['a%', '%b', '_', '%''%', 'ä%']))}"
    if column == "t" and compare not in ("=", "<>"):
        # Here the order of texts is that of their bytes.
        return f"{source.words('t')} {compare} {literal(values())}"
    if column != "f" and random_.random() < 0.25:
        listed = ", ".join(literal(values()) for _ in range(random_.randint(1, 5)))
        return f"{column} {random_.choice(['', 'NOT '])}IN ({listed})"
    if column not in ("t", "f") and random_.random() < 0.25:
        return f"{column} {random_.choice(['', 'NOT '])}BETWEEN {literal(values())} AND {literal(values())}"
    if column == "i" and random_.random() < 0.2:
        return f"i * 2 + 1 {compare} {literal(values())}"
    if random_.random() < 0.2:
        return f"{literal(values())} {compare} {column}"
    return f"{column} {compare} {literal(values())}"


def statement(source, random_):
    """A statement with `@@` in the place of the table."""
    condition = conditions(source, random_)
    where = f" WHERE {condition}" if random_.random() < 0.93 else ""
    draw = random_.random()
    if draw < 0.15:
        return f"SELECT count(*) FROM @@{where}"
    if draw < 0.3:
        return f"SELECT min(i), max(i), count(t), count(DISTINCT i) FROM @@{where}"
    if draw < 0.4:
        column = random_.choice(["i", *(["b"] if "b" in source.columns else [])])
        return f"SELECT {column}, count(*) FROM @@{where} GROUP BY {column}"
    if draw < 0.5:
        return f"SELECT id FROM @@{where} ORDER BY id {random_.choice(['ASC', 'DESC'])} LIMIT {random_.randint(0, 20)}"
    if draw < 0.55:
        return f"SELECT count(*) FROM (SELECT id FROM @@{where} LIMIT {random_.randint(0, 40)}) AS few"
    columns = random_.sample(source.columns, random_.randint(1, len(source.columns)))
    return f"SELECT {', '.join(columns)} FROM @@{where}"


def postgres_source(postgres, name="pg", **entry):
    postgres.run(
        "DROP TABLE IF EXISTS things",
        "CREATE TABLE things (id int PRIMARY KEY, i int, big bigint, d numeric(12, 2), t text, day date, moment timestamp, b boolean, f float8)",
    )
    rows = ", ".join("(" + ", ".join("NULL" if v is None else escaped(v) for v in row.values()) + ")" for row in things())
    postgres.run(f"INSERT INTO things VALUES {rows}", "INSERT INTO things (id, f) VALUES (10000, 'NaN'), (10001, '-0')", "ANALYZE things")
    settings = {"uri": f'"{postgres.uri}"', "user": '"owner"', **entry}
    return Source(name, "postgres", "public", settings, postgres.rows, ALL, lambda column: f'{column} COLLATE "C"')


def escaped(value):
    return "E" + literal(value).replace("\\", "\\\\") if isinstance(value, str) else literal(value)


def sqlite_source(folder, name="lite", **entry):
    path = folder / "things.db"
    columns = ["id", "i", "big", "t", "f"]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, i INT, big BIGINT, t TEXT, f REAL)")
        rows = [tuple(row[column] for column in columns) for row in things()]
        connection.executemany("INSERT INTO things VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()

    def ask(sql):
        connection = sqlite3.connect(path)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    return Source(name, "sqlite", "main", {"uri": f'"sqlite://{path}"', **entry}, ask, columns)


def duckdb_source(folder, name="duck", **entry):
    import duckdb

    path = folder / "things.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE things (id INT PRIMARY KEY, i INT, big BIGINT, d DECIMAL(12, 2), t VARCHAR, day DATE, moment TIMESTAMP, "
                       "b BOOLEAN, f DOUBLE)")
    connection.executemany("INSERT INTO things VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [list(row.values()) for row in things()])
    connection.execute("INSERT INTO things (id, f) VALUES (10000, 'NaN'), (10001, '-0')")
    connection.close()

    def ask(sql):
        connection = duckdb.connect(str(path), read_only=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    return Source(name, "duckdb", "main", {"uri": f'"{path}"', **entry}, ask, ALL)


def flight_source(server, name="other", **entry):
    database = Database(server)
    database.run("CREATE TABLE things (id INT, i INT, big BIGINT, d DECIMAL(12, 2), t VARCHAR, day DATE, moment TIMESTAMP, b BOOLEAN, f DOUBLE)")
    rows = ", ".join("(" + ", ".join(literal(value) for value in row.values()) + ")" for row in things())
    database.run(f"INSERT INTO things VALUES {rows}")
    database.close()

    def ask(sql):
        with Database(server) as database:
            return database.rows(sql)

    return Source(name, "flightsql", "main", {"uri": f'"{server.grpc_tcp}"', **entry}, ask, ALL)


class Reader(Server):
    """A server that reads other databases. What it writes must never hold a password, whatever it is asked."""

    def __init__(self, folder, config, secrets=(PASSWORD,), environment=None, data="memory", arguments=()):
        path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "bowshot.toml"
        path.write_text(config)
        self.secrets, self.checked = secrets, False
        super().__init__(arguments=["--config", path, *arguments], data=data,
                         environment={"LD_PRELOAD": python_library(), **(environment or {})})
        self.database = Database(self)

    def rows(self, sql):
        return self.database.rows(sql)

    def refused(self, sql, database=None):
        """The words of the server."""
        words = refused(database or self.database, sql)
        for secret in self.secrets:
            assert secret not in words, words
        return words

    def explained(self, sql):
        return "\n".join(str(row) for row in self.rows(f"EXPLAIN {sql}"))

    def stop(self):
        if not self.checked:
            self.checked = True
            self.database.close()
            log = self.log()
            for secret in self.secrets:
                assert secret not in log, log
        super().stop()


def eventually(check, what, seconds=15):
    return wait_until(check, what, seconds)


def seconds_of(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def six_at_once(server, sql):
    """The answers to a statement that takes a second, over two connections, and the seconds that all of them took."""
    answers = []

    def ask():
        with Database(server) as database:
            answers.append(database.rows(sql))

    taken = seconds_of(lambda: together(*[ask] * 6))
    assert server.rows("SELECT connections FROM system.databases")[0][0] <= 2
    return answers, taken
