#!/bin/sh
# The largest text of a Parquet file is one of its first rows, and a condition finds none of the rows that are larger: one row
# group has no bounds, since its text is too long for its writer to keep some, and those of the others are taken for the file's.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import datafusion

print("datafusion", datafusion.__version__)
context = datafusion.SessionContext()


def seen(sql, *rows):
    """What a statement gives, which has to be these rows."""
    given = [tuple(row.values()) for row in context.sql(sql).to_arrow_table().to_pylist()]
    print(sql, "->", given)
    assert given == list(rows), f"no longer {list(rows)}"


import pyarrow as pa
import pyarrow.parquet as pq

schema = pa.schema([("x", pa.string())])
with pq.ParquetWriter("file.parquet", schema) as file:
    for texts in (["a", "b"], ["z" * 5000, "c"]):
        file.write_table(pa.table([pa.array(texts)], schema=schema))
metadata = pq.ParquetFile("file.parquet").metadata
print("bounds:", [metadata.row_group(at).column(0).statistics.has_min_max for at in range(2)])

context.register_parquet("t", "file.parquet")
seen("SELECT max(x) FROM t", ("b",))
seen("SELECT count(*) FROM t WHERE x > 'm'", (0,))
# The same over the rows: without the bounds there is one.
seen("SELECT count(*) FROM t WHERE substr(x, 1, 5000) > 'm'", (1,))
END
