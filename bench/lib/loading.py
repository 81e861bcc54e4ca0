"""Parquet files into the tables of databases that keep rows: the types of their columns, and CSV batch by batch."""

import io
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds

TEXT_LIMIT = 255
BATCH_ROWS = 131_072


def source(path: str) -> ds.Dataset:
    """A Parquet file, or a folder of them."""
    return ds.dataset(path, format="parquet")


def batches(path: str, **options):
    """Read ahead by two batches only, and memory given back: the bench lives on beside clients that need all there is."""
    yield from source(path).to_batches(batch_readahead=2, fragment_readahead=1, **options)
    pa.default_memory_pool().release_unused()


def as_csv(path: str):
    """The rows as CSV without a header, in pieces of some megabytes."""
    for batch in batches(path, batch_size=BATCH_ROWS):
        text = io.BytesIO()
        csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
        yield text.getbuffer()


def columns(path: str, double: str, instant: str) -> list:
    """Name and SQL type of each column; `double` and `instant` are the database's names of those types."""
    return [(field.name, sql_type(path, field, double, instant)) for field in source(path).schema]


def sql_type(path: str, field: pa.Field, double: str, instant: str) -> str:
    kind = field.type
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return instant
    if pa.types.is_floating(kind):
        return double
    if pa.types.is_integer(kind):
        return {8: "SMALLINT", 16: "SMALLINT", 32: "INT"}.get(kind.bit_width, "BIGINT")
    return text_type(path, field.name)


def text_type(path: str, name: str) -> str:
    """VARCHAR of the longest text, or TEXT."""
    longest = 1
    for batch in batches(path, columns=[name]):
        longest = max(longest, pc.max(pc.utf8_length(batch.column(0))).as_py() or 1)
    return f"VARCHAR({longest})" if longest <= TEXT_LIMIT else "TEXT"


def create_table(name: str, described: list) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in described)})"


def write_csv(path: str, target: pathlib.Path) -> None:
    with open(target, "wb") as out:
        for piece in as_csv(path):
            out.write(piece)
