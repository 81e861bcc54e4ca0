"""Keycloak on this machine: a realm with clients, roles and users, made by its REST interface; tokens of its users."""

import json
import os
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

JAVA_FOLDERS = pathlib.Path("/usr/lib/jvm")
ADMIN = ("admin", "the keycloak's own")


def java_home(least=21):
    """A JDK that is new enough: JAVA_HOME, or one of the machine's."""
    candidates = [os.environ.get("JAVA_HOME"), *sorted(map(str, JAVA_FOLDERS.glob("*")), reverse=True)]
    for folder in filter(None, candidates):
        release = pathlib.Path(folder) / "release"
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.exists() else None
        if found and int(found[1]) >= least:
            return folder
    raise AssertionError(f"Keycloak needs Java {least} or newer: install one below {JAVA_FOLDERS}, or set JAVA_HOME")


class Keycloak:
    def __init__(self, home, folder):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.realm = f"{self.url}/realms/main"
        self.log_path = folder / "keycloak.log"
        environment = {
            **os.environ, "JAVA_HOME": java_home(), "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN[0], "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN[1],
            "JAVA_OPTS_APPEND": "-Xmx512m",
        }  # fmt: skip
        command = ["bash", str(home / "bin" / "kc.sh"), "start-dev", "--http-host=127.0.0.1", f"--http-port={self.port}", "--db=dev-mem"]
        with open(self.log_path, "wb") as log:
            # A group of its own: the script's Java must end with it.
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._wait()

    def _wait(self, seconds=300):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log_path.read_text()
            try:
                urllib.request.urlopen(f"{self.url}/realms/master", timeout=5).close()
                return
            except OSError:
                time.sleep(0.5)
        raise AssertionError(f"not ready in {seconds} s\n{self.log_path.read_text()}")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()

    def ask(self, method, path, body=None):
        """One request of the admin; gives what is answered, and where what it has made is."""
        request = urllib.request.Request(
            f"{self.url}/admin/{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self._admin()}", "content-type": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def _admin(self):
        return self._token("master", "admin-cli", *ADMIN)["access_token"]

    def _token(self, realm, client, user, password):
        form = {"grant_type": "password", "client_id": client, "username": user, "password": password}
        address = f"{self.url}/realms/{realm}/protocol/openid-connect/token"
        with urllib.request.urlopen(address, urllib.parse.urlencode(form).encode(), timeout=60) as answer:
            return json.load(answer)

    def token(self, user, client="bowshot", password=None):
        return self._token("main", client, user, password or f"{user}'s own")["access_token"]

    def make_realm(self, seconds=300):
        audience = {
            "name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
            "config": {"included.client.audience": "bowshot", "access.token.claim": "true", "id.token.claim": "false"},
        }  # fmt: skip
        client = {"publicClient": True, "directAccessGrantsEnabled": True, "enabled": True}
        self.ask("POST", "realms", {
            "realm": "main", "enabled": True, "accessTokenLifespan": seconds,
            "roles": {"realm": [{"name": name} for name in ("bowshot-analyst", "bowshot-admin", "elsewhere")]},
            "clients": [
                {"clientId": "bowshot", "protocolMappers": [audience], **client},
                # As clients are made: without a mapper, `aud` does not name it.
                {"clientId": "plain", **client},
                {"clientId": "stranger", "protocolMappers": [audience], **client},
            ],
            "users": [
                {
                    "username": user, "enabled": True, "email": f"{user}@example.org", "emailVerified": True, "firstName": user,
                    "lastName": user, "realmRoles": roles, "credentials": [{"type": "password", "value": f"{user}'s own"}],
                }
                for user, roles in (("ann", ["bowshot-analyst", "elsewhere"]), ("ben", []), ("kim", ["bowshot-admin"]))
            ],
        })  # fmt: skip

    def rotate_keys(self):
        """A new key signs from now on; those before it are gone."""
        path = "realms/main/components"
        providers = self.ask("GET", path + "?type=org.keycloak.keys.KeyProvider")
        realm = self.ask("GET", "realms/main")["id"]
        self.ask("POST", path, {
            "name": "newer", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider", "parentId": realm,
            "config": {"priority": ["1000"], "keySize": ["2048"], "algorithm": ["RS256"], "enabled": ["true"], "active": ["true"]},
        })  # fmt: skip
        for provider in providers:
            if provider["providerId"] == "rsa-generated":
                self.ask("DELETE", f"{path}/{provider['id']}")

    def remove(self, user):
        (found,) = self.ask("GET", f"realms/main/users?username={user}&exact=true")
        self.ask("DELETE", f"realms/main/users/{found['id']}")
