#!/bin/sh
# `x not in (1, 2)` keeps rows where x is NULL, `x not in (1)` and `x != 1` leave them out: the shorter list asks for more.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check "pyiceberg[sql-sqlite]==0.12.0" pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import os

import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

print("pyiceberg", pyiceberg.__version__)
catalog = SqlCatalog("c", uri="sqlite:///catalog.db", warehouse=f"file://{os.getcwd()}")
catalog.create_namespace("n")

rows = pa.table({"x": [1.0, None, 3.0]})
table = catalog.create_table("n.t", schema=rows.schema)
table.append(rows)


def seen(condition):
    numbers = table.scan(row_filter=condition).to_arrow()["x"].to_pylist()
    print(condition, "->", numbers)
    return numbers


assert seen("x not in (1, 2)") == [None, 3.0]
assert seen("x not in (1)") == [3.0]
assert seen("x != 1 and x != 2") == [3.0]
END
