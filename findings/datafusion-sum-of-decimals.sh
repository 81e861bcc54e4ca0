#!/bin/sh
# The sum of two large decimals is a negative number: it wraps around behind the 38 digits, without an error.
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


import decimal

large = "'9999999999999999999999999999'::DECIMAL(38, 10)"
seen(f"SELECT sum(x) FROM (VALUES ({large}), ({large})) AS t(x)", (decimal.Decimal("-14028236692093846346337460745.1768211456"),))
END
