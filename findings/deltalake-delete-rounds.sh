#!/bin/sh
# `delete` of `d = 1.499` removes 1.50: the number is rounded to the digits of the column before it is compared. A query by the same library
# and the same condition finds no such row, and by `d > 1.495` one that `delete` leaves.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import decimal
import shutil

import deltalake
import pyarrow as pa

print("deltalake", deltalake.__version__)


def seen(condition):
    """What a query finds by a condition, and what a delete by it removes."""
    shutil.rmtree("table", ignore_errors=True)
    numbers = [decimal.Decimal(text) for text in ("1.49", "1.50", "2.00")]
    deltalake.write_deltalake("table", pa.table({"d": numbers}))
    table = deltalake.DeltaTable("table")
    rows = deltalake.QueryBuilder().register("t", table).execute(f"SELECT d FROM t WHERE {condition} ORDER BY d").read_all()
    found = [str(number) for number in pa.table(rows)["d"].to_pylist()]
    table.delete(condition)
    left = deltalake.DeltaTable("table").to_pyarrow_table()["d"].to_pylist()
    removed = [str(number) for number in numbers if number not in left]
    print(condition, "-> query finds", found, "delete removes", removed)
    return found, removed


assert seen("d = 1.499") == ([], ["1.50"])
assert seen("d > 1.495") == (["1.50", "2.00"], ["2.00"])
assert seen("d <= 1.495") == (["1.49"], ["1.49", "1.50"])
END
