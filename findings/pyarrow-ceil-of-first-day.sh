#!/bin/sh
# The first day of a month, rounded up to months, is the first day of the next one; so are quarters and years, and `ceil_is_strictly_greater`
# makes no difference. Days and weeks stay where they are, as its documentation says of all units.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import datetime

import pyarrow as pa
import pyarrow.compute as pc

print("pyarrow", pa.__version__)
first = pa.scalar(datetime.datetime(2024, 1, 1))


def seen(unit, **options):
    day = pc.ceil_temporal(first, unit=unit, **options).as_py()
    print(unit, options, "->", day.date())
    return str(day.date())


assert seen("day") == seen("week") == "2024-01-01"
for unit, following in (("month", "2024-02-01"), ("quarter", "2024-04-01"), ("year", "2025-01-01")):
    assert seen(unit, ceil_is_strictly_greater=False) == seen(unit, ceil_is_strictly_greater=True) == following
assert pc.floor_temporal(first, unit="month") == first
END
