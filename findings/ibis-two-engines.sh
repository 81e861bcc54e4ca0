#!/bin/sh
# One expression of Ibis, which is there to mean the same everywhere, has two results: `nunique` counts NULL with polars and not with DuckDB, a
# reference to a group of a pattern is replaced in DuckDB only, and `notin` of a column with NULL holds for no row in DuckDB only.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check "ibis-framework[duckdb,polars]==12.0.0" duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1 sqlglot==30.30.0
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import ibis
import pyarrow as pa

print("ibis", ibis.__version__)
rows = ibis.memtable(pa.table({"x": [1, 1, None], "s": ["ab", None, "b"], "y": [-5, 5, 7]}))
engines = {"duckdb": ibis.duckdb.connect(), "polars": ibis.polars.connect()}


def seen(what, expression):
    said = []
    for name, engine in engines.items():
        result = engine.to_pyarrow(expression)
        said.append(result.as_py() if isinstance(result, pa.Scalar) else result.to_pylist())
        print(what, "with", name, "->", said[-1])
    return said


assert seen("x.nunique()", rows.x.nunique()) == [1, 2]
assert seen("s.re_replace('(a)', '<\\1>')", rows.s.re_replace("(a)", "<\\1>")) == [["<a>b", None, "b"], ["<\\1>b", None, "b"]]
assert seen("y not in x", rows.filter(rows.y.notin(rows.x)).y) == [[], [-5, 5, 7]]
END
