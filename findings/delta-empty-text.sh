#!/bin/sh
# One Delta table has two contents: the empty text in a column of partitions is NULL to the library that wrote it, as the protocol says, and an
# empty text to polars.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 polars==2.1.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import deltalake
import polars
import pyarrow as pa

print("deltalake", deltalake.__version__, "polars", polars.__version__)
deltalake.write_deltalake("table", pa.table({"part": ["", "a", None], "v": [1, 2, 3]}), partition_by=["part"])


def seen(reader, rows):
    parts = [row["part"] for row in sorted(rows, key=lambda row: row["v"])]
    print(reader, "reads", parts)
    return parts


assert seen("deltalake", deltalake.DeltaTable("table").to_pyarrow_table().to_pylist()) == [None, "a", None]
assert seen("polars", polars.read_delta("table").to_dicts()) == ["", "a", None]
END
