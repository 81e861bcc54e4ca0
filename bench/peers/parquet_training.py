"""Batches for training from local Parquet files, as one writes it with pyarrow: the peer of `bowshot.torch` and `bowshot.tensorflow`.

Rows come batch by batch from `pyarrow.dataset`, which decodes ahead in threads of its own, in pieces of many rows that are cut here:
that is faster than to ask the dataset for batches of so few. Arrays are not copied, although PyTorch warns of such that nobody may
write to. Shuffled, the row groups come in another order in each epoch, and rows are shuffled in blocks.
"""

import numpy
import pyarrow as pa
import pyarrow.dataset as ds

READ_ROWS = 65_536

def fragments(path, epoch=None, shard=0, shards=1):
    """The row groups of this worker, in an order of the epoch."""
    groups = [group for file in ds.dataset(path, format="parquet").get_fragments() for group in file.split_by_row_group()]
    if epoch is not None:
        groups = [groups[at] for at in numpy.random.default_rng([0, epoch]).permutation(len(groups))]
    return groups[shard::shards]


def pieces(path, columns, batch, shuffle=0, epoch=0, shard=0, shards=1):
    """Tables or record batches of `batch` rows; the last may have fewer."""
    if shuffle:
        yield from shuffled(path, columns, batch, shuffle, epoch, shard, shards)
        return
    source = ds.dataset(path, format="parquet")
    if shards > 1:
        source = ds.FileSystemDataset(fragments(path, None, shard, shards), source.schema, source.format)
    # Whole batches, so that only the last one of a row group may have fewer rows.
    for read in source.to_batches(columns=columns, batch_size=max(READ_ROWS // batch, 1) * batch):
        for at in range(0, read.num_rows, batch):
            yield read.slice(at, batch)


def shuffled(path, columns, batch, shuffle, epoch, shard, shards):
    schema = ds.dataset(path, format="parquet").schema
    files = ds.FileSystemDataset(fragments(path, epoch, shard, shards), schema, ds.ParquetFileFormat())
    waiting, rows, random = [], 0, numpy.random.default_rng([1, epoch, shard])
    for read in files.to_batches(columns=columns):
        waiting.append(read)
        rows += read.num_rows
        while rows >= shuffle:
            table = pa.Table.from_batches(waiting)
            yield from mixed(table.slice(0, shuffle), batch, random)
            waiting = table.slice(shuffle).to_batches()
            rows -= shuffle
    if rows:
        yield from mixed(pa.Table.from_batches(waiting), batch, random)


def mixed(block, batch, random):
    block = block.take(pa.array(random.permutation(block.num_rows)))
    for at in range(0, block.num_rows, batch):
        yield block.slice(at, batch)


def arrays(piece):
    """An array for each column."""
    if isinstance(piece, pa.RecordBatch):
        return {name: column.to_numpy() for name, column in zip(piece.schema.names, piece.columns, strict=True)}
    return {name: column.to_numpy() for name, column in zip(piece.column_names, piece.columns, strict=True)}
