"""Lists that are long, at their limits and beyond them: what fits has the right answer, what does not is told what it is too long for."""

import pytest

from durable import Database
from server import Server


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        with Database(server) as db:
            db.run(
                "CREATE TABLE pairs AS SELECT value AS a, value * 2 AS b FROM generate_series(1, 1000) AS s(value)",
                f"CREATE TABLE keyed ({listed('k{} INT UNIQUE', 10)})",
                f"CREATE TABLE more_keyed ({listed('k{} INT UNIQUE', 11)})",
                f"CREATE TABLE most_keyed (a INT, {listed('UNIQUE (a)', 100)})",
                "CREATE TABLE merged (a INT, b INT)",
                "INSERT INTO merged VALUES (1, 0), (2, 0), (99, 0)",
            )
        yield server


def listed(part, count, first=0):
    return ", ".join(part.format(number) for number in range(first, first + count))


PATTERNS = listed("'{}_'", 50)
# What is right follows from the numbers from 1 to 1000 and their doubles.
ANSWERS = {
    "rows in a list": (f"SELECT count(*) FROM pairs WHERE (a, b) IN ({listed('({0}, 2 * {0})', 600)})", 599),
    "rows not in a list": (f"SELECT count(*) FROM pairs WHERE (a, b) NOT IN ({listed('({0}, 2 * {0})', 600)})", 401),
    "rows beside a null": ("SELECT count(*) FROM pairs WHERE (a, b) NOT IN ((1, 2), (3, NULL), (5, 10), (7, 1))", 997),
    "any of the patterns": (f"SELECT count(*) FROM pairs WHERE a::VARCHAR LIKE ANY ({PATTERNS})", 490),
    "not all of the patterns": (f"SELECT count(*) FROM pairs WHERE NOT a::VARCHAR LIKE ANY ({PATTERNS})", 510),
    "wide rows": (f"SELECT ({listed('{}', 2000)}) = ({listed('{}', 2000)})", True),
    "wide rows that differ": (f"SELECT ({listed('{}', 2000)}) = ({listed('{}', 1999)}, 0)", False),
    "a thousand keys": (f"SELECT a FROM pairs ORDER BY {listed('a * 0 + {}', 999)}, -a LIMIT 1", 1000),
    "columns turned": (f"SELECT sum(v) FROM (SELECT {listed('{0} AS c{0}', 100)}) t UNPIVOT (v FOR k IN ({listed('c{}', 100)}))", 4_950),
    "two thousand calls": (f"SELECT {listed('abs({})', 2000, 1)}", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_what_fits_has_its_answer(server, name):
    sql, wanted = ANSWERS[name]
    with Database(server) as db:
        assert db.rows(sql)[0][0] == wanted


def test_changes_at_their_limits(server):
    row = listed("1", 10)
    clauses = " ".join(f"WHEN MATCHED AND merged.a = {i} THEN UPDATE SET b = {10 * i}" for i in range(100))
    with Database(server) as db:
        db.run(f"INSERT INTO keyed VALUES ({row})", f"INSERT INTO keyed VALUES ({row}), ({listed('2', 10)}) ON CONFLICT DO NOTHING")
        assert db.one("SELECT count(*) FROM keyed") == 2
        db.run("INSERT INTO most_keyed VALUES (1), (2)")
        with pytest.raises(Exception, match="twice"):
            db.run("INSERT INTO most_keyed VALUES (2)")
        db.run(f"MERGE INTO merged USING pairs ON merged.a = pairs.a {clauses}")
        assert db.rows("SELECT a, b FROM merged ORDER BY a") == [(1, 10), (2, 20), (99, 990)]


REFUSED = {
    "columns": (f"SELECT {listed('{}', 10_001)}", "more than 10000 columns in one SELECT"),
    "calls": (f"SELECT {listed('abs({})', 2001)}", "more than 2000 calls of functions"),
    "keys of a sort": (f"SELECT a FROM pairs ORDER BY {listed('a + {}', 1001)}", "more than 1000 values in one ORDER BY"),
    "names": (f"SELECT count(*) FROM pairs WHERE a IN ({listed('b', 100_000)})", "more than 100000 names"),
    "rows": (f"SELECT count(*) FROM pairs WHERE (a, b) IN ({listed('(1, 2)', 25_001)})", "50002 comparisons"),
    "patterns": (f"SELECT count(*) FROM pairs WHERE a::VARCHAR LIKE ANY ({listed(chr(39) + 'x' + chr(39), 50_001)})", "50001 comparisons"),
    "ordered rows": (f"SELECT ({listed('{}', 400)}) < ({listed('{}', 400)})", "1200 levels"),
    "unpivot": (f"SELECT * FROM pairs UNPIVOT (v FOR k IN ({listed('c{}', 501)}))", "UNPIVOT has 501 columns"),
    "pivot": (f"SELECT * FROM pairs PIVOT (sum(a) AS s, min(a) AS m FOR b IN ({listed('{}', 5001)}))", "PIVOT would have 10002"),
    "columns of a table": (f"CREATE TABLE t ({listed('c{} INT', 10_001)})", "at most 10000 columns"),
    "checks": (f"CREATE TABLE t (a INT, {listed('CHECK (a > {})', 1001)})", "at most 1000 checks"),
    "unique keys": (f"CREATE TABLE t (a INT, {listed('UNIQUE (a)', 101)})", "at most 100 unique keys"),
    "one more key": ("ALTER TABLE most_keyed ADD UNIQUE (a)", "at most 100 unique keys"),
    "references": (f"CREATE TABLE t (a INT, {listed('FOREIGN KEY (a) REFERENCES pairs (a) NOT ENFORCED', 1001)})", "at most 1000 references"),
    "changes": (f"ALTER TABLE merged {listed('ALTER b DROP DEFAULT', 1001)}", "at most 1000 changes"),
    "clauses": ("MERGE INTO merged USING pairs ON merged.a = pairs.a " + "WHEN MATCHED AND merged.a = 0 THEN DELETE " * 101, "at most 100 WHEN"),
    "keys of a conflict": (f"INSERT INTO more_keyed VALUES ({listed('1', 11)}) ON CONFLICT DO NOTHING", "11 keys, and the limit is 10"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_says_what_it_is_too_long_for(server, name):
    sql, said = REFUSED[name]
    with Database(server) as db, pytest.raises(Exception, match=said):
        db.rows(sql)
