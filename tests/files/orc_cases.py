"""Files of ORC: one column of each type, packed in each way, and runs of every kind. Arrow's own reader says what is in them."""

import datetime
import decimal
import io
import random

import pyarrow as pa
import pyarrow.orc as orc

PACKINGS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]


def columns():
    day, moment = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 10, 0, 0, 123456)
    old = datetime.datetime(1969, 12, 31, 23, 59, 58, 5000)
    return {
        "int8": pa.array([1, -2, None], pa.int8()),
        "int16": pa.array([1, -30_000, None], pa.int16()),
        "int32": pa.array([1, -2_000_000_000, None], pa.int32()),
        "int64": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
        "float32": pa.array([1.5, float("inf"), None], pa.float32()),
        "float64": pa.array([1.5, -0.25, None], pa.float64()),
        "bool": pa.array([True, False, None]),
        "string": pa.array(["a", "ü", None]),
        "binary": pa.array([b"a", b"\x00\xff", None]),
        "date": pa.array([day, None, datetime.date(1900, 1, 1)], pa.date32()),
        "timestamp": pa.array([moment, None, old], pa.timestamp("us")),
        "instant": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
        "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-99.99")], pa.decimal128(10, 2)),
        "wide-decimal": pa.array([decimal.Decimal(10**30), None, decimal.Decimal(-1)], pa.decimal128(38, 0)),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
        "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
        "nothing": pa.array([None, None, None], pa.int32()),
    }


def runs():
    """Numbers that are written in runs of every kind, over several stripes."""
    chance = random.Random(7)
    count = 10_000
    return pa.table({
        "n": pa.array(range(count), pa.int64()),
        "steady": pa.array([7] * count, pa.int32()),
        "falling": pa.array([-3 * n for n in range(count)], pa.int64()),
        "uneven": pa.array([n * 5 + chance.randrange(4) for n in range(count)], pa.int64()),
        "random": pa.array([chance.randrange(-(2**62), 2**62) for _ in range(count)], pa.int64()),
        "peaks": pa.array([chance.randrange(100) + (10**12 if n % 97 == 0 else 0) for n in range(count)], pa.int64()),
        "word": pa.array([f"word {chance.randrange(20)}" if n % 3 else None for n in range(count)]),
        "text": pa.array(["x" * (n % 40) + str(n) for n in range(count)]),
        "flag": pa.array([None if n % 11 == 0 else n % 5 == 0 for n in range(count)]),
        "tiny": pa.array([n // 100 % 120 for n in range(count)], pa.int8()),
        "deep": pa.array([[{"a": n, "b": [str(n)] * (n % 3)}] * (n % 4) if n % 7 else None for n in range(count)]),
        "at": pa.array([datetime.datetime(1969, 6, 1) + datetime.timedelta(seconds=n * 36_001, microseconds=n) for n in range(count)]),
    })  # fmt: skip


def written(table, **options):
    sink = io.BytesIO()
    orc.write_table(table, sink, **options)
    return sink.getvalue()


def orc_files():
    """Name, bytes and rows of each."""
    for name, column in columns().items():
        table = pa.table({"n": pa.array(range(3), pa.int64()), "v": column})
        for packed in PACKINGS:
            content = written(table, compression=packed)
            yield f"orc-{name}-{packed}", content, rows_of(content)
    table = runs()
    for name, options in [
        ("plain", {"compression": "uncompressed", "stripe_size": 200_000, "batch_size": 512}),
        ("words", {"compression": "zstd", "dictionary_key_size_threshold": 1.0, "stripe_size": 200_000}),
        ("blocks", {"compression": "zlib", "compression_block_size": 65536}),
        ("old", {"file_version": "0.11", "compression": "snappy"}),
    ]:
        content = written(table, **options)
        yield f"orc-runs-{name}", content, rows_of(content)
    # Whose clock the times are of stands in the footer of the stripe: that of another zone, with summer and winter.
    times = pa.table({"at": table["at"].combine_chunks().take(pa.array(range(0, 10_000, 9)))})
    content = written(times, compression="uncompressed")
    zone = content.replace(b"\x1a\x03GMT", b"\x1a\x03CET")
    assert zone != content
    yield "orc-zone", zone, rows_of(zone)
    content = written(table.slice(0, 0))
    yield "orc-no-rows", content, []


def rows_of(content):
    """What Arrow's reader has of it."""
    table = orc.read_table(io.BytesIO(content))
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns))]
