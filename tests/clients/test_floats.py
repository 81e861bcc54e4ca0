"""Floating-point numbers have one order everywhere: NaN above all of them, whatever its sign."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database
from server import Server

NAN, INFINITE = float("nan"), float("inf")
ORDERS = list(itertools.permutations([5.0, NAN, 3.0, -INFINITE]))


def write(path, kind, groups):
    numbers = pa.array([number for numbers in groups for number in numbers], pa.float64()).cast(kind)
    table = pa.table({"g": [group for group, numbers in enumerate(groups) for _ in numbers], "f": numbers})
    pq.write_table(table, path, row_group_size=16)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_groups_know_their_greatest_and_least_whatever_the_order_of_their_rows(tmp_path, kind):
    write(tmp_path / "t.parquet", kind, ORDERS)
    write(tmp_path / "odd.parquet", kind, [[-INFINITE], [INFINITE], [-NAN, 1.0], [None], [2.0, None, 1.0]])
    with Server(tmp_path) as server, Database(server) as db:

        def rows(sql):
            return [tuple(map(repr, row)) for row in db.rows(sql)]

        for more in ("", " FILTER (WHERE g >= 0)"):
            found = rows(f"SELECT max(f){more} AS most, min(f){more} AS least, max(g) FROM t GROUP BY g ORDER BY g")
            assert found == [("nan", "-inf", str(group)) for group in range(len(ORDERS))]
        assert rows("SELECT max(f) AS most, min(f) AS least FROM odd GROUP BY g ORDER BY g") == [
            ("-inf", "-inf"), ("inf", "inf"), ("nan", "1.0"), ("None", "None"), ("2.0", "1.0"),
        ]  # fmt: skip
        assert rows("SELECT max(f), min(f) FROM t") == [("nan", "-inf")]
        assert rows("SELECT g, max(f) AS most FROM odd GROUP BY g ORDER BY most DESC NULLS LAST LIMIT 2") == [
            ("2", "nan"), ("1", "inf"),
        ]  # fmt: skip
        assert rows("SELECT DISTINCT f FROM t ORDER BY f DESC LIMIT 2") == [("nan",), ("5.0",)]
        assert rows("SELECT f, max(g) AS g FROM t GROUP BY f ORDER BY f LIMIT 1") == [("-inf", str(len(ORDERS) - 1))]
        assert rows("SELECT DISTINCT g FROM t ORDER BY g DESC LIMIT 2") == [("23",), ("22",)]
