"""How clients read results, one class for each way. `table` gives a pyarrow table, `pandas` a DataFrame, `rows` a list of
tuples, `batches` one record batch after the other; `to_parquet` writes a file. A class has the ways that its users have.
"""

import contextlib
import functools
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from . import duckdb_extensions, places

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

ODBC_DRIVERS = pathlib.Path("/usr/lib/x86_64-linux-gnu/odbc")


def write_parquet(schema, batches, path):
    """Batch by batch, so that the whole result is never in memory."""
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def flight_client(uri):
    """Over TLS, the authority of the benchmark's own certificate vouches for the server."""
    import pyarrow.flight as flight

    options = {"tls_root_certs": places.TLS_AUTHORITY.read_bytes()} if uri.startswith("grpc+tls") else {}
    return flight.FlightClient(uri, **options)


def adbc_connection(uri):
    """The ADBC Flight SQL driver, with the same trust."""
    import adbc_driver_flightsql.dbapi as dbapi

    roots = {"adbc.flight.sql.client_option.tls_root_certs": places.TLS_AUTHORITY.read_text()}
    return dbapi.connect(uri, db_kwargs=roots if uri.startswith("grpc+tls") else None, autocommit=True)


class FlightTicket:
    """pyarrow.flight, one round trip: the ticket is the table's name or SQL text."""

    def __init__(self, uri):
        import pyarrow.flight as flight

        self.flight = flight
        self.client = flight_client(uri)

    def reader(self, text):
        return self.client.do_get(self.flight.Ticket(text.encode()))

    def table(self, text):
        return self.reader(text).read_all()

    def pandas(self, text):
        return self.table(text).to_pandas()

    def batches(self, text):
        for chunk in self.reader(text):
            yield chunk.data

    def to_parquet(self, text, path):
        reader = self.reader(text)
        write_parquet(reader.schema, (chunk.data for chunk in reader), path)


class FlightInfo(FlightTicket):
    """pyarrow.flight, two round trips: GetFlightInfo with SQL text, DoGet of every endpoint."""

    def reader(self, text):
        info = self.client.get_flight_info(self.flight.FlightDescriptor.for_command(text.encode()))
        (endpoint,) = info.endpoints
        return self.client.do_get(endpoint.ticket)


class Package:
    """Our package for Python; with `same_host` on the server's machine, by memory that both share."""

    def __init__(self, uri, same_host=False):
        sys.path.insert(0, str(places.REPOSITORY / "clients" / "python" / "src"))
        import bowshot

        self.connection = bowshot.connect(uri, autocommit=True, same_host=same_host)

    def table(self, text):
        return self.connection.sql(text).arrow()

    def pandas(self, text):
        return self.connection.sql(text).df()

    def batches(self, text):
        yield from self.connection.sql(text).batches()

    def to_parquet(self, text, path):
        self.connection.sql(text).to_parquet(path)


class AdbcCursor:
    """An ADBC driver through its DBAPI."""

    @contextlib.contextmanager
    def executed(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            yield cursor

    def table(self, text):
        with self.executed(text) as cursor:
            return cursor.fetch_arrow_table()

    def pandas(self, text):
        with self.executed(text) as cursor:
            return cursor.fetch_df()

    def batches(self, text):
        with self.executed(text) as cursor:
            yield from cursor.fetch_record_batch()

    def to_parquet(self, text, path):
        with self.executed(text) as cursor:
            reader = cursor.fetch_record_batch()
            write_parquet(reader.schema, reader, path)


class Adbc(AdbcCursor):
    """The ADBC Flight SQL driver."""

    def __init__(self, uri):
        self.connection = adbc_connection(uri)


class AdbcPrepared(Adbc):
    """The same with one cursor: a text that is asked again is not prepared again."""

    def __init__(self, uri):
        super().__init__(uri)
        self.cursor = self.connection.cursor()

    def table(self, text):
        self.cursor.execute(text)
        return self.cursor.fetch_arrow_table()


class PostgresAdbc(AdbcCursor):
    """The ADBC PostgreSQL driver: COPY in binary behind the scenes."""

    def __init__(self, uri):
        import adbc_driver_postgresql.dbapi as dbapi

        self.connection = dbapi.connect(uri, autocommit=True)


class Duck:
    """DuckDB in this process over the files that the JSON text `uri` names. Arrow comes from relations (`sql`), as DuckDB
    advises: the rows of `execute` are collected in memory first and copied once more. For pandas that makes no difference."""

    def __init__(self, uri):
        import duckdb
        import duckdb_views

        self.connection = duckdb.connect()
        duckdb_views.create(self.connection, json.loads(uri))

    def query(self, text):
        return text

    def table(self, text):
        return self.connection.sql(self.query(text)).to_arrow_table()

    def pandas(self, text):
        return self.connection.execute(self.query(text)).df()

    def batches(self, text):
        yield from self.connection.sql(self.query(text)).to_arrow_reader()


class Quack(Duck):
    """DuckDB as client of its own protocol, attached once; the query runs on the server."""

    query = staticmethod(duckdb_extensions.ask_quack)

    def __init__(self, uri):
        self.connection = duckdb_extensions.connect_to_quack(uri)


class Chdb:
    """chDB (ClickHouse as a library) in this process over the files that the JSON text `uri` names."""

    def __init__(self, uri):
        from chdb import session

        self.session = session.Session()
        # What its documentation says to set for the nulls and the UNION of the SQL standard.
        self.session.query("SET join_use_nulls = 1, aggregate_functions_null_for_empty = 1, union_default_mode = 'DISTINCT'")
        for name, path in json.loads(uri).items():
            files = f"{path}/*.parquet" if pathlib.Path(path).is_dir() else path
            self.session.query(f"CREATE VIEW {name} AS SELECT * FROM file('{files}', Parquet)")

    def table(self, text):
        content = self.session.query(text, "ArrowStream").bytes()
        return pa.ipc.open_stream(content).read_all() if content else pa.table({})

    def pandas(self, text):
        return self.table(text).to_pandas()


class Polars:
    """polars in this process over the text files that the JSON text `uri` names, by its streaming engine."""

    def __init__(self, uri):
        import polars

        self.context = polars.SQLContext()
        for name, path in json.loads(uri).items():
            scan = polars.scan_ndjson if path.endswith(".jsonl") else polars.scan_csv
            self.context.register(name, scan(f"{path}/*.csv" if pathlib.Path(path).is_dir() else path))

    def table(self, text):
        return self.context.execute(text).collect(engine="streaming").to_arrow()


class DbApi:
    """Rows of a DBAPI connection, and pandas' usual way over them."""

    def rows(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall()

    def pandas(self, text):
        import pandas

        return pandas.read_sql(text, self.connection)

    def to_parquet(self, text, path):
        self.pandas(text).to_parquet(path)


class Psycopg(DbApi):
    def __init__(self, uri):
        import psycopg

        self.connection = psycopg.connect(uri, autocommit=True)


class PyMySql(DbApi):
    def __init__(self, uri):
        import pymysql

        address = json.loads(uri)
        self.connection = pymysql.connect(host="127.0.0.1", port=address["port"], user="root", database=address["database"])


class Pyodbc(DbApi):
    """`describe` makes an ODBC connection string of the address."""

    def __init__(self, describe, uri):
        import pyodbc

        self.connection = pyodbc.connect(describe(uri), autocommit=True)


class ConnectorX:
    def __init__(self, uri):
        import connectorx

        self.connectorx, self.uri = connectorx, uri

    def table(self, text):
        return self.connectorx.read_sql(self.uri, text, return_type="arrow")

    def pandas(self, text):
        return self.connectorx.read_sql(self.uri, text)


def postgres_odbc(uri):
    port = uri.rsplit(":", 1)[1].split("/")[0]
    return f"Driver={ODBC_DRIVERS}/psqlodbcw.so;Server=127.0.0.1;Port={port};Database=postgres;Uid=postgres;"


def mariadb_odbc(uri):
    port = json.loads(uri)["port"]
    return f"Driver={ODBC_DRIVERS}/libmaodbc.so;Server=127.0.0.1;Port={port};Database=test;Uid=root;"


KINDS = {
    "flight-ticket": FlightTicket,
    "flight-info": FlightInfo,
    "package-socket": Package,
    "package-memory": functools.partial(Package, same_host=True),
    "adbc": Adbc,
    "adbc-prepared": AdbcPrepared,
    "quack": Quack,
    "duckdb": Duck,
    "chdb": Chdb,
    "polars": Polars,
    "postgres-adbc": PostgresAdbc,
    "psycopg": Psycopg,
    "pymysql": PyMySql,
    "pyodbc-postgres": functools.partial(Pyodbc, postgres_odbc),
    "pyodbc-mariadb": functools.partial(Pyodbc, mariadb_odbc),
    "connectorx": ConnectorX,
}

# The libraries that a reader loads, and the packages that have them.
ODBC_MANAGER = (ODBC_DRIVERS.parent / "libodbc.so.2", "libodbc2")
POSTGRES_ODBC = (ODBC_DRIVERS / "psqlodbcw.so", "odbc-postgresql")
MARIADB_ODBC = (ODBC_DRIVERS / "libmaodbc.so", "odbc-mariadb")
NEEDED_FILES = {"pyodbc-postgres": [ODBC_MANAGER, POSTGRES_ODBC], "pyodbc-mariadb": [ODBC_MANAGER, MARIADB_ODBC]}

# Which environment of `bench/requirements` a reader needs, if not `main`.
ENVIRONMENTS = {"duckdb": "duckdb2", "chdb": "chdb", "polars": "polars"}

# What docs/how-to/clients/pyarrow.md advises to pyarrow for results of gigabytes: glibc asks for memory in larger pieces and huge
# pages, and all threads share one heap. Variables of a client that reads whole results.
LARGE_RESULTS = dict.fromkeys(
    ("flight-ticket", "flight-info", "package-socket", "package-memory"),
    {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.arena_max=1"},
)
