"""TPC-H: the 22 queries over Parquet files. PostgreSQL has its own tables, with indexes on the keys of the specification."""

from .. import data, tpc
from ..options import Options

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
KEYS = {
    "customer": ["c_custkey"], "lineitem": ["l_orderkey", "l_partkey, l_suppkey"], "nation": ["n_nationkey"],
    "orders": ["o_orderkey", "o_custkey"], "part": ["p_partkey"], "partsupp": ["ps_partkey, ps_suppkey", "ps_suppkey"],
    "region": ["r_regionkey"], "supplier": ["s_suppkey"],
}


def run(options: Options) -> None:
    scale = options.size(0.01, 1, 10)
    folder = data.tpch(scale)
    tpc.run("tpch", {name: str(folder / name) for name in TABLES}, KEYS, scale, options)
