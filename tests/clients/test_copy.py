"""COPY against files that others have written, and files of ours that others read."""

import datetime
import decimal
import json

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet
import pytest

from server import Server

ROWS = pa.table({
    "id": pa.array([1, 2, 3], pa.int64()),
    "name": pa.array(["a,\"b\"", "ü\n", None]),
    "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-3.25")], pa.decimal128(12, 2)),
    "day": pa.array([datetime.date(2024, 1, 31), None, datetime.date(1969, 12, 31)]),
})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exchange")


@pytest.fixture(scope="module")
def cursor(data_folder, folder):
    with (
        Server(data_folder, arguments=["--set", f"storage.exchange_folder={folder}"]) as server,
        dbapi.connect(server.grpc_tcp, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


def run(cursor, sql):
    cursor.execute(sql)
    return cursor.rowcount


@pytest.fixture
def rows(cursor, table):
    cursor.adbc_ingest(table, ROWS, mode="create")
    yield table
    run(cursor, f"DROP TABLE {table}")


def read(path):
    match path.suffix:
        case ".parquet":
            return pyarrow.parquet.read_table(path)
        case ".arrow":
            return pyarrow.feather.read_table(path)
        case ".csv":
            options = pyarrow.csv.ConvertOptions(column_types=ROWS.schema, strings_can_be_null=True)
            parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
            return pyarrow.csv.read_csv(path, convert_options=options, parse_options=parsing)
    lines = [json.loads(line, parse_float=decimal.Decimal) for line in path.read_text().splitlines()]
    for line in lines:
        line["day"] = line.get("day") and datetime.date.fromisoformat(line["day"])
        line["price"] = line.get("price") and decimal.Decimal(line["price"])
    return pa.Table.from_pylist(lines, ROWS.schema)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "json"])
def test_others_read_what_is_written(cursor, folder, rows, ending):
    path = folder / f"{rows}.{ending}"
    assert run(cursor, f"COPY {rows} TO '{path.name}'") == 3
    assert read(path).sort_by("id").to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "json"])
def test_what_others_have_written_is_read(cursor, folder, rows, ending):
    path = folder / f"theirs.{ending}"
    more = ROWS.set_column(0, "id", pa.array([11, 12, 13], pa.int64())).select(["name", "day", "id", "price"])
    match ending:
        case "parquet":
            pyarrow.parquet.write_table(more, path, use_dictionary=True)
        case "arrow":
            pyarrow.feather.write_feather(more, path, compression="lz4")
        case "csv":
            pyarrow.csv.write_csv(more, path)
        case "json":
            path.write_text("\n".join(json.dumps(row, default=str) for row in more.to_pylist()))
    assert run(cursor, f"COPY {rows} FROM '{path}'") == 3
    cursor.execute(f"SELECT name, day, id, price FROM {rows} WHERE id > 10 ORDER BY id")
    assert cursor.fetch_arrow_table().to_pylist() == more.to_pylist()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_what_operators_ask_for_is_not_in_files(cursor, folder, table, ending):
    run(cursor, f"CREATE TABLE {table} (c CHAR(5), j JSONB, u UUID)")
    run(cursor, f"INSERT INTO {table} VALUES ('ab ', '{{\"b\": 1.0, \"a\": 1}}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')")
    path = folder / f"{table}.{ending}"
    assert run(cursor, f"COPY (SELECT c, j, u, j::text AS t FROM {table}) TO '{path.name}'") == 1
    run(cursor, f"DROP TABLE {table}")
    rows = read(path)
    assert not any(b"padded" in key for field in rows.schema for key in field.metadata or {}), rows.schema
    assert b"bowshot:type" not in (rows.schema.field("t").metadata or {})
    (row,) = rows.to_pylist()
    assert row["c"] == "ab" and row["j"] == row["t"] == '{"a": 1, "b": 1.0}'
    assert str(row["u"]) == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
