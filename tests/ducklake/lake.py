"""Lakes as others write them: by DuckDB with its extension `ducklake`, over a catalog in a file of SQLite."""

import contextlib
import pathlib
import sqlite3
import sys

import duckdb

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import duckdb_extensions  # noqa: E402
from durable import Database  # noqa: E402
from server import Server  # noqa: E402


def with_extensions():
    connection = duckdb.connect()
    duckdb_extensions.load(connection, "ducklake", "sqlite_scanner")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Lake:
    """A lake and its writer. With `inlined = 0` every row goes into a file."""

    def __init__(self, folder, inlined=0, data=None, more=""):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.catalog, self.data = folder, folder / "meta.sqlite", data or folder / "files"
        self.connection = with_extensions()
        options = f"DATA_PATH '{self.data}', DATA_INLINING_ROW_LIMIT {inlined}{more}"
        self.run(f"ATTACH 'ducklake:sqlite:{self.catalog}' AS lake ({options})", "USE lake")

    def run(self, *statements):
        for sql in statements:
            self.connection.execute(sql)

    def arrow(self, sql):
        return self.connection.execute(sql).to_arrow_table()

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def one(self, sql):
        ((value,),) = self.rows(sql)
        return value

    def snapshot(self):
        return self.one("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")

    def close(self):
        self.connection.close()

    @contextlib.contextmanager
    def itself(self):
        """The catalog, of which the writer has let go; what is done there is kept."""
        self.close()
        with contextlib.closing(sqlite3.connect(self.catalog)) as catalog, catalog:
            yield catalog

    @property
    def source(self):
        return f"lake=ducklake:{self.catalog}"


@contextlib.contextmanager
def asked(*sources, **options):
    """A connection to a server over these."""
    with Server(*sources, **options) as server, contextlib.closing(Database(server)) as database:
        database.server = server
        yield database


def sorted_rows(table):
    return sorted(map(repr, table.to_pylist()))


def same(lake, database, sql="SELECT * FROM main.t", at=None):
    """Compares what both say, of the newest snapshot or of another one."""
    theirs, ours = ("", "") if at is None else (f" AT (VERSION => {at})", f" FOR VERSION AS OF {at}")
    wanted = lake.arrow(sql + theirs)
    got = database.arrow(sql.replace("FROM main.", "FROM lake.main.") + ours)
    assert got.schema.names == wanted.schema.names
    assert sorted_rows(got) == sorted_rows(wanted), f"{sql}{ours}"
    return got
