"""Arrow C++ Flight. Maps Arrow IPC files and answers DoGet with the batches of the table that the ticket names; keeps in
memory what is put under a path. Prints its address when it is ready. With `--tls CERTIFICATE KEY` it speaks TLS.
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.flight as flight


class Server(flight.FlightServerBase):
    def __init__(self, location, tables, certificates=None):
        super().__init__(location, tls_certificates=certificates)
        self.tables = tables

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.tables[ticket.ticket.decode()])

    def do_put(self, context, descriptor, reader, writer):
        self.tables[descriptor.path[0].decode()] = reader.read_all()

    def get_flight_info(self, context, descriptor):
        table = self.tables[descriptor.path[0].decode()]
        return flight.FlightInfo(table.schema, descriptor, [], table.num_rows, table.nbytes)

    def do_action(self, context, action):
        if action.type != "drop":
            raise KeyError(action.type)
        self.tables.pop(action.body.to_pybytes().decode(), None)
        return []


def main():
    tables, arguments, certificates, scheme = {}, sys.argv[1:], None, "grpc+tcp"
    if arguments[:1] == ["--tls"]:
        certificates = [tuple(pathlib.Path(path).read_bytes() for path in arguments[1:3])]
        arguments, scheme = arguments[3:], "grpc+tls"
    for argument in arguments:
        name, _, path = argument.partition("=")
        tables[name] = pa.ipc.open_file(pa.memory_map(path)).read_all()
    server = Server(f"{scheme}://127.0.0.1:0", tables, certificates)
    print(f"{scheme}://127.0.0.1:{server.port}", flush=True)
    server.serve()


if __name__ == "__main__":
    main()
