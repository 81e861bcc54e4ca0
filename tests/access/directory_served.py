"""Servers whose users a directory knows, and who comes in."""

import base64
import contextlib
import urllib.error
import urllib.request

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pymysql

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
    """A connection with a name and a password, which are nobody's of the world."""
    before = world.PASSWORDS.get(user)
    world.PASSWORDS[user] = password
    try:
        return world.OPEN[door](server, user)
    finally:
        if before is None:
            del world.PASSWORDS[user]
        else:
            world.PASSWORDS[user] = before


def rows(server, door, user, password, sql="SELECT current_user"):
    connection = connect(server, door, user, password)
    try:
        return connection.rows(sql)
    finally:
        connection.close()


def basic(server, user, password, sql="SELECT current_user"):
    """What HTTP answers to name and password: status and body."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    request = urllib.request.Request(
        server.http + "/v1/sql", data=sql.encode(), method="POST",
        headers={"authorization": f"Basic {login}", "content-type": "text/plain", "accept": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
