"""A MariaDB server of its own: a new data folder, on a free loopback port, ended afterwards.

Its settings are the defaults but for the buffer pool, which has a quarter of the memory, and a log that loads do not
fill every few seconds; both is what its documentation tells everybody to set. Data is loaded with LOAD DATA LOCAL.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from . import loading, processes
from .environments import Unavailable

USER = "mysql"
INSTALL = "install MariaDB: `apt-get install mariadb-server` (the bench starts a server of its own)"


def program(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if path is None:
        raise Unavailable(f"there is no {name}: {INSTALL}")
    return path


def version() -> str:
    done = subprocess.run([program("mariadbd"), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split("Ver", 1)[1].split()[0]


@contextlib.contextmanager
def server(folder: pathlib.Path, tables: dict):
    """`uri` is JSON with the port; the tables are in the database `test`, root needs no password."""
    home, port = folder / "mariadb", processes.free_port()
    home.mkdir(mode=0o700)
    user = [f"--user={USER}"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(home, USER, USER)
    install = [
        program("mariadb-install-db"), "--no-defaults", f"--datadir={home}", "--auth-root-authentication-method=normal",
        "--skip-test-db", *user,
    ]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr, cwd="/")
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    command = [
        program("mariadbd"), "--no-defaults", f"--datadir={home}", f"--port={port}", "--bind-address=127.0.0.1",
        f"--socket={home}/socket", f"--pid-file={home}/pid", "--skip-log-bin", "--local-infile=1",
        "--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin",
        f"--innodb-buffer-pool-size={memory_mb // 4}M", "--innodb-log-file-size=2G", *user,
    ]

    ping = [program("mariadb-admin"), "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(port), "-u", "root", "ping"]

    def ready(process):
        processes.wait_until_ready(process, "MariaDB", lambda: subprocess.run(ping, capture_output=True).returncode == 0)
        return json.dumps({"port": port, "database": "test"})

    with processes.started("MariaDB", "pymysql", command, ready, cwd="/") as running:
        load(folder, port, tables)
        yield running


def load(folder: pathlib.Path, port: int, tables: dict) -> None:
    import pymysql

    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", local_infile=True, autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE test")
        cursor.execute("USE test")
        cursor.execute("SET SESSION bulk_insert_buffer_size = 268435456, unique_checks = 0, foreign_key_checks = 0")
        for name, path in tables.items():
            described = loading.columns(str(path), "DOUBLE", "DATETIME(6)")
            cursor.execute(loading.create_table(name, described))
            text = folder / f"{name}.csv"
            loading.write_csv(str(path), text)
            cursor.execute(
                f"LOAD DATA LOCAL INFILE '{text}' INTO TABLE {name} CHARACTER SET utf8mb4 "
                "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''"
            )
            text.unlink()
            cursor.execute(f"ANALYZE TABLE {name}")
