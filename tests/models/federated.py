"""Three workers train one small network without showing one another their rows: each trains on its own part of scikit-learn's
digits, and after each pass over it the server gives all of them the mean of their weights.

    bowshot serve --flight 127.0.0.1:50051
    python federated.py grpc+tcp://127.0.0.1:50051
"""

import concurrent.futures
import sys

import numpy
import pyarrow as pa
import pyarrow.flight as flight
from sklearn.datasets import load_digits

WORKERS, PASSES, BATCH, RATE = 3, 40, 32, 0.3


def tensors(weights):
    """One row: a column for each tensor, of the canonical type."""
    columns = {}
    for name, weight in weights.items():
        kind = pa.fixed_shape_tensor(pa.float32(), weight.shape)
        storage = pa.FixedSizeListArray.from_arrays(pa.array(weight.ravel(), pa.float32()), weight.size)
        columns[name] = pa.ExtensionArray.from_storage(kind, storage)
    return pa.record_batch(columns)


def weights_of(batch):
    return {
        field.name: batch.column(at).storage.values.to_numpy().reshape(field.type.shape).copy()
        for at, field in enumerate(batch.schema)
    }


class Room:
    """A place in a room: what is sent is answered with what the server made of all."""

    def __init__(self, client, name, first, **options):
        path = ["room", name, *(f"{option}={value}" for option, value in options.items())]
        self.writer, self.reader = client.do_exchange(flight.FlightDescriptor.for_path(*path))
        self.writer.begin(first.schema)

    def combined(self, batch):
        self.writer.write_batch(batch)
        return self.reader.read_chunk().data

    def leave(self):
        self.writer.done_writing()
        self.writer.close()


def beginning():
    random = numpy.random.default_rng(0)
    return {
        "hidden": (random.normal(size=(64, 32)) / 8).astype(numpy.float32),
        "hidden_bias": numpy.zeros(32, numpy.float32),
        "output": (random.normal(size=(32, 10)) / 6).astype(numpy.float32),
        "output_bias": numpy.zeros(10, numpy.float32),
    }


def forward(weights, x):
    hidden = numpy.maximum(x @ weights["hidden"] + weights["hidden_bias"], 0)
    scores = hidden @ weights["output"] + weights["output_bias"]
    scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def one_pass(weights, x, y, random):
    """One pass over the rows in random order, in steps against the gradient."""
    order = random.permutation(len(x))
    for start in range(0, len(x), BATCH):
        rows = order[start : start + BATCH]
        hidden, probabilities = forward(weights, x[rows])
        slope = probabilities
        slope[numpy.arange(len(rows)), y[rows]] -= 1
        slope /= len(rows)
        below = (slope @ weights["output"].T) * (hidden > 0)
        for name, gradient in {
            "output": hidden.T @ slope, "output_bias": slope.sum(axis=0), "hidden": x[rows].T @ below, "hidden_bias": below.sum(axis=0)
        }.items():  # fmt: skip
            weights[name] -= (RATE * gradient).astype(numpy.float32)
    return weights


def accuracy(weights, x, y):
    return (forward(weights, x)[1].argmax(axis=1) == y).mean()


def digits():
    """Rows to train on and rows to test with."""
    images, labels = load_digits(return_X_y=True)
    order = numpy.random.default_rng(1).permutation(len(images))
    x, y = (images[order] / 16).astype(numpy.float32), labels[order]
    return (x[400:], y[400:]), (x[:400], y[:400])


def work(address, part, x, y):
    """One worker, who has its part of the rows alone."""
    weights, random = beginning(), numpy.random.default_rng(10 + part)
    with flight.connect(address) as client:
        room = Room(client, "digits", tensors(weights), members=WORKERS, combine="mean")
        for _ in range(PASSES):
            weights = weights_of(room.combined(tensors(one_pass(weights, x, y, random))))
        room.leave()
    return weights


def federated(address):
    """The network that the workers have trained together."""
    (x, y), _ = digits()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(lambda part: work(address, part, x[part::WORKERS], y[part::WORKERS]), range(WORKERS)))


def alone():
    """The network that one has trained who has all rows."""
    (x, y), _ = digits()
    weights, random = beginning(), numpy.random.default_rng(10)
    for _ in range(PASSES):
        weights = one_pass(weights, x, y, random)
    return weights


if __name__ == "__main__":
    test = digits()[1]
    print(f"together {accuracy(federated(sys.argv[1])[0], *test):.3f}, alone on all rows {accuracy(alone(), *test):.3f}")
