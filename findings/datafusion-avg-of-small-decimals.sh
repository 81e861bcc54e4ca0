#!/bin/sh
# The mean of 30 equal decimals of 32 bits is an error: their sum is kept in 32 bits.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import decimal

import datafusion
import pyarrow as pa

print("datafusion", datafusion.__version__)
context = datafusion.SessionContext()
number = decimal.Decimal("99999999.9")
for name, kind in (("small", pa.decimal32(9, 1)), ("large", pa.decimal128(9, 1))):
    context.register_record_batches(name, [pa.table({"x": pa.array([number] * 30, kind)}).to_batches()])

given = context.sql("SELECT avg(x) AS a FROM large").to_arrow_table().to_pylist()
print("128 bits ->", given)
assert given == [{"a": number}], "no longer the number"
try:
    given = context.sql("SELECT avg(x) AS a FROM small").to_arrow_table().to_pylist()
except Exception as error:
    print("32 bits ->", error)
    assert "Overflow" in str(error), "another error"
else:
    raise AssertionError(f"no longer an error: {given}")
END
