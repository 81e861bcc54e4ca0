"""A server whose administrator gives credentials in SQL. Whatever it writes, it must never write one of them."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import http_sql
import stores
from durable import Database, refused
from server import Server, binaries, clean_environment, users_file

ADMIN, OTHER = "the token of root alone", "the token of ada alone"
# A key that has never been right.
WRONG = "wr0ng-s3cret-of-the-tests"
# Of everything that any library writes.
LOUD = ("--log", "trace")


def values(lake_secret=stores.SECRET, key=stores.KEY, **more):
    pairs = {"TYPE": "s3", "KEY_ID": key, "SECRET": lake_secret, **more}
    return ", ".join(f"{name} {value if name == 'TYPE' else chr(39) + value + chr(39)}" for name, value in pairs.items())


def secret(name="lake", verb="CREATE SECRET", **more):
    return f"{verb} {name} ({values(**more)})"


class Guarded(Server):
    """With root, who is an administrator, and ada, who is none."""

    def __init__(self, *sources, data="memory", settings=(), environment=None, config="", loud=True, words=()):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-secrets-"))
        self.words = (stores.SECRET, stores.KEY, WRONG, *words)
        self.data = data
        self.open = {}
        users = users_file(self.place, tokens={"root": ADMIN, "ada": OTHER}, admins=["root"])
        file = self.place / "bowshot.toml"
        file.write_text(config)
        chosen = [word for setting in settings for word in ("--set", setting)]
        arguments = ["--users-file", users, "--config", file, *chosen, *(LOUD if loud else ()),
                     "--set", f"audit.file={self.place / 'audit.jsonl'}"]
        super().__init__(*sources, arguments=arguments, data=data,
                         environment={**stores.without_credentials(), **(environment or {})})

    def of(self, token=ADMIN):
        if token not in self.open:
            self.open[token] = Database(self, token=token)
        return self.open[token]

    def run(self, *statements):
        self.of().run(*statements)

    def rows(self, sql):
        return self.of().rows(sql)

    def refused(self, sql, token=ADMIN):
        """The words of the server, in which no credentials are."""
        text = refused(self.of(token), sql)
        self.check(text)
        return text

    def by_http(self, sql, token=ADMIN):
        """Status and text of an answer."""
        return http_sql.answered(self, sql, f"Bearer {token}")

    def check(self, text):
        for word in self.words:
            assert word not in text, text[:4000]

    def check_all(self):
        """What the server has written, and what it tells."""
        tables = self.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'")
        for (table,) in tables:
            self.check(str(self.rows(f"SELECT * FROM system.{table}")))
        self.check(self.get("/metrics")[2])
        self.check(self.log())
        self.check((self.place / "audit.jsonl").read_text())
        if self.data != "memory":
            self.check_files(self.data)

    def check_files(self, folder):
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                for word in self.words:
                    assert word.encode() not in content, path

    def stop(self):
        alive = self.alive() and not self.killed and not self.terminated
        if alive:
            self.check_all()
        for database in self.open.values():
            database.close()
        self.open = {}
        super().stop()
        if alive and self.data != "memory":
            self.check_files(self.data)
        shutil.rmtree(self.place, ignore_errors=True)


def refuses_to_start(*words, environment):
    """What a server says that does not understand its configuration."""
    command = [binaries() / "bowshot", "serve", "--flight", "127.0.0.1:0", "--http", "off", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env=clean_environment(environment))
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def program(*words):
    """What another run of the program says."""
    done = subprocess.run([binaries() / "bowshot", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
