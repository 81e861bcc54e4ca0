#!/bin/sh
# `x in (0.0)` finds none of the rows of a Parquet file that has nothing but 0.0, and finds them in memory. The writer lets the least value be
# -0.0, as the format asks; the reader then takes -0.0 for the value of all rows, which `in`, other than `==`, does not hold for 0.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

print("pyarrow", pa.__version__)
rows = pa.table({"x": [0.0, 0.0]})
pq.write_table(rows, "file.parquet")
bounds = pq.ParquetFile("file.parquet").metadata.row_group(0).column(0).statistics
print("bounds:", bounds.min, bounds.max)


def seen(what, condition):
    counts = rows.filter(condition).num_rows, pyarrow.dataset.dataset("file.parquet").to_table(filter=condition).num_rows
    print(what, "->", counts[0], "rows in memory,", counts[1], "of the file")
    return counts


assert seen("x in (0.0)", pc.field("x").isin([0.0])) == (2, 0)
assert seen("x not in (-0.0)", ~pc.field("x").isin([-0.0])) == (2, 0)
assert seen("x == 0.0", pc.field("x") == 0.0) == (2, 2)
filtered = pq.read_table("file.parquet", filters=[("x", "in", [0.0])])
print("read_table:", filtered.num_rows, "rows")
assert filtered.num_rows == 0
END
