"""Compares the data plane with Arrow C++ in both directions, through pyarrow.

    cargo run -p bowshot-ipc --example emit_stream -- FOLDER
    python tests/clients/ipc_roundtrip.py FOLDER

First direction: every stream that our encoder wrote into FOLDER/rust must be what pyarrow reads from the array that
Arrow's own writer wrote beside it, schema metadata included. Second direction: pyarrow writes streams of every type it
can make into FOLDER/python, our decoder reads them, our encoder writes them again, and pyarrow compares.

Exit code 0 if everything is equal, 1 otherwise. The last line counts.
"""

import datetime
import decimal
import itertools
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.ipc


def read_stream(path):
    with pa.ipc.open_stream(path) as reader:
        return reader.schema, list(reader)


def same(schema, batches, expected_schema, expected):
    """What differs, or None. Batches may be cut differently; their rows may not differ."""
    if not schema.equals(expected_schema, check_metadata=True):
        return f"schema\n{schema}\ninstead of\n{expected_schema}"
    for batch in itertools.chain(batches, expected):
        batch.validate(full=True)
    rows, expected_rows = (sum(batch.num_rows for batch in part) for part in (batches, expected))
    if rows != expected_rows:
        return f"{rows} rows instead of {expected_rows}"
    # Walk over the pieces that both sides have in one batch each.
    left, right = list(batches), list(expected)
    while left and right:
        piece = min(left[0].num_rows, right[0].num_rows)
        if not left[0].slice(0, piece).equals(right[0].slice(0, piece)):
            return f"values\n{left[0].slice(0, piece)}\ninstead of\n{right[0].slice(0, piece)}"
        for side in (left, right):
            side[0] = side[0].slice(piece)
            if side[0].num_rows == 0:
                side.pop(0)
    return None


def check_rust(folder):
    """Our streams against Arrow's files."""
    for line in (folder / "index.tsv").read_text().splitlines():
        number, start, rows, name = line.split("\t")
        with pa.ipc.open_file(folder / f"{number}.whole.arrow") as reader:
            whole = [reader.get_batch(index) for index in range(reader.num_record_batches)]
            expected = [batch.slice(int(start), int(rows)) for batch in whole]
            expected_schema = reader.schema
        schema, batches = read_stream(folder / f"{number}.ours.arrows")
        yield name, same(schema, batches, expected_schema, expected)


def arrays():
    """Name and array of every type that Python can make, with nulls, and at odd offsets in the caller."""
    numbers = [None if n % 5 == 2 else n * 7 % 128 for n in range(200)]
    texts = [None if n % 7 == 3 else "bow→shot" * (n % 4) + str(n) for n in range(200)]
    yield "null", pa.nulls(200)
    yield "bool", pa.array([None if n is None else n % 3 == 0 for n in numbers])
    for kind in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64):
        yield str(kind()), pa.array(numbers, kind())
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        yield str(kind), pa.array(numbers).cast(pa.float64()).cast(kind)
    for kind in (pa.utf8(), pa.large_utf8(), pa.string_view()):
        yield str(kind), pa.array(texts, kind)
    raw = [None if text is None else text.encode() for text in texts]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(kind), pa.array(raw, kind)
    yield "fixed binary", pa.array([None if n is None else bytes([n] * 3) for n in numbers], pa.binary(3))
    for kind in (pa.date32(), pa.time32("s"), pa.time32("ms")):
        yield str(kind), pa.array(numbers, pa.int32()).cast(kind)
    for kind in (pa.time64("us"), pa.time64("ns")):
        yield str(kind), pa.array(numbers, pa.int64()).cast(kind)
    day = datetime.date(2020, 2, 28)
    yield "date64", pa.array([None if n is None else day + datetime.timedelta(n) for n in numbers], pa.date64())
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC", "+02:00", "Europe/Berlin")):
        yield f"timestamp {unit} {zone}", pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, zone))
    for unit in ("s", "ms", "us", "ns"):
        yield f"duration {unit}", pa.array(numbers, pa.int64()).cast(pa.duration(unit))
    spans = [None if n is None else pa.MonthDayNano([n, -n, n * 1000]) for n in numbers]
    yield "interval", pa.array(spans, pa.month_day_nano_interval())
    amounts = [None if n is None else decimal.Decimal(n) / 8 for n in numbers]
    for kind in (pa.decimal32(9, 3), pa.decimal64(18, 3), pa.decimal128(38, 3), pa.decimal256(76, 3)):
        yield str(kind), pa.array(amounts, kind)
    yield from nested_arrays(numbers, texts)


def nested_arrays(numbers, texts):
    lists = [None if n is None else texts[: n % 4] for n in numbers]
    for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        yield str(kind(pa.utf8())), pa.array(lists, kind(pa.utf8()))
    yield "fixed list", pa.array([None if n is None else [n, None] for n in numbers], pa.list_(pa.int32(), 2))
    deep = [None if n is None else [[n], None, [None]] for n in numbers]
    yield "list of lists", pa.array(deep, pa.list_(pa.list_(pa.int8())))
    rows = [None if n is None else {"n": n, "t": text} for n, text in zip(numbers, texts)]
    yield "struct", pa.array(rows, pa.struct([("n", pa.int32()), ("t", pa.utf8())]))
    yield "list of structs", pa.array([None if n is None else [row] for n, row in zip(numbers, rows)])
    pairs = [None if n is None else [(str(key), key) for key in range(n % 4)] for n in numbers]
    yield "map", pa.array(pairs, pa.map_(pa.utf8(), pa.int16()))
    kinds = pa.array([n % 2 for n in range(200)], pa.int8())
    children = [pa.array(numbers, pa.int32()), pa.array(texts)]
    yield "sparse union", pa.UnionArray.from_sparse(kinds, children, ["n", "t"], [0, 1])
    places = pa.array([n // 2 for n in range(200)], pa.int32())
    yield "dense union", pa.UnionArray.from_dense(kinds, places, children, ["n", "t"], [0, 1])
    values = pa.array([text and text[:8] for text in texts])
    for key in (pa.int8(), pa.int32(), pa.uint16(), pa.int64()):
        yield f"dictionary {key}", values.dictionary_encode().cast(pa.dictionary(key, pa.utf8()))
    ends = pa.array(range(2, 202, 2), pa.int32())
    yield "runs", pa.RunEndEncodedArray.from_arrays(ends, pa.array(texts[:100]))
    yield "short runs", pa.RunEndEncodedArray.from_arrays(ends.cast(pa.int16()), pa.array(numbers[:100]))


def python_streams():
    """Name, schema, batches and options of the streams that pyarrow writes."""
    metadata = {"made by": "pyarrow → bowshot"}
    for name, array in arrays():
        field = pa.field("column é", array.type, metadata={"unit": "m"})
        batch = pa.record_batch([array], schema=pa.schema([field], metadata=metadata))
        parts = [batch.slice(0, 64), batch.slice(67, 100), batch.slice(5, 0), batch.slice(199)]
        for how, options in (
            ("plain", pa.ipc.IpcWriteOptions()),
            ("V4", pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)),
            ("old", pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)),
            ("LZ4", pa.ipc.IpcWriteOptions(compression="lz4")),
            ("Zstandard", pa.ipc.IpcWriteOptions(compression="zstd")),
        ):
            # Version 4 gives unions and runs a bitmap that no version of Arrow C++ or Rust reads back.
            if not (how in ("V4", "old") and ("union" in name or "runs" in name)):
                yield f"{name}, {how}", batch.schema, parts, options
    yield from dictionary_streams()


def dictionary_streams():
    """Dictionaries that grow and that are replaced while the stream runs."""
    kind = pa.dictionary(pa.int32(), pa.utf8())
    schema = pa.schema([pa.field("d", kind)])
    grown = [(["a", "b"], [0, 1, None]), (["a", "b", "c"], [2, 0]), (["a", "b", "c", "d"], [3])]
    other = [(["a", "b"], [0, 1, None]), (["x"], [0, 0]), (["a", "b"], [1])]
    for name, parts, deltas in (("additions", grown, True), ("growth", grown, False), ("replacement", other, False)):
        batches = [
            pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(keys, pa.int32()), values)], schema=schema)
            for values, keys in parts
        ]
        yield f"dictionary {name}", schema, batches, pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)


def check_python(folder, program):
    """pyarrow's streams through our decoder and encoder."""
    folder.mkdir(exist_ok=True)
    for number, (name, schema, batches, options) in enumerate(python_streams()):
        path, back = folder / f"{number}.arrows", folder / f"{number}.back.arrows"
        with pa.ipc.new_stream(path, schema, options=options) as writer:
            for batch in batches:
                writer.write_batch(batch)
        run = subprocess.run([program, "--again", path, back], capture_output=True, text=True)
        if run.returncode != 0:
            yield name, run.stderr
            continue
        yield name, same(*read_stream(back), schema, batches)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    program = (folder / "rust" / "program").read_text()
    checks = {
        "Rust to Python": check_rust(folder / "rust"),
        "Python to Rust and back": check_python(folder / "python", program),
    }
    passed = failed = 0
    for direction, results in checks.items():
        before = passed
        for name, difference in results:
            if difference is None:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {direction}: {name}: {difference}")
        print(f"{direction}, pyarrow {pa.__version__}: {passed - before} equal")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
