#!/bin/sh
# A slice of an Arrow array whose lists all have one size does not become a series if one of its lists is NULL; the whole array does, and so
# does a copy of the slice.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import polars
import pyarrow as pa

print("polars", polars.__version__, "pyarrow", pa.__version__)
whole = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))


def seen(what, array):
    try:
        said = polars.from_arrow(array).to_list()
    except polars.exceptions.ComputeError as error:
        said = str(error)
    print(what, "->", said)
    return said


assert seen("whole", whole) == [[1, 2], None, [3, 4]]
assert "validity mask length" in seen("slice", whole.slice(1))
assert seen("copy of the slice", whole.slice(1).take(pa.array([0, 1]))) == [None, [3, 4]]
assert seen("slice of lists", whole.cast(pa.list_(pa.int64())).slice(1)) == [None, [3, 4]]
END
