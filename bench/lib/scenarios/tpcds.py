"""TPC-DS: the 99 queries over Parquet files that DuckDB's generator makes. PostgreSQL has its own tables, with an index on
the first key of each.
"""

import duckdb
import pyarrow.parquet as pq

from .. import data, duckdb_extensions, tpc
from ..options import Options


def run(options: Options) -> None:
    scale = options.size(0.01, 1, 10)
    tables = parquet(scale)
    first = {name: pq.read_schema(path).names[0] for name, path in tables.items()}
    keys = {name: [column] for name, column in first.items() if column.endswith("_sk")}
    tpc.run("tpcds", tables, keys, scale, options)


def parquet(scale: float) -> dict:
    """One file for each table; path by name."""
    folder = data.FOLDER / f"tpcds-{scale:g}"
    done = data.made(folder / "complete", lambda path: generate(folder, scale, path))
    return {path.stem: str(path) for path in sorted(done.parent.glob("*.parquet"))}


def generate(folder, scale: float, marker) -> None:
    connection = duckdb.connect(str(folder / "generated.db"))
    duckdb_extensions.load(connection, "tpcds")
    connection.execute(f"CALL dsdgen(sf={scale})")
    for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 262144)")
    connection.close()
    (folder / "generated.db").unlink()
    marker.touch()
