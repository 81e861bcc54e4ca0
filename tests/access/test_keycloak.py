"""Tokens of Keycloak, as it makes them: roles in a nested claim, no audience unless a mapper adds it, keys that are rotated, users
that are removed."""

import base64
import contextlib
import json
import pathlib
import urllib.error

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import world
from keycloak import Keycloak
from server import wait_until
from world import psycopg_connect, table_of_bearer

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    "CREATE ROLE analyst",
    "GRANT SELECT ON t TO analyst",
    "CREATE ROW POLICY own ON t FOR analyst USING (region = 'EU')",
]
LIFE_SECONDS = 20


@pytest.fixture(scope="module")
def keycloak(request, tmp_path_factory):
    home = pathlib.Path(request.config.getoption("--keycloak"))
    (home,) = home.glob("keycloak-*")
    made = Keycloak(home, tmp_path_factory.mktemp("keycloak"))
    try:
        made.make_realm(LIFE_SECONDS)
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def serving(folder, keycloak, more=""):
    entry = f"""
[[jwt]]
issuer = "{keycloak.realm}"
audiences = ["bowshot"]
user_claim = "preferred_username"
roles_claim = "realm_access.roles"
roles = {{ "bowshot-analyst" = "analyst" }}
admin_role = "bowshot-admin"
clock_skew_seconds = 0
{more}
"""
    folder.mkdir(exist_ok=True)
    with world.world(folder, SETUP, more=entry) as made:
        yield made


@pytest.fixture(scope="module")
def made(tmp_path_factory, keycloak):
    with serving(tmp_path_factory.mktemp("served"), keycloak, 'authorized_parties = ["bowshot", "plain"]') as made:
        yield made


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def rows(made, token, sql="SELECT current_user"):
    return [tuple(row.values()) for row in table_of_bearer(made.server, token, sql).to_pylist()]


def test_roles_are_in_a_nested_claim(keycloak, made):
    token = keycloak.token("ann")
    assert "bowshot-analyst" in claims(token)["realm_access"]["roles"] and claims(token)["azp"] == "bowshot"
    assert rows(made, token) == [("ann",)]
    assert rows(made, token, "SELECT id FROM t") == [(1,)]
    with pytest.raises(pa.ArrowException, match="not found"):
        rows(made, keycloak.token("ben"), "SELECT id FROM t")
    rows(made, keycloak.token("kim"), "CREATE ROLE made_by_kim")
    with psycopg_connect(made.server, "token:ann", token) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]


def test_without_a_mapper_the_audience_is_another(keycloak, made):
    token = keycloak.token("ann", "plain")
    assert "bowshot" not in claims(token).get("aud", []) and claims(token)["azp"] == "plain"
    with pytest.raises(flight.FlightUnauthenticatedError, match="audience"):
        rows(made, token)
    token = keycloak.token("ann", "stranger")
    with pytest.raises(flight.FlightUnauthenticatedError, match="another client"):
        rows(made, token)


def test_a_token_that_was_changed(keycloak, made):
    head, body, signature = keycloak.token("ben").split(".")
    said = {**claims(f".{body}."), "preferred_username": "kim"}
    forged = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
    with pytest.raises(flight.FlightUnauthenticatedError):
        rows(made, f"{head}.{forged}.{signature}")


def test_keys_are_rotated(keycloak, made):
    before = keycloak.token("ann")
    assert rows(made, before) == [("ann",)]
    keycloak.rotate_keys()
    after = keycloak.token("ann")

    def taken():
        # Keys are asked for again ten seconds after they were, at the earliest.
        try:
            return rows(made, keycloak.token("ann")) == [("ann",)]
        except flight.FlightUnauthenticatedError:
            return False

    assert after != before
    wait_until(taken, "tokens of the new key are taken", 60)
    with pytest.raises(flight.FlightUnauthenticatedError):
        rows(made, before)


def test_a_user_that_is_removed(keycloak, made):
    token = keycloak.token("ben")
    assert rows(made, token) == [("ben",)]
    keycloak.remove("ben")
    with pytest.raises(urllib.error.HTTPError):
        keycloak.token("ben")

    def refused():
        try:
            rows(made, token)
        except flight.FlightUnauthenticatedError as error:
            return "expired" in str(error)

    wait_until(refused, "the last token is worth nothing after its time", LIFE_SECONDS + 10)
