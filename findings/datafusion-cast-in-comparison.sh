#!/bin/sh
# A comparison of a cast decimal is computed without the cast: 2.4 as an integer is 2, and greater than 2.
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
context.sql("CREATE TABLE t AS SELECT x::DECIMAL(6, 2) AS x FROM (VALUES (2.4)) AS v(x)").collect()


def seen(sql, *rows):
    """What a statement gives, which has to be these rows."""
    given = [tuple(row.values()) for row in context.sql(sql).to_arrow_table().to_pylist()]
    print(sql, "->", given)
    assert given == list(rows), f"no longer {list(rows)}"


seen("SELECT x::INT AS y, x::INT > 2 AS greater, x::INT + 0 > 2 AS computed FROM t", (2, True, False))
seen("SELECT x::INT AS y FROM t WHERE x::INT > 2", (2,))
END
