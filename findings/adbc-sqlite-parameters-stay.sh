#!/bin/sh
# A cursor keeps the parameters of a statement that failed, and refuses the next one, which has none, for having too many.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check adbc-driver-sqlite==1.13.0 adbc-driver-manager==1.13.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import decimal

import adbc_driver_sqlite
import adbc_driver_sqlite.dbapi as dbapi

print("adbc-driver-sqlite", adbc_driver_sqlite.__version__)
with dbapi.connect() as connection, connection.cursor() as cursor:
    for sql, parameters in (("SELECT ?", (decimal.Decimal("1.10"),)), ("SELECT 1", None)):
        try:
            cursor.execute(sql, parameters)
            print(sql, "->", cursor.fetchall())
        except dbapi.Error as error:
            print(sql, "->", error)
            said = str(error)
        else:
            said = ""
    assert "parameter count mismatch: expected 0 but found 1" in said, "no longer refused"
    with connection.cursor() as other:
        other.execute("SELECT 1")
        assert other.fetchall() == [(1,)]
END
