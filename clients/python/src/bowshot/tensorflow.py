"""A `tf.data.Dataset` over the rows of a query, which can be cut between workers and shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from bowshot._errors import InterfaceError
from bowshot._training import Arrays, Epochs


def dataset(
    source: str,
    uri: str,
    *,
    column: str | None = None,
    partitions: int = 64,
    batch_size: int = 1024,
    shuffle_buffer: int = 0,
    seed: int = 0,
    drop_last: bool = False,
    epoch: int = 0,
    shard: int = 0,
    shards: int = 1,
    **connection: Any,
) -> Any:
    """Batches as dictionaries of tensors. Arguments are as for `bowshot.torch.BowshotDataset`; `shard` of `shards` is this
    worker's part. Rows come while they are wanted: add `.prefetch(tf.data.AUTOTUNE)` to read ahead.

    Columns are numbers, truth values, texts, bytes, dates and timestamps (as whole numbers) and lists of numbers that have one
    length. Numbers that may be null become floating-point ones.
    """
    epochs = Epochs(
        source,
        uri,
        column=column,
        partitions=partitions,
        batch_size=batch_size,
        shuffle_buffer=shuffle_buffer,
        seed=seed,
        drop_last=drop_last,
        **connection,
    )
    kinds = {field.name: _dtype(field) for field in epochs.schema}
    rows = batch_size if drop_last else None
    signature = {
        field.name: tf.TensorSpec((rows, *_inner(field.type)), kinds[field.name], name=field.name) for field in epochs.schema
    }

    def batches() -> Iterator[Arrays]:
        for batch in epochs.batches(epoch, shard, shards):
            yield {name: _fitted(array, kinds[name], name) for name, array in batch.items()}

    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def _dtype(field: pa.Field) -> Any:
    kind = field.type
    if _is_list(kind):
        return _dtype(pa.field(field.name, kind.value_type, nullable=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return tf.string
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return tf.int64
    if pa.types.is_boolean(kind):
        return tf.bool
    if pa.types.is_floating(kind):
        return tf.as_dtype(kind.to_pandas_dtype())
    if pa.types.is_integer(kind):
        return tf.float64 if field.nullable else tf.as_dtype(kind.to_pandas_dtype())
    raise InterfaceError(f"column `{field.name}` has type {kind}, which no tensor has", hint="leave it out, or cast it")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _inner(kind: pa.DataType) -> tuple[int | None, ...]:
    if pa.types.is_fixed_size_list(kind):
        return (int(kind.list_size),)
    return (None,) if _is_list(kind) else ()


def _fitted(array: Any, dtype: Any, name: str) -> Any:
    if array.dtype.kind in "Mm":
        return array.view("int64")
    if dtype == tf.string:
        missing = "" if any(isinstance(value, str) for value in array) else b""
        return [missing if value is None else value for value in array]
    if array.dtype.kind == "O":
        raise InterfaceError(f"column `{name}` has nulls, or lists of different lengths, which no tensor has")
    return array.astype(dtype.as_numpy_dtype, copy=False)
