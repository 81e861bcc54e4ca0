"""Arrow lets values lie below a NULL of a nested type, and files and clients bring such arrays: nobody sees those values."""

import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi
from server import Server

HIDDEN = [False, True, True]  # The first row is NULL, over values.


def rows():
    texts, keys = pa.array(["p", "q", "r"]), pa.array(["k", "j", "k", "k", "m"])
    offsets = pa.py_buffer(b"".join(number.to_bytes(4, "little") for number in (0, 2, 3, 5)))
    validity = pa.py_buffer(bytes([0b110]))
    entries = pa.StructArray.from_arrays(
        [keys, pa.array([1, 2, 3, 4, 5])], fields=[pa.field("key", pa.string(), False), pa.field("value", pa.int64())]
    )
    mask = pa.array([not is_there for is_there in HIDDEN])
    inner = pa.StructArray.from_arrays([pa.array([10, 20, 30]), texts], ["a", "b"])
    return pa.table({
        "x": [1, 2, 3],
        "s": pa.StructArray.from_arrays([pa.array([10, 20, 30]), texts], ["a", "b"], mask=mask),
        "n": pa.StructArray.from_arrays([inner], ["i"], mask=mask),
        "l": pa.Array.from_buffers(pa.list_(pa.int64()), 3, [validity, offsets], children=[pa.array([1, 2, 3, 4, 5])]),
        "f": pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4, 5, 6]), 2, mask=mask),
        "m": pa.Array.from_buffers(pa.map_(pa.string(), pa.int64()), 3, [validity, offsets], children=[entries]),
    })


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nulls")
    with pa.ipc.new_file(folder / "served.arrow", rows().schema) as file:
        file.write_table(rows())
    with Server(folder) as server, dbapi.connect(server.grpc_tcp, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("sent", rows(), mode="create")
            cursor.execute("CREATE TABLE copied AS SELECT * FROM served")
        yield connection


@pytest.mark.parametrize("table", ["served", "sent", "copied"])
@pytest.mark.parametrize(("expression", "expected"), [
    ("s['a']", [None, 20, 30]),
    ("(s).b", [None, "q", "r"]),
    ("n['i']['a']", [None, 20, 30]),
    ("(n).i.b", [None, "q", "r"]),
    ("struct_extract(s, 'a')", [None, 20, 30]),
    ("m['k']", [None, 3, 4]),
    ("list_append(l, 9)", [[9], [3, 9], [4, 5, 9]]),
    ("l || 9", [[9], [3, 9], [4, 5, 9]]),
    ("0 || l", [[0], [0, 3], [0, 4, 5]]),
    ("array_append(f, 9)", [[9], [3, 4, 9], [5, 6, 9]]),
    ("array_repeat(l, 1)", [[None], [[3]], [[4, 5]]]),
    ("array_repeat(s['a'], 2)", [[None, None], [20, 20], [30, 30]]),
    ("sum(s['a']) OVER ()", [50, 50, 50]),
    ("CASE WHEN s['a'] IS NULL THEN 'none' ELSE s['b'] END", ["none", "q", "r"]),
])
def test_nothing_lies_below_a_null(connection, table, expression, expected):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression} FROM {table} ORDER BY x")
        assert [row[0] for row in cursor.fetchall()] == expected


@pytest.mark.parametrize("table", ["served", "sent", "copied"])
def test_conditions_groups_and_joins_see_none(connection, table):
    with connection.cursor() as cursor:
        for sql, expected in (
            (f"SELECT x FROM {table} WHERE s['a'] = 10 OR m['k'] = 1 OR n['i']['a'] = 10", []),
            (f"SELECT s['a'], count(*) FROM {table} GROUP BY s['a'] ORDER BY 1 NULLS FIRST", [(None, 1), (20, 1), (30, 1)]),
            (f"SELECT v.x FROM {table} AS v JOIN {table} AS w ON v.s['a'] = w.s['a'] ORDER BY 1", [(2,), (3,)]),
            (f"SELECT count(s['a']), min((s).a) FROM {table}", [(2, 20)]),
        ):
            cursor.execute(sql)
            assert cursor.fetchall() == expected, sql
