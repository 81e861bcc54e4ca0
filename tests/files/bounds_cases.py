"""Rows and files for missing_bounds.py: each file says something else of its row groups, or nothing."""

import datetime
import decimal
import json
import random
import string

import deltalake
import duckdb
import footer
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

KINDS = {
    "i64": pa.int64(), "i32": pa.int32(), "text": pa.string(), "bytes": pa.binary(), "dec": pa.decimal128(9, 2),
    "wide": pa.decimal128(30, 4), "f64": pa.float64(), "f32": pa.float32(), "ts": pa.timestamp("us"), "day": pa.date32(),
    "flag": pa.bool_(),
}  # fmt: skip
START = datetime.datetime(2024, 2, 28, 23, 59, 59, 999_000)
LONG = 4_500


def value(rng, kind, at):
    """A value near others of its place, so that row groups have bounds that rule something out."""
    near = at + rng.randint(-2, 2)
    if kind in ("i64", "i32"):
        return rng.choice([near, near, -near, 2**31 - 1 - at])
    if kind in ("text", "bytes"):
        text = string.ascii_lowercase[near % 26] * rng.randint(1, 3)
        tail = rng.choice(["", "", "é", "\U0010ffff", "q" * 40, text * LONG])
        text = rng.choice(["", "prefix of all texts, which is long: "]) + text + tail
        return text.encode() if kind == "bytes" else text
    if kind in ("dec", "wide"):
        return decimal.Decimal(near * 125).scaleb(-2) + (decimal.Decimal("99999999999999999999") if kind == "wide" and near % 3 else 0)
    if kind in ("f64", "f32"):
        return rng.choice([near / 4, near / 4, near / 4, float("nan"), -0.0, 0.0, float("inf"), float("-inf")])
    if kind == "ts":
        return START + datetime.timedelta(microseconds=near * rng.choice([1, 300, 86_400_000_000]))
    if kind == "day":
        return START.date() + datetime.timedelta(days=near)
    return near % 2 == 0


def rows(rng, large):
    """A table of some kinds, with whole stretches of NULL and of one value."""
    count = 20_000 if large else rng.randint(3, 48)
    columns = {"id": pa.array(range(count), pa.int64())}
    names = rng.sample(list(KINDS), rng.randint(3, 5))
    for name in names:
        values, step = [], rng.choice([1, 1, max(count // 8, 1)])
        stretches = [rng.choice(["mixed", "mixed", "mixed", "null", "one"]) for _ in range(5)]
        for at in range(count):
            stretch = stretches[at * 5 // count]
            place = at // step if stretch == "mixed" else at * 5 // count
            null = stretch == "null" or rng.random() < 0.1 and stretch == "mixed"
            values.append(None if null else value(rng if stretch == "mixed" else random.Random(place), name, place % 500))
        columns[name] = pa.array(values, KINDS[name])
    return pa.table(columns)


def slices(rng, table):
    """The table in one to three parts."""
    ends = sorted(rng.randint(1, table.num_rows) for _ in range(rng.randint(0, 2))) + [table.num_rows]
    return [table.slice(start, end - start) for start, end in zip([0, *ends], ends) if end > start]


def group_rows(rng, table):
    return rng.choice([1, 2, 3, 7, 1000]) if table.num_rows < 1000 else rng.choice([2048, 5000])


def by_pyarrow(rng, table, path):
    names = table.column_names
    pq.write_table(
        table, path, row_group_size=group_rows(rng, table), data_page_version=rng.choice(["1.0", "2.0"]),
        write_statistics=rng.choice([True, True, True, False, rng.sample(names, 2)]), use_dictionary=rng.random() < 0.5,
        write_page_index=rng.random() < 0.5, use_deprecated_int96_timestamps=rng.random() < 0.2, data_page_size=rng.choice([64, None]),
        store_decimal_as_integer=rng.random() < 0.3,
        bloom_filter_options={name: True for name in names if name not in ("flag", "id")} if rng.random() < 0.3 else None,
    )  # fmt: skip


def cut(known, rng):
    """Texts as writers cut them off: less than the least value, more than the greatest one."""
    for exact, bound in ((footer.MIN_EXACT, footer.MIN), (footer.MAX_EXACT, footer.MAX)):
        text = known.get(bound, (0, b""))[1][: rng.randint(1, 4)]
        if not text or not text.isascii():
            continue
        if bound == footer.MAX:
            text = text[:-1] + bytes([text[-1] + 1])
        known[bound], known[exact] = (footer.BINARY, text), (2, False)


def edited(rng, table, path):
    """Row groups that say more and less than each other."""
    by_pyarrow(rng, table, path)
    bounds = [footer.OLD_MAX, footer.OLD_MIN, footer.MAX, footer.MIN, footer.MAX_EXACT, footer.MIN_EXACT]

    def change(read):
        for _, place, chunk in footer.chunks(read):
            known = chunk.get(12, (0, {}))[1]
            what = rng.choice(["keep", "keep", "nothing", "bounds", "least", "greatest", "nulls", "flags", "cut", "distinct"])
            lost = {
                "bounds": bounds, "least": [footer.OLD_MIN, footer.MIN, footer.MIN_EXACT], "flags": bounds[4:],
                "greatest": [footer.OLD_MAX, footer.MAX, footer.MAX_EXACT], "nulls": [footer.NULLS],
            }  # fmt: skip
            for number in lost.get(what, []):
                known.pop(number, None)
            if what == "nothing":
                chunk.pop(12, None)
            elif what == "cut" and table.column_names[place] in ("text", "bytes"):
                cut(known, rng)
            elif what == "distinct" and known:
                known[footer.DISTINCT] = (footer.I64, 1)

    footer.rewrite(path, change)


def by_polars(rng, table, path):
    statistics = rng.choice([True, False, "full", {"min": True, "max": False, "null_count": rng.random() < 0.5}])
    pl.from_arrow(table).write_parquet(path, statistics=statistics, row_group_size=group_rows(rng, table))


def by_duckdb(rng, table, path):
    with duckdb.connect() as connection:
        connection.register("given", table)
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {group_rows(rng, table) + 2048})")


WRITERS = [by_pyarrow, edited, edited, edited, by_polars, by_duckdb]


def folder_of_files(rng, table, folder, name):
    """One file, or a folder of some, by several writers."""
    parts = slices(rng, table)
    if len(parts) == 1:
        rng.choice(WRITERS)(rng, table, folder / f"{name}.parquet")
        return
    (folder / name).mkdir()
    for number, part in enumerate(parts):
        rng.choice(WRITERS)(rng, part, folder / name / f"{number}.parquet")


def less_said(rng, stats):
    """The statistics of a file in a Delta log, as other writers have them."""
    what = rng.choice(["keep", "nothing", "rows", "nullCount", "minValues", "maxValues", "column", "short", "short"])
    if what == "nothing":
        return None
    if what in ("nullCount", "minValues", "maxValues"):
        stats.pop(what, None)
    elif what == "rows":
        stats.pop("numRecords")
    elif what == "column":
        for part in ("minValues", "maxValues", "nullCount"):
            if stats.get(part):
                stats[part].pop(rng.choice(list(stats[part])))
    elif what == "short":
        # Points in time in milliseconds, texts of 32 characters, the greater one made greater.
        for part, tail in (("minValues", ""), ("maxValues", "\U0010ffff")):
            known = stats.get(part, {})
            if "ts" in known:
                known["ts"] = known["ts"][:23] + ("Z" if known["ts"].endswith("Z") else "")
            if len(known.get("text", "")) > 32:
                known["text"] = known["text"][:32] + tail
    return stats


def delta(rng, table, folder, name):
    place = folder / name
    for part in slices(rng, table):
        deltalake.write_deltalake(str(place), part, mode="append")
    for log in sorted((place / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if action.get("add", {}).get("stats"):
                stats = less_said(rng, json.loads(action["add"]["stats"]))
                action["add"]["stats"] = stats and json.dumps(stats)
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def iceberg(rng, table, folder, name):
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    metrics = rng.choice(["none", "counts", "truncate(2)", "full"])
    made = catalog.create_table(
        "db.t", table.schema, location=f"file://{folder / name}", properties={"write.metadata.metrics.default": metrics}
    )
    for part in slices(rng, table):
        made.append(part)


FORMATS = {"files": folder_of_files, "delta": delta, "iceberg": iceberg}
