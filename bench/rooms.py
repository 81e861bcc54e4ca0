"""Federated rounds: workers that send their weights and get the mean of all, through a room of Bowshot and through a service of
FastAPI with JSON, in turn.

    cargo build --release -p bowshot
    pip install -r bench/requirements/models.txt
    python bench/rooms.py FOLDER_OF_PROGRAMS [--workers 3] [--numbers 1000000] [--steps 10] [--rounds 3]

Each worker is a process with one open connection. A round lasts from the worker's NumPy arrays to the mean as NumPy arrays, for the
slowest worker; both sides compute the same. Prints one JSON line.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import json_rooms  # noqa: E402
from lib import places, processes  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    for name, value in {"workers": 3, "numbers": 1_000_000, "steps": 10, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def weights(numbers, member):
    """Layers of a network: a large matrix, its bias, and a small matrix behind them."""
    random = numpy.random.default_rng(member)
    width = max(numbers // 1_024, 1)
    shapes = {"hidden": (width, 1_000), "bias": (1_000,), "output": (width, 24)}
    return {name: random.normal(size=shape).astype(numpy.float32) for name, shape in shapes.items()}


def arrow(weights):
    """One row: a column for each tensor. No copy."""
    import pyarrow as pa

    columns = {}
    for name, weight in weights.items():
        storage = pa.FixedSizeListArray.from_arrays(pa.array(weight.ravel()), weight.size)
        columns[name] = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), weight.shape), storage)
    return pa.record_batch(columns)


class ArrowRoom:
    def __init__(self, address, name, members, first):
        import pyarrow.flight as flight

        self.client = flight.connect(address)
        path = flight.FlightDescriptor.for_path("room", name, f"members={members}")
        self.writer, self.reader = self.client.do_exchange(path)
        self.writer.begin(arrow(first).schema)

    def combined(self, weights):
        self.writer.write_batch(arrow(weights))
        batch = self.reader.read_chunk().data
        return {
            field.name: batch.column(at).storage.values.to_numpy().reshape(field.type.shape) for at, field in enumerate(batch.schema)
        }

    def leave(self):
        self.writer.done_writing()
        self.writer.close()
        self.client.close()


def work(way, address, member, chosen, start, results):
    """One worker: seconds of each of its rounds but the first."""
    mine, name = weights(chosen.numbers, member), f"bench{os.getppid()}"
    room = ArrowRoom(address, name, chosen.workers, mine) if way == "bowshot" else json_rooms.Room(address, name, chosen.workers)
    expected = sum(weights(chosen.numbers, other)["output"] for other in range(chosen.workers)) / chosen.workers
    seconds = []
    for step in range(chosen.steps + 1):
        start.wait()
        begun = time.perf_counter()
        together = room.combined(mine)
        if step:
            seconds.append(time.perf_counter() - begun)
        numpy.testing.assert_allclose(together["output"], expected, 1e-5, 1e-6)
    room.leave()
    results.put(seconds)


def turn(way, address, chosen):
    """Seconds of each round: of the worker that waited longest."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(chosen.workers), context.Queue()
    workers = [context.Process(target=work, args=(way, address, member, chosen, start, results)) for member in range(chosen.workers)]
    [worker.start() for worker in workers]
    seconds = [results.get(timeout=600) for _ in workers]
    [worker.join() for worker in workers]
    return [max(steps) for steps in zip(*seconds, strict=True)]


def measured(chosen):
    times = {"bowshot": [], "json": []}
    with processes.bowshot({}) as server, processes.service("json_rooms.py") as other:
        for at in range(chosen.rounds + 1):
            for way, address in (("bowshot", server.uri), ("json", other.uri)):
                seconds = turn(way, address, chosen)
                if at:
                    times[way].extend(seconds)
    median = {way: statistics.median(seconds) for way, seconds in times.items()}
    numbers = sum(weight.size for weight in weights(chosen.numbers, 0).values())
    return {
        "workers": chosen.workers, "numbers": numbers, "steps": chosen.steps, "times": times, "median": median,
        "speed_of_json": median["json"] / median["bowshot"],
    }  # fmt: skip


if __name__ == "__main__":
    chosen = options()
    places.PROGRAMS = chosen.programs.resolve()
    print(json.dumps(measured(chosen)))
