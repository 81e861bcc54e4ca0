"""Makes the data that the suites serve: small, the same on every run, one file for each format and every type."""

import datetime
import decimal
import gzip
import json
import pathlib
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

UTC = datetime.timezone.utc
# Of the user `ada` and of the user `service`, of servers that have users.
PASSWORD = "pässword: with colon"
TOKEN = "a fixed token of a service"
LINEITEM_ROWS = 60_000
ORDERS_ROWS = 15_000
NATIONS = [
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
]  # fmt: skip


def money(values):
    return pa.array([decimal.Decimal(value).scaleb(-2) for value in values], pa.decimal128(15, 2))


def lineitem(rows=LINEITEM_ROWS):
    rng = random.Random(1)
    keys = sorted(rng.randrange(1, ORDERS_ROWS + 1) for _ in range(rows))
    start = datetime.date(1992, 1, 1)
    return pa.table({
        "l_orderkey": pa.array(keys, pa.int64()),
        "l_partkey": pa.array([rng.randrange(1, 2000) for _ in range(rows)], pa.int64()),
        "l_linenumber": pa.array([1 + index % 7 for index in range(rows)], pa.int32()),
        "l_quantity": money([100 * rng.randrange(1, 51) for _ in range(rows)]),
        "l_extendedprice": money([rng.randrange(90_000, 10_000_000) for _ in range(rows)]),
        "l_discount": money([rng.randrange(0, 11) for _ in range(rows)]),
        "l_returnflag": pa.array([rng.choice("ANR") for _ in range(rows)]),
        "l_shipdate": pa.array([start + datetime.timedelta(rng.randrange(2500)) for _ in range(rows)]),
        "l_comment": pa.array([f"comment {rng.randrange(10**9):09d} of a line" for _ in range(rows)]),
    })


def orders(rows=ORDERS_ROWS):
    rng = random.Random(2)
    start = datetime.date(1992, 1, 1)
    return pa.table({
        "o_orderkey": pa.array(range(1, rows + 1), pa.int64()),
        "o_nationkey": pa.array([rng.randrange(25) for _ in range(rows)], pa.int64()),
        "o_orderstatus": pa.array([rng.choice("FOP") for _ in range(rows)]),
        "o_totalprice": money([rng.randrange(90_000, 50_000_000) for _ in range(rows)]),
        "o_orderdate": pa.array([start + datetime.timedelta(rng.randrange(2400)) for _ in range(rows)]),
    })


def nation():
    return pa.table({"n_nationkey": pa.array(range(25), pa.int64()), "n_name": pa.array(NATIONS)})


def plain_types():
    """Types that every client reads; each column has values, a null and an edge."""
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000)
    return pa.table({
        "c_bool": pa.array([True, None, False]),
        "c_int8": pa.array([1, None, -128], pa.int8()),
        "c_int16": pa.array([1, None, -32768], pa.int16()),
        "c_int32": pa.array([1, None, -(2**31)], pa.int32()),
        "c_int64": pa.array([1, None, -(2**63)], pa.int64()),
        "c_uint8": pa.array([1, None, 255], pa.uint8()),
        "c_uint16": pa.array([1, None, 65535], pa.uint16()),
        "c_uint32": pa.array([1, None, 2**32 - 1], pa.uint32()),
        "c_uint64": pa.array([1, None, 2**64 - 1], pa.uint64()),
        "c_float32": pa.array([1.5, None, float("-inf")], pa.float32()),
        "c_float64": pa.array([1.5, None, float("nan")], pa.float64()),
        "c_decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-99999999.99")], pa.decimal128(10, 2)),
        "c_string": pa.array(["a", None, "größe 🏹"]),
        "c_binary": pa.array([b"a", None, b"\x00\xff"]),
        "c_date": pa.array([moment.date(), None, datetime.date(1969, 12, 31)]),
        "c_time": pa.array([moment.time(), None, datetime.time(23, 59, 59, 999_999)], pa.time64("us")),
        "c_timestamp_s": pa.array([moment.replace(microsecond=0), None, datetime.datetime(1969, 12, 31)], pa.timestamp("s")),
        "c_timestamp_ms": pa.array([moment, None, datetime.datetime(1969, 12, 31)], pa.timestamp("ms")),
        "c_timestamp_us": pa.array([moment, None, datetime.datetime(1969, 12, 31)], pa.timestamp("us")),
        "c_timestamp_ns": pa.array([moment, None, datetime.datetime(1969, 12, 31)], pa.timestamp("ns")),
        "c_timestamp_utc": pa.array([moment, None, datetime.datetime(1969, 12, 31)], pa.timestamp("us", "UTC")),
        "c_list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "c_struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
    })  # fmt: skip


def all_types():
    """Name to an array of four rows with a null, where the type can have one: what an Arrow IPC file can hold."""
    number, moment = decimal.Decimal, datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000)
    unit_types = [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
    made = {
        "null": pa.nulls(4),
        "bool": pa.array([True, False, None, True]),
        "float16": pa.array([1.5, -0.0, None, 65504.0], pa.float16()),
        "decimal32": pa.array([number("1.5"), number("-9999999.99"), None, number(0)], pa.decimal32(9, 2)),
        "decimal64": pa.array([number("1.5"), number("-9999999.99"), None, number(0)], pa.decimal64(18, 2)),
        "decimal128": pa.array([number("1.5"), number("-9999999.99"), None, number(0)], pa.decimal128(38, 2)),
        "decimal256": pa.array([number("1.5"), number("-9999999.99"), None, number(0)], pa.decimal256(76, 2)),
        "string": pa.array(["a", "", None, "größe 🏹"]),
        "large_string": pa.array(["a", "", None, "größe 🏹"], pa.large_string()),
        "string_view": pa.array(["a", "a string longer than twelve bytes", None, ""], pa.string_view()),
        "binary": pa.array([b"a", b"", None, b"\x00\xff"]),
        "large_binary": pa.array([b"a", b"", None, b"\x00\xff"], pa.large_binary()),
        "binary_view": pa.array([b"a", b"more than twelve bytes", None, b""], pa.binary_view()),
        "fixed_binary": pa.array([b"abc", b"\x00\x01\x02", None, b"xyz"], pa.binary(3)),
        "date32": pa.array([moment.date(), datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
        "date64": pa.array([moment.date(), datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], pa.date64()),
        "time32_s": pa.array([datetime.time(1, 2, 3), datetime.time(0), None, datetime.time(23, 59, 59)], pa.time32("s")),
        "time64_ns": pa.array([1, 0, None, 86_399_999_999_999], pa.time64("ns")),
        "timestamp_zone": pa.array([moment, None, moment, moment], pa.timestamp("us", "Europe/Berlin")),
        "interval": pa.array([(1, 2, 3), (0, 0, 0), None, (-1, -2, -3)], pa.month_day_nano_interval()),
        "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
        "large_list": pa.array([["a"], [], None, [None]], pa.large_list(pa.string())),
        "fixed_list": pa.array([[1, 2], [None, 4], None, [5, 6]], pa.list_(pa.int64(), 2)),
        "struct": pa.array([{"x": 1, "y": {"z": "a"}}, {"x": None, "y": None}, None, {"x": 2, "y": {"z": None}}]),
        "map": pa.array([[("a", 1)], [], None, [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int32())),
        "list_of_list": pa.array([[[1], []], [None], None, [[2, 3]]], pa.list_(pa.list_(pa.int8()))),
        "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "dictionary_int8": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["x", "y"]),
        "sparse_union": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, None, 3, None]), pa.array([None, "b", None, None])]
        ),
        "dense_union": pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a", None])]
        ),
        "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), pa.array(["a", None, "b"])),
        "list_view": pa.array([[1, 2], [], None, [3]], pa.list_view(pa.int32())),
        "large_list_view": pa.array([[1, 2], [], None, [3]], pa.large_list_view(pa.int32())),
        "list_of_views": pa.array([["a", None], [], None, ["b" * 20]], pa.list_(pa.string_view())),
        "struct_of_dictionary": pa.StructArray.from_arrays(
            [pa.array(["a", "b", None, "a"]).dictionary_encode(), pa.array([1, 2, 3, None])], ["d", "n"]
        ),
        "fixed_list_of_struct": pa.array([[{"x": 1}], [None], None, [{"x": None}]], pa.list_(pa.struct([("x", pa.int8())]), 1)),
        "map_of_list": pa.array([[(1, ["a"])], [], None, [(2, None)]], pa.map_(pa.int64(), pa.list_(pa.string()))),
    }  # fmt: skip
    for kind in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64, pa.float32, pa.float64):
        made[str(kind())] = pa.array([1, 0, None, 100], kind())
    for unit in ("s", "ms", "us", "ns"):
        made[f"timestamp_{unit}"] = pa.array([1, -1, None, 1_700_000_000], pa.timestamp(unit))
    for kind in unit_types:
        made[f"duration_{kind.unit}"] = pa.array([1, -1, None, 10**9], kind)
    return made


def write_arrow(path, table, options=None):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)


def write_all(folder):
    """Everything that the shared server serves."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(lineitem(), folder / "lineitem.parquet", row_group_size=10_000)
    pq.write_table(orders(), folder / "orders.parquet", row_group_size=5_000)
    pa.csv.write_csv(nation(), folder / "nation.csv")
    write_arrow(folder / "plain_types.arrow", plain_types())
    with open(folder / "events.jsonl", "w") as file:
        for number in range(100):
            file.write(json.dumps({"id": number, "kind": ["start", "stop"][number % 2], "at": {"x": number / 2}}) + "\n")
    with gzip.open(folder / "zipped.csv.gz", "wt") as file:
        file.write("id,name\n" + "".join(f"{number},name {number}\n" for number in range(50)))
    for year in (2023, 2024):
        part = folder / "sales" / f"year={year}"
        part.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"amount": pa.array(range(year - 2000), pa.int64())}), part / "part-0.parquet")
    return folder
