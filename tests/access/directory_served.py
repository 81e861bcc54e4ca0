"""Servers whose users a directory knows, and who comes in."""

import contextlib

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pymysql

import http_sql
import world
from directory import BASE, GROUPS, PEOPLE, READER
from world import Refused

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    "CREATE ROLE analyst",
    "CREATE ROLE eu",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "CREATE USER dave",
    "GRANT SELECT ON t TO analyst, ada",
    "CREATE ROW POLICY own ON t FOR eu USING (region = 'EU')",
    "CREATE ROW POLICY every ON t FOR ada USING (true)",
]
ROLES = f'group_base = "{GROUPS}"\nroles = {{ readers = "analyst", europe = "eu", ada = "ada" }}\nadmin_group = "dbas"\n'
NAMED = f'user_dn = "uid={{user}},{PEOPLE}"\n'
REFUSED = (adbc.Error, flight.FlightError, pa.ArrowException, psycopg.Error, pymysql.Error, Refused, OSError)


def searched(folder_or_file):
    return f'user_base = "{BASE}"\nbind_dn = "{READER}"\nbind_password_file = "{folder_or_file}"\n'


def entry(there, more):
    return f'\n[[ldap]]\nurl = "{there.url}"\n{more}'


@contextlib.contextmanager
def serving(folder, entries, environment=None, setup=SETUP):
    folder.mkdir(exist_ok=True)
    with world.world(folder, setup, more=entries, environment=environment) as made:
        yield made


def connect(server, door, user, password):
    return world.OPEN[door](server, user, password)


def rows(server, door, user, password, sql="SELECT current_user"):
    with connect(server, door, user, password) as connection:
        return connection.rows(sql)


def basic(server, user, password, sql="SELECT current_user"):
    """What HTTP answers to name and password: status and body."""
    return http_sql.answered(server, sql, http_sql.basic(user, password))
