#!/bin/sh
# `delete` of `i != 2` removes rows where i is NULL if the table is partitioned by i, and leaves them if it is not. `scan` finds them by that
# condition in neither.
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
rows = pa.table({"i": [1, 2, None]})


def seen(name, partitioned):
    """What a scan finds, and what a delete by the same condition leaves."""
    table = catalog.create_table(name, schema=rows.schema)
    if partitioned:
        with table.update_spec() as spec:
            spec.add_identity("i")
    table.append(rows)
    found = table.scan("i != 2").to_arrow()["i"].to_pylist()
    table.delete("i != 2")
    left = table.scan().to_arrow()["i"].to_pylist()
    print("partitioned" if partitioned else "in one", "-> found:", found, "left:", left)
    return found, left


found, left = seen("n.whole", False)
assert found == [1] and set(left) == {2, None}
assert seen("n.parts", True) == ([1], [2])
END
