"""docs/reference/types.md says how each type comes over each front end: so it is, for those that SQL can make."""

import psycopg
import pymysql
import pytest

import http_sql
from server import ROOT, Server

PAGE = ROOT / "docs" / "reference" / "types.md"
# The first words of the row, and a value of that type.
VALUES = {
    "Boolean": "true",
    "Int8": "CAST(1 AS TINYINT)",
    "UInt8": "CAST(1 AS TINYINT UNSIGNED)",
    "Int16": "CAST(1 AS SMALLINT)",
    "UInt16": "CAST(1 AS SMALLINT UNSIGNED)",
    "Int32": "CAST(1 AS INT)",
    "UInt32": "CAST(1 AS INT UNSIGNED)",
    "Int64": "CAST(1 AS BIGINT)",
    "UInt64": "CAST(1 AS BIGINT UNSIGNED)",
    "Float16, Float32": "CAST(0.5 AS REAL)",
    "Float64": "CAST(0.5 AS DOUBLE)",
    "Decimal32, Decimal64, Decimal128, Decimal256": "CAST(1.10 AS DECIMAL(20, 2))",
    "Utf8, LargeUtf8, Utf8View": "'a'",
    "the same with the extension `arrow.json`, as `CAST(… AS JSON)` gives it, and columns that a table declares as JSON": "CAST('{\"a\":1}' AS JSON)",
    "text of type UUID": "CAST('6fb1aaaa-0000-0000-0000-000000000000' AS UUID)",
    "Binary, LargeBinary, BinaryView, FixedSizeBinary": "X'00ff'",
    "Date32, Date64": "DATE '2024-02-29'",
    "Time32, Time64": "TIME '01:02:03.000004'",
    "Timestamp without a time zone": "TIMESTAMP '2024-02-29 01:02:03'",
    "Timestamp with a time zone": "TIMESTAMPTZ '2024-02-29 01:02:03+02'",
    "Interval of every unit": "INTERVAL '1 month 2 days 3 seconds'",
    "Null": "NULL",
    "List, LargeList, FixedSizeList, list views": "[1, NULL]",
    "lists of lists": "[[1], [2]]",
    "Struct": "{'a': 1}",
    "Map": "MAP {'a': 1}",
}


def table():
    rows = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in rows[1:]}


def number(cell):
    return int(cell.rsplit("(", 1)[1].rstrip(")"))


def values(cell):
    return [part.strip("`") for part in cell.split("`, `")]


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    with Server(arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]) as server:
        postgres = server.postgres(options="-c dialect=ansi", autocommit=True)
        with psycopg.connect(**postgres) as one, pymysql.connect(**server.mysql(autocommit=True)) as other:
            with other.cursor() as cursor:
                cursor.execute("SET dialect = 'ansi'")
            yield server, one, other


@pytest.mark.parametrize("name", VALUES)
def test_the_page_says_what_comes(doors, name):
    server, postgres, mysql = doors
    sql = f"SELECT {VALUES[name]} AS v"
    in_postgres, in_mysql, in_json, in_csv = table()[name]
    assert postgres.execute(sql).description[0].type_code == number(in_postgres)
    with mysql.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.description[0][1] == number(in_mysql)
    cell = asked(server, sql, "json").split('"rows":[', 1)[1].split('],"row_count"')[0].strip()
    assert cell[1:-1] in values(in_json)
    line = asked(server, sql, "csv").split("\r\n")[1]
    assert line in ([""] if in_csv == "empty" else values(in_csv))


def asked(server, sql, form):
    answer = http_sql.ask(server, "POST", f"/v1/sql?format={form}", sql.encode(), content_type="text/plain")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def test_all_types_are_in_the_page():
    assert set(VALUES) <= set(table())
