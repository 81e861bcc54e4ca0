"""The order of joins, through the real server: by statistics, or as the query has it, with the same answers."""

import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from durable import Database
from join_cases import Table, cases
from server import computing

# The two large tables match 100 times for each row; the conditions on the small ones leave a few rows.
STAR = (
    "SELECT count(*), sum(s.x), min(t.x) FROM sales s JOIN stock t ON s.item = t.item JOIN item i ON i.id = s.item "
    "JOIN day d ON d.id = t.day WHERE d.name = 'name 7' AND i.name = 'name 7'"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("star")
    dice = np.random.default_rng(7)

    def write(name, rows, **columns):
        names = pa.array([f"name {n % 50}" for n in range(rows)])
        pq.write_table(pa.table({"id": np.arange(rows), "name": names, **columns}), folder / f"{name}.parquet")

    for name, rows in (("sales", 200_000), ("stock", 100_000)):
        write(name, rows, item=dice.integers(0, 1000, rows), day=dice.integers(0, 100, rows), x=dice.integers(0, 9, rows))
    write("item", 1000)
    write("day", 100)
    return folder


def joined_rows(db, sql):
    """Rows that the joins of a query give, all together."""
    plan = db.rows(f"EXPLAIN ANALYZE {sql}")[-1][1]
    scales = {"": 1, " K": 1e3, " M": 1e6}
    found = re.findall(r"HashJoinExec:.*?metrics=\[.*?output_rows=([\d.]+)( K| M|)", plan)
    return sum(float(number) * scales[scale] for number, scale in found)


def test_an_order_is_chosen_and_can_be_refused(folder):
    with computing(folder) as server, Database(server) as db:
        answer, chosen = db.rows(STAR), joined_rows(db, STAR)
        assert answer[0][0] > 0
        db.run("SET join_order = 'query'")
        assert db.rows(STAR) == answer
        by_query = joined_rows(db, STAR)
        assert by_query > 5 * chosen > 0
        with pytest.raises(Exception, match="join_order"):
            db.run("SET join_order = 'random'")
        db.run("RESET join_order")
        # How many rows a learned condition takes away depends on how early it is there.
        assert 5 * joined_rows(db, STAR) < by_query


@pytest.mark.parametrize("durable", [False, True])
def test_random_joins_have_the_same_answers_in_every_order(tmp_path, durable):
    dice = random.Random(42)
    options = {"data": tmp_path / "data"} if durable else {}
    with computing(**options) as server, Database(server) as db:
        tables = [Table(f"t{place}", dice) for place in range(4)]
        for table in tables:
            db.run(table.create(dice))
            for _ in range(2):
                db.run(table.insert(dice, dice.choice([3, 30, 120])))
        other = 0
        for sql in cases(43, tables, 150):
            answers, plans = [], []
            for order in ("query", "statistics"):
                db.run(f"SET join_order = '{order}'")
                answers.append(sorted(map(repr, db.rows(sql))))
                plans.append(db.rows(f"EXPLAIN {sql}"))
            assert answers[0] == answers[1], sql
            other += plans[0] != plans[1]
        assert other > 15, f"only {other} plans were other ones"
