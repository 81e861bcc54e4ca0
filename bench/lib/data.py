"""Makes the data that the scenarios read, once, in the cache folder."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from . import locks, places

FOLDER = places.CACHE / "bench-data"
COLUMNS = 20
BATCH_ROWS = 65_536
LINEITEM_GROUP_ROWS = 262_144
SEED = 20_261_121
FIRST_NAMES = "Ada Alan Barbara Dennis Donald Edsger Grace Hedy Katherine Ken Leslie Linus Margaret Radia Tim Tony".split()
LAST_NAMES = "Allen Babbage Dijkstra Goldberg Hamilton Hopper Johnson Knuth Lamport Liskov Lovelace Perlman Ritchie Turing".split()
EDUCATIONS = "primary secondary vocational bachelor master doctorate".split()


def made(path: pathlib.Path, make) -> pathlib.Path:
    """Runs `make(temporary path)` unless the file is there; a broken run leaves nothing behind."""
    with locks.alone(str(path)):
        if not path.exists():
            print(f"making {path}", file=sys.stderr)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(path.suffix + ".partial")
            make(partial)
            os.replace(partial, path)
    return path


def integers(rows: int, count: int = COLUMNS) -> pa.Table:
    """`count` columns of int64 with all their bits in use."""
    random = np.random.default_rng(SEED)
    limits = np.iinfo(np.int64)
    return pa.table({f"c{index:02}": random.integers(limits.min, limits.max, rows) for index in range(count)})


def strings(rows: int) -> pa.Table:
    """20 columns of text."""
    random = np.random.default_rng(SEED)
    return pa.table({f"s{index:02}": texts(random, rows) for index in range(COLUMNS)})


def texts(random: np.random.Generator, rows: int) -> pa.Array:
    """8 to 32 letters, 20 on average."""
    lengths = random.integers(8, 33, rows)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    letters = random.integers(ord("a"), ord("z") + 1, int(offsets[-1]), dtype=np.uint8)
    return pa.Array.from_buffers(pa.utf8(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def accounts(rows: int) -> pa.Table:
    """A table whose rows are changed by their id: ids in order, two numbers, a text."""
    random = np.random.default_rng(SEED)
    return pa.table({
        "id": np.arange(rows, dtype=np.int64),
        "quantity": random.integers(0, 1_000_000, rows),
        "amount": random.random(rows) * 1e6,
        "name": texts(random, rows),
    })


def chosen_ids(rows: int, slices: int, ids_in_slice: int) -> pa.Table:
    """Random ids of 0 up to `rows`, none twice, in numbered slices of the same size."""
    ids = np.random.default_rng(SEED + 1).permutation(rows)[: slices * ids_in_slice].astype(np.int64)
    return pa.table({"slice": np.repeat(np.arange(slices, dtype=np.int64), ids_in_slice), "id": ids})


def arrow_chosen_ids(rows: int, slices: int, ids_in_slice: int) -> pathlib.Path:
    name = f"chosen-{rows}-{slices}-{ids_in_slice}"
    return arrow_file(name, lambda: chosen_ids(rows, slices, ids_in_slice))


def arrow_lineitem(scale: float) -> pathlib.Path:
    """lineitem as one Arrow IPC file, so that whoever sends it does not decode Parquet at the same time."""
    return arrow_file(f"lineitem-{scale}", lambda: pq.read_table(lineitem(scale)))


def arrow_file(name: str, table) -> pathlib.Path:
    """An Arrow IPC file of what `table()` makes, in batches of 65,536 rows."""

    def make(path):
        content = table()
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, content.schema) as writer:
            writer.write_table(content, max_chunksize=BATCH_ROWS)

    return made(FOLDER / f"{name}.arrow", make)


def samples(rows: int) -> pa.Table:
    """What a model is trained on: 20 features as float32, a label, and the number of the row; no nulls."""
    random = np.random.default_rng(SEED)
    columns = {"id": np.arange(rows, dtype=np.int64), "label": random.integers(0, 10, rows)}
    columns |= {f"f{index:02}": random.standard_normal(rows, dtype=np.float32) for index in range(COLUMNS)}
    table = pa.table(columns)
    return table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))


def lineitem(scale: float) -> pathlib.Path:
    """TPC-H's lineitem: a folder of Parquet files."""
    return tpch(scale) / "lineitem"


def tpch(scale: float) -> pathlib.Path:
    """TPC-H's tables, a folder of Parquet files each, as `bowshot demo` makes them."""
    folder = FOLDER / f"tpch-{scale}"
    command = [places.program("bowshot"), "demo", "--only-data", "--scale", str(scale), "--data-dir", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    return folder


def employees(rows: int) -> pa.Table:
    """Employee id, first name, last name, age, education: some 50 bytes a row."""
    random = np.random.default_rng(SEED)
    chosen = lambda names: pa.DictionaryArray.from_arrays(
        pa.array(random.integers(0, len(names), rows, dtype=np.int32)), pa.array(names)
    ).dictionary_decode()
    return pa.table({
        "employee_id": np.arange(rows, dtype=np.int64), "first_name": chosen(FIRST_NAMES), "last_name": chosen(LAST_NAMES),
        "age": random.integers(18, 70, rows, dtype=np.int32), "education": chosen(EDUCATIONS),
    })


# Tables of so many rows, by the name of their file; records have 32 bytes.
TABLES = {
    "integer": lambda rows: integers(rows, 1), "integers": integers, "records": lambda rows: integers(rows, 4), "strings": strings,
    "accounts": accounts, "employees": employees, "samples": samples,
}


def arrow(name: str, rows: int) -> pathlib.Path:
    return arrow_file(f"{name}-{rows}", lambda: TABLES[name](rows))


def parquet(name: str, rows: int) -> pathlib.Path:
    groups = LINEITEM_GROUP_ROWS if name == "samples" else None
    return made(
        FOLDER / f"{name}-{rows}.parquet", lambda path: pq.write_table(TABLES[name](rows), path, row_group_size=groups)
    )


def parquet_lineitem(scale: float, rows: int) -> pathlib.Path:
    """The first rows of lineitem in one file, row groups as in the files that they come from."""

    def make(path):
        source, left = ds.dataset(lineitem(scale), format="parquet"), rows
        with pq.ParquetWriter(path, source.schema) as writer:
            for batch in source.to_batches(batch_size=LINEITEM_GROUP_ROWS):
                writer.write_batch(batch.slice(0, left), row_group_size=LINEITEM_GROUP_ROWS)
                left -= min(left, batch.num_rows)
                if not left:
                    return
        raise RuntimeError(f"lineitem at scale {scale} has {left} rows less than {rows}")

    return made(FOLDER / f"lineitem-{scale}-{rows}.parquet", make)
