"""Statements over files that are named in them, and external tables: what they give, and what a client can never reach."""

import json
import pathlib

import duckdb
import polars as pl
import pyarrow as pa
from workbook import workbook

import encrypted


def prepare(folder: pathlib.Path):
    """Files beside those of the cases; a secret beside the served folder."""
    for year in (2023, 2024):
        part = folder / "sales" / f"year={year}"
        part.mkdir(parents=True)
        (part / "a.csv").write_text(f"amount,note\n{year},x\n1,y\n")
    (folder / "told.csv").write_text("Title\na;b\n1;2,5\n2;3,5\n")
    (folder / "raw.txt").write_text("1;x\n2;y\n")
    (folder / "bad.csv").write_text("a,b\n1,2\n3,x\n5,6\n")
    (folder / "open.csv").write_text('a,b\n1,"x\n2,y\n')
    (folder / "late.json").write_text('{"a":1}\n' * 20_000 + '{"a":1.5,"z":2}\n')
    (folder / "tags.json").write_text('{"a":1}\n' * 20_000 + '{"a":2,"z":{"x":1}}\n')
    # Behind the rows that types are taken from.
    for name, (column, value) in LATE.items():
        row = USUAL | {column: value}
        usual = (",".join(USUAL.values()) + "\n") * 20_480
        (folder / f"late_{name}.csv").write_text(",".join(USUAL) + f"\n{usual}{','.join(row.values())}\n")
    usual = '{"a":1,"s":{"x":1},"t":"2024-01-01T10:00:00","n":null,"l":[1]}\n' * 20_000
    for name, row in LATE_JSON.items():
        (folder / f"late_{name}.json").write_text(f"{usual}{row}\n")
    (folder / "names.csv").write_text("John\nAnn,Lee,NY\nBob,Ray,LA\n")
    (folder / "a?c.csv").write_text("n\n1\n")
    (folder / "abc.csv").write_text("n\n2\n")
    (folder / "long_numbers.json").write_text('{"a":9007199254740993}\n' * 20_480 + '{"a":1.5}\n')
    for table, values in KEYS.items():
        for value in values:
            part = folder / table / f"k={value}"
            part.mkdir(parents=True)
            (part / "1.csv").write_text("n\n1\n")
    for table, texts in TOGETHER.items():
        (folder / table).mkdir()
        for number, text in enumerate(texts):
            (folder / table / f"{number}.csv").write_text(text)
    pl.DataFrame({"id": [1, 2], "h": pl.Series([1, 2], dtype=pl.Int128)}).write_parquet(folder / "wide_numbers.parquet")
    with duckdb.connect() as other:
        other.sql(f"COPY (SELECT 1 AS id, 'x'::VARIANT AS v) TO '{folder / 'variant.parquet'}'")
    sheets = {"First": [["a"], [1], [2], []], "Second": [["b", "c"], [3, "x"], [4, "y"]]}
    (folder / "book.xlsx").write_bytes(workbook(sheets))
    # A title above texts could be a row as well; above other values, or an empty row, it is none.
    friends = [["name", "city"], ["Ann", "NY"], ["Bob", "LA"]]
    (folder / "titled.xlsx").write_bytes(workbook({"Friends": [["Friends"], *friends]}))
    (folder / "titles.xlsx").write_bytes(workbook({"Apart": [["Friends"], [], *friends], "Typed": [["Ages"], ["name", "age"], ["Ann", 7]]}))
    (folder / "app.log").write_text('first, "line\n\nthird\ta=1\n')
    (folder / "wide.csv").write_text(",".join(f"c{n}" for n in range(3000)) + "\n" + ",".join("1" * 3000) + "\n")
    widest = [",".join(f"c{n}" for n in range(200_000)), *[",".join(map(str, range(200_000)))] * 2]
    (folder / "widest.csv").write_text("\n".join(widest))
    (folder / "noise.orc").write_bytes(b"ORC" + bytes(range(200)))
    encrypted.write(folder)
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    (folder / ".hidden.csv").write_text("a\n1\n")


# Rows that the types of those before would change.
USUAL = {"a": "1", "b": "true", "c": "2024-01-01T10:00:00", "d": "1.5", "e": "2024-01-01", "f": "10:00:00"}
LATE = {
    "padded": ("a", "007"), "sign": ("a", "+1"), "truth": ("b", "1"), "word": ("b", "yes"), "zone": ("c", "2024-01-01T10:00:00+02:00"),
    "fraction": ("c", "2024-01-01T10:00:00.5"), "padded_real": ("d", "007.5"), "digits": ("d", "9007199254740993"),
    "moment": ("e", "2024-01-01T10:00:00"), "fine_time": ("f", "10:00:00.123456789"), "zoned_time": ("f", "10:00:00+02:00"),
}  # fmt: skip
LATE_JSON = {
    "large": '{"a":18446744073709551615}', "text": '{"a":"x"}', "member": '{"s":{"y":5}}', "number": '{"s":3}', "list": '{"l":[1,2.5]}',
    "null": '{"n":4}', "moments": '{"t":"2024-01-01T10:00:00.25"}', "zones": '{"t":"2024-01-01T10:00:00Z"}', "instead": '{"t":5}',
}  # fmt: skip

# Folders `k=…` of a table.
KEYS = {
    "codes": ["007", "7"],
    "moments": ["2024-01-01%2000%3A00%3A00.000000", "2024-01-02%2010%3A00%3A00.000000"],
    "months": ["01", "02"],
    "zeros": ["-0", "0"],
    "days": ["2024-01-01", "2024-02-29"],
    "fine": ["2024-01-01%2000%3A00%3A00.000000001"],
    "zoned": ["2024-01-01%2000%3A00%3A00Z"],
    "spellings": ["2024-01-01%2000%3A00%3A00", "2024-01-01T00%3A00%3A00"],
    "both": ["2024-01-01%2000%3A00%3A00", "2024-01-01"],
}

# Files of one table.
TOGETHER = {
    "united": ["a,b\n1,x\n2,y\n", "c,b,a\ntrue,z,2.5\n", "", "b\nonly\n"],
    "second_headless": ["a,b\n1,x\n2,y\n", "3,z\n4,w\n"],
    "all_headless": ["1,x\n2,y\n", "p,z\nq,w\n"],
}

# Statements in their order, with their rows (null for any) or with words of their refusal.
CASES = [json.loads(line) for line in (pathlib.Path(__file__).parent / "statements.jsonl").read_text().splitlines()]

# Tables whose statements, as SHOW CREATE TABLE tells them, make them again.
AGAIN = ["outer_sales", "typed", "outer_json", "outer_renamed", "outer_hive", "outer_found", "outer_ending"]


def check(read):
    """Failures as texts, and how many statements passed."""
    failures, passed = [], 0
    for case in CASES:
        sql, refused = case["sql"], case.get("refused")
        try:
            rows = [list(row) for row in zip(*(column.to_pylist() for column in read(sql).columns))]
        except pa.ArrowException as error:
            if refused is not None and refused in str(error):
                passed += 1
            else:
                failures.append(f"{sql}: {str(error)[:400]}")
            continue
        if refused is not None or case["rows"] not in (None, rows):
            failures.append(f"{sql}: {str(rows)[:400]} instead of {case.get('rows', refused)}")
        else:
            passed += 1
    for name in AGAIN:
        try:
            before = read(f"SELECT * FROM {name}").num_rows
            text = read(f"SHOW CREATE TABLE {name}")["create_statement"][0].as_py()
            read(f"DROP TABLE {name}")
            read(text)
            again = read(f"SHOW CREATE TABLE {name}")["create_statement"][0].as_py()
            if again != text or read(f"SELECT * FROM {name}").num_rows != before:
                failures.append(f"{text}: makes {again}")
            else:
                passed += 1
        except pa.ArrowException as error:
            failures.append(f"{name} made again: {str(error)[:400]}")
    return failures, passed


# Statements for a server with a data folder, and what it answers after its restart, and after the folder is closed.
BEFORE = [
    "CREATE EXTERNAL TABLE kept_sales STORED AS CSV LOCATION 'sales/'",
    "CREATE EXTERNAL TABLE kept_typed (x INT, y VARCHAR) STORED AS CSV LOCATION 'raw.txt' OPTIONS (delim ';', nullstr ['y', ''])",
    "CREATE EXTERNAL TABLE dropped STORED AS CSV LOCATION 'sales/'",
    "COMMENT ON TABLE kept_typed IS 'two columns'",
    "ALTER TABLE kept_sales RENAME TO renamed_sales",
    "DROP TABLE dropped",
]
AFTER = [
    ("SELECT sum(amount), max(year) FROM renamed_sales", [(4049, 2024)]),
    ("SELECT x, y FROM kept_typed ORDER BY x", [(1, "x"), (2, None)]),
    ("SELECT table_comment FROM information_schema.tables WHERE table_name = 'kept_typed'", [("two columns",)]),
    ("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('dropped', 'kept_sales')", [(0,)]),
]


def check_kept(server, folder: pathlib.Path):
    """The same across restarts: `server` starts one over a folder, with a data folder and settings."""
    failures, passed = [], 0
    data = folder.parent / "data"
    with server(folder, data) as read:
        for sql in BEFORE:
            read(sql)
    with server(folder, data) as read:
        for sql, wanted in AFTER:
            table = read(sql)
            rows = list(zip(*(column.to_pylist() for column in table.columns)))
            if rows == wanted:
                passed += 1
            else:
                failures.append(f"after a restart: {sql}: {rows} instead of {wanted}")
    # Another place with files of those names is not the one that the tables were made over.
    elsewhere = folder.parent / "elsewhere"
    (elsewhere / "sales").mkdir(parents=True)
    (elsewhere / "sales" / "a.csv").write_text("amount,year\n1,1\n")
    (elsewhere / "raw.txt").write_text("9;z\n")
    with server(elsewhere, data) as read:
        refusals(read, "elsewhere", failures)
    # What the operator closes, a table that is kept does not open.
    with server(folder, data, "--set", "storage.read_by_path=false") as read:
        refusals(read, "closed", failures)
    return failures, passed


def refusals(read, why, failures):
    for sql in ("SELECT * FROM renamed_sales", "SELECT * FROM kept_typed"):
        try:
            failures.append(f"{why}: {sql}: gave {read(sql).num_rows} rows")
        except pa.ArrowException as error:
            if "no file" not in str(error):
                failures.append(f"{why}: {sql}: {str(error)[:400]}")
