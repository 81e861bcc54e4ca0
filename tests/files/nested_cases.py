"""Files with nested columns, and the rows that they have."""

import io
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq


def nested_files():
    """Nested columns, in files of several row groups and pages."""
    rows = [
        {"n": n, "v": {"a": [n, None] if n % 3 else None, "b": {"c": "x" * (n % 5), "d": [{"e": n}] if n % 2 else []}},
         "w": [[1.5, n], []] if n % 7 else None}
        for n in range(300)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    values = [[row["n"], row["v"], row["w"]] for row in rows]
    for version in ["1.0", "2.0"]:
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=64, data_page_size=256, data_page_version=version)
        yield f"parquet-nested-{version[0]}", "parquet", sink.getvalue(), values
    sink = io.BytesIO()
    pa.feather.write_feather(table, sink, compression="lz4")
    yield "arrow-nested", "arrow", sink.getvalue(), values
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    yield "json-nested", "json", lines.encode(), values
