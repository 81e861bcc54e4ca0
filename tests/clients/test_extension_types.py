"""What a field says of its values beyond their type (extension types of Arrow, coordinate systems, keys of its own) stays with them
wherever a query passes them on; UUIDs that are bytes meet UUIDs that are texts; intervals of Parquet have months."""

import contextlib
import datetime
import json
import uuid

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

import http_sql
from durable import Database
from server import Server

IDS = [uuid.UUID(int=n << 64 | 7) for n in (3, 1, 2)]
NAME, PARAMETERS = b"ARROW:extension:name", b"ARROW:extension:metadata"
CRS = b'{"crs": {"id": {"authority": "EPSG", "code": 4326}}}'


def table():
    fields = [
        pa.field("k", pa.int32()),
        pa.field("u", pa.binary(16), metadata={NAME: b"arrow.uuid", PARAMETERS: b""}),
        pa.field("g", pa.binary(), metadata={NAME: b"geoarrow.wkb", PARAMETERS: CRS}),
        pa.field("j", pa.string(), metadata={NAME: b"arrow.json", PARAMETERS: b""}),
        pa.field("m", pa.int64(), metadata={b"unit": b"kg"}),
    ]
    columns = [
        pa.array([1, 2, 3], pa.int32()),
        pa.array([one.bytes for one in IDS], pa.binary(16)),
        pa.array([b"\x01", b"\x02", None]),
        pa.array(['{"a": 1}', None, "[]"]),
        pa.array([5, 6, None]),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def told(kind):
    """Names of extension types, as pyarrow has them, and other metadata."""
    if isinstance(kind.type, pa.BaseExtensionType):
        return kind.type.extension_name
    metadata = kind.metadata or {}
    return metadata.get(NAME, metadata.get(b"unit", b"")).decode()


def schema_of(server, sql):
    with flight.connect(server.grpc_tcp) as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
        got = client.do_get(info.endpoints[0].ticket).read_all()
        assert got.schema.equals(info.schema, check_metadata=True)
        return got.schema


PASSING = [
    "SELECT u, g, j, m FROM {t}",
    "SELECT CASE WHEN k > 1 THEN u ELSE u END, CASE WHEN k > 1 THEN g END, coalesce(j, j), coalesce(m, NULL) FROM {t}",
    "SELECT min(u), max(g), min(j), max(m) FROM {t}",
    "SELECT u, g, j, m FROM {t} UNION ALL SELECT u, g, j, m FROM {t}",
    "SELECT a.u, b.g, a.j, b.m FROM {t} AS a JOIN {t} AS b ON a.u = b.u",
    "SELECT first_value(u) OVER (ORDER BY k), lag(g) OVER (ORDER BY k), j, (SELECT max(m) FROM {t}) FROM {t}",
    "WITH q AS (SELECT DISTINCT u, g, j, m FROM {t} ORDER BY m LIMIT 2) SELECT * FROM q",
    "SELECT unnest(array_agg(u)), unnest(array_agg(g)), unnest(array_agg(j)), unnest(array_agg(m)) FROM {t}",
    "SELECT struct(u, k).c0, struct(k, g).c1, struct(j).c0, struct(struct(m)).c0.c0 FROM {t}",
]


@contextlib.contextmanager
def stored(folder, storage):
    """A server that has the table `t` in memory, in its data folder, or in a file."""
    sources = [folder / "t.parquet"] if storage == "file" else []
    for path in sources:
        pq.write_table(table(), path)
    with Server(*sources, data=str(folder / "data") if storage == "durable" else "memory") as server, Database(server) as db:
        if not sources:
            db.ingest("t", table())
        yield server, db


@pytest.mark.parametrize("storage", ["memory", "durable", "file"])
def test_metadata_stay_with_the_values(tmp_path, storage):
    with stored(tmp_path, storage) as (server, db):
        db.run("CREATE VIEW v AS SELECT k, u, g, j, m FROM t", "CREATE TABLE c AS SELECT * FROM t")
        for name in ("t", "v", "c"):
            for sql in PASSING:
                schema = schema_of(server, sql.format(t=name))
                assert [told(field) for field in schema] == ["arrow.uuid", "geoarrow.wkb", "arrow.json", "kg"], sql
            schema = schema_of(server, f"SELECT g FROM {name}")
            assert schema.field(0).metadata[PARAMETERS] == CRS
            schema = schema_of(server, f"SELECT array_agg(g), make_array(m, m), named_struct('x', g) FROM {name} GROUP BY g, m")
            lists = [told(schema.field(0).type.value_field), told(schema.field(1).type.value_field), told(schema.field(2).type.field(0))]
            assert lists == ["geoarrow.wkb", "kg", "geoarrow.wkb"]
            # What is computed is not the column.
            assert told(schema_of(server, f"SELECT m + 1 FROM {name}").field(0)) == ""
        for name in ("t", "v", "c"):
            schema = db.connection.adbc_get_table_schema(name)
            assert [told(field) for field in schema] == ["", "arrow.uuid", "geoarrow.wkb", "arrow.json", "kg"]
        rows = db.rows("SELECT k FROM c ORDER BY u")
        assert [row[0] for row in rows] == [2, 3, 1]


def test_metadata_survive_a_restart(tmp_path):
    place = str(tmp_path / "data")
    with Server(data=place) as server, Database(server) as db:
        db.ingest("t", table())
    with Server(data=place) as server, Database(server) as db:
        schema = schema_of(server, "SELECT u, g, j, m FROM t")
        assert [told(field) for field in schema] == ["arrow.uuid", "geoarrow.wkb", "arrow.json", "kg"]
        assert db.one("SELECT count(*) FROM t WHERE u = '00000000-0000-0003-0000-000000000007'") == 1


@pytest.mark.parametrize("storage", ["memory", "durable", "file"])
def test_uuids_of_bytes_meet_texts(tmp_path, storage):
    with stored(tmp_path, storage) as (server, db):
        db.run("CREATE TABLE d (u UUID, n INT)", "INSERT INTO d SELECT u, k FROM t")
        texts = [str(one) for one in IDS]
        assert [row[0] for row in db.rows("SELECT u FROM d ORDER BY n")] == texts
        assert [row[0] for row in db.rows("SELECT CAST(u AS VARCHAR) FROM t ORDER BY k")] == texts
        assert db.rows("SELECT t.k, d.n FROM t JOIN d ON t.u = d.u ORDER BY t.k") == [(1, 1), (2, 2), (3, 3)]
        assert db.rows("SELECT t.k, d.n FROM t JOIN d USING (u) ORDER BY t.k") == [(1, 1), (2, 2), (3, 3)]
        assert sorted(db.rows("SELECT u FROM t UNION SELECT u FROM d")) == sorted((text,) for text in texts)
        assert db.rows(f"SELECT k FROM t WHERE u = '{texts[1].upper()}'") == [(2,)]
        assert db.rows(f"SELECT k FROM t WHERE u IN ('{texts[1]}', '{texts[2]}') ORDER BY k") == [(2,), (3,)]
        assert db.rows(f"SELECT k FROM t WHERE u < CAST('{texts[2]}' AS UUID)") == [(2,)]
        assert db.rows("SELECT k FROM t WHERE u IN (SELECT u FROM d WHERE n < 3) ORDER BY k") == [(1,), (2,)]
        assert db.rows("SELECT n FROM d WHERE u NOT IN (SELECT u FROM t WHERE k = 2) ORDER BY n") == [(1,), (3,)]
        assert db.rows("SELECT n FROM d WHERE u = ANY (SELECT u FROM t WHERE k = 2)") == [(2,)]
        with db.connection.cursor() as cursor:
            cursor.execute("SELECT n FROM d WHERE u = ?", pa.record_batch([pa.array([IDS[1].bytes], pa.binary(16))], ["u"]))
            assert cursor.fetchall() == [(2,)]
        db.run("UPDATE d SET u = (SELECT u FROM t WHERE k = 3) WHERE n = 1")
        assert db.rows("SELECT u FROM d WHERE n = 1") == [(texts[2],)]
        db.run("CREATE TABLE b AS SELECT u FROM t WHERE k = 1", f"INSERT INTO b VALUES ('{texts[1]}')")
        db.run("INSERT INTO b (u) SELECT u FROM d WHERE n = 1")
        assert [row[0] for row in db.rows("SELECT CAST(u AS VARCHAR) FROM b ORDER BY 1")] == sorted(texts)
        assert db.rows("SELECT DISTINCT pg_typeof(u), pg_typeof(j), pg_typeof(j || '') FROM t") == [("uuid", "json", "text")]
        with pytest.raises(Exception, match="invalid input syntax for type uuid"):
            db.rows("SELECT k FROM t WHERE u = 'nonsense'")
        assert http_sql.sql(server, "SELECT u FROM t WHERE k = 1", accept="text/csv").body.decode().split() == ["u", texts[0]]


def test_types_of_files_of_duckdb(tmp_path):
    duckdb.connect().execute(
        "COPY (SELECT range AS k, INTERVAL '1 month 2 days 3 seconds' * (range + 1)::INT AS i, [i] AS l, {'i': i} AS s, "
        f"'{IDS[0]}'::UUID AS u, '{{\"a\": 1}}'::JSON AS j FROM range(3)) TO '{tmp_path / 't.parquet'}' (FORMAT parquet)"
    )
    with Server(tmp_path) as server, Database(server) as db:
        schema = schema_of(server, "SELECT i, u, j, l, s FROM t")
        assert schema.field(0).type == pa.month_day_nano_interval()
        assert [told(schema.field(1)), told(schema.field(2))] == ["arrow.uuid", "arrow.json"]
        first = pa.MonthDayNano([1, 2, 3_000_000_000])
        got = db.arrow("SELECT i, l, s FROM t WHERE k = 0")
        assert got["i"].to_pylist() == [first]
        assert got["l"].to_pylist() == [[first]]
        assert got["s"].to_pylist() == [{"i": first}]
        day = "CAST(DATE '2024-01-31' + i AS DATE)"
        assert db.rows(f"SELECT {day} FROM t WHERE k = 1") == [(datetime.date(2024, 4, 4),)]
        assert db.one("SELECT count(*) FROM t WHERE i >= INTERVAL '60 days'") == 2
        assert db.one("SELECT CAST(u AS VARCHAR) FROM t LIMIT 1") == str(IDS[0])


def test_lists_of_uuids_and_texts_as_parameters(tmp_path):
    duckdb.connect().execute(f"COPY (SELECT '{IDS[0]}'::UUID AS u, ['{IDS[0]}'::UUID] AS l) TO '{tmp_path / 't.parquet'}' (FORMAT parquet)")
    with Server(tmp_path, arguments=["--pg", "127.0.0.1:0"]) as server, Database(server) as db:
        for value in ("l[1]", "coalesce(u, u)", f"CASE WHEN u <> '{IDS[1]}' THEN u ELSE '{IDS[1]}' END"):
            assert db.one(f"SELECT CAST({value} AS VARCHAR) FROM t") == str(IDS[0]), value
        assert db.one("SELECT to_json(u) FROM t") == f'"{IDS[0]}"'
        in_list = f"u = ANY(ARRAY['{IDS[1]}', '{IDS[0]}'])"
        for condition in (f"'{IDS[0]}' = ANY(l)", in_list, f"CASE u WHEN '{IDS[0]}' THEN true END"):
            assert db.one(f"SELECT count(*) FROM t WHERE {condition}") == 1, condition
        db.run("CREATE TABLE own AS SELECT u FROM t")
        connection = psycopg.connect(**server.postgres(autocommit=True))
        # A text has no type in this driver: it is what stands beside it.
        for text in (str(IDS[0]), IDS[0]):
            for condition in ("u = %s", "u IN (%s)", "u = ANY(%s)"):
                value = [text] if "ANY" in condition else text
                found = connection.execute(f"SELECT count(*) FROM t WHERE {condition}", (value,)).fetchall()
                assert found == [(1,)], (condition, text)
            connection.execute("INSERT INTO own VALUES (%s)", (text,))
        assert db.one(f"SELECT count(*) FROM own WHERE u = '{IDS[0]}'") == 3
        connection.close()
        assert http_sql.order(server, "SELECT l FROM t WHERE u = $1", str(IDS[0])).rows() == [[[str(IDS[0])]]]


def test_uuids_above_operators(tmp_path):
    """Aggregates, CASE, `unnest` and rows pass on the type of UUIDs that are bytes alone; they stay UUIDs."""
    one, other = str(IDS[0]), str(IDS[1])
    duckdb.connect().execute(f"COPY (SELECT '{one}'::UUID AS u, ['{one}'::UUID] AS l) TO '{tmp_path / 't.parquet'}' (FORMAT parquet)")
    with Server(tmp_path) as server, Database(server) as db:
        for value in ("min(u)", "max(u)", "any_value(u)", "(array_agg(u))[1]", "(SELECT min(u) FROM t)"):
            assert db.one(f"SELECT CAST({value} AS VARCHAR) FROM t") == one, value
            assert db.one(f"SELECT pg_typeof({value}) FROM t") == "uuid", value
            assert db.one(f"SELECT to_json({value}) FROM t") == f'"{one}"', value
        rows = db.rows("SELECT CAST(unnest(l) AS VARCHAR), pg_typeof(unnest(l)), pg_typeof(l) FROM t")
        assert rows == [(one, "uuid", "uuid[]")]
        for value in ("CASE WHEN u IS NOT NULL THEN u END", "coalesce(u, u)", f"coalesce(u, '{other}')", "min(u)", "unnest(l)"):
            below = f"(SELECT {value} AS x FROM t) AS q"
            assert db.one(f"SELECT CAST(x AS VARCHAR) FROM {below}") == one, value
            assert db.one(f"SELECT json_agg(x) FROM {below}") == f'["{one}"]', value
        for value, answer in (
            (f"coalesce(u, '{other}')", one),
            (f"nullif(u, '{other}')", one),
            (f"nullif(u, '{one}')", None),
            (f"greatest(u, '{other}')", one),
            (f"least('{other}', u)", other),
        ):
            assert db.one(f"SELECT CAST({value} AS VARCHAR) FROM t") == answer, value
            assert told(schema_of(server, f"SELECT {value} FROM t").field(0)) == "arrow.uuid", value
        # Texts of a column are none, as in PostgreSQL.
        for value in ("coalesce(u, x)", "greatest(x, u)", "nullif(u, x)"):
            with pytest.raises(Exception, match="does not exist"):
                db.rows(f"SELECT {value} FROM t, (SELECT 'a' || random() AS x) AS q")
        assert db.rows(f"SELECT u IS DISTINCT FROM '{one}', u IS NOT DISTINCT FROM '{one}' FROM t") == [(False, True)]
        for text in ("nullif(u, 'text')", "greatest(u, 'text')", "u IS DISTINCT FROM 'text'"):
            with pytest.raises(Exception, match="invalid input syntax for type uuid"):
                db.rows(f"SELECT {text} FROM t")
        row = json.dumps({"u": one, "l": [one]}, separators=(",", ":"))
        for made, answer in (
            ("row_to_json(t)", row),
            ("json_agg(t)", f"[{row}]"),
            ("json_build_object('u', u, 'l', l)", row),
            ("json_build_array(u)", f'["{one}"]'),
            ("to_jsonb(u)", f'"{one}"'),
            ("to_json(ARRAY[u])", f'["{one}"]'),
        ):
            assert db.one(f"SELECT {made} FROM t") == answer, made
        assert json.loads(db.one("SELECT json_object_agg(u, u) FROM t")) == {one: one}
        db.run("CREATE TABLE d (u UUID)", "INSERT INTO d SELECT max(u) FROM t")
        assert db.rows("SELECT u FROM d UNION SELECT min(u) FROM t") == [(one,)]
