"""Epochs of PyTorch and TensorFlow: batches of a server's rows, by our package, or of local Parquet files. Nothing is trained. One
program for one of them, which `bench/run.py training_readers` starts in turn; by itself, with a server that has such a table:

    pip install -r bench/requirements/torch.txt       # PyTorch as PyPI has it: 4 GB, its packages for CUDA with it
    python bench/training_readers.py torch grpc://127.0.0.1:50051 --workers 2 --column id
    python bench/training_readers.py torch samples.parquet --workers 2 --column id
    pip install -r bench/requirements/tensorflow.txt
    python bench/training_readers.py tensorflow samples.parquet

PyTorch reads through a `DataLoader` with `batch_size=None`, from a `BowshotDataset` or from `peers/parquet_torch.py`. TensorFlow
reads through `tf.data.Dataset.from_generator` and `prefetch`, which is what our package makes, and what one writes over
pyarrow, since TensorFlow itself reads no Parquet. Each batch is a dictionary with a tensor for each column. The first epoch is not
counted: workers start with it. Prints one JSON line. With `--check` it also has, outside of the time, a sum for each column, of the
bits of floating-point numbers, which does not depend on the order of rows.
"""

import argparse
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers"), str(HERE.parent / "clients" / "python" / "src")]

FEATURES = [f"f{number:02}" for number in range(20)]
LABEL = "label"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=("torch", "tensorflow"))
    parser.add_argument("source", help="address of a server, or path of Parquet files")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=0, help="processes that read (PyTorch)")
    parser.add_argument("--shuffle", type=int, default=0, help="rows that are shuffled together (PyTorch)")
    parser.add_argument("--column", help="unique numbers: by their ranges workers share the rows, and shuffling begins")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--server", type=int, help="id of the server's process, whose processor time is wanted")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def columns(chosen):
    return [*FEATURES, LABEL, *([chosen.column] if chosen.column else [])]


def is_server(source):
    return "://" in source


def query(chosen):
    return f"SELECT {', '.join(columns(chosen))} FROM samples"


def torch_epoch(chosen):
    """What gives the batches of an epoch."""
    from torch.utils import data

    if is_server(chosen.source):
        from bowshot.torch import BowshotDataset

        dataset = BowshotDataset(
            query(chosen), chosen.source, column=chosen.column, batch_size=chosen.batch, shuffle_buffer=chosen.shuffle
        ).plan()
    else:
        from parquet_torch import ParquetDataset

        dataset = ParquetDataset(chosen.source, columns(chosen), chosen.batch, chosen.shuffle)
    started = {"multiprocessing_context": "spawn", "persistent_workers": True} if chosen.workers else {}
    loader = data.DataLoader(dataset, batch_size=None, num_workers=chosen.workers, **started)

    def epoch(number):
        dataset.set_epoch(number)
        return loader

    return epoch


def tensorflow_epoch(chosen):
    import tensorflow

    if is_server(chosen.source):
        import bowshot.tensorflow

        def epoch(_):
            made = bowshot.tensorflow.dataset(query(chosen), chosen.source, batch_size=chosen.batch)
            return made.prefetch(tensorflow.data.AUTOTUNE)

        return epoch
    import parquet_training

    kinds = {**dict.fromkeys(FEATURES, tensorflow.float32), LABEL: tensorflow.int64}
    signature = {name: tensorflow.TensorSpec((None,), kind) for name, kind in kinds.items()}

    def batches():
        for piece in parquet_training.pieces(chosen.source, columns(chosen), chosen.batch):
            yield parquet_training.arrays(piece)

    return lambda _: tensorflow.data.Dataset.from_generator(batches, output_signature=signature).prefetch(tensorflow.data.AUTOTUNE)


def read(batches):
    """Rows and batches of an epoch."""
    rows = count = 0
    for batch in batches:
        rows += int(batch[LABEL].shape[0])
        count += 1
    return rows, count


def sums(batches):
    """Of each column; of floating-point numbers those of their bits as whole numbers."""
    import numpy

    found = {}
    for batch in batches:
        for name, tensor in batch.items():
            array = numpy.ascontiguousarray(tensor.numpy())
            bits = array.view("int32") if array.dtype == numpy.float32 else array
            found[name] = found.get(name, 0) + int(bits.sum(dtype=numpy.int64))
    return found


def main():
    from lib import processes

    chosen = options()
    epoch = torch_epoch(chosen) if chosen.framework == "torch" else tensorflow_epoch(chosen)
    checked = sums(epoch(0)) if chosen.check else None
    if checked is None:
        read(epoch(0))
    runs, used = [], processes.ProcessorTimes(chosen.server)
    for number in range(1, chosen.epochs + 1):
        start = time.perf_counter()
        rows, batches = read(epoch(number))
        runs.append({"seconds": time.perf_counter() - start, "rows": rows, "bytes": 0, "batches": batches})
    print(json.dumps({"runs": runs, "checked": checked, **used.so_far()}), flush=True)


if __name__ == "__main__":
    main()
