#!/bin/sh
# `i = 1.5` finds 2 in a column of integers, and `i > 1.5` does not: the number of a condition is rounded to an integer, half to even, before it
# is compared.
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

rows = pa.table({"i": [1, 2, 3]})
table = catalog.create_table("n.t", schema=rows.schema)
table.append(rows)


def seen(condition):
    numbers = table.scan(row_filter=condition).to_arrow()["i"].to_pylist()
    print(condition, "->", numbers)
    return numbers


assert seen("i = 1.5") == [2]
assert seen("i > 1.5") == [3]
assert seen("i < 2.5") == [1]
assert seen("i in (1.5, 7.5)") == [2]
END
