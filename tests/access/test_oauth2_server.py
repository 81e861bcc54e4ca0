"""Tokens of an identity provider that others have written (oauth2-mock-server). Bad ones are in `test_identity.py`."""

import contextlib
import json
import pathlib
import subprocess
import urllib.parse
import urllib.request

from server import Server
from world import psycopg_connect, table_of_bearer

FOLDER = pathlib.Path(__file__).parent / "oauth2"


class Provider:
    def __init__(self):
        self.process = subprocess.Popen(["node", "serve.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name = self.process.stdout.readline().strip()
        assert self.name.startswith("http://localhost:"), self.name

    def token(self, **payload):
        change = json.dumps({"aud": "bowshot", "sub": "ann", **payload})
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "change": change})
        with urllib.request.urlopen(self.name + "/token", form.encode(), timeout=20) as answer:
            return json.load(answer)["access_token"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def who(server, token):
    return table_of_bearer(server, token, "SELECT current_user AS u")["u"][0].as_py()


def test_good_tokens(tmp_path):
    file = tmp_path / "users.toml"
    with contextlib.closing(Provider()) as provider:
        file.write_text(f'[[jwt]]\nissuer = "{provider.name}"\naudiences = ["bowshot"]\nroles_claim = "roles"\n')
        with Server(arguments=["--users-file", str(file), "--pg", "127.0.0.1:0"]) as server:
            assert who(server, provider.token()) == "ann"
            assert who(server, provider.token(aud=["other", "bowshot"], sub="bob")) == "bob"
            with psycopg_connect(server, "ann", provider.token()) as connection:
                assert connection.execute("SELECT current_user").fetchone() == ("ann",)
