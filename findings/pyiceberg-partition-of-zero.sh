#!/bin/sh
# Rows come twice in a table that is partitioned by a number: where both 0.0 and -0.0 are added, each partition gets the rows of both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check "pyiceberg[sql-sqlite,pyiceberg-core]==0.12.0" pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import os

import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

print("pyiceberg", pyiceberg.__version__)
catalog = SqlCatalog("c", uri="sqlite:///catalog.db", warehouse=f"file://{os.getcwd()}")
catalog.create_namespace("n")
rows = pa.table({"x": [0.0, -0.0, 1.0], "n": [1, 2, 3]})


def seen(name, partitioned):
    table = catalog.create_table(name, schema=rows.schema)
    if partitioned:
        with table.update_spec() as spec:
            spec.add_identity("x")
    table.append(rows)
    numbers = sorted(table.scan().to_arrow()["n"].to_pylist())
    print("partitioned" if partitioned else "in one", "->", numbers)
    return numbers


assert seen("n.whole", False) == [1, 2, 3]
assert seen("n.parts", True) == [1, 1, 2, 2, 3]
END
