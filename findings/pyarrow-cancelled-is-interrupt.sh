#!/bin/sh
# A server that ends a stream with CANCELLED stops the whole Python client: `read_all` raises KeyboardInterrupt, which no
# `except Exception` holds. The guess was FlightCancelledError, which `read_chunk` and a loop over the reader do raise.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" - <<'END'
import pyarrow as pa
import pyarrow.flight as flight

print("pyarrow", pa.__version__)
SCHEMA = pa.schema([("n", pa.int64())])


class Server(flight.FlightServerBase):
    def do_get(self, context, ticket):
        def batches():
            yield pa.record_batch([[1]], schema=SCHEMA)
            raise flight.FlightCancelledError("the source was closed")

        return flight.GeneratorStream(SCHEMA, batches())


def raised(read):
    reader = client.do_get(flight.Ticket(b""))
    try:
        read(reader)
    except BaseException as error:
        print(read.__name__, "->", type(error).__name__)
        return type(error)


def read_all(reader):
    reader.read_all()


def each_chunk(reader):
    for _ in reader:
        pass


with Server("grpc://127.0.0.1:0") as server:
    client = flight.connect(f"grpc://127.0.0.1:{server.port}")
    assert raised(read_all) is KeyboardInterrupt
    assert raised(each_chunk) is flight.FlightCancelledError
END
