"""Folders whose two files have a column in other types or spellings: all values come back in the type that holds both, or the
error names both files and the column."""

import datetime as dt
import json
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

MOMENT = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
LOCAL = MOMENT.replace(tzinfo=None)
DAY = dt.date(2024, 2, 29)


def one(value, data_type):
    return pa.array([value, None], data_type)


def zoned(unit, zone):
    return one(MOMENT, pa.timestamp(unit, zone))


def number(value, kind, *digits):
    return one(Decimal(value), kind(*digits))


def fields(**types):
    return pa.struct(list(types.items()))


i8, i32, i64, u32, u64, text = pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.string()
d32, d64, d128, d256 = pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256
ints, large_ints = pa.list_(i64), pa.large_list(i64)

# The columns of two files, and the type of both together; none where no type holds all values.
PAIRS = {
    "zones": (zoned("us", "UTC"), zoned("us", "Europe/Berlin"), pa.timestamp("us", "UTC")),
    "same_zone": (zoned("ms", "Asia/Tokyo"), zoned("us", "Asia/Tokyo"), pa.timestamp("us", "Asia/Tokyo")),
    "zones_and_units": (zoned("ms", "+00:00"), zoned("us", "UTC"), pa.timestamp("us", "UTC")),
    "zone_and_none": (zoned("us", "UTC"), one(LOCAL, pa.timestamp("us")), None),
    "units": (one(LOCAL, pa.timestamp("s")), one(LOCAL, pa.timestamp("ns")), pa.timestamp("ns")),
    "dates": (one(DAY, pa.date32()), one(DAY, pa.date64()), pa.date64()),
    "date_moment": (one(DAY, pa.date64()), one(LOCAL, pa.timestamp("us")), pa.timestamp("us")),
    "date_nanoseconds": (one(DAY, pa.date64()), one(LOCAL, pa.timestamp("ns")), None),
    "times": (one(dt.time(1, 2), pa.time32("s")), one(dt.time(1, 2, 3, 4), pa.time64("us")), pa.time64("us")),
    "durations": (one(dt.timedelta(1), pa.duration("s")), one(dt.timedelta(1, 0, 3), pa.duration("us")), pa.duration("us")),
    "lists": (one([1], ints), one([2, 3], large_ints), large_ints),
    "list_views": (one([1], ints), one([2], pa.list_view(i64)), ints),
    "fixed_lists": (one([1], pa.list_(i64, 1)), one([2, 3], pa.list_(i64, 2)), ints),
    "fixed_widened": (one([1], pa.list_(i32, 1)), one([1 << 40], pa.list_(i64, 1)), pa.list_(i64, 1)),
    "list_items": (one([1], pa.list_(i32)), one([1 << 40], pa.large_list(i64)), large_ints),
    "list_required": (one([1], pa.list_(pa.field("element", i64, False))), one([2], ints), ints),
    "list_item": (one([1], ints), one(1, i64), None),
    "dictionary": (one("a", text).dictionary_encode(), one("b", pa.large_string()), pa.large_string()),
    "text_views": (one("a", text), one("b", pa.string_view()), text),
    "bytes": (one(b"ab", pa.binary(2)), one(b"c", pa.binary()), pa.binary()),
    "fixed_bytes": (one(b"ab", pa.binary(2)), one(b"abc", pa.binary(3)), pa.binary()),
    "text_bytes": (one("a", text), one(b"a", pa.binary()), None),
    "decimals": (number("1.25", d128, 5, 2), number("1.125", d128, 20, 3), d128(20, 3)),
    "small_decimals": (number("1.25", d32, 5, 2), number("1.125", d64, 15, 3), d128(15, 3)),
    "large_decimals": (number("1.25", d128, 38, 2), number("1.125", d128, 38, 10), d256(46, 10)),
    "decimal_integer": (number("1.25", d32, 5, 2), one(7, i64), d128(21, 2)),
    "too_many_digits": (number("1", d256, 76, 0), number("0.1", d256, 76, 76), None),
    "decimal_real": (number("1.25", d128, 5, 2), one(1.5, pa.float64()), None),
    "integers": (one(-1, i8), one(1 << 40, i64), i64),
    "signs": (one(-1, i32), one(4_000_000_000, u32), i64),
    "large_signs": (one(-1, i64), one((1 << 64) - 1, u64), d128(20, 0)),
    "integer_real": (one(16_777_217, i32), one(1.5, pa.float32()), pa.float64()),
    "integer_text": (one(1, i64), one("x", text), None),
    "truths": (one(True, pa.bool_()), one(1, i64), None),
    "nothing": (pa.nulls(2), one([1], large_ints), large_ints),
    "struct_order": (one({"a": 1, "b": "x"}, fields(a=i32, b=text)), one({"b": "y", "a": 2}, fields(b=text, a=i64)), fields(a=i64, b=text)),
    "struct_fields": (one({"a": 1}, fields(a=i64)), one({"a": 2, "c": [1]}, fields(a=i64, c=ints)), fields(a=i64, c=ints)),
    "struct_others": (one({"a": 1}, fields(a=i64)), one({"b": 2}, fields(b=i64)), fields(a=i64, b=i64)),
    "struct_lists": (one({"a": [1]}, fields(a=pa.list_(i32))), one({"a": [2]}, fields(a=large_ints)), fields(a=large_ints)),
    "list_structs": (one([{"a": 1}], pa.list_(fields(a=i32))), one([{"b": 2}], pa.large_list(fields(b=i64))), pa.large_list(fields(a=i32, b=i64))),
    "map_values": (one([("k", 1)], pa.map_(text, i32)), one([("k", 2)], pa.map_(text, i64)), pa.map_(text, i64)),
    "map_structs": (one([("k", {"a": 1})], pa.map_(text, fields(a=i32))), one([("k", {"b": 2})], pa.map_(text, fields(b=i64))), pa.map_(text, fields(a=i32, b=i64))),
    "map_lists": (one([("k", [1])], pa.map_(text, pa.list_(i32))), one([("k", [2])], pa.map_(text, large_ints)), pa.map_(text, large_ints)),
    "map_sorted": (one([("k", 1)], pa.map_(text, i32, keys_sorted=True)), one([("k", 2)], pa.map_(text, i32)), pa.map_(text, i32)),
}  # fmt: skip


def write_arrow(table, path):
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)


WRITERS = {"parquet": pq.write_table, "arrow": write_arrow}


def cases():
    """Names of the folders, with the columns of their files and the type of both."""
    for name, (first, second, together) in PAIRS.items():
        for ending in WRITERS:
            yield f"union_{name}_{ending}", ending, first, second, together
            # Which fields of a struct come first depends on the files.
            if "struct" not in name:
                yield f"union_{name}_{ending}_turned", ending, second, first, together


# The same column under two spellings, and two columns of one file that differ in nothing else.
SPELLINGS = {"spelled": [{"id": 1, "Name": "a"}, {"ID": 2, "name": "b"}], "apart": [{"id": 1}, {"id": 2, "ID": 3}, {"ID": 4}]}
# Two spellings that are two columns, since no type holds the values of both.
UNLIKE = {"unlike": [{"id": 1, "v": 1}, {"ID": "x", "V": 2}], "rounded": [{"id": 1, "v": 2**60 + 1}, {"id": 2, "V": 0.5}]}


def prepare(folder):
    for name, ending, first, second, _ in cases():
        (folder / name).mkdir()
        WRITERS[ending](pa.table({"x": first, "k": [1, 2]}), folder / name / f"1.{ending}")
        WRITERS[ending](pa.table({"k": [3, 4], "x": second}), folder / name / f"2.{ending}")
    for name, files in (SPELLINGS | UNLIKE).items():
        for ending in ["csv", "json", *WRITERS] if name in SPELLINGS else WRITERS:
            (folder / f"{name}_{ending}").mkdir()
            for at, row in enumerate(files):
                path = folder / f"{name}_{ending}" / f"{at}.{ending}"
                if ending in WRITERS:
                    WRITERS[ending](pa.table({key: [value] for key, value in row.items()}), path)
                else:
                    values = [",".join(map(str, part)) + "\n" for part in (row.keys(), row.values())]
                    path.write_text("".join(values) if ending == "csv" else json.dumps(row))
    for ending, write in WRITERS.items():
        write(pa.table({"x": pa.array([Decimal("99999999.9")] * 30, d32(9, 1))}), folder / f"small_decimals.{ending}")


def without_names(data_type):
    return re.sub("element|item| not null|, keys_sorted", "", str(data_type))


def values_in(column, data_type):
    if pa.types.is_temporal(data_type):
        return column.cast(data_type).to_pylist()
    return pa.array(column.to_pylist(), data_type).to_pylist()


def check_union(read, name, ending, columns, together):
    sql = f'SELECT x FROM "{name}" ORDER BY k'
    if together is None:
        try:
            return f"gave {read(sql)['x'].to_pylist()}"
        except pa.ArrowException as error:
            named = all(word in str(error) for word in (f"1.{ending}`", f"2.{ending}`", "`x`"))
            return None if named else str(error)
    wanted = [value for column in columns for value in values_in(column, together)]
    got = read(sql)
    if got["x"].to_pylist() != wanted or without_names(got["x"].type) != without_names(together):
        return f"{got['x'].to_pylist()} of {got['x'].type} instead of {wanted} of {together}"
    counts = read(f'SELECT count(*), count(x) FROM "{name}" WHERE x IS NOT NULL OR k > 0').to_pylist()[0].values()
    known = sum(value is not None for value in wanted)
    return None if list(counts) == [4, known] else f"counts {list(counts)}"


def check_rows(read, sql, wanted):
    try:
        rows = [list(row.values()) for row in read(sql).to_pylist()]
    except pa.ArrowException as error:
        return str(error)[:400]
    return None if rows == wanted else f"{rows} instead of {wanted}"


def check(read):
    """Failures as texts, and how many folders passed."""
    found = {}
    for name, ending, first, second, together in cases():
        try:
            found[name] = check_union(read, name, ending, (first, second), together)
        except pa.ArrowException as error:
            found[name] = str(error)[:400]
    for ending in ["csv", "json", *WRITERS]:
        for sql, wanted in [
            (f"SELECT id, \"Name\" FROM spelled_{ending} ORDER BY id", [[1, "a"], [2, "b"]]),
            (f"SELECT count(*) FROM spelled_{ending} WHERE id >= 2 AND \"Name\" > 'a'", [[1]]),
            (f"SELECT max(id), min(\"Name\"), count(\"Name\") FROM spelled_{ending}", [[2, "a", 2]]),
            (f"SELECT sum(id), sum(\"ID\"), count(id), count(\"ID\"), count(*) FROM apart_{ending}", [[3, 7, 2, 2, 3]]),
            (f"SELECT \"ID\" FROM apart_{ending} WHERE id IS NULL", [[4]]),
        ] + [(f"SELECT CAST(sum(x) AS VARCHAR) FROM 'small_decimals.{ending}'", [["2999999997.0"]])] * (ending in WRITERS):  # fmt: skip
            found[sql] = check_rows(read, sql, wanted)
    for ending in WRITERS:
        for sql, wanted in [
            (f"SELECT sum(id), max(\"ID\"), sum(v) FROM unlike_{ending}", [[1, "x", 3]]),
            (f"SELECT sum(id), max(v), max(\"V\"), count(v), count(\"V\") FROM rounded_{ending}", [[3, 2**60 + 1, 0.5, 1, 1]]),
        ]:
            found[sql] = check_rows(read, sql, wanted)
    failures = [f"{name}: {failure}" for name, failure in found.items() if failure]
    return failures, len(found) - len(failures)
