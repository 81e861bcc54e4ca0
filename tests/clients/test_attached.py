"""DuckDB that reads this server as PostgreSQL and as MySQL (ATTACH): its extensions ask the catalogs, then copy rows."""

import duckdb
import psycopg
import pytest

import duckdb_extensions
from server import Server


@pytest.fixture(scope="module")
def served():
    with Server(arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]) as server:
        with psycopg.connect(**server.postgres(autocommit=True)) as connection:
            connection.execute("CREATE TABLE numbers (id INT PRIMARY KEY, x BIGINT, d DECIMAL(12, 2), t TEXT, day DATE)")
            connection.execute(
                "INSERT INTO numbers SELECT n, n::bigint * 1000000000, n / 4.0, 'row ' || n, DATE '2024-01-01' + n::int "
                "FROM generate_series(1, 100000) AS g(n)"
            )
        yield server


@pytest.fixture
def duck():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    duckdb_extensions.load(connection, "postgres_scanner", "mysql_scanner")
    yield connection
    connection.close()


def check(duck, table):
    sums = f"SELECT count(*), count(DISTINCT id), sum(x)::HUGEINT, sum(d), min(t), max(day)::VARCHAR FROM {table}"
    [(count, distinct, x, d, least, last)] = duck.execute(sums).fetchall()
    assert (count, distinct, int(x), float(d), least, last) == (100_000, 100_000, 5_000_050_000 * 10**9, 1_250_012_500.0, "row 1", "2297-10-16")
    assert duck.execute(f"SELECT t FROM {table} WHERE id BETWEEN 5 AND 7 ORDER BY id").fetchall() == [("row 5",), ("row 6",), ("row 7",)]


def test_as_postgres(served, duck):
    duck.execute(f"ATTACH 'host=127.0.0.1 port={served.pg_port} user=ada dbname=bowshot' AS there (TYPE postgres)")
    check(duck, "there.main.numbers")
    described = duck.execute("DESCRIBE there.main.numbers").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("id", "INTEGER"), ("x", "BIGINT"), ("d", "DECIMAL(12,2)"), ("t", "VARCHAR"), ("day", "DATE")
    ]


def test_tables_made_in_postgres(served, duck):
    """DuckDB reads a table that it has just made by its `ctid`, a column that is not there: it reads it once it is attached anew."""
    attach = f"ATTACH 'host=127.0.0.1 port={served.pg_port} user=ada dbname=bowshot' AS made (TYPE postgres)"
    duck.execute(attach)
    duck.execute("CREATE TABLE made.main.copied AS SELECT id, t FROM made.main.numbers WHERE id <= 1000")
    for sql in ("SELECT count(*) FROM made.main.copied", "DELETE FROM made.main.copied WHERE id = 1"):
        with pytest.raises(duckdb.Error, match="ctid"):
            duck.execute(sql)
    duck.execute("DETACH made")
    duck.execute(attach)
    assert duck.execute("SELECT count(*), max(t) FROM made.main.copied").fetchall() == [(1000, "row 999")]


def test_as_mysql(served, duck):
    duck.execute(f"ATTACH 'host=127.0.0.1 port={served.mysql_port} user=ada database=main' AS there (TYPE mysql)")
    check(duck, "there.main.numbers")
