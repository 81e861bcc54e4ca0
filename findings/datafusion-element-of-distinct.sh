#!/bin/sh
# The second of the distinct values is a repeated first one: an element of array_agg is planned as nth_value, which takes no
# notice of DISTINCT. The same element of the list that a subquery makes is right.
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


values = "FROM (VALUES (3), (1), (1)) AS v(k)"
seen(f"SELECT array_agg(DISTINCT k ORDER BY k)[2] AS second {values}", (1,))
seen(f"SELECT l[2] AS second FROM (SELECT array_agg(DISTINCT k ORDER BY k) AS l {values})", (3,))
END
