"""VARIANT: as Arrow's extension type, as JSON to other protocols, in Parquet files of ours and of DuckDB, and behind a mask."""

import json

import adbc_driver_flightsql.dbapi as dbapi
import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest

import http_sql
from durable import Database
from server import Server, users_file

NAME = b"ARROW:extension:name"
VALUES = ['{"a":{"b":[1,2.5,"x"]},"t":"y"}', '[true,null]', '"text"', "7", None]
DUCKDB_2 = pytest.mark.skipif(int(duckdb.__version__.split(".")[0]) < 2, reason="DuckDB before 2 does not shred")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exchange")


@pytest.fixture(scope="module", params=["memory", "durable"])
def world(request, folder, tmp_path_factory):
    data = "memory" if request.param == "memory" else str(tmp_path_factory.mktemp("data") / "data")
    arguments = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--set", f"storage.exchange_folder={folder}"]
    with Server(data=data, arguments=arguments) as server, Database(server) as db:
        db.run("CREATE TABLE t (id INT, v VARIANT)")
        for number, value in enumerate(VALUES):
            literal = "NULL" if value is None else f"'{value}'"
            db.run(f"INSERT INTO t VALUES ({number}, {literal})")
        yield server, db


def loaded(rows):
    """Rows with JSON texts as values."""
    return [(key, None if text is None else json.loads(text)) for key, text in rows]


EXPECTED = [(number, None if value is None else json.loads(value)) for number, value in enumerate(VALUES)]


def test_arrow_has_the_extension_type(world):
    _, db = world
    table = db.arrow("SELECT id, v FROM t ORDER BY id")
    field = table.schema.field("v")
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        assert kind.extension_name == "arrow.parquet.variant"
        kind = kind.storage_type
    else:
        assert field.metadata[NAME] == b"arrow.parquet.variant"
    assert [(part.name, part.type, part.nullable) for part in kind] == [("metadata", pa.binary(), False), ("value", pa.binary(), False)]
    # The same values come back by ingest, in whatever types of bytes.
    storage = table.column("v").combine_chunks()
    storage = getattr(storage, "storage", storage)
    views = storage.cast(pa.struct([("metadata", pa.large_binary()), ("value", pa.large_binary())]))
    metadata = {NAME: b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}
    schema = pa.schema([table.schema.field("id"), pa.field("v", views.type, metadata=metadata)])
    db.ingest("again", pa.Table.from_arrays([table.column("id").combine_chunks(), views], schema=schema))
    assert loaded(db.rows("SELECT id, v::JSON FROM again ORDER BY id")) == EXPECTED
    db.run("DROP TABLE again")


def test_other_protocols_have_json(world):
    server, db = world
    with psycopg.connect(**server.postgres(), autocommit=True) as connection:
        rows = connection.execute("SELECT id, v FROM t ORDER BY id")
        assert rows.description[1].type_code == 114
        assert rows.fetchall() == EXPECTED
        assert connection.execute("SELECT v FROM t WHERE id = 3", binary=True).fetchone() == (7,)
        connection.execute("INSERT INTO t VALUES (%s, %s)", (9, '{"p": 1}'))
        assert connection.execute("SELECT (v:p)::int FROM t WHERE id = 9").fetchone() == (1,)
        connection.execute("DELETE FROM t WHERE id = 9")
    with pymysql.connect(**server.mysql()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, v FROM t ORDER BY id")
        assert loaded(cursor.fetchall()) == EXPECTED
    answer = http_sql.sql(server, "SELECT id, v FROM t ORDER BY id").json()
    assert [tuple(row) for row in answer["rows"]] == EXPECTED
    options = {"adbc.flight.sql.rpc.call_header.bowshot-json-variants": "true"}
    with dbapi.connect(server.grpc_tcp, db_kwargs=options) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, v FROM t ORDER BY id")
        assert loaded(cursor.fetchall()) == EXPECTED


@pytest.mark.parametrize(("ending", "shredding"), [
    ("parquet", "SHREDDING 'v STRUCT<a STRUCT<b DOUBLE[]>, t VARCHAR>'"), ("parquet", "SHREDDING 'v BIGINT'"),
    ("parquet", ""), ("csv", ""), ("json", ""), ("arrow", ""),
])
def test_files_there_and_back(world, folder, ending, shredding):
    _, db = world
    options = f"(FORMAT {ending}, OVERWRITE true" + (f", {shredding})" if shredding else ")")
    # A file of JSON whose texts are all plain is one of texts; what is null there is NULL.
    some = "WHERE id <> 2" if ending == "json" else ""
    db.run(f"COPY (SELECT id, v FROM t {some}) TO 'v.{ending}' {options}")
    db.run("CREATE TABLE back (id INT, v VARIANT)", f"COPY back FROM 'v.{ending}' (FORMAT {ending})")
    wanted = [row for row in EXPECTED if ending != "json" or row[0] != 2]
    assert loaded(db.rows("SELECT id, v::JSON FROM back ORDER BY id")) == wanted
    db.run("DROP TABLE back")
    if ending == "parquet":
        assert "Variant" in str(pq.read_metadata(folder / "v.parquet").schema)
    with pytest.raises(dbapi.Error, match="SHREDDING"):
        db.run(f"COPY (SELECT id FROM t) TO 'w.parquet' (SHREDDING 'id BIGINT')")


@DUCKDB_2
@pytest.mark.parametrize("shredding", ["", ", SHREDDING 'v STRUCT<a STRUCT<b DOUBLE[]>, t VARCHAR>'"])
def test_duckdb_reads_ours(world, folder, shredding):
    _, db = world
    db.run(f"COPY (SELECT id, v FROM t) TO 'ours.parquet' (FORMAT parquet, OVERWRITE true{shredding})")
    with duckdb.connect() as other:
        path = folder / "ours.parquet"
        assert other.sql(f"SELECT typeof(v) FROM '{path}' WHERE id = 0").fetchall() == [("VARIANT",)]
        assert loaded(other.sql(f"SELECT id, v::JSON::VARCHAR FROM '{path}' ORDER BY id").fetchall()) == EXPECTED


@DUCKDB_2
@pytest.mark.parametrize("shredding", ["", ", SHREDDING {v: 'STRUCT(a STRUCT(b INTEGER), t VARCHAR)'}"])
def test_we_read_duckdb(tmp_path, shredding):
    rows = [f"({number}, {'NULL' if value is None else repr(value)}::JSON::VARIANT)" for number, value in enumerate(VALUES)]
    with duckdb.connect() as other:
        other.sql(f"COPY (SELECT * FROM (VALUES {', '.join(rows)}) t(id, v)) TO '{tmp_path / 'd.parquet'}' (FORMAT parquet{shredding})")
        other.sql(f"COPY (SELECT i AS id, {{a: i, s: i::VARCHAR, d: DATE '2024-01-01'}}::VARIANT AS v FROM range(5000) r(i)) TO '{tmp_path / 'many.parquet'}'")
    with Server(tmp_path) as server, Database(server) as db:
        assert loaded(db.rows("SELECT id, v::JSON FROM d ORDER BY id")) == EXPECTED
        assert db.rows("SELECT sum(v:a::BIGINT), count(*), max(v:d::DATE)::VARCHAR FROM many WHERE v:s::VARCHAR LIKE '1%'") == [
            (sum(n for n in range(5000) if str(n).startswith("1")), 1111, "2024-01-01")
        ]
        assert db.rows("SELECT id FROM d WHERE v IS NULL") == [(4,)]


def test_damaged_bytes_are_an_error(tmp_path):
    part = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x02\xff"}], pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]))
    deep = b"\x00"
    for _ in range(400):
        deep = b"\x0f\x01\x00\x00\x00\x00" + len(deep).to_bytes(4, "little") + deep
    nested = pa.array([{"metadata": b"\x01\x00\x00", "value": deep}], part.type)
    pq.write_table(pa.table({"v": pa.concat_arrays([part, nested])}), tmp_path / "bad.parquet")
    with Server(tmp_path) as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM bad") == 2
        for sql in ("SELECT to_json(v) FROM bad", "SELECT (v:a)::INT FROM bad", "SELECT variant_typeof(v) FROM bad"):
            with pytest.raises(dbapi.Error, match="invalid VARIANT value"):
                db.rows(sql)
        assert "error" in http_sql.sql(server, "SELECT v FROM bad").json()


def test_masks_hold(tmp_path):
    users = users_file(tmp_path, passwords={"root": "root", "ann": "ann"}, admins=("root",))
    with Server(data=str(tmp_path / "data"), arguments=["--users-file", str(users)]) as server:

        def at(name):
            return dbapi.connect(server.grpc_tcp, db_kwargs={"username": name, "password": name}, autocommit=True)

        with at("root") as root, root.cursor() as cursor:
            for sql in (
                "CREATE TABLE t (id INT, v VARIANT)",
                """INSERT INTO t VALUES (1, '{"a":1,"s":"secret"}')""",
                "GRANT SELECT ON t TO ann",
                "CREATE MASK m ON t (v) FOR ann USING (redact)",
            ):
                cursor.execute(sql)
        with at("ann") as ann, ann.cursor() as cursor:
            for sql in ("to_json(v)", "v:s::VARCHAR", "v['a']::INT", "variant_get(v, '$.a', 'INT')", "v.s::VARCHAR"):
                cursor.execute(f"SELECT {sql} FROM t")
                assert cursor.fetchall() == [(None,)], sql
