"""Tokens of an identity provider that others have written (oauth2-mock-server), good ones and others."""

import json
import pathlib
import subprocess
import time
import urllib.parse
import urllib.request

import pyarrow.flight as flight
import pytest

from server import Server
from world import psycopg_connect, table_of_bearer

FOLDER = pathlib.Path(__file__).parent / "oauth2"


class Provider:
    def __init__(self):
        self.process = subprocess.Popen(
            ["node", "serve.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.name = self.process.stdout.readline().strip()
        assert self.name.startswith("http://localhost:"), self.name

    def token(self, header=None, **payload):
        change = {"header": header or {}, "payload": {"aud": "bowshot", "sub": "ann", **payload}}
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "change": json.dumps(change)})
        with urllib.request.urlopen(self.name + "/token", form.encode(), timeout=20) as answer:
            return json.load(answer)["access_token"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


@pytest.fixture(scope="module")
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(provider, tmp_path_factory):
    file = tmp_path_factory.mktemp("users") / "users.toml"
    file.write_text(f'[[jwt]]\nissuer = "{provider.name}"\naudiences = ["bowshot"]\nroles_claim = "roles"\n')
    with Server(arguments=["--users-file", str(file), "--pg", "127.0.0.1:0"]) as server:
        yield server


def who(server, token):
    return table_of_bearer(server, token, "SELECT current_user AS u")["u"][0].as_py()


def test_good_tokens(provider, server):
    assert who(server, provider.token()) == "ann"
    assert who(server, provider.token(aud=["other", "bowshot"], sub="bob")) == "bob"
    with psycopg_connect(server, "ann", provider.token()) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ann",)


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        ({}, {"aud": "other"}),
        ({}, {"aud": None}),
        ({}, {"iss": "http://localhost:1"}),
        ({}, {"exp": int(time.time()) - 3600}),
        ({}, {"exp": None}),
        ({}, {"nbf": int(time.time()) + 3600}),
        ({}, {"sub": None}),
        ({}, {"roles": 7}),
        ({"kid": "unknown"}, {}),
    ],
)
def test_other_tokens(provider, server, header, payload):
    try:
        token = provider.token(header, **payload)
    except urllib.error.HTTPError:
        pytest.skip("the provider does not sign such a token")
    with pytest.raises(flight.FlightUnauthenticatedError):
        who(server, token)
    assert who(server, provider.token()) == "ann", "others still get in"
