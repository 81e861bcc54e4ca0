#!/bin/sh
# `delete` of a condition that is NULL for each row removes each row: `i = NULL`, which SQL never takes for true. `update` with the same
# condition touches none, and `delete` of a plain `NULL` removes none.
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


def left(condition):
    """What a delete leaves of three rows."""
    shutil.rmtree("table", ignore_errors=True)
    deltalake.write_deltalake("table", pa.table({"i": [1, 2, None]}))
    removed = deltalake.DeltaTable("table").delete(condition)["num_deleted_rows"]
    rows = deltalake.DeltaTable("table").to_pyarrow_table()["i"].to_pylist()
    print("delete", condition, "->", removed, "rows removed, left:", rows)
    return rows


for condition in ("i = NULL", "NOT (i = NULL)", "i + NULL = 1"):
    assert left(condition) == [], "no longer removed"
assert left("NULL") == left("i = 1 AND NULL") == [1, 2, None]
deltalake.DeltaTable("table").update({"i": "9"}, predicate="i = NULL")
assert deltalake.DeltaTable("table").to_pyarrow_table()["i"].to_pylist() == [1, 2, None]
END
