"""What the tests of durable tables in an object store share: servers, rows, what is in the bucket, and how others read it."""

import pathlib
import shutil
import sys
import tempfile

import deltalake
import pyarrow as pa

import stores
from conftest import Remote
from server import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "operations"))

import delta  # noqa: E402

# Short waits, so that a store that does not answer is noticed within a test.
QUICK = ("object_store.timeout=4s", "object_store.request_timeout=1s", "object_store.max_retries=2")
OWNER = "bowshot-owner.json"


class Place:
    """A prefix of the bucket, and a data folder whose tables are there."""

    def __init__(self, store, folder, prefix):
        self.store, self.data, self.prefix = store, folder / "data", prefix

    @property
    def address(self):
        return f"s3://lake/{self.prefix}"

    def serve(self, *settings, endpoint=None, data=None):
        return Remote(environment=self.store.environment(endpoint), data=data or self.data,
                      settings=(f"storage.tables={self.address}", *QUICK, *settings))

    def lose_copies(self):
        shutil.rmtree(self.data / "tables")

    def copies(self):
        """Files of rows that are in the data folder."""
        return sorted((self.data / "tables").glob("*/bowshot-*.parquet"))

    def names(self):
        """What is in the bucket, without the mark of the owner."""
        start = f"lake/{self.prefix}/"
        names = [name.removeprefix(start) for name in self.store.names(start.rstrip("/"))]
        return [name for name in names if name != OWNER]

    def rows_of(self, table):
        """Names of the files of rows of a table that are in the bucket."""
        return [name for name in self.names() if name.startswith(f"{table}/bowshot-")]

    def entries_of(self, table):
        """Numbers of the entries of its log there."""
        start = f"{table}/_delta_log/"
        return [int(name[len(start):-5]) for name in self.names() if name.startswith(start) and name.endswith(".json")]

    def options(self):
        return {"AWS_ACCESS_KEY_ID": stores.KEY, "AWS_SECRET_ACCESS_KEY": stores.SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": self.store.endpoint, "AWS_ALLOW_HTTP": "true"}

    def files_in_log(self, table):
        """Names of the files that its log has now."""
        found = deltalake.DeltaTable(f"{self.address}/{table}", storage_options=self.options())
        return sorted(f"{table}/{uri.rsplit('/', 1)[1]}" for uri in found.file_uris())

    def by_deltalake(self, table, version=None):
        """The rows of a table as delta-rs reads them from the bucket."""
        found = deltalake.DeltaTable(f"{self.address}/{table}", version=version, storage_options=self.options())
        return found.to_pyarrow_table()

    def by_duckdb(self, table):
        """The rows as DuckDB's kernel reads them from a copy of what is in the bucket."""
        with tempfile.TemporaryDirectory() as folder:
            for name in self.names():
                if name.startswith(f"{table}/"):
                    path = pathlib.Path(folder) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with self.store.files.open_input_stream(f"lake/{self.prefix}/{name}") as stream:
                        path.write_bytes(stream.read())
            return delta.by_duckdb(pathlib.Path(folder) / str(table))


def identity(database, name):
    """The id of a table, from where it says that it lies."""
    return database.one(f"SELECT location FROM system.tables WHERE table_name = '{name}'").rsplit("/", 1)[1]


def numbers(start, stop):
    """Rows (id, value, note)."""
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([n * 3 % 1_000 for n in ids], pa.int64()),
                     "note": pa.array([None if n % 13 == 0 else f"note {n}" for n in ids], pa.string())})


def rows(database, name="t"):
    return database.rows(f"SELECT id, value, note FROM {name} ORDER BY id")


def settled(place, database, name="t"):
    """Waits until the log in the bucket shows what the server has: all rows in files, all files in the log."""
    table = identity(database, name)
    count = database.one(f"SELECT count(*) FROM {name}")

    def shown():
        try:
            return place.by_deltalake(table).num_rows == count
        except Exception:  # Not there yet.
            return False

    wait_until(shown, f"the log of {name} shows {count} rows", 20)
    return table


def vacuumed(place, database, table, name="t"):
    """Vacuums until the bucket has only the files of the log: small files that are united meanwhile leave some again."""
    def is_clean():
        database.run(f"VACUUM {name} RETAIN 0 HOURS")
        return place.rows_of(table) == place.files_in_log(table)

    wait_until(is_clean, "no other files are left", 20)
