#!/bin/sh
# The first row of a sorted UNION ALL is not the first of its rows: a column that is constant in each part is left out of the keys.
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


union = "SELECT 1 AS part, a FROM (VALUES (1), (2)) AS s(a) UNION ALL SELECT 2, a FROM (VALUES (5), (6)) AS t(a)"
seen(f"{union} ORDER BY 1 DESC, 2", (2, 5), (2, 6), (1, 1), (1, 2))
seen(f"{union} ORDER BY 1 DESC, 2 LIMIT 1", (1, 1))
END
