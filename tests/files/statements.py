"""Statements over files that are named in them, and external tables: what they give, and what a client can never reach."""

import pathlib

import duckdb
import pyarrow as pa
from workbook import workbook

import encrypted


def prepare(folder: pathlib.Path):
    """Files beside those of the cases; a secret beside the served folder."""
    for year in (2023, 2024):
        part = folder / "sales" / f"year={year}"
        part.mkdir(parents=True)
        (part / "a.csv").write_text(f"amount,note\n{year},x\n1,y\n")
    (folder / "raw.txt").write_text("1;x\n2;y\n")
    (folder / "bad.csv").write_text("a,b\n1,2\n3,x\n5,6\n")
    (folder / "open.csv").write_text('a,b\n1,"x\n2,y\n')
    (folder / "late.json").write_text('{"a":1}\n' * 20_000 + '{"a":1.5,"z":2}\n')
    (folder / "tags.json").write_text('{"a":1}\n' * 20_000 + '{"a":2,"z":{"x":1}}\n')
    # Behind the rows that types are taken from.
    usual = "1,true,2024-01-01T10:00:00,1.5\n" * 20_480
    for name, row in LATE.items():
        (folder / f"late_{name}.csv").write_text(f"a,b,c,d\n{usual}{row}\n")
    (folder / "names.csv").write_text("John\nAnn,Lee,NY\nBob,Ray,LA\n")
    (folder / "a?c.csv").write_text("n\n1\n")
    (folder / "abc.csv").write_text("n\n2\n")
    (folder / "long_numbers.json").write_text('{"a":9007199254740993}\n' * 20_480 + '{"a":1.5}\n')
    for table, values in KEYS.items():
        for value in values:
            part = folder / table / f"k={value}"
            part.mkdir(parents=True)
            (part / "1.csv").write_text("n\n1\n")
    with duckdb.connect() as other:
        other.sql(f"COPY (SELECT 1 AS id, 'x'::VARIANT AS v) TO '{folder / 'variant.parquet'}'")
    sheets = {"First": [["a"], [1], [2]], "Second": [["b", "c"], [3, "x"], [4, "y"]]}
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
LATE = {
    "padded": "007,true,2024-01-01T10:00:00,1.5",
    "truth": "1,1,2024-01-01T10:00:00,1.5",
    "zone": "1,true,2024-01-01T10:00:00+02:00,1.5",
    "digits": "1,true,2024-01-01T10:00:00,9007199254740993",
}

# Folders `k=…` of a table.
KEYS = {
    "codes": ["007", "7"],
    "moments": ["2024-01-01%2000%3A00%3A00.000000", "2024-01-02%2010%3A00%3A00.000000"],
}

# A statement and its rows.
ANSWERS = [
    ("SELECT count(*) FROM read_csv('late_padded.csv', sample_size = -1) WHERE a = '007'", [(1,)]),
    ("SELECT sum(a) FROM read_csv('late_padded.csv', types = {'a': 'BIGINT'})", [(20_487,)]),
    ("SELECT count(*) FROM read_csv('late_truth.csv', ignore_errors = true)", [(20_480,)]),
    ("SELECT c FROM read_csv('late_zone.csv', all_varchar = true) WHERE c LIKE '%+%'", [("2024-01-01T10:00:00+02:00",)]),
    ("SELECT count(*) FROM read_csv('names.csv', header = false)", [(3,)]),
    ("SELECT \"Ann\" FROM read_csv('names.csv', skip = 1)", [("Bob",)]),
    ("SELECT sum(n) FROM 'a?c.csv'", [(1,)]),
    ("SELECT sum(n) FROM 'a[b]c.csv'", [(2,)]),
    ("SELECT max(a)::VARCHAR FROM long_numbers", [("9007199254740993.0",)]),
    ("SELECT k FROM codes ORDER BY k", [("007",), ("7",)]),
    ("SELECT count(*) FROM moments WHERE k >= TIMESTAMP '2024-01-02 10:00:00'", [(1,)]),
    ("SELECT id FROM variant", [(1,)]),
    ("SELECT sum(amount) FROM 'sales/*/a.csv'", [(4049,)]),
    ("SELECT sum(amount) FROM 'sales/**/*.csv' WHERE year = 2024", [(2025,)]),
    ("SELECT count(*) FROM read_csv('sales/**/*.csv', hive_partitioning = false)", [(4,)]),
    ("SELECT DISTINCT filename FROM read_csv('sales/year=2024/*.csv', filename = true)", [("sales/year=2024/a.csv",)]),
    ("SELECT count(*) FROM read_csv(['sales/year=2023/a.csv', 'sales/year=2024/a.csv'], union_by_name = true)", [(4,)]),
    ("SELECT a.amount FROM 'sales/year=2024/a.csv' AS a WHERE a.note = 'y'", [(1,)]),
    ("SELECT a.amount FROM 'sales/year=2024/a.csv' WHERE a.note = 'y'", [(1,)]),
    ("SELECT y FROM read_csv('raw.txt', header = false, delim = ';', names = ['x', 'y']) ORDER BY x", [("x",), ("y",)]),
    ("SELECT x + 1 FROM read_csv_auto('raw.txt', columns = {'x': 'INT', 'y': 'TEXT'}) ORDER BY 1", [(2,), (3,)]),
    ("DESCRIBE 'sales/year=2024/a.csv'", [
        ("amount", "BIGINT", "YES", None, None, None), ("note", "VARCHAR", "YES", None, None, None),
        ("year", "BIGINT", "YES", None, None, None)]),
    ("SELECT count(*) FROM read_csv('bad.csv', ignore_errors = true, types = {'b': 'INT'})", [(2,)]),
    ("SELECT line, column_name, value FROM system.rejects ORDER BY line", [(3, "b", "x"), (20_482, "b", "1")]),
    ("SELECT read_as LIKE '%delim=,%' FROM system.files WHERE table_name = 'bad'", [(True,)]),
    ("CREATE TABLE made AS SELECT * FROM 'sales/**/*.csv'", None),
    ("SELECT count(*), sum(amount) FROM made", [(4, 4049)]),
    ("CREATE VIEW seen AS SELECT amount FROM 'sales/**/*.csv'", None),
    ("SELECT sum(amount) FROM seen", [(4049,)]),
    ("SELECT count(*) FROM wide", [(1,)]),
    ("SELECT c2999 FROM 'wide.csv'", [(1,)]),
    ("SUMMARIZE 'sales/year=2024/a.csv'", None),
    ("SELECT count(*) FROM read_parquet('parquet_int64_zstd.parquet')", [(3,)]),
    ("SELECT count(*) FROM read_json('json_layout_list.json')", [(3,)]),
    ("SELECT count(*) FROM read_arrow('arrow_int64_lz4.arrow')", [(3,)]),
    ("FROM 'raw.txt'", "no known format"),
    # What the first rows of a file do not show is found by the statement that meets it.
    ("SELECT count(a), sum(a) FROM 'late.json'", [(20001, 20001.5)]),
    ("SELECT max(z) FROM 'late.json'", [(2,)]),
    ("SELECT sum(a) FROM tags", [(20002,)]),
    ("SELECT sum(z['x']) FROM tags", [(1,)]),
    ("SELECT read_as LIKE '%all rows looked at' FROM system.files WHERE table_name = 'tags'", [(True,)]),
    ("SELECT b FROM read_csv('open.csv', quote = '') WHERE a = 1", [('"x',)]),
    ("SELECT count(*) FROM read_json('late.json', columns = {'a': 'DOUBLE'})", [(20001,)]),
    ("SELECT year FROM read_csv('sales/*/a.csv', hive_types_autocast = false) WHERE note = 'x' ORDER BY 1",
     [("2023",), ("2024",)]),
    ("SELECT sum(a) FROM book_first", [(3,)]),
    ("SELECT sum(b), max(c) FROM book_second", [(7, "y")]),
    ("SELECT sum(a) FROM 'book.xlsx'", [(3,)]),
    ("SELECT count(*), max(c199999) FROM widest", [(2, 199999)]),
    ("SELECT sum(n), count(v) FROM read_orc('orc_int64_zstd.orc')", [(3, 2)]),
    ("SELECT count(*), sum(n) FROM 'orc_runs_*.orc'", [(40_000, 199_980_000)]),
    ("SELECT sum(deep[1]['a']) > 0, count(word) FROM orc_runs_plain", [(True, 6_666)]),
    ("SELECT sum(b), max(c) FROM read_xlsx('book.xlsx', sheet = 'second')", [(7, "y")]),
    ("SELECT read_as LIKE 'sheet=First of First, Second%' FROM system.files WHERE table_name = 'book_first'", [(True,)]),
    ("SELECT max(name) FROM read_xlsx('titled.xlsx', skip = 1)", [("Bob",)]),
    ("SELECT count(*) FROM read_xlsx('titled.xlsx', header = false)", [(4,)]),
    ("SELECT count(*), max(city) FROM titles_apart", [(2, "NY")]),
    ("SELECT max(age) FROM titles_typed", [(7,)]),
    ("SELECT line FROM read_lines('app.log')", [('first, "line',), ("",), ("third\ta=1",)]),
    ("SELECT * FROM read_csv('raw.txt', auto_detect = false) ORDER BY 1", [("1;x",), ("2;y",)]),
    # External tables.
    ("CREATE EXTERNAL TABLE outer_sales STORED AS CSV LOCATION 'sales/' OPTIONS ('format.has_header' 'true')", None),
    ("SELECT sum(amount), max(year) FROM outer_sales WHERE note = 'x'", [(4047, 2024)]),
    ("SELECT count(*) FROM outer_sales o JOIN seen s ON o.amount = s.amount", [(6,)]),
    ("CREATE EXTERNAL TABLE IF NOT EXISTS outer_sales STORED AS ORC LOCATION 'nothing.orc'", None),
    ("CREATE EXTERNAL TABLE outer_sales STORED AS CSV LOCATION 'sales/'", "already exists"),
    ("CREATE OR REPLACE EXTERNAL TABLE outer_sales STORED AS ORC LOCATION 'orc_int64_*.orc'", None),
    ("SELECT count(*) FROM outer_sales", [(15,)]),
    ("CREATE EXTERNAL TABLE typed (x SMALLINT, \"Y\" VARCHAR) STORED AS CSV LOCATION 'raw.txt' OPTIONS (delimiter ';', header false)", None),
    ("DESCRIBE typed", [
        ("x", "SMALLINT", "YES", "", None, ""), ("Y", "VARCHAR", "YES", "", None, "")]),
    ("SELECT x + 1, \"Y\" FROM typed ORDER BY 1", [(2, "x"), (3, "y")]),
    ("CREATE EXTERNAL TABLE outer_json (a DOUBLE) STORED AS NDJSON LOCATION 'late.json'", None),
    ("SELECT sum(a) FROM outer_json", [(20001.5,)]),
    ("CREATE EXTERNAL TABLE outer_sheet STORED AS XLSX LOCATION 'book.xlsx' OPTIONS (sheet = 'Second')", None),
    ("SELECT sum(b), max(c) FROM outer_sheet", [(7, "y")]),
    ("CREATE EXTERNAL TABLE outer_lines STORED AS TEXT LOCATION 'app.log'", None),
    ("SELECT count(*) FROM outer_lines", [(3,)]),
    ("CREATE EXTERNAL TABLE main.outer_names STORED AS CSV LOCATION 'raw.txt' OPTIONS (names ['p', 'q'], types {'p': 'INT'}, delim ';')", None),
    ("SELECT p, q FROM outer_names ORDER BY p", [(1, "x"), (2, "y")]),
    ("CREATE VIEW over_outer AS SELECT sum(p) AS s FROM outer_names", None),
    ("SELECT s FROM over_outer", [(3,)]),
    ("COMMENT ON TABLE outer_names IS 'of files'", None),
    ("SELECT table_type, is_insertable_into, table_comment FROM information_schema.tables WHERE table_name = 'outer_names'",
     [("BASE TABLE", "NO", "of files")]),
    ("SELECT column_name FROM information_schema.columns WHERE table_name = 'outer_names' ORDER BY ordinal_position",
     [("p",), ("q",)]),
    ("ALTER TABLE outer_names RENAME TO outer_renamed", None),
    ("SELECT count(*) FROM outer_renamed", [(2,)]),
    ("CREATE TABLE of_outer AS SELECT * FROM outer_renamed", None),
    ("SELECT sum(p) FROM of_outer", [(3,)]),
    ("DROP TABLE outer_lines", None),
    ("SELECT * FROM outer_lines", "not found"),
    ("DROP VIEW outer_sheet", None),
    ("DROP TABLE IF EXISTS outer_sheet", None),
    # As DataFusion writes them: columns of folders among the others, a folder without `/`, clauses for options.
    ("CREATE EXTERNAL TABLE outer_hive (amount INT, year SMALLINT, note TEXT) STORED AS CSV WITH HEADER ROW DELIMITER ',' "
     "PARTITIONED BY (year) LOCATION 'sales' COMMENT 'it''s by year'", None),
    ("DESCRIBE outer_hive", [
        ("amount", "INTEGER", "YES", "", None, ""), ("note", "VARCHAR", "YES", "", None, ""),
        ("year", "SMALLINT", "YES", "", None, "")]),
    ("SELECT sum(amount), max(note) FROM outer_hive WHERE year = 2024", [(2025, "y")]),
    ("SELECT storage, row_count, location FROM system.tables WHERE table_name = 'outer_hive'", [("external", None, "sales/")]),
    ("SELECT table_comment FROM information_schema.tables WHERE table_name = 'outer_hive'", [("it's by year",)]),
    ("CREATE EXTERNAL TABLE outer_found LOCATION 'sales/**/*.csv' PARTITIONED BY (year)", None),
    ("SELECT sum(amount) FROM outer_found WHERE year > 2023", [(2025,)]),
    ("CREATE EXTERNAL TABLE outer_ending LOCATION 'parquet_int64_zstd.parquet'", None),
    ("SELECT count(*) FROM outer_ending", [(3,)]),
    ("SELECT sum(amount) FROM read_csv('sales/**/*.csv', hive_types = {'year': 'VARCHAR'}) WHERE year = '2024'", [(2025,)]),
    *encrypted.ANSWERS,
]  # fmt: skip

# Tables whose statements, as SHOW CREATE TABLE tells them, make them again.
AGAIN = ["outer_sales", "typed", "outer_json", "outer_renamed", "outer_hive", "outer_found", "outer_ending"]

# A statement, and what its refusal says.
REFUSED = [
    ("SELECT * FROM '/etc/passwd'", "no file"),
    ("SELECT * FROM read_csv('/etc/passwd', header = false)", "no file"),
    ("SELECT * FROM '../secret.csv'", "no file"),
    ("SELECT * FROM 'sales/../../secret.csv'", "no file"),
    ("SELECT * FROM 'link.csv'", "no file"),
    ("SELECT * FROM '.hidden.csv'", "no file"),
    ("SELECT * FROM read_csv('*/../../secret.csv')", "no file"),
    ("SELECT * FROM 'https://example.org/a.csv'", "in no place that statements may read"),
    ("SELECT * FROM 'nothing.csv'", "no file"),
    ("SELECT * FROM read_csv('bad.csv', heder = true)", "is no option"),
    ("SELECT * FROM read_csv('bad.csv', delim = 'ab')", "is no value"),
    ("SELECT * FROM read_csv('bad.csv', types = {'b': 'INT'})", "line 3"),
    *[(f"SELECT * FROM late_{name}", "line 20482") for name in LATE],
    ("SELECT a FROM late_padded", "`007` in column `a` is no value of type Int64"),
    ("SELECT * FROM names", "line 1: one value above a table of 3 columns"),
    ("SELECT * FROM read_xlsx('titled.xlsx')", "line 1: one value above a table of 2 columns"),
    ("SELECT * FROM variant", "VARIANT"),
    ("SELECT count(v) FROM 'variant.parquet'", "column `v`"),
    ("SELECT * FROM read_csv()", "takes a path"),
    ("SELECT * FROM read_csv((SELECT 'a'))", "is no value"),
    ("SELECT * FROM read_parquet('bad.csv')", "cannot be read"),
    ("SELECT * FROM read_orc('bad.csv')", "no ORC file"),
    ("SELECT * FROM 'noise.orc'", "cannot be read"),
    ("SELECT * FROM 'open.csv'", "line 2"),
    ("SELECT * FROM read_xlsx('book.xlsx', sheet = 'third')", "its sheets are First, Second"),
    ("SELECT * FROM read_xlsx('bad.csv')", "zip archive"),
    ("SELECT * FROM read_json('late.json', types = {'a': 'BIGINT'})", "line 20001"),
    ("SELECT * FROM read_parquet('parquet_int64_zstd.parquet', header = true)", "no option of parquet"),
    ("SELECT * FROM read_json('json_layout_list.json', delim = ';')", "no option of json"),
    ("SELECT * FROM read_csv('bad.csv', types = {'c': 'INT'})", "names the column `c`"),
    ("SELECT * FROM read_csv('bad.csv', encoding = 'utf-16')", "no text in UTF-16"),
    ("SELECT * FROM read_csv('bad.csv', thousands = '.')", "cannot be both"),
    ("SELECT * FROM read_csv('bad.csv', parallel = 'perhaps')", "is no value"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '/etc/passwd'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '/etc/'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '../secret.csv'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '../'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'link.csv'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '.hidden.csv'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS PARQUET LOCATION 's3://bucket/x.parquet'", "in no place that statements may read"),
    ("CREATE EXTERNAL TABLE other (a INT) STORED AS PARQUET LOCATION 'parquet_int64_zstd.parquet'", "no option of parquet"),
    ("CREATE EXTERNAL TABLE other (a INT NOT NULL) STORED AS CSV LOCATION 'bad.csv'", "a name and a type"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'bad.csv' OPTIONS (heder true)", "is no option"),
    ("CREATE EXTERNAL TABLE other STORED AS DELTA LOCATION 'sales/'", "is not known"),
    ("CREATE EXTERNAL TABLE temp.other STORED AS CSV LOCATION 'bad.csv'", "not temporary"),
    ("CREATE EXTERNAL TABLE seen STORED AS CSV LOCATION 'bad.csv'", "already exists"),
    ("CREATE OR REPLACE EXTERNAL TABLE seen STORED AS CSV LOCATION 'bad.csv'", "is a view"),
    ("CREATE OR REPLACE VIEW typed AS SELECT 1 AS a", "is a table"),
    ("INSERT INTO typed VALUES (3, 'z')", "is an external table"),
    ("ALTER TABLE typed ADD COLUMN z INT", "is an external table"),
    ("DROP MATERIALIZED VIEW typed", "is a table"),
    ("DROP EXTERNAL TABLE typed", "write DROP TABLE"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'nothing'", "no file `nothing`"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '..'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION '/etc'", "no file"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'sales/' PARTITIONED BY (month)", "the columns of folders are year"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'bad.csv' PARTITIONED BY (year)", "leave PARTITIONED BY"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'sales/' PARTITIONED BY (year DATE)", "no value of type"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'sales/' WITH ORDER (amount)", "leave WITH ORDER out"),
    ("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'sales/' OPTIONS ('aws.access_key_id' 'x')", "the operator opens"),
    ("CREATE TABLE other (a INT) LOCATION 'sales/'", "CREATE EXTERNAL TABLE"),
    *encrypted.REFUSED,
    ("SELECT * FROM other", "not found"),
]


def check(read):
    """Failures as texts, and how many statements passed."""
    failures, passed = [], 0
    for sql, wanted in ANSWERS:
        try:
            table = read(sql)
            rows = list(zip(*(column.to_pylist() for column in table.columns)))
            if isinstance(wanted, str) or (wanted is not None and rows != wanted):
                failures.append(f"{sql}: {rows} instead of {wanted}")
                continue
        except pa.ArrowException as error:
            if not (isinstance(wanted, str) and wanted in str(error)):
                failures.append(f"{sql}: {str(error)[:400]}")
                continue
        passed += 1
    for sql, wanted in REFUSED:
        try:
            failures.append(f"{sql}: gave {read(sql).num_rows} rows")
        except pa.ArrowException as error:
            if wanted in str(error):
                passed += 1
            else:
                failures.append(f"{sql}: {str(error)[:400]}")
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
