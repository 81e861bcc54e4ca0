#!/bin/sh
# Two lists of distinct values in one statement, one up and one down, come back in the same order: where two aggregates want
# opposite orders, one is turned round to share a sort, and with DISTINCT its values are then sorted like those of the other.
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
seen(f"SELECT array_agg(DISTINCT k ORDER BY k) AS up, array_agg(DISTINCT k ORDER BY k DESC) AS down {values}", ([1, 3], [1, 3]))
# Each alone, and both without DISTINCT, are in the order that was asked for.
seen(f"SELECT array_agg(DISTINCT k ORDER BY k DESC) AS down {values}", ([3, 1],))
seen(f"SELECT array_agg(k ORDER BY k) AS up, array_agg(k ORDER BY k DESC) AS down {values}", ([1, 1, 3], [3, 1, 1]))
END
