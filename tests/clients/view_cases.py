"""Materialized views, queries that they answer, and random changes of their tables, for the tests of views. BOWSHOT_VIEW_HISTORIES is the
number of histories."""

import os

HISTORIES = int(os.environ.get("BOWSHOT_VIEW_HISTORIES", "3"))
STEPS = 12

VIEWS = {
    "filtered": "SELECT id, g, price FROM t WHERE n > 2",
    "bag": "SELECT g, n FROM t",
    "grouped": "SELECT g, count(*) AS c, count(n) AS cn, sum(n) AS s, sum(price) AS p, min(n) AS lo, max(n) AS hi, avg(price) AS a FROM t GROUP BY g",
    "joined": "SELECT t.id, u.name, t.price FROM t JOIN u ON t.k = u.k",
    "self_joined": "SELECT a.id AS one, b.id AS other FROM t AS a JOIN t AS b ON a.k = b.k AND a.id < b.id",
    "joined_groups": "SELECT u.name, t.g, count(*) AS c, sum(t.price) AS p FROM t JOIN u ON t.k = u.k WHERE t.n IS NOT NULL GROUP BY u.name, t.g",
    "left_joined": "SELECT t.id, u.name, u.k AS there FROM t LEFT JOIN u ON t.k = u.k AND t.n > 1",
    "unmatched": "SELECT t.g, t.n FROM u RIGHT JOIN t ON t.k = u.k WHERE u.k IS NULL",
    "full_joined": "SELECT u.name, t.g, count(*) AS c, count(t.id) AS ct, sum(t.price) AS p FROM t FULL JOIN u ON t.k = u.k AND t.n > 2 GROUP BY u.name, t.g",
    "nested": "SELECT a.g, u.name, b.n FROM t AS a LEFT JOIN (u LEFT JOIN t AS b ON u.k = b.k AND b.n > 3) ON a.k = u.k AND a.n < 2",
    "distinct_rows": "SELECT DISTINCT g, n FROM t",
    "distinct_groups": "SELECT d.g, u.name, count(*) AS c FROM (SELECT DISTINCT g, k FROM t) AS d LEFT JOIN u ON d.k = u.k GROUP BY d.g, u.name",
    "having": "SELECT g, k % 2 AS odd, sum(n) AS s FROM t GROUP BY g, k % 2 HAVING count(*) > 2",
}
QUERIES = [
    "SELECT g, count(*), sum(n) FROM t GROUP BY g",
    "SELECT g, count(n) AS x, max(n) + 1 AS y FROM t GROUP BY g ORDER BY g",
    "SELECT g, avg(price) FROM t GROUP BY g HAVING count(*) > 1",
    "SELECT count(*), sum(n), min(n), max(n) FROM t",
    "SELECT count(*), sum(price) FROM t WHERE g = 'a'",
    "SELECT count(*) FROM t WHERE g = 'nothing has it'",
    "SELECT sum(p) FROM (SELECT g, sum(price) AS p FROM t WHERE g <> 'b' GROUP BY g) AS x",
    "SELECT u.name, sum(t.price) FROM u JOIN t ON u.k = t.k WHERE t.n IS NOT NULL GROUP BY u.name",
    "SELECT t.g, count(*) FROM t, u WHERE u.k = t.k AND t.n IS NOT NULL AND u.name = 'n1' GROUP BY t.g",
    "SELECT t.id, u.name, t.price FROM t LEFT JOIN u ON t.k = u.k",
    "SELECT DISTINCT u.name, t.g FROM t JOIN u ON t.k = u.k WHERE t.n IS NOT NULL",
    "SELECT id FROM t WHERE n > 2 AND price > 3",
    "SELECT count(*), sum(price) FROM t WHERE n > 2",
    "SELECT x.g, y.c FROM t AS x JOIN (SELECT g, count(*) AS c FROM t GROUP BY g) AS y ON x.g = y.g",
    "SELECT g, (SELECT max(n) FROM t) FROM t GROUP BY g",
    "SELECT k, count(*) FROM t GROUP BY k",
]


def bag(rows):
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


def about(db, view):
    sql = (
        "SELECT state, incremental, full_reason, refresh, last_error FROM bowshot.system.materialized_views "
        f"WHERE table_name = '{view}' AND table_schema = current_schema()"
    )
    ((state, incremental, reason, refresh, error),) = db.rows(sql)
    return {"state": state, "incremental": incremental, "reason": reason, "refresh": refresh, "error": error}


def begin(db, schema):
    db.run(
        f"CREATE SCHEMA {schema}",
        f"SET schema = '{schema}'",
        "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, g VARCHAR, price DECIMAL(10, 2), n BIGINT)",
        "CREATE TABLE u (k INT, name VARCHAR)",
        "INSERT INTO u VALUES (0, 'n0'), (1, 'n1'), (2, 'n1'), (2, NULL)",
    )


def row(dice, number):
    group = dice.choice(["'a'", "'b'", "'c'", "NULL"])
    n = dice.choice(["NULL", *map(str, range(6))])
    return f"({number}, {dice.randrange(4)}, {group}, {dice.randrange(1000) / 100}, {n})"


def step(dice, numbers):
    """A change of the tables."""
    kind = dice.choice(["insert", "insert", "update", "delete", "merge", "u", "optimize"])
    place = f"id % {dice.randrange(2, 7)} = {dice.randrange(2)}"
    if kind == "insert":
        rows = [row(dice, next(numbers)) for _ in range(dice.randrange(1, 8))]
        return f"INSERT INTO t VALUES {', '.join(rows)}"
    if kind == "update":
        change = dice.choice(["n = n + 1", "g = 'b'", "k = 1", "price = price * 2, g = NULL"])
        return f"UPDATE t SET {change} WHERE {place}"
    if kind == "delete":
        return f"DELETE FROM t WHERE {place} AND id % 3 = 0"
    if kind == "merge":
        return (
            f"MERGE INTO t USING (VALUES {row(dice, dice.randrange(1, 9))}, {row(dice, 1000 + next(numbers))}) AS s(id, k, g, price, n) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = s.n, g = s.g WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.k, s.g, s.price, s.n)"
        )
    if kind == "u":
        return dice.choice(
            ["INSERT INTO u VALUES (3, 'n3')", "DELETE FROM u WHERE k = 3", "UPDATE u SET name = 'm' WHERE k = 1", "INSERT INTO u VALUES (1, 'n1')"]
        )
    return "OPTIMIZE t"


def change(db, dice, numbers):
    """One to three changes, perhaps in a transaction, which is perhaps rolled back."""
    steps = [step(dice, numbers) for _ in range(dice.randrange(1, 4))]
    end = dice.choice([None, "COMMIT", "ROLLBACK"])
    if end is None:
        db.run(*steps)
    else:
        db.run("BEGIN", *(sql for sql in steps if sql != "OPTIMIZE t"), end)


def numbered(start):
    while True:
        yield start
        start += 1
