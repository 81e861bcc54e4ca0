#!/bin/sh
# CASE WHEN x <> 0 THEN 10 / x > 1 END divides by zero: it becomes AND and OR, whose sides are computed for all rows.
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


case = "SELECT CASE WHEN x <> 0 THEN 10 / x {} END FROM (VALUES (0), (2)) AS t(x)"
seen(case.format(""), (None,), (5,))
try:
    print(context.sql(case.format("> 1")).to_arrow_table())
except Exception as error:
    print(case.format("> 1"), "->", error)
    assert "Divide by zero" in str(error)
else:
    raise SystemExit("no longer an error")
END
