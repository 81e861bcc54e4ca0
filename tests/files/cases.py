"""Small files of every kind that is met, made in code: each case has a name, its bytes, and how DuckDB reads it if it needs
to be told. `DIFFERENT` says where Bowshot's reading is another one on purpose."""

import bz2
import datetime
import decimal
import gzip
import io
import itertools
import json
import lzma
import zipfile
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from nested_cases import nested_files
from orc_cases import orc_files
from workbook import workbook

# Cases in which Bowshot and DuckDB read differently, by reason.
DIFFERENT = {
    "words for nothing are null in columns of a type": ["csv-type-na", "csv-type-null-words"],
    "names of months make dates": ["csv-type-month-names", "csv-type-us-month-names"],
    "infinite numbers are numbers": ["csv-type-inf"],
    "whole numbers of JSON have 64 bits": ["json-type-integers"],
}


@dataclass
class Case:
    name: str
    ending: str
    content: bytes
    # How DuckDB is told to read it, where it does not find out by itself.
    told: str = ""
    # What Bowshot must give, where DuckDB does not decide.
    rows: list | None = None
    options: str = ""
    tags: list = field(default_factory=list)

    @property
    def file(self):
        return f"{self.name.replace('-', '_')}.{self.ending}"


def csv_text(rows, delimiter, quote, end):
    def cell(value):
        text = str(value)
        if quote == "all" or (quote == "needed" and (delimiter in text or '"' in text or "\n" in text)):
            return '"' + text.replace('"', '""') + '"'
        return text

    return "".join(delimiter.join(cell(value) for value in row) + end for row in rows)


PLAIN = [["id", "name", "price", "day"]] + [
    [n, name, price, f"2024-{n:02}-1{n % 10}"]
    for n, name, price in [(1, "apple", 1.5), (2, "pear green", 2.25), (3, "plum", 3.125), (4, "fig", 0.5)]
]


def dialects():
    names = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
    for delimiter, quote, end, header, shape in itertools.product(
        names, ["none", "all"], ["\n", "\r\n"], [True, False], ["full", "cut"]
    ):
        rows = PLAIN if header else PLAIN[1:]
        text = csv_text(rows, delimiter, quote, end)
        if shape == "cut":
            text = text.removesuffix(end)
        ends = "lf" if end == "\n" else "crlf"
        name = f"csv-dialect-{names[delimiter]}-{quote}-{ends}-{'header' if header else 'headless'}-{shape}"
        yield Case(name, "csv", text.encode())


def tricky():
    """Forms in which quotes, titles and lines have a meaning of their own."""
    quoted = csv_text([["a", "b"], ["x, y", 1], ['say "hi"', 2], ["two\nlines", 3]], ",", "needed", "\n")
    for name, text, rows in [
        ("quoted", quoted, [("x, y", 1), ('say "hi"', 2), ("two\nlines", 3)]),
        ("backslash", 'a,b\n"x \\"y\\"",1\n"z, w",2\n', [('x "y"', 1), ("z, w", 2)]),
        ("single", "a,b\n'x, y',1\n'z',2\n", [("x, y", 1), ("z", 2)]),
        ("unbalanced", 'id\ttext\n1\t"5 inch\n2\tok\n3\t6" pipe\n', [(1, '"5 inch'), (2, "ok"), (3, '6" pipe')]),
        ("inner-quotes", 'a,b\nin"side,1\n"x"y,2\n', [('in"side', 1), ('"x"y', 2)]),
        ("titles", "Report\nof May\n\nid,price\n1,2.5\n2,3.5\n", [(1, 2.5), (2, 3.5)]),
        ("comments", "# one\n# two\nid,price\n1,2.5\n2,3.5\n", [(1, 2.5), (2, 3.5)]),
        ("short-lines", "a,b,c\n1,2,3\n4\n5,6\n", [(1, 2, 3), (4, None, None), (5, 6, None)]),
        ("trailing-delimiter", "a,b,\n1,2,\n3,4,\n", [(1, 2), (3, 4)]),
        ("row-names", 'a,b\n"r1",5,6\n"r2",7,8\n', [("r1", 5, 6), ("r2", 7, 8)]),
        ("years", "country,2019,2020\nAT,1,2\nDE,3,4\n", [("AT", 1, 2), ("DE", 3, 4)]),
        ("blank-lines", "a,b\n\n1,2\n\n3,4\n\n", [(1, 2), (3, 4)]),
        ("one-column", "a\n1\n\n3\n\n", [(1,), (None,), (3,), (None,)]),
        ("sentences", "text\nHello, world\nno commas\nand, here, two\n",
         [("Hello, world",), ("no commas",), ("and, here, two",)]),
        ("old-mac", "a,b\r1,2\r3,4\r", [(1, 2), (3, 4)]),
        ("spaces", 'a, b\n"x, y", "1"\n"z", "2"\n', [("x, y", 1), ("z", 2)]),
        ("same-names", "a,a,,b\n1,2,3,4\n", [(1, 2, 3, 4)]),
        ("only-header", "x,y\n", []),
        ("long-header", "a,b,c,d\n1,2\n3,4\n", [(1, 2, None, None), (3, 4, None, None)]),
        ("empty-values", "a,b,c\n1,,x\n,2,\n,,\n", [(1, None, "x"), (None, 2, None), (None, None, None)]),
    ]:  # fmt: skip
        yield Case(f"csv-form-{name}", "csv", text.encode(), rows=rows)


def csv_types():
    columns = {
        "integers": ["1", "-2", "30"],
        "reals": ["1.5", "-2", "3e10"],
        "truths": ["true", "FALSE", "True"],
        "texts": ["a", "b c", "ü"],
        "iso-dates": ["2024-01-31", "1999-12-01", "2024-02-29"],
        "dmy-dates": ["31/01/2024", "01/12/1999", "29/02/2024"],
        "mdy-dates": ["01/31/2024", "12/01/1999", "02/29/2024"],
        "dotted-dates": ["31.01.2024", "01.12.1999", "29.02.2024"],
        "dashed-dates": ["31-01-2024", "01-12-1999", "29-02-2024"],
        "moments": ["2024-01-31 10:00:00", "1999-12-01 23:59:59", "2024-02-29 00:00:00"],
        "moments-t": ["2024-01-31T10:00:00", "1999-12-01T23:59:59", "2024-02-29T00:00:00"],
        "moments-ms": ["2024-01-31 10:00:00.125", "1999-12-01 23:59:59.5", "2024-02-29 00:00:00"],
        "moments-us": ["2024-01-31 10:00:00.123456", "1999-12-01 23:59:59.5", "2024-02-29 00:00:00.25"],
        "times": ["10:00:00", "23:59:59", "00:00:01"],
        "zoned": ["2024-01-31T10:00:00Z", "1999-12-01T23:59:59Z", "2024-02-29T00:00:00Z"],
        "offsets": ["2024-01-31 10:00:00+02:00", "1999-12-01 23:59:59-05:30", "2024-02-29 00:00:00+00:00"],
        "int-text": ["1", "x", "3"],
        "int-real": ["1", "2.5", "3"],
        "int-date": ["1", "2024-01-31", "3"],
        "true-int": ["true", "1", "x"],
        "signs": ["+1", "-1", "0"],
        "padded": ["007", "042", "123"],
        "padded-and-plain": ["007", "7", "8"],
        "padded-reals": ["007.5", "1.5", "2"],
        "signed-reals": ["+1.5", "-1.5", "2"],
        "true-one": ["true", "1", "false"],
        "huge": ["18446744073709551616", "1", "2"],
        "largest": ["9223372036854775807", "-9223372036854775808", "0"],
        "nan": ["nan", "1.5", "2"],
        "inf": ["inf", "-inf", "2.5"],
        "na": ["NA", "1", "2"],
        "null-words": ["NULL", "n/a", "2.5"],
        "nothing": ["", "", ""],
        "month-names": ["31-Jan-2024", "01-Dec-1999", "29-Feb-2024"],
        "us-month-names": ["Jan 31 2024", "Dec 1 1999", "Feb 29 2024"],
        "versions": ["1.2.3", "1.2.13", "2.0.1"],
        "addresses": ["10.0.0.1", "192.168.1.1", "8.8.8.8"],
        "uuids": ["0d7a6b5c-1111-4bbb-8ccc-1234567890ab"] * 3,
        "phones": ["+49 30 1234", "+1 555 0100", "112"],
        "impossible-dates": ["2024-02-30", "2024-13-01", "2024-00-10"],
        "hours": ["24:00:00", "99:99:99", "10:00"],
        "spaced-texts": [" a", "b ", " c "],
    }
    for name, values in columns.items():
        text = "n,v\n" + "".join(f"{n},{value}\n" for n, value in enumerate(values))
        yield Case(f"csv-type-{name}", "csv", text.encode())
    for name, values, rows in [
        ("comma", ["2,5", "3", "-0,25"], [2.5, 3.0, -0.25]),
        ("comma-groups", ["1.234,50", "3,00", "2.000.000,25"], [1234.5, 3.0, 2000000.25]),
        ("point-groups", ["1,234.50", "3.00", "2,000,000.25"], [1234.5, 3.0, 2000000.25]),
        ("long-among-reals", ["9007199254740993", "1.5"], [decimal.Decimal("9007199254740993.0"), decimal.Decimal("1.5")]),
        ("long-among-powers", ["9007199254740993", "1e5"], ["9007199254740993", "1e5"]),
        ("some-zones", ["2024-01-01T10:00:00", "2024-01-01T10:00:00+02:00"], ["2024-01-01T10:00:00", "2024-01-01T10:00:00+02:00"]),
        ("fine-times", ["10:00:00.123456789", "11:00:00"], ["10:00:00.123456789", "11:00:00"]),
    ]:
        text = "n;v\n" + "".join(f"{n};{value}\n" for n, value in enumerate(values))
        yield Case(f"csv-type-{name}", "csv", text.encode(), rows=list(enumerate(rows)))


def encodings():
    text = "name,n\nGröße,1\ncafé,2\n"
    rows = [("Größe", 1), ("café", 2)]
    for name, content in [
        ("utf-8", text.encode()),
        ("utf-8-mark", "\ufeff".encode() + text.encode()),
        ("utf-16", ("\ufeff" + text).encode("utf-16-le")),
        ("utf-16-be", ("\ufeff" + text).encode("utf-16-be")),
        ("utf-16-no-mark", text.encode("utf-16-le")),
        ("windows-1252", (text + "5 €,3\n").encode("cp1252")),
    ]:
        more = [("5 €", 3)] if name == "windows-1252" else []
        yield Case(f"csv-encoding-{name}", "csv", content, rows=rows + more)
    for name, label in [("koi8-r", "koi8-r"), ("shift-jis", "shift_jis"), ("latin-2", "iso-8859-2")]:
        word = {"koi8-r": "слово", "shift-jis": "東京", "latin-2": "řeka"}[name]
        content = f"name,n\n{word},1\n".encode(label)
        yield Case(f"csv-encoding-{name}", "csv", content, rows=[(word, 1)], options=f"encoding = '{label}'")


def compressions():
    text = csv_text(PLAIN, ",", "none", "\n").encode()
    lines = b"".join(json.dumps(dict(zip(PLAIN[0], row))).encode() + b"\n" for row in PLAIN[1:])
    packers = {"lz4": lambda data: pa.compress(data, "lz4", asbytes=True), "br": lambda data: pa.compress(data, "brotli", asbytes=True), "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
    for kind, content in [("csv", text), ("jsonl", lines)]:
        for ending, pack in packers.items():
            # Two frames, as parallel compressors write them, where the format has frames.
            packed = pack(content[:20]) + pack(content[20:]) if ending in ("gz", "zst") else pack(content)
            rows = [(row[0], row[1], row[2], row[3]) for row in PLAIN[1:]]
            yield Case(f"{kind}-packed-{ending}", f"{kind}.{ending}", packed, rows=rows, tags=["dates"])


def options():
    for name, text, told, rows in [
        ("delim", "a^b\n1^2\n", "delim = '^'", [(1, 2)]),
        ("no-header", "x,y\nz,w\n", "header = false", [("x", "y"), ("z", "w")]),
        ("header", "1,2\n3,4\n", "header = true", [(3, 4)]),
        ("quote", "a,b\n~x, y~,1\n", "quote = '~'", [("x, y", 1)]),
        ("no-quote", 'a,b\n"x,1\n', "quote = ''", [('"x', 1)]),
        ("escape", 'a,b\n"x~"y",1\n', "escape = '~'", [('x"y', 1)]),
        ("skip", "junk,junk,junk\na,b\n1,2\n", "skip = 1", [(1, 2)]),
        ("comment", "a,b\n1,2\n!no\n3,4\n", "comment = '!'", [(1, 2), (3, 4)]),
        ("nullstr", "a,b\n1,-9\n-9,x\n", "nullstr = '-9'", [(1, None), (None, "x")]),
        ("nullstr-list", "a,b\n1,.\n-9,2\n", "nullstr = ['.', '-9']", [(1, None), (None, 2)]),
        ("dateformat", "a\n2024|31|01\n", "delim = ';', dateformat = '%Y|%d|%m'", None),
        ("all-varchar", "a,b\n1,2.50\n", "all_varchar = true", [("1", "2.50")]),
        ("types", "a,b\n1,2\n", "types = {'a': 'VARCHAR', 'b': 'DOUBLE'}", [("1", 2.0)]),
        ("types-list", "a,b\n1,2\n", "types = ['VARCHAR', 'SMALLINT']", [("1", 2)]),
        ("columns", "1,2\n3,4\n", "header = false, columns = {'x': 'INTEGER', 'y': 'VARCHAR'}", [(1, "2"), (3, "4")]),
        ("names", "1,2\n3,4\n", "header = false, names = ['x', 'y']", [(1, 2), (3, 4)]),
        ("decimal", "a;b\n1,5;x\n", "delim = ';', decimal_separator = ','", [(1.5, "x")]),
        ("thousands", "a;b\n1'000;x\n", "delim = ';', thousands = ''''", [(1000, "x")]),
        ("null-padding", "a,b\n1,2\n3,4,5\n", "null_padding = true", [(1, 2, None), (3, 4, 5)]),
        ("ignore-errors", "a,b\n1,2\n3,x\n5,6\n", "ignore_errors = true, types = {'b': 'INTEGER'}", [(1, 2), (5, 6)]),
        ("sample-size", "a,b\n" + "1,2\n" * 30 + "1,x\n", "sample_size = -1", [(1, "2")] * 30 + [(1, "x")]),
        ("filename", "a\n1\n", "filename = true", [(1, "csv_option_filename.csv")]),
        ("timestampformat", "a\n01.02.2024 10:30\n", "timestampformat = '%d.%m.%Y %H:%M'", None),
    ]:  # fmt: skip
        yield Case(f"csv-option-{name}", "csv", text.encode(), rows=rows, options=told)


def jsons():
    rows = [{"b": 1, "a": "x"}, {"b": 2, "a": "y"}, {"b": None, "a": "z"}]
    flat = [(1, "x"), (2, "y"), (None, "z")]
    layouts = {
        "lines": "".join(json.dumps(row) + "\n" for row in rows),
        "no-last-end": "\n".join(json.dumps(row) for row in rows),
        "blank-lines": "\n\n".join(json.dumps(row) for row in rows) + "\n\n",
        "crlf": "".join(json.dumps(row) + "\r\n" for row in rows),
        "pretty": "\n".join(json.dumps(row, indent=2) for row in rows),
        "one-line": " ".join(json.dumps(row) for row in rows),
        "glued": "".join(json.dumps(row) for row in rows),
        "list": json.dumps(rows),
        "pretty-list": json.dumps(rows, indent=4),
        "mark": "\ufeff" + "".join(json.dumps(row) + "\n" for row in rows),
    }
    for name, text in layouts.items():
        yield Case(f"json-layout-{name}", "json", text.encode(), rows=flat)
    for name, text in [("empty-list", "[]"), ("spaced-list", "[\n]\n")]:
        yield Case(f"json-{name}", "json", text.encode(), rows=[])
    kinds = {
        "integers": [1, -2, None],
        "reals": [1.5, 2, None],
        "texts": ["a", "ü", ""],
        "truths": [True, False, None],
        "lists": [[1, 2], [], [None]],
        "objects": [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": None}],
        "other-members": [{"x": 1}, {"y": "b"}, {"x": 3}],
        "deep": [{"x": [{"y": [1]}]}, {"x": []}, {"x": [{"y": [2, 3]}]}],
        "list-of-objects": [[{"x": 1}], [{"x": 2}, {"x": 3}], []],
        "dates": ["2024-01-31", "1999-12-01", None],
        "moments": ["2024-01-31T10:00:00", "1999-12-01T23:59:59", None],
        "int-real": [1, 2.5, 3],
        "escapes": ["a\"b", "line\nend", "\u20ac\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")],
    }
    for name, values in kinds.items():
        text = "".join(json.dumps({"n": n, "v": value}) + "\n" for n, value in enumerate(values))
        yield Case(f"json-type-{name}", "json", text.encode())
    for name, values, expected in [
        ("mixed", [1, "x", True], ["1", "x", "true"]),
        ("object-or-text", [{"x": 1}, "text", [1]], ['{"x":1}', '"text"', "[1]"]),
        ("large", [18446744073709551615, 1, 2], [18446744073709551615, 1, 2]),
        ("huge", [18446744073709551616, -1], [decimal.Decimal(18446744073709551616), decimal.Decimal(-1)]),
        ("long-among-reals", [9007199254740993, 1.5], [decimal.Decimal("9007199254740993.0"), decimal.Decimal("1.5")]),
        ("long-among-powers", [9007199254740993, 1e300], ["9007199254740993", "1e+300"]),
    ]:
        text = "".join(json.dumps({"n": n, "v": value}) + "\n" for n, value in enumerate(values))
        yield Case(f"json-type-{name}", "json", text.encode(), rows=list(enumerate(expected)))


def arrow_columns():
    day, moment = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 10, 0, 0, 123456)
    return {
        "int8": pa.array([1, -2, None], pa.int8()),
        "int16": pa.array([1, -2, None], pa.int16()),
        "int32": pa.array([1, -2, None], pa.int32()),
        "int64": pa.array([1, -2, None], pa.int64()),
        "uint8": pa.array([1, 2, None], pa.uint8()),
        "uint16": pa.array([1, 2, None], pa.uint16()),
        "uint32": pa.array([1, 2, None], pa.uint32()),
        "uint64": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "float32": pa.array([1.5, float("inf"), None], pa.float32()),
        "float64": pa.array([1.5, -0.25, None], pa.float64()),
        "bool": pa.array([True, False, None]),
        "string": pa.array(["a", "ü", None]),
        "large_string": pa.array(["a", "ü", None], pa.large_string()),
        "binary": pa.array([b"a", b"\x00\xff", None]),
        "fixed_binary": pa.array([b"ab", b"\x00\xff", None], pa.binary(2)),
        "date32": pa.array([day, None, day], pa.date32()),
        "timestamp_ms": pa.array([moment.replace(microsecond=123000), None, moment.replace(microsecond=0)], pa.timestamp("ms")),
        "timestamp_us": pa.array([moment, None, moment], pa.timestamp("us")),
        "timestamp_utc": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
        "time64": pa.array([datetime.time(10, 0, 1), None, datetime.time(23, 59)], pa.time64("us")),
        "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-99.99")], pa.decimal128(10, 2)),
        "wide_decimal": pa.array([decimal.Decimal(10**30), None, decimal.Decimal(-1)], pa.decimal128(38, 0)),
        "list": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
        "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
        "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    }


def tables():
    """One column of each type in each of the formats that have types, packed in each way."""
    for name, column in arrow_columns().items():
        table = pa.table({"n": pa.array(range(3), pa.int64()), "v": column})
        rows = list(zip(*table.to_pydict().values()))
        for packed in ["none", "snappy", "gzip", "zstd", "lz4"]:
            sink = io.BytesIO()
            pq.write_table(table, sink, compression=packed)
            yield Case(f"parquet-{name}-{packed}", "parquet", sink.getvalue(), rows=rows)
        sink = io.BytesIO()
        pq.write_table(table, sink, version="1.0", data_page_version="2.0", use_dictionary=False, write_statistics=False)
        yield Case(f"parquet-{name}-old", "parquet", sink.getvalue(), rows=rows)
        for packed in ["uncompressed", "lz4", "zstd"]:
            sink = io.BytesIO()
            pa.feather.write_feather(table, sink, compression=packed)
            yield Case(f"arrow-{name}-{packed}", "arrow", sink.getvalue(), rows=rows)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield Case(f"arrow-{name}-stream", "arrows", sink.getvalue(), rows=rows)
        if name in ("int32", "int64", "float64", "bool", "string", "binary", "date32", "timestamp_us", "list"):
            for packed in ["uncompressed", "snappy", "deflate"]:
                sink = io.BytesIO()
                pl.from_arrow(table).write_avro(sink, packed)
                yield Case(f"avro-{name}-{packed}", "avro", sink.getvalue(), rows=rows)


def times():
    """Points in time of 96 bits, as Spark and Hive write them: without an Arrow schema, over all years that dates have."""
    at = datetime.datetime
    moments = [at(1, 1, 1), at(1582, 10, 15, 12), at(1969, 12, 31, 23, 59, 59, 999999), at(2024, 2, 29, 1, 2, 3, 4), None,
               at(9999, 12, 31, 23, 59, 59, 999999)]  # fmt: skip
    table = pa.table({"n": pa.array(range(len(moments)), pa.int64()), "v": pa.array(moments, pa.timestamp("us"))})
    for name, stored in [("bare", False), ("arrow", True)]:
        rows = list(enumerate(moments)) if not stored else list(enumerate([moments[3]]))
        sink = io.BytesIO()
        part = table if not stored else table.slice(3, 1).set_column(0, "n", pa.array([0]))
        pq.write_table(part, sink, use_deprecated_int96_timestamps=True, store_schema=stored)
        yield Case(f"parquet-int96-{name}", "parquet", sink.getvalue(), rows=rows)
    for name, part in [("no-rows", table.slice(0, 0)), ("no-groups", table.schema.empty_table())]:
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, table.schema) as writer:
            if name == "no-rows":
                writer.write_table(part)
        yield Case(f"parquet-{name}", "parquet", sink.getvalue(), rows=[])


def workbooks():
    day, at = datetime.date, datetime.datetime
    plain = [["id", "name", "price", "day", "at", "ok"],
             [1, "a & b", 1.5, (45322, 1), (45322.5, 2), True],
             [2, 'say "hi", <you>', -2, (45323, 1), (45323, 2), False],
             [3, None, None, None, None, None]]  # fmt: skip
    rows = [(1, "a & b", 1.5, day(2024, 1, 31), at(2024, 1, 31, 12), True),
            (2, 'say "hi", <you>', -2.0, day(2024, 2, 1), at(2024, 2, 1), False),
            (3, None, None, None, None, None)]  # fmt: skip
    for name, sheets, state, expected in [
        ("plain", {"One": plain}, None, rows),
        ("titles", {"One": [["Report of May"], [], *plain]}, None, rows),
        ("hidden", {"Notes": [["x"], [1]], "One": plain}, {"Notes": "hidden"}, rows),
        ("text-numbers", {"One": [["zip", "n"], ["01234", 1], ["56789", 2]]}, None, [("01234", 1), ("56789", 2)]),
        ("errors", {"One": [["a", "b"], [1, "#N/A"], [2, 3]]}, None, [(1, None), (2, 3)]),
        ("formulas", {"One": [["a", "b"], [1, "=x"], [2, "=y"]]}, None, [(1, "x"), (2, "y")]),
        ("times", {"One": [["a", "b"], [1, (0.75, 3)], [2, (0.5, 3)]]}, None,
         [(1, datetime.time(18)), (2, datetime.time(12))]),
        ("gaps", {"One": [["a", None, "c"], [], [1, None, 3], [], [4, None, 6]]}, None, [(1, None, 3), (4, None, 6)]),
    ]:  # fmt: skip
        yield Case(f"xlsx-{name}", "xlsx", workbook(sheets, state), rows=expected)
    text = csv_text(PLAIN, ",", "none", "\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", text)
    yield Case("csv-packed-zip", "csv.zip", packed.getvalue(), rows=[tuple(row) for row in PLAIN[1:]], tags=["dates"])


def all_cases():
    kinds = [dialects(), tricky(), csv_types(), encodings(), compressions(), options(), jsons(), tables(), times()]
    kinds += [workbooks(), (Case(name, "orc", content, rows=rows) for name, content, rows in orc_files())]
    kinds.append(Case(name, ending, content, rows=rows) for name, ending, content, rows in nested_files())
    return list(itertools.chain(*kinds))
