"""DuckDB behind an Arrow C++ Flight server: the ticket is SQL text, the answer streams out of DuckDB's Arrow reader.
Prints its address when it is ready.
"""

import sys

import duckdb
import duckdb_views
import pyarrow.flight as flight

ROWS_PER_BATCH = 65_536


class Server(flight.FlightServerBase):
    def __init__(self, location, connection):
        super().__init__(location)
        self.connection = connection

    def do_get(self, context, ticket):
        cursor = self.connection.cursor()
        # Of a relation the rows stream; those of `execute` are collected in memory first.
        reader = cursor.sql(ticket.ticket.decode()).to_arrow_reader(ROWS_PER_BATCH)
        return flight.RecordBatchStream(reader)


def main():
    connection = duckdb.connect()
    duckdb_views.create(connection, duckdb_views.arguments(sys.argv[1:]))
    server = Server("grpc://127.0.0.1:0", connection)
    print(f"grpc+tcp://127.0.0.1:{server.port}", flush=True)
    server.serve()


if __name__ == "__main__":
    main()
