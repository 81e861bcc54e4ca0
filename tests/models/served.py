"""A server whose models come from an exchange folder, and what tests ask it."""

import pathlib
import sys

import numpy
import pyarrow
import pyarrow.flight as flight

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from exchanges import exchanged  # noqa: E402
from server import Server  # noqa: E402


class Served:
    """A server over a data folder, and one connection to it, which is one session."""

    def __init__(self, folder, options=()):
        self.exchange = folder / "exchange"
        self.exchange.mkdir(exist_ok=True)
        self.server = Server(data=folder / "data", arguments=["--set", f"storage.exchange_folder={self.exchange}", *options])
        self.client = flight.connect(self.server.grpc_tcp)

    def run(self, sql):
        info = self.client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
        return pyarrow.concat_tables(self.client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints)

    def rows(self, sql):
        return self.run(sql).to_pylist()

    def value(self, sql):
        [row] = self.rows(sql)
        [value] = row.values()
        return value

    def fails(self, sql, *words):
        try:
            answer = self.run(sql).to_pylist()
        except (pyarrow.ArrowException, flight.FlightError) as error:
            said = str(error)
        else:
            raise AssertionError(f"{sql} answered {answer}")
        for word in words:
            assert word in said, said
        return said

    def model(self, name, file, more=""):
        (self.exchange / f"{name}.model").write_bytes(file)
        self.run(f"CREATE {more} MODEL {name} FROM '{name}.model'")

    def store(self, name, table):
        writer, reader = self.client.do_put(flight.FlightDescriptor.for_path(name), table.schema)
        with writer:
            writer.write_table(table)
            writer.done_writing()
            reader.read()

    def exchanged(self, path, table, chunk=None):
        """Sends rows to a service; gives the answer."""
        return exchanged(self.client, flight.FlightDescriptor.for_path(*path), table, chunk)

    def close(self):
        self.client.close()
        self.server.stop()


def columns(rows, nulls=True):
    """The columns of a matrix with the numbers of its rows; what is missing is NULL, or NaN."""
    values = {f"f{at}": pyarrow.array(rows[:, at], from_pandas=nulls) for at in range(rows.shape[1])}
    return pyarrow.table({"id": pyarrow.array(range(len(rows)), pyarrow.int64()), **values})


def matrix(column):
    return numpy.array(column.to_pylist(), dtype=float)
