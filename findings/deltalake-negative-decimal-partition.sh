#!/bin/sh
# A table is lost once a decimal such as -2.25 is added to its column of partitions: the library writes that value as "-2.-25", adds it to the
# log, then fails to read it, and from then on opens none of the table, the rows that were there before included.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import decimal
import json
import pathlib

import deltalake
import pyarrow as pa

print("deltalake", deltalake.__version__)


def append(text):
    row = pa.table({"d": pa.array([decimal.Decimal(text)], pa.decimal128(5, 2)), "n": [1]})
    deltalake.write_deltalake("table", row, partition_by=["d"], mode="append")


def refused(what, act):
    try:
        act()
    except deltalake.exceptions.DeltaError as error:
        print(what, "->", str(error).splitlines()[0])
        assert "'-2.-25'" in str(error)
    else:
        raise SystemExit("no longer refused")


for text in ("2.25", "-2.00"):
    append(text)
    print("append of", text, "->", deltalake.DeltaTable("table").to_pyarrow_table().num_rows, "rows")
refused("append of -2.25", lambda: append("-2.25"))
refused("opening the table", lambda: deltalake.DeltaTable("table").to_pyarrow_table())
log = pathlib.Path("table/_delta_log/00000000000000000002.json").read_text().splitlines()
values = [json.loads(line)["add"]["partitionValues"] for line in log if '"add"' in line]
print("in the log:", values)
assert values == [{"d": "-2.-25"}]
END
