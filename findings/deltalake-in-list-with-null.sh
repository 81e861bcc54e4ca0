#!/bin/sh
# A query of a partitioned table finds each row by `part IN (1, NULL)`, and finds one by `NOT IN (1, NULL)`, which SQL never takes for true. Without
# partitions the former is right, the latter is not.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import shutil

import deltalake
import pyarrow as pa

print("deltalake", deltalake.__version__)


def seen(condition, partition_by=None):
    shutil.rmtree("table", ignore_errors=True)
    deltalake.write_deltalake("table", pa.table({"part": [1, 2, None], "n": [1, 2, 3]}), partition_by=partition_by)
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable("table"))
    numbers = pa.table(builder.execute(f"SELECT n FROM t WHERE {condition} ORDER BY n").read_all())["n"].to_pylist()
    print(condition, "partitioned by", partition_by, "->", numbers)
    return numbers


assert seen("part IN (1, NULL)") == [1]
assert seen("part IN (1, NULL)", ["part"]) == [1, 2, 3]
assert seen("part = 1 OR part = NULL", ["part"]) == [1, 2, 3]
assert seen("part NOT IN (1, NULL)") == [2]
assert seen("part NOT IN (1, NULL)", ["part"]) == [2]
END
