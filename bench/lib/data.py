"""Makes the data that the scenarios read, once, in the cache folder."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import places

FOLDER = places.CACHE / "bench-data"
COLUMNS = 20
BATCH_ROWS = 65_536
SEED = 20_261_121


def made(path: pathlib.Path, make) -> pathlib.Path:
    """Runs `make(temporary path)` unless the file is there; a broken run leaves nothing behind."""
    if not path.exists():
        print(f"making {path}", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(path.suffix + ".partial")
        make(partial)
        os.replace(partial, path)
    return path


def integers(rows: int) -> pa.Table:
    """20 columns of int64 with all their bits in use."""
    random = np.random.default_rng(SEED)
    limits = np.iinfo(np.int64)
    columns = {f"c{index:02}": random.integers(limits.min, limits.max, rows) for index in range(COLUMNS)}
    return pa.table(columns)


def strings(rows: int) -> pa.Table:
    """20 columns of text, 8 to 32 letters, 20 on average."""
    random = np.random.default_rng(SEED)
    columns = {}
    for index in range(COLUMNS):
        lengths = random.integers(8, 33, rows)
        offsets = np.zeros(rows + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        letters = random.integers(ord("a"), ord("z") + 1, int(offsets[-1]), dtype=np.uint8)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
        columns[f"s{index:02}"] = pa.Array.from_buffers(pa.utf8(), rows, buffers)
    return pa.table(columns)


def arrow_integers(rows: int) -> pathlib.Path:
    """An Arrow IPC file of integers in batches of 65,536 rows."""

    def make(path):
        table = integers(rows)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH_ROWS)

    return made(FOLDER / f"integers-{rows}.arrow", make)


def parquet_integers(rows: int) -> pathlib.Path:
    return made(FOLDER / f"integers-{rows}.parquet", lambda path: pq.write_table(integers(rows), path))


def parquet_strings(rows: int) -> pathlib.Path:
    return made(FOLDER / f"strings-{rows}.parquet", lambda path: pq.write_table(strings(rows), path))


def lineitem(scale: int) -> pathlib.Path:
    """TPC-H's lineitem: the folder of Parquet files that `bowshot demo` makes."""
    folder = FOLDER / f"tpch-{scale}"
    command = [places.program("bowshot"), "demo", "--only-data", "--scale", str(scale), "--data-dir", str(folder)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return folder / "lineitem"
