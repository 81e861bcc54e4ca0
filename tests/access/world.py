"""A server with users, tables and policies, and connections of each user through every front end. A connection answers
`rows(sql)` with tuples of texts, since front ends have types of their own, and raises `Refused` with the server's words."""

import contextlib
import json
import pathlib
import sys

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as parquet
import pymysql
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import http_sql  # noqa: E402
from server import Server, hash_password, wait_until  # noqa: E402

PASSWORDS = {"root": "the root of it", "ada": "ada's own", "bob": "bob's own", "carl": "carl's own"}
DOORS = ("flight", "postgres", "postgres_simple", "mysql", "http")

# id, name, region, ssn, salary, code: the codes of hidden rows are no numbers.
PEOPLE = [
    (1, "Anna", "EU", "111-22-3333", 100, "1"),
    (2, "Bert", "EU", "222-33-4444", 200, "2"),
    (3, "Cleo", "US", "333-44-5555", 300, "boom3"),
    (4, "Dora", "US", "444-55-6666", 400, "boom4"),
    (5, "Egon", "AS", "555-66-7777", 500, "boom5"),
]
ORDERS = {"id": [1, 2, 3, 4], "region": ["EU", "US", "EU", "AS"], "amount": [10, 999999, 30, 40], "note": ["n1", "n2", "n3", "n4"]}

SETUP = [
    "CREATE TABLE people (id INTEGER, name VARCHAR, region VARCHAR, ssn VARCHAR, salary INTEGER, code VARCHAR)",
    "INSERT INTO people VALUES " + ", ".join(str(row) for row in PEOPLE),
    "CREATE TABLE desk (id INTEGER PRIMARY KEY, region VARCHAR, text VARCHAR)",
    "INSERT INTO desk VALUES (1, 'EU', 'one'), (2, 'US', 'two'), (3, 'EU', 'three')",
    "CREATE TABLE secrets (id INTEGER, text VARCHAR)",
    "INSERT INTO secrets VALUES (1, 'topsecret')",
    "CREATE TABLE drop_box (id INTEGER, text VARCHAR)",
    "CREATE VIEW v_people AS SELECT name, ssn, region FROM people",
    "CREATE VIEW v_closed AS SELECT text FROM secrets",
    "CREATE SCHEMA hidden",
    "CREATE TABLE hidden.t (id INTEGER, text VARCHAR)",
    "INSERT INTO hidden.t VALUES (1, 'topsecret')",
    "CREATE USER ada PASSWORD 'ada''s own' SET region = 'EU'",
    "CREATE USER bob PASSWORD 'bob''s own' SET region = 'US'",
    "CREATE USER carl PASSWORD 'carl''s own'",
    "CREATE ROLE staff",
    "CREATE ROLE clerk",
    "GRANT staff TO clerk",
    "GRANT clerk TO ada, bob",
    "GRANT SELECT ON people TO staff",
    "GRANT SELECT ON v_people TO clerk",
    "GRANT SELECT ON v_closed TO clerk",
    "GRANT SELECT (id, region), SELECT (amount) ON orders TO clerk",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON desk TO clerk",
    "GRANT INSERT ON drop_box TO clerk",
    "CREATE ROW POLICY own_region ON people FOR clerk USING (region = user_attribute('region'))",
    "CREATE ROW POLICY own_region ON desk USING (region = user_attribute('region'))",
    "CREATE ROW POLICY own_region ON orders FOR staff USING (region = user_attribute('region'))",
    "CREATE MASK ssn ON people (ssn) FOR clerk USING (partial(0, 4))",
    "CREATE MASK salary ON people (salary) FOR staff USING (null)",
]


class Refused(Exception):
    """What the server says when it does not do what it was asked."""


def refused(connection, sql, *words):
    """What the server says to a statement, which has one of the words."""
    with pytest.raises(Refused) as raised:
        print(connection.rows(sql))
    assert any(word in str(raised.value) for word in words), raised.value
    return str(raised.value)


def text(value):
    return None if value is None else str(value)


def own(user, password):
    return PASSWORDS[user] if password is None else password


def create_users(*names):
    return [f"CREATE USER {name} PASSWORD '{PASSWORDS[name].replace(chr(39), chr(39) * 2)}'" for name in names]


def do(connection, *statements):
    for sql in statements:
        connection.rows(sql)


def psycopg_connect(server, user, password=None, **more):
    """As psycopg's users connect; without a password by that of `PASSWORDS`."""
    where = {"host": "127.0.0.1", "port": server.pg_port, "dbname": "bowshot", "sslmode": "disable"}
    return psycopg.connect(user=user, password=own(user, password), **{**where, **more})


def table_of_bearer(server, token, sql):
    """What Flight answers to who shows a token."""
    with flight.connect(server.grpc_tcp) as client:
        options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
        return client.do_get(flight.Ticket(sql.encode()), options).read_all()


def wait_for_end(connection, seconds=10):
    def is_over():
        try:
            connection.rows("SELECT 1")
        except Refused:
            return True

    wait_until(is_over, "the session has ended", seconds)


class Closing:
    """Closes its connection with a block."""

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Flight(Closing):
    def __init__(self, server, user, password=None):
        login = {"username": user, "password": own(user, password)}
        self.connection = adbc.connect(server.grpc_tcp, db_kwargs=login, autocommit=True)

    def table(self, sql):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetch_arrow_table()
        except adbc.Error as error:
            raise Refused(str(error)) from None

    def rows(self, sql):
        table = self.table(sql)
        return [tuple(text(value) for value in row.values()) for row in table.to_pylist()]


class Postgres(Closing):
    def __init__(self, server, user, password=None, simple=False):
        kind = psycopg.ClientCursor if simple else psycopg.Cursor
        self.connection = psycopg_connect(server, user, password, autocommit=True, cursor_factory=kind)

    def rows(self, sql):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(sql)
                return [] if cursor.description is None else [tuple(text(value) for value in row) for row in cursor.fetchall()]
        except psycopg.Error as error:
            raise Refused(str(error)) from None


class MySql(Closing):
    def __init__(self, server, user, password=None):
        self.connection = pymysql.connect(
            host="127.0.0.1", port=server.mysql_port, user=user, password=own(user, password), autocommit=True,
        )
        self.rows("SET dialect = 'ansi'")

    def rows(self, sql):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(sql)
                return [tuple(text(value) for value in row) for row in cursor.fetchall()]
        except pymysql.Error as error:
            raise Refused(str(error)) from None


class Http(Closing):
    def __init__(self, server, user, password=None):
        self.server = server
        login = http_sql.basic(user, own(user, password))
        self.headers = {"authorization": login, "content-type": "text/plain", "accept": "application/json"}

    def ask(self, method, path, body=None, **headers):
        answer = http_sql.ask(self.server, method, path, body, **{**self.headers, **headers})
        if answer.status >= 400:
            raise Refused(answer.body.decode())
        return answer.body.decode()

    def rows(self, sql):
        answer = json.loads(self.ask("POST", "/v1/sql", sql.encode()) or "{}")
        rows = answer.get("rows", answer.get("data", answer)) if isinstance(answer, dict) else answer
        return [tuple(text(value) for value in (row.values() if isinstance(row, dict) else row)) for row in rows]

    def close(self):
        pass


OPEN = {
    "flight": Flight,
    "postgres": Postgres,
    "postgres_simple": lambda server, user, password=None: Postgres(server, user, password, simple=True),
    "mysql": MySql,
    "http": Http,
}


def users_file(folder, more=""):
    file = folder / "users.toml"
    file.write_text(f'[[users]]\nname = "root"\npassword_hash = "{hash_password(PASSWORDS["root"])}"\nadmin = true\n{more}')
    return file


class World:
    """The server and all connections that a test has asked for."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.open = {}

    def at(self, user, door="flight"):
        if (user, door) not in self.open:
            self.open[user, door] = OPEN[door](self.server, user)
        return self.open[user, door]

    def close(self):
        for connection in self.open.values():
            connection.close()


@contextlib.contextmanager
def world(folder, setup=SETUP, more="", arguments=(), environment=None):
    files = folder / "files"
    files.mkdir()
    parquet.write_table(pa.table(ORDERS), files / "orders.parquet")
    (folder / "exchange").mkdir()
    environment = {
        "BOWSHOT_STORAGE_EXCHANGE_FOLDER": str(folder / "exchange"),
        "BOWSHOT_MYSQL_CLEARTEXT": "true",
        "BOWSHOT_PG_CLEARTEXT": "true",
        **(environment or {}),
    }
    with Server(
        files / "orders.parquet",
        data=folder / "data",
        arguments=["--users-file", str(users_file(folder, more)), "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", *arguments],
        environment=environment,
    ) as server:
        all_connections = World(server, folder)
        root = all_connections.at("root")
        for sql in setup:
            root.rows(sql)
        try:
            yield all_connections
        finally:
            all_connections.close()
