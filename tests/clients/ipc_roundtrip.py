"""Compares the data plane with Arrow C++ in both directions, through pyarrow.

    cargo run -p bowshot-ipc --example emit_stream -- FOLDER
    python tests/clients/ipc_roundtrip.py FOLDER

First direction: every stream that our encoder wrote into FOLDER/rust must be what pyarrow reads from the array that
Arrow's own writer wrote beside it, schema metadata included. Second direction: pyarrow writes streams of every type it
can make into FOLDER/python, our decoder reads them, our encoder writes them again, and pyarrow compares.

Exit code 0 if everything is equal, 1 otherwise. The last line counts.
"""

import itertools
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.ipc

import data

ROWS = 200


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
    """Name and array of every type that Python can make, long enough for odd offsets in the caller."""
    for name, column in data.all_types().items():
        yield name, pa.concat_arrays([column] * (ROWS // len(column)))
    texts = pa.array([None if n % 7 == 3 else "bow→shot" * (n % 4) + str(n % 20) for n in range(ROWS)])
    yield "long texts", texts
    for key in (pa.uint16(), pa.int64()):
        yield f"dictionary {key}", texts.dictionary_encode().cast(pa.dictionary(key, pa.utf8()))
    ends = pa.array(range(2, ROWS + 2, 2), pa.int16())
    yield "run_end short", pa.RunEndEncodedArray.from_arrays(ends, texts.slice(0, ROWS // 2))


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
            if not (how in ("V4", "old") and ("union" in name or "run_end" in name)):
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
    checks = {"Rust to Python": check_rust(folder / "rust"), "Python to Rust and back": check_python(folder / "python", program)}
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
