#!/bin/sh
# A row of a FULL JOIN is gone when a condition names it by the columns that both sides call the same.
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


join = "SELECT a.x, b.x{} FROM (VALUES (1, 1)) AS a(x, y) FULL JOIN (VALUES (2, 2)) AS b(x, y) ON a.y = b.y WHERE {}"
seen(join.format(" AS bx", "a.x IS NULL"), (None, 2))
seen(join.format(" AS bx", "b.y > 1"), (None, 2))
seen(join.format("", "a.x IS NULL AND b.y > 1"))
END
