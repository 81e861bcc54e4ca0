"""The databases as clients see them that write: `run` a statement, `insert` a row, `ingest` Arrow batches."""

import io

import pyarrow.csv as csv
import pyarrow.flight as flight

from . import duckdb_extensions, readers


class Database:
    """What all that speak SQL have in common: `run` returns the number of changed rows, or the first value."""

    def run(self, text):
        raise NotImplementedError

    def insert(self, text):
        self.run(text)

    def drop(self, table):
        self.run(f"DROP TABLE IF EXISTS {table}")

    def count(self, table):
        return self.run(f"SELECT count(*) FROM {table}")


def first(rows):
    return rows[0][0] if rows else 0


def execute(cursor, text):
    """Of a DBAPI cursor: the first value of the answer, or the number of changed rows where there is none."""
    cursor.execute(text)
    return first(cursor.fetchall()) if cursor.description else cursor.rowcount


class BowshotAdbc(Database):
    """The ADBC driver through its DBAPI: `execute` prepares a statement, then runs it."""

    def __init__(self, uri):
        self.connection = readers.adbc_connection(uri)
        self.cursor = self.connection.cursor()

    def run(self, text):
        return execute(self.cursor, text)

    def ingest(self, table, batches):
        self.cursor.adbc_ingest(table, batches, mode="create")


class BowshotAdbcUpdate(BowshotAdbc):
    """The ADBC driver without preparing: an INSERT is one call to the server."""

    def insert(self, text):
        self.cursor.executescript(text)


class BowshotPackage(Database):
    """Our package for Python."""

    def __init__(self, uri):
        self.connection = readers.Package(uri).connection

    def run(self, text):
        result = self.connection.sql(text)
        if not result.columns:
            return result.rowcount
        return result.arrow().column(0)[0].as_py()

    def insert(self, text):
        self.connection.sql(text)


class BowshotPut(BowshotAdbc):
    """Rows go by pyarrow's DoPut under a path, statements by ADBC."""

    def __init__(self, uri):
        super().__init__(uri)
        self.client = readers.flight_client(uri)

    def ingest(self, table, batches):
        put(self.client, table, batches)


class FlightPut:
    """An Arrow C++ Flight server that keeps what is put."""

    def __init__(self, uri):
        self.client = readers.flight_client(uri)

    def drop(self, table):
        list(self.client.do_action(flight.Action("drop", table.encode())))

    def count(self, table):
        return self.client.get_flight_info(flight.FlightDescriptor.for_path(table)).total_records

    def ingest(self, table, batches):
        put(self.client, table, batches)


def put(client, table, batches):
    """DoPut under a path; ends when the server has answered."""
    writer, _ = client.do_put(flight.FlightDescriptor.for_path(table), batches.schema)
    for batch in batches:
        writer.write_batch(batch)
    writer.close()


class DuckDb(Database):
    """DuckDB in this process, on its own file."""

    def __init__(self, uri):
        import duckdb

        self.connection = duckdb.connect(uri)

    def run(self, text):
        return first(self.connection.execute(text).fetchall())

    def ingest(self, table, batches):
        self.connection.register("arrow", batches)
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM arrow")
        self.connection.execute("CHECKPOINT")


class Quack(Database):
    """DuckDB as client of its own protocol; statements run on the server."""

    def __init__(self, uri):
        self.connection = duckdb_extensions.connect_to_quack(uri)

    def run(self, text):
        return first(self.connection.execute(duckdb_extensions.ask_quack(text)).fetchall())


class Postgres(Database):
    """PostgreSQL: statements by psycopg without parameters (one round trip), rows by the ADBC driver (binary COPY)."""

    def __init__(self, uri):
        import adbc_driver_postgresql.dbapi as dbapi
        import psycopg

        self.connection = psycopg.connect(uri, autocommit=True)
        self.cursor = self.connection.cursor()
        self.bulk = dbapi.connect(uri, autocommit=True)

    def run(self, text):
        return execute(self.cursor, text)

    def ingest(self, table, batches):
        with self.bulk.cursor() as cursor:
            cursor.adbc_ingest(table, batches, mode="create")


class PostgresCsv(Postgres):
    """Rows go by COPY as CSV that pyarrow writes; an ingest of no rows makes the table, so that the types are the same."""

    def ingest(self, table, batches):
        super().ingest(table, batches.schema.empty_table())
        with self.cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
            for batch in batches:
                text = io.BytesIO()
                csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
                copy.write(text.getbuffer())


KINDS = {
    "bowshot-adbc": BowshotAdbc,
    "bowshot-adbc-update": BowshotAdbcUpdate,
    "bowshot-package": BowshotPackage,
    "bowshot-put": BowshotPut,
    "flight-put": FlightPut,
    "duckdb": DuckDb,
    "quack": Quack,
    "postgres": Postgres,
    "postgres-csv": PostgresCsv,
}
