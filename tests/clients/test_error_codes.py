"""The same mistakes over every front end, by drivers of each: the error has the code of the protocol, and the connection goes on."""

import contextlib
import re

import adbc_driver_flightsql.dbapi
import adbc_driver_postgresql.dbapi
import psycopg
import pytest

import http_sql
from test_mysql import connector_to, pymysql_to
from test_odbc_sqlalchemy import odbc_to
from test_postgres_clients import uri
from writing_adbc import Status

# What each tells: the status of ADBC, that of HTTP with the kind of the error, PostgreSQL's SQLSTATE, MySQL's number. None is not asked.
ERRORS = [
    ("SELEC 1", Status.INVALID_ARGUMENT, (400, "syntax"), "42601", 1064),
    ("SELECT * FROM missing", Status.NOT_FOUND, (404, "not_found"), "42P01", 1146),
    ("SELECT missing FROM nation", Status.INVALID_ARGUMENT, (400, "invalid"), "42703", 1054),
    # MySQL's answers are NULL and 0.
    ("SELECT 1 / 0", Status.INVALID_ARGUMENT, (400, "invalid"), "22012", None),
    ("SELECT CAST('x' AS INT)", Status.INVALID_ARGUMENT, (400, "invalid"), "22P02", None),
    # ADBC prepares what it runs, which is one statement.
    ("SELECT 1; SELECT 2", Status.INVALID_ARGUMENT, None, None, None),
    ("BEGIN", None, (400, "invalid"), None, None),
    ("SELECT missing(1)", None, None, None, 1305),
    ("USE nowhere", None, None, None, 1049),
    ("SELECT @@missing", None, None, None, 1193),
]


class Http:
    """Connection and cursor, as drivers have them."""

    def __init__(self, server):
        self.server = server

    def cursor(self):
        return self

    def execute(self, sql):
        self.answer = http_sql.sql(self.server, sql)
        if self.answer.status != 200:
            raise ValueError(self.answer.error())

    def fetchall(self):
        return self.answer.rows()

    def close(self):
        pass


def first(error):
    return error.args[0]


def sqlstate(error):
    return error.sqlstate


# States that ODBC has for those of PostgreSQL.
OF_ODBC = {"42S02": "42P01", "42S22": "42703"}
# How to connect, what of an error is its code, and the place of that among those above.
DRIVERS = {
    "adbc": (lambda server: adbc_driver_flightsql.dbapi.connect(server.grpc_tcp, autocommit=True), lambda error: error.status_code, 0),
    "http": (lambda server: contextlib.closing(Http(server)), first, 1),
    "psycopg": (lambda server: psycopg.connect(**server.postgres(autocommit=True)), sqlstate, 2),
    "adbc postgres": (lambda server: adbc_driver_postgresql.dbapi.connect(uri(server), autocommit=True), sqlstate, 2),
    "psqlodbc": (lambda server: odbc_to(server, "postgres"), lambda error: OF_ODBC.get(first(error), first(error)), 2),
    "pymysql": (lambda server: contextlib.closing(pymysql_to(server)), first, 3),
    "mysql-connector": (lambda server: contextlib.closing(connector_to(server)), lambda error: error.errno, 3),
    "mariadb odbc": (lambda server: odbc_to(server, "mysql"), lambda error: int(re.search(r"\((\d+)\)", error.args[1])[1]), 3),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_errors_have_the_code_of_their_protocol(shop, driver):
    connect, code, place = DRIVERS[driver]
    with connect(shop) as connection:

        def rows(sql):
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute(sql)
                return [tuple(row) for row in cursor.fetchall()]

        for sql, *codes in ERRORS:
            if codes[place] is not None:
                with pytest.raises(Exception) as raised:
                    rows(sql)
                assert code(raised.value) == codes[place], sql
                assert rows("SELECT 1") == [(1,)], sql
