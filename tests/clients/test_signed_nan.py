"""There is one NaN, whatever its sign and its bits (numpy's 0/0 has a negative one): equal to itself, greater than all numbers, one
group, one key of a join. -0.0 is 0.0. In files of every format, in tables that clients fill, in parameters and in streams."""

import itertools
import struct

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import data
from durable import Database
from server import Server

SIGNED = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
NUMBERS = [1.0, SIGNED, float("nan"), -np.inf, np.inf, None, -0.0, 0.0, 7.0]


def rows(kind=pa.float64()):
    numbers = pa.array([None if n is None else n for n in NUMBERS], pa.float64())
    # pyarrow keeps the sign of a NaN, and its bits.
    assert np.signbit(numbers.fill_null(0.0).to_numpy()[1])
    return pa.table({"k": pa.array(range(len(NUMBERS)), pa.int32()), "x": numbers.cast(kind)})


def nested():
    numbers = rows()["x"].combine_chunks()
    # pyarrow writes no dictionary with NULL among its values to Parquet.
    known = numbers.drop_null()
    places = iter(range(len(known)))
    codes = pa.array([None if n is None else next(places) for n in NUMBERS], pa.int8())
    return pa.table({
        "k": rows()["k"],
        "s": pa.StructArray.from_arrays([numbers], ["x"]),
        "l": pa.ListArray.from_arrays(pa.array(range(len(numbers) + 1), pa.int32()), numbers),
        "d": pa.DictionaryArray.from_arrays(codes, known),
    })  # fmt: skip


# As PostgreSQL 15 and DuckDB have them.
ANSWERS = [
    ("SELECT k FROM {t} WHERE {x} = CAST('NaN' AS DOUBLE) ORDER BY k", [1, 2]),
    ("SELECT k FROM {t} WHERE {x} < 5 ORDER BY k", [0, 3, 6, 7]),
    ("SELECT k FROM {t} WHERE {x} > 5 ORDER BY k", [1, 2, 4, 8]),
    ("SELECT k FROM {t} WHERE {x} >= 7 AND {x} <> 7 ORDER BY k", [1, 2, 4]),
    ("SELECT k FROM {t} WHERE {x} IN (CAST('NaN' AS DOUBLE), 7) ORDER BY k", [1, 2, 8]),
    ("SELECT k FROM {t} WHERE {x} = 0 ORDER BY k", [6, 7]),
    ("SELECT k FROM {t} ORDER BY {x} DESC NULLS LAST, k", [1, 2, 4, 8, 0, 6, 7, 3, 5]),
    ("SELECT k FROM {t} ORDER BY {x}, k LIMIT 2", [3, 6]),
    ("SELECT count(*) FROM {t} GROUP BY {x} ORDER BY {x} NULLS LAST", [1, 2, 1, 1, 1, 2, 1]),
    ("SELECT count(DISTINCT {x}) FROM {t}", [6]),
    ("SELECT count(*) FROM (SELECT DISTINCT {x} FROM {t}) AS d", [7]),
    ("SELECT count(*) FROM {t} AS a JOIN {t} AS b ON a.{x} = b.{x}", [12]),
    ("SELECT min({x}) = CAST('-Infinity' AS DOUBLE) FROM {t}", [True]),
    ("SELECT max({x}) = CAST('NaN' AS DOUBLE) FROM {t}", [True]),
    ("SELECT count(*) FROM (SELECT {x} FROM {t} INTERSECT SELECT CAST('NaN' AS DOUBLE)) AS d", [1]),
    ("SELECT sum(n) FROM (SELECT count(*) OVER (PARTITION BY {x}) AS n FROM {t}) AS w", [13]),
    ("SELECT count(*) FROM {t} WHERE CASE WHEN {x} > 8 THEN true ELSE false END", [3]),
]


def check(db, table, column="x"):
    for sql, expected in ANSWERS:
        sql = sql.format(t=table, x=column)
        assert [row[0] for row in db.rows(sql)] == expected, sql


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_files(tmp_path, kind):
    narrow = rows(kind)
    pq.write_table(narrow, tmp_path / "parquet.parquet", row_group_size=2)
    data.write_arrow(tmp_path / "arrow.arrow", narrow)
    if kind != pa.float16():
        pyarrow.orc.write_table(narrow, tmp_path / "orc.orc")
    with Server(tmp_path) as server, Database(server) as db:
        for name in ["parquet", "arrow"] + ["orc"] * (kind != pa.float16()):
            check(db, name)
            db.run(f"CREATE TABLE copy_of_{name} AS SELECT * FROM {name}")
            check(db, f"copy_of_{name}")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_groups_know_their_greatest_and_least_whatever_the_order_of_their_rows(tmp_path, kind):
    groups = [*itertools.permutations([5.0, np.nan, 3.0, -np.inf]), [-np.inf], [np.inf], [SIGNED, 1.0], [None], [2.0, None, 1.0]]
    numbers = pa.array([number for group in groups for number in group], pa.float64()).cast(kind)
    places = [place for place, group in enumerate(groups) for _ in group]
    pq.write_table(pa.table({"g": places, "f": numbers}), tmp_path / "t.parquet", row_group_size=16)
    expected = [("nan", "-inf")] * 24 + [("-inf", "-inf"), ("inf", "inf"), ("nan", "1.0"), ("None", "None"), ("2.0", "1.0")]
    with Server(tmp_path) as server, Database(server) as db:
        for more in ("", " FILTER (WHERE g >= 0)"):
            found = db.rows(f"SELECT max(f){more} AS most, min(f){more} AS least, max(g) FROM t GROUP BY g ORDER BY g")
            assert [(repr(most), repr(least)) for most, least, _ in found] == expected
        top = "SELECT g, max(f) AS most FROM t WHERE g >= 24 GROUP BY g ORDER BY most DESC NULLS LAST LIMIT 2"
        assert [group for group, _ in db.rows(top)] == [26, 25]


def test_text_files(tmp_path):
    texts = ["1.0", "-nan", "nan", "-inf", "inf", "", "-0.0", "0.0", "7.0"]
    (tmp_path / "t.csv").write_text("k,x\n" + "".join(f"{k},{text}\n" for k, text in enumerate(texts)))
    with Server(tmp_path) as server, Database(server) as db:
        check(db, "t")


def test_values_within_others(tmp_path):
    pq.write_table(nested(), tmp_path / "parquet.parquet")
    data.write_arrow(tmp_path / "arrow.arrow", nested())
    with Server(tmp_path) as server, Database(server) as db:
        for name in ("parquet", "arrow"):
            for column in ("s['x']", "l[1]", "CAST(d AS DOUBLE)"):
                db.run(f"CREATE OR REPLACE VIEW v AS SELECT k, {column} AS x FROM {name}")
                check(db, "v")
            assert db.one(f"SELECT count(DISTINCT s) FROM {name} WHERE k IN (1, 2)") == 1
            assert db.one(f"SELECT count(DISTINCT l) FROM {name} WHERE k IN (1, 2)") == 1


@pytest.mark.parametrize("storage", ["memory", "durable"])
def test_tables_that_clients_fill(tmp_path, storage):
    place = "memory" if storage == "memory" else str(tmp_path / "data")
    with Server(data=place) as server, Database(server) as db:
        db.ingest("t", rows())
        check(db, "t")
        db.run("DELETE FROM t WHERE x > 8 AND k > 3", "INSERT INTO t VALUES (4, CAST('Infinity' AS DOUBLE))")
        check(db, "t")
        with db.connection.cursor() as cursor:
            cursor.execute("SELECT k FROM t WHERE x = ? ORDER BY k", (pa.table({"p": [SIGNED]}).to_batches()[0]))
            assert [row[0] for row in cursor.fetchall()] == [1, 2]


def test_postgres_parameters_and_copy():
    psycopg = pytest.importorskip("psycopg")
    with Server(arguments=("--pg", "127.0.0.1:0")) as server:
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="test", dbname="bowshot", autocommit=True) as pg:
            pg.execute("CREATE TABLE t (k INT, x DOUBLE PRECISION)")
            with pg.cursor() as cursor, cursor.copy("COPY t FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "float8"])
                for row in enumerate(NUMBERS):
                    copy.write_row(row)
            count = lambda sql, *values: pg.execute(sql, values).fetchone()[0]  # noqa: E731
            assert count("SELECT count(*) FROM t WHERE x = 'NaN'") == 2
            assert count("SELECT count(*) FROM t WHERE x < 5") == 4
            assert count("SELECT count(DISTINCT x) FROM t") == 6
            pg.execute("INSERT INTO t VALUES (9, %b)", (SIGNED,))
            assert count("SELECT count(*) FROM t WHERE x = %b", SIGNED) == 3
