#!/bin/sh
# The last nanosecond of a year, which is how pandas ends one, is in the next year to `year` and in its own to `date_part`: some functions
# round nanoseconds to microseconds first, so that `date_trunc` gives a later time, and the day and the hour are of two days.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import duckdb

print("duckdb", duckdb.__version__)


def seen(expression):
    value = str(duckdb.sql(f"SELECT {expression} FROM (SELECT TIMESTAMP_NS '2024-12-31 23:59:59.999999999' AS x)").fetchall()[0][0])
    print(expression, "->", value)
    return value


assert seen("x::VARCHAR") == "2024-12-31 23:59:59.999999999"
assert seen("year(x)") == "2025" and seen("date_part('year', x)") == "2024"
assert seen("day(x)") == "1" and seen("hour(x)") == "23"
assert seen("x::DATE") == "2025-01-01" and seen("strftime(x, '%Y-%m-%d')") == "2024-12-31"
assert seen("date_trunc('day', x) > x") == "True"
END
