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
    return pa.table(
        {
            "l_orderkey": pa.array(keys, pa.int64()),
            "l_partkey": pa.array([rng.randrange(1, 2000) for _ in range(rows)], pa.int64()),
            "l_linenumber": pa.array([1 + index % 7 for index in range(rows)], pa.int32()),
            "l_quantity": money([100 * rng.randrange(1, 51) for _ in range(rows)]),
            "l_extendedprice": money([rng.randrange(90_000, 10_000_000) for _ in range(rows)]),
            "l_discount": money([rng.randrange(0, 11) for _ in range(rows)]),
            "l_returnflag": pa.array([rng.choice("ANR") for _ in range(rows)]),
            "l_shipdate": pa.array([start + datetime.timedelta(rng.randrange(2500)) for _ in range(rows)]),
            "l_comment": pa.array([f"comment {rng.randrange(10**9):09d} of a line" for _ in range(rows)]),
        }
    )


def orders(rows=ORDERS_ROWS):
    rng = random.Random(2)
    start = datetime.date(1992, 1, 1)
    return pa.table(
        {
            "o_orderkey": pa.array(range(1, rows + 1), pa.int64()),
            "o_nationkey": pa.array([rng.randrange(25) for _ in range(rows)], pa.int64()),
            "o_orderstatus": pa.array([rng.choice("FOP") for _ in range(rows)]),
            "o_totalprice": money([rng.randrange(90_000, 50_000_000) for _ in range(rows)]),
            "o_orderdate": pa.array([start + datetime.timedelta(rng.randrange(2400)) for _ in range(rows)]),
        }
    )


def nation():
    return pa.table({"n_nationkey": pa.array(range(25), pa.int64()), "n_name": pa.array(NATIONS)})


def plain_types():
    """Types that every client reads; each column has values, a null and an edge."""
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000)
    return pa.table(
        {
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
        }
    )  # fmt: skip


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
