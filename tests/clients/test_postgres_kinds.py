"""JSON and UUIDs over PostgreSQL's protocol: columns of tables and parameters have PostgreSQL's types, and come as clients' own."""

import asyncio
import uuid

import asyncpg
import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

from server import Server, users_file

JSON, JSONB, UUID, TEXT, VARCHAR = 114, 3802, 2950, 25, 1043
ONE, TWO = uuid.UUID("6fb1aaaa-0000-0000-0000-000000000001"), uuid.UUID("6fb1aaaa-0000-0000-0000-000000000002")
# Queries over the table `t`, and the types of their columns.
PASSED_ON = {
    "SELECT id, doc FROM t": [UUID, JSON],
    "SELECT * FROM t": [UUID, JSON, VARCHAR, JSONB, VARCHAR, TEXT],
    "SELECT more, CAST(doc AS JSONB), CAST(more AS JSON) FROM t": [JSONB, JSONB, JSON],
    "SELECT id AS x, doc AS y FROM (SELECT * FROM t WHERE doc IS NOT NULL ORDER BY id LIMIT 5) q": [UUID, JSON],
    "SELECT id, count(*) FROM t GROUP BY id": [UUID, 20],
    "SELECT min(id), max(id) FROM t": [UUID, UUID],
    "SELECT a.id, b.doc FROM t a LEFT JOIN t b USING (id)": [UUID, JSON],
    "SELECT DISTINCT id FROM t WHERE id IN (SELECT id FROM t)": [UUID],
    "SELECT id FROM t UNION ALL SELECT id FROM t": [UUID],
    "WITH q AS (SELECT id FROM t) SELECT id, (SELECT max(id) FROM q) FROM q": [UUID, UUID],
    "SELECT coalesce(id, id), CASE WHEN true THEN id END, first_value(id) OVER (ORDER BY id) FROM t": [UUID, UUID, UUID],
    "SELECT id, doc FROM v": [UUID, JSON],
    "SELECT gen_random_uuid(), CAST('6FB1AAAA-0000-0000-0000-000000000001' AS UUID), CAST(s AS UUID) FROM t": [UUID] * 3,
}
# What is computed of them is text.
COMPUTED = {
    "SELECT id::text, doc::text, upper(id), id || '' FROM t": [TEXT] * 4,
    "SELECT coalesce(id, s), CASE WHEN true THEN id ELSE s END FROM t": [TEXT, TEXT],
    "SELECT id FROM t UNION ALL SELECT s FROM t": [TEXT],
    "SELECT s, l, b, coalesce(s, s), min(s) FROM t GROUP BY s, l, b": [VARCHAR, VARCHAR, TEXT, VARCHAR, TEXT],
    "SELECT s FROM t UNION ALL SELECT b FROM t": [TEXT],
}


@pytest.fixture(scope="module", params=["memory", "durable"])
def served(request, tmp_path_factory):
    data = "memory" if request.param == "memory" else tmp_path_factory.mktemp("data")
    with Server(arguments=["--pg", "127.0.0.1:0"], data=data) as server:
        with connected(server) as connection:
            connection.execute("CREATE TABLE t (id UUID, doc JSON, s VARCHAR, more JSONB, l VARCHAR(9), b TEXT)")
            connection.execute("INSERT INTO t VALUES (%s, %s, %s, %s, 'l', 'b')", (ONE, Json({"a": [1, None]}), str(TWO), Jsonb({"b": 1})))
            connection.execute("CREATE VIEW v AS SELECT * FROM t")
        yield server


def connected(server):
    return psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=ada dbname=bowshot", autocommit=True)


@pytest.mark.parametrize("sql, expected", {**PASSED_ON, **COMPUTED}.items())
def test_columns_are_what_the_table_says(served, sql, expected):
    with connected(served) as connection:
        for binary in (False, True):
            cursor = connection.execute(sql, binary=binary)
            assert [column.type_code for column in cursor.description] == expected
            kinds = {UUID: uuid.UUID, JSON: dict, JSONB: dict, TEXT: str, VARCHAR: str, 20: int}
            for row in cursor.fetchall():
                assert [type(value) for value in row] == [kinds[oid] for oid in expected]


def test_values_and_parameters_of_psycopg(served):
    with connected(served) as connection:
        for binary in (False, True):
            fetch = lambda sql, values: connection.execute(sql, values, binary=binary).fetchall()
            assert fetch("SELECT id, doc FROM t WHERE id = %s", (ONE,)) == [(ONE, {"a": [1, None]})]
            assert fetch("SELECT id FROM t WHERE id = ANY(%s)", ([ONE, TWO],)) == [(ONE,)]
            assert fetch("SELECT id FROM t WHERE id = %s", (str(ONE).upper(),)) == [(ONE,)]
            assert fetch("SELECT count(*) FROM t WHERE id = %s", (TWO,)) == [(0,)]
            insert = "INSERT INTO t (id, doc) VALUES (%s, %s) RETURNING id, doc"
            assert fetch(insert, (TWO, Jsonb({"b": 2}))) == [(TWO, {"b": 2})]
            connection.execute("UPDATE t SET id = %s WHERE id = %s", (uuid.UUID(int=7), TWO))
            assert fetch("DELETE FROM t WHERE id = %s RETURNING id", (uuid.UUID(int=7),)) == [(uuid.UUID(int=7),)]
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT count(*) FROM t WHERE id = %s", ("no uuid",))


def test_asyncpg_sends_and_gets_uuids(served):
    """What it is told of parameters decides how it writes them."""

    async def run():
        connection = await asyncpg.connect(host="127.0.0.1", port=served.pg_port, user="ada", database="bowshot", timeout=20)
        try:
            [row] = await connection.fetch("SELECT id, doc, more FROM t WHERE id = $1", ONE)
            assert (row["id"], row["doc"], row["more"]) == (ONE, '{"a": [1, null]}', '{"b": 1}')
            assert await connection.fetchval("SELECT count(*) FROM t WHERE id IN ($1, $2)", ONE, TWO) == 1
            assert await connection.fetchval("SELECT id FROM t WHERE id BETWEEN $1 AND $1", ONE) == ONE
            assert await connection.fetchval("SELECT $1::uuid", TWO) == TWO
            assert await connection.fetchval("SELECT id FROM t WHERE id = ANY($1)", [ONE, TWO]) == ONE
            await connection.execute("INSERT INTO t (s, id, doc) VALUES ($1, $2, $3)", "x", TWO, '{"c": 3}')
            await connection.execute("UPDATE t SET id = $1 WHERE id = $2", uuid.UUID(int=8), TWO)
            assert await connection.fetchval("DELETE FROM t WHERE id = $1 RETURNING id", uuid.UUID(int=8)) == uuid.UUID(int=8)
            statement = await connection.prepare("SELECT * FROM t WHERE id = $1 AND s = $2")
            assert [kind.name for kind in statement.get_parameters()] == ["uuid", "text"]
            assert [column.type.name for column in statement.get_attributes()] == ["uuid", "json", "varchar", "jsonb", "varchar", "text"]
            rows = [(uuid.UUID(int=number), "{}", None, "[]", None, None) for number in range(100, 200)]
            await connection.copy_records_to_table("t", records=rows)
            assert await connection.fetchval("SELECT count(*) FROM t WHERE doc::text = '{}' AND more::text = '[]'") == 100
            await connection.execute("DELETE FROM t WHERE doc::text = '{}'")
        finally:
            await connection.close()

    asyncio.run(run())


def test_who_sees_a_column_through_a_mask_is_told_a_text(tmp_path):
    """What a mask shows is no UUID."""
    file = users_file(tmp_path, {"root": "root", "bob": "bob"}, admins=["root"])
    with Server(arguments=["--pg", "127.0.0.1:0", "--users-file", file], data=tmp_path / "data") as server:
        address = f"host=127.0.0.1 port={server.pg_port} dbname=bowshot"
        with psycopg.connect(f"{address} user=root password=root", autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id UUID, doc JSON)")
            connection.execute("INSERT INTO t VALUES (%s, '{}')", (ONE,))
            for sql in ("CREATE ROLE guest", "GRANT guest TO bob", "GRANT SELECT ON t TO bob"):
                connection.execute(sql)
            connection.execute("CREATE MASK hide ON t (id) FOR guest USING (redact)")
            assert connection.execute("SELECT id FROM t", binary=True).fetchone() == (ONE,)
        with psycopg.connect(f"{address} user=bob password=bob", autocommit=True) as connection:
            cursor = connection.execute("SELECT id, doc FROM t", binary=True)
            assert [column.type_code for column in cursor.description] == [TEXT, JSON]
            assert cursor.fetchall() == [("[redacted]", {})]
