"""A MariaDB server of its own, with a user who has a password, an authority with a certificate, and a way to it that is slow or broken."""

import contextlib
import datetime
import subprocess

import pymysql

import databases
from databases import ALL, PASSWORD, Source, literal, things
from mariadb_server import MariaDbServer
from relay import Relay


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def certificates(folder):
    """An authority, and what it says of `localhost`."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority of the tests",
            "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", folder / "server.key", "-out", folder / "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", folder / "names", "-out", folder / "server.pem")


class MariaDb(MariaDbServer):
    """Its time zone, its modes and its limit of rows are none that anybody wants: sessions have to say what they need."""

    HOSTILE = ["--default-time-zone=+05:30", "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH"]
    COMMON = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=256M", "--character-set-server=utf8mb4",
              "--collation-server=utf8mb4_general_ci"]

    def __init__(self, *options):
        super().__init__(*self.COMMON, *self.HOSTILE, *options)
        quoted = PASSWORD.replace("'", "''")
        self.run("CREATE DATABASE shop CHARACTER SET utf8mb4", f"CREATE USER reader@'%' IDENTIFIED BY '{quoted}'",
                 "GRANT SELECT, INSERT, CREATE, SHOW VIEW ON *.* TO reader@'%'")

    def start(self):
        folder = self.folder
        if not (folder / "ca.pem").exists():
            certificates(folder)
            self.owned(folder / "server.key")
            # Before the others, which may turn it off.
            tls = (f"--ssl-ca={folder}/ca.pem", f"--ssl-cert={folder}/server.pem", f"--ssl-key={folder}/server.key")
            self.options = (*tls, *self.options)
        super().start()
        self.run("SET GLOBAL sql_select_limit = 7")

    def connect(self, **more):
        """As the one who owns it, with usual modes."""
        login = {"user": "root", "charset": "utf8mb4", "autocommit": True, **more}
        connection = pymysql.connect(host="127.0.0.1", port=self.port, **login)
        with connection.cursor() as cursor:
            cursor.execute("SET sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', "
                           "sql_select_limit = 18446744073709551615")
        return connection

    def run(self, *statements):
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def rows(self, sql):
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    @property
    def uri(self):
        return f"mysql://127.0.0.1:{self.port}"


class MySource(Source):
    """The same as other sources, without a driver."""

    def config(self):
        lines = ["[[databases]]", f'name = "{self.name}"', 'kind = "mysql"']
        return "\n".join([*lines, *(f"{key} = {value}" for key, value in self.entry.items())]) + "\n"


def entry(server, **more):
    """What an entry says; `None` leaves a key out."""
    settings = {"uri": f'"{server.uri}/shop"', "user": '"root"', **more}
    return {key: value for key, value in settings.items() if value is not None}


KINDS = {"id": "INT PRIMARY KEY", "i": "INT", "big": "BIGINT", "d": "DECIMAL(12, 2)", "t": "VARCHAR(100)", "day": "DATE", "moment": "DATETIME(6)",
         "b": "BIT(1)", "f": "DOUBLE"}
MORE = {"z": "TIMESTAMP(6) NULL", "u": "BIGINT UNSIGNED", "e": "ENUM('a', 'A', 'ab', 'ä', '日本') COLLATE utf8mb4_bin", "c": "CHAR(20)", "r": "FLOAT", "bits": "BIT(20)",
        "bin": "VARCHAR(100) COLLATE utf8mb4_bin", "old": "VARCHAR(40) CHARACTER SET latin1"}


def my(value):
    """A value as MariaDB reads it."""
    return str(int(value)) if isinstance(value, bool) else literal(value)


def more_things(row, random_):
    """Values of the columns that other databases do not have."""
    def maybe(value):
        return None if random_.random() < 0.12 else value

    ascii_texts = [text for text in databases.TEXTS if text.isascii() or text in "äÄ"]
    return {
        "z": maybe(datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=random_.randint(0, 10**15))),
        "u": maybe(random_.choice([0, 1, 2**63, 2**64 - 1, random_.randint(0, 10**6)])),
        "e": maybe(random_.choice(["a", "A", "ab", "ä", "日本"])), "c": maybe(random_.choice([text[:20] for text in databases.TEXTS])),
        "r": maybe(random_.choice([0.0, 1.5, -2.25, 0.5, float(random_.randint(-1000, 1000)) / 8])), "bits": maybe(random_.randint(0, 2**20 - 1)),
        "bin": row["t"], "old": maybe(random_.choice(ascii_texts)),
    }


def mariadb_source(server, name="my", **more):
    import random

    random_ = random.Random(11)
    kinds = {**KINDS, **MORE}
    server.run("DROP TABLE IF EXISTS shop.things", f"CREATE TABLE shop.things ({', '.join(f'{name} {kind}' for name, kind in kinds.items())}, KEY (t), KEY (z), KEY (r))")
    rows = [{**row, **more_things(row, random_)} for row in things()]
    values = ", ".join("(" + ", ".join(my(row[column]) for column in kinds) + ")" for row in rows)
    server.run(f"INSERT INTO shop.things VALUES {values}", "INSERT INTO shop.things (id, f) VALUES (10001, -0e0)", "ANALYZE TABLE shop.things")
    return MySource(name, "mysql", "shop", entry(server, **more), server.rows, ALL)


class Way(Relay):
    """A way to a server that can be cut, held, and looked at."""

    def __init__(self, port):
        self.seen, self.carried = bytearray(), 0
        super().__init__(port)

    def passes(self, _pair, data, _is_client):
        self.seen += data[:4096]
        self.carried += len(data)
