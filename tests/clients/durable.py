"""What the tests of durable tables share: a connection in few words, start-ups that must fail, places on disk."""

import contextlib
import json
import pathlib
import subprocess
import tempfile
import urllib.parse

import adbc_driver_flightsql.dbapi as dbapi

from server import BUSY_FACTOR, Server, binaries, clean_environment


def let_go(thing):
    """Closes a connection or a cursor whose server may be gone. The driver cannot, and would try again, aloud, when the
    object is collected."""
    try:
        thing.close()
    except Exception:
        thing._closed = True


@contextlib.contextmanager
def cursor_of(connection):
    cursor = connection.cursor()
    try:
        yield cursor
    finally:
        let_go(cursor)


class Database:
    """A connection that commits every statement, or none before it is told to."""

    def __init__(self, server, autocommit=True, token=None, options=None):
        header = {"adbc.flight.sql.authorization_header": f"Bearer {token}"} if token else {}
        self.connection = dbapi.connect(server.grpc_tcp, db_kwargs={**header, **(options or {})}, autocommit=autocommit)

    def run(self, *statements):
        """Gives the number of rows that the last one says it changed."""
        for sql in statements:
            with cursor_of(self.connection) as cursor:
                cursor.execute(sql)
                changed = None if cursor.rowcount == -1 else cursor.rowcount
        return changed

    def arrow(self, sql):
        with cursor_of(self.connection) as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

    def rows(self, sql):
        with cursor_of(self.connection) as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def one(self, sql):
        ((value,),) = self.rows(sql)
        return value

    def ingest(self, name, rows, mode="create"):
        """The driver sends a batch as one message, of 16 MiB at most."""
        with cursor_of(self.connection) as cursor:
            return cursor.adbc_ingest(name, rows.to_reader(max_chunksize=50_000), mode=mode)

    def location(self, table):
        """The folder of a table."""
        location = self.one(f"SELECT location FROM bowshot.system.tables WHERE table_name = '{table}'")
        return pathlib.Path(urllib.parse.unquote(location.removeprefix("file://")))

    def close(self):
        let_go(self.connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refused(database, sql, *words, status=None):
    """The words of the server, among which are these."""
    try:
        rows = database.rows(sql)
    except Exception as error:  # The driver has a class for each kind.
        text = str(error)
        missing = [word for word in words if word not in text]
        assert not missing, f"{missing} not in: {text}"
        assert status is None or error.status_code == status, text
        return text
    raise AssertionError(f"not refused: {sql}: {rows[:3]}")


def restarts(data, how):
    """For a fixture: starts a server on the folder; called again, ends it (`stopped` or `killed`) and starts the next."""
    running = []

    def start():
        end(how)
        server = Server(data=data)
        running.append((server, Database(server)))
        return running[-1][1]

    def end(how):
        for server, db in running:
            # A connection that is open at a kill stays open until then.
            if how == "killed":
                server.kill()
            db.close()
            server.stop()
        running.clear()

    yield start
    end("stopped")


def start_that_fails(data, *arguments, prefix=(), environment=None):
    """The log of a server that must give up with exit code 1 before it is ready."""
    with tempfile.TemporaryDirectory() as folder:
        ports = pathlib.Path(folder) / "ports.json"
        addresses = ["--flight", "127.0.0.1:0", "--http", "off", "--ports-file", ports]
        command = [*prefix, binaries() / "bowshot", "serve", *arguments, "--data", data, *addresses]
        with subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(environment),
        ) as process:
            try:
                log, _ = process.communicate(timeout=20 * BUSY_FACTOR)
            except subprocess.TimeoutExpired:
                process.kill()
                log, _ = process.communicate()
                ready = json.loads(ports.read_text()) if ports.exists() else "not ready"
                raise AssertionError(f"the server did not give up: {ready}\n{log}") from None
    assert process.returncode == 1, f"exit code {process.returncode}\n{log}"
    assert "panicked" not in log, log
    return log


def rows_of(table):
    """The Parquet files below a table's folder that hold its rows."""
    return sorted(path for path in table.resolve().rglob("*.parquet") if "_delta_log" not in path.parts)


def contents(folder):
    """Path and bytes of every file below a folder, to see that nobody touched it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
