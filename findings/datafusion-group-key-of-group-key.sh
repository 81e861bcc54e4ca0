#!/bin/sh
# A grouping key that is computed from another key is left out, although it tells rows apart that the other key does not: 0.0 and -0.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import datafusion
import pyarrow as pa

print("datafusion", datafusion.__version__)
context = datafusion.SessionContext()
context.register_record_batches("t", [pa.table({"x": [0.0, -0.0, 0.0]}).to_batches()])


def seen(sql, *rows):
    """What a statement gives, which has to be these rows, in any order."""
    given = sorted(tuple(row.values()) for row in context.sql(sql).to_arrow_table().to_pylist())
    print(sql, "->", given)
    assert given == sorted(rows), f"no longer {list(rows)}"


angle = "round(atan2(x, -1))"
seen(f"SELECT DISTINCT x = 0 AS zero, {angle} AS angle FROM t", (True, -3.0), (True, 3.0))
seen(f"SELECT {angle} AS angle, count(*) AS n FROM t GROUP BY {angle}", (-3.0, 1), (3.0, 2))
seen(f"SELECT {angle} AS angle, count(*) AS n FROM t GROUP BY x, {angle}", (3.0, 3))
END
