#!/bin/sh
# Of grouped rows, the largest of infinities is a finite number, and which of NaN and a number is larger the order of the rows
# decides. Without groups neither is so.
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


seen("SELECT max(x) FROM (VALUES ('-inf'::DOUBLE)) AS t(x)", (float("-inf"),))
seen("SELECT max(x) FROM (VALUES (1, '-inf'::DOUBLE)) AS t(g, x) GROUP BY g", (-1.7976931348623157e308,))
largest = "SELECT isnan(max(x)) FROM (VALUES {}) AS t(g, x)"
nan, one = "(1, 'nan'::DOUBLE)", "(1, 1.0::DOUBLE)"
seen(largest.format(f"{nan}, {one}"), (True,))
seen(largest.format(f"{nan}, {one}") + " GROUP BY g", (False,))
seen(largest.format(f"{one}, {nan}") + " GROUP BY g", (True,))
END
