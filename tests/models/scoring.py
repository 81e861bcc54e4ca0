"""A model of the server asked about rows that are in Python: of a pandas frame, of a Dask frame part by part, and one by one.

    bowshot serve --flight 127.0.0.1:50051
    python scoring.py grpc+tcp://127.0.0.1:50051

It trains a model, sends its file to the server, and compares what the server says with the model itself.
"""

import sys
import threading

import numpy
import pandas
import pyarrow as pa
import pyarrow.flight as flight


def upload(client, name, file, **options):
    """Makes a model of the bytes of a file; options are `if_exists` (`replace`, `keep`) and `format`."""
    schema = pa.schema([("file", pa.large_binary())], metadata=options)
    parts = [file[at : at + (1 << 20)] for at in range(0, len(file), 1 << 20)]
    writer, reader = client.do_put(flight.FlightDescriptor.for_path("models", name), schema)
    with writer:
        for part in parts:
            writer.write_batch(pa.record_batch([pa.array([part], pa.large_binary())], schema=schema))
        writer.done_writing()
        reader.read()


def score(client, model, frame, probabilities=False):
    """The predictions for a pandas frame, in its order and with its index. Columns are found by their names."""
    path = ["score", model, *(["probabilities"] if probabilities else [])]
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_path(*path))
    rows = pa.Table.from_pandas(frame, preserve_index=False)

    def send():
        writer.begin(rows.schema)
        writer.write_table(rows, max_chunksize=65_536)
        writer.done_writing()

    sender = threading.Thread(target=send)
    sender.start()
    answer = reader.read_all().to_pandas()
    sender.join()
    writer.close()
    return answer.iloc[:, 0].set_axis(frame.index)


def score_part(frame, address, model):
    """The same in whatever process Dask has put a part of a frame: each has a connection of its own."""
    with flight.connect(address) as client:
        return score(client, model, frame)


def score_dask(frame, address, model, kind):
    return frame.map_partitions(score_part, address, model, meta=("prediction", kind))


class OneByOne:
    """An open stream: each row is answered before the next one is sent."""

    def __init__(self, client, model, columns):
        self.schema = pa.schema([(column, pa.float64()) for column in columns])
        self.writer, self.reader = client.do_exchange(flight.FlightDescriptor.for_path("score", model))
        self.writer.begin(self.schema)

    def __call__(self, *values):
        self.writer.write_batch(pa.record_batch([[value] for value in values], schema=self.schema))
        return self.reader.read_chunk().data.column(0)[0].as_py()

    def close(self):
        self.writer.done_writing()
        self.writer.close()


def rows(count, seed=1):
    random = numpy.random.default_rng(seed)
    return pandas.DataFrame(
        {"age": random.integers(18, 90, count), "visits": random.poisson(4, count), "spent": random.gamma(2, 30, count)},
        index=pandas.RangeIndex(1_000, 1_000 + count),
    )


def trained():
    import xgboost

    frame = rows(5_000)
    leaves = (frame.visits * 10 - frame.age + frame.spent / 10 < 0).astype(int)
    return xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(frame, leaves)


if __name__ == "__main__":
    import dask.dataframe

    model, asked = trained(), rows(200_000, seed=2)
    with flight.connect(sys.argv[1]) as client:
        upload(client, "churn", bytes(model.get_booster().save_raw("ubj")), if_exists="replace")
        said = score(client, "churn", asked)
        parts = score_dask(dask.dataframe.from_pandas(asked, npartitions=4), sys.argv[1], "churn", said.dtype).compute()
        print(f"pandas: {(said == model.predict(asked)).mean():.3f} equal, Dask: {(parts == said).mean():.3f} equal")
