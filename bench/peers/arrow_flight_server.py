"""Arrow C++ Flight over Arrow IPC files: maps each file, answers DoGet with the batches of the table that the ticket
names. Prints its address when it is ready.
"""

import sys

import pyarrow as pa
import pyarrow.flight as flight


class Server(flight.FlightServerBase):
    def __init__(self, location, tables):
        super().__init__(location)
        self.tables = tables

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.tables[ticket.ticket.decode()])


def main():
    tables = {}
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        tables[name] = pa.ipc.open_file(pa.memory_map(path)).read_all()
    server = Server("grpc://127.0.0.1:0", tables)
    print(f"grpc+tcp://127.0.0.1:{server.port}", flush=True)
    server.serve()


if __name__ == "__main__":
    main()
