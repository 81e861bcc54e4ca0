#!/bin/sh
# Conditions over a Parquet file lose NaN, and find it over the same rows in memory: bounds of a row group know nothing of NaN, and are
# believed to tell all of its values. pyarrow reads what it has written itself, with `x != 1`, and DuckDB counts what `isnan` says.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 duckdb==2.0.1 polars==2.1.0
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

print("pyarrow", pa.__version__, "duckdb", duckdb.__version__, "polars", polars.__version__)
nan = float("nan")
with pq.ParquetWriter("file.parquet", pa.schema([("x", pa.float64())])) as file:
    for numbers in ([1.0, nan], [2.0, 2.0]):
        file.write_table(pa.table({"x": numbers}))
rows = pq.read_table("file.parquet")


def seen(what, in_memory, from_file):
    print(f"{what}: {in_memory} rows in memory, {from_file} of the file")
    return in_memory, from_file


def arrow(condition):
    return rows.filter(condition).num_rows, pyarrow.dataset.dataset("file.parquet").to_table(filter=condition).num_rows


def duck(condition):
    sql = f"SELECT count(*) FROM {{}} WHERE {condition}"
    return [duckdb.sql(sql.format(source)).fetchall()[0][0] for source in ("rows", "'file.parquet'")]


assert seen("pyarrow, x != 1", *arrow(pc.field("x") != 1)) == (3, 2)
assert seen("pyarrow, not x >= 1", *arrow(~(pc.field("x") >= 1))) == (1, 0)
assert seen("duckdb, isnan(x)", *duck("isnan(x)")) == (1, 0)
assert seen("duckdb, x > 1", *duck("x > 1")) == (3, 2)
condition = polars.col("x").is_nan()
assert seen("polars, is_nan", rows["x"].to_pylist().count(1.0), polars.scan_parquet("file.parquet").filter(condition).collect().height) == (1, 1)
END
