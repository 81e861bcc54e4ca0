#!/bin/sh
# A field of a struct that is NULL has a value, and a list that is NULL has elements once something is appended to it: `nullif` leaves
# the values where they are, and both functions read them.
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


structs = "(SELECT nullif(s, named_struct('a', 2)) AS s FROM (SELECT named_struct('a', x) AS s FROM (VALUES (2)) AS t(x)))"
seen(f"SELECT s IS NULL, s['a'] FROM {structs}", (True, 2))
lists = "(SELECT nullif(l, [2, 2]) AS l FROM (SELECT [x, x] AS l FROM (VALUES (2)) AS t(x)))"
seen(f"SELECT l IS NULL, array_append(l, 9) FROM {lists}", (True, [2, 2, 9]))
# What CASE makes NULL has nothing below.
seen("SELECT array_append(CASE WHEN x = 1 THEN [x, x] END, 9) FROM (VALUES (2)) AS t(x)", ([9],))
END
