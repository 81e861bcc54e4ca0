"""Transactions, savepoints, and what SQL says about them."""

import pytest

import bowshot


@pytest.fixture
def numbers(connection, table):
    connection.sql(f"CREATE TABLE {table} (a INT)")
    return table


def count(connection, table):
    return connection.table(table).count()


def test_without_autocommit_everything_waits_for_commit(shared, connection, numbers):
    with shared.connect() as other:
        assert not other.autocommit
        assert not other.in_transaction
        other.sql(f"INSERT INTO {numbers} VALUES (1)")
        assert other.in_transaction
        assert (count(other, numbers), count(connection, numbers)) == (1, 0)
        other.rollback()
        assert count(other, numbers) == 0
        other.sql(f"INSERT INTO {numbers} VALUES (?)", [1])
        other.commit()
        other.commit()
        assert count(connection, numbers) == 1
        other.sql(f"INSERT INTO {numbers} VALUES (2)")
        other.close()
    assert count(connection, numbers) == 1


def test_blocks(connection, numbers):
    with connection.transaction():
        connection.sql(f"INSERT INTO {numbers} VALUES (1)")
    with pytest.raises(ZeroDivisionError), connection.transaction():  # noqa: PT012
        connection.sql(f"INSERT INTO {numbers} VALUES (2)")
        raise ZeroDivisionError
    with connection.transaction():
        connection.sql(f"INSERT INTO {numbers} VALUES (3)")
        raise bowshot.Rollback
    assert list(connection.sql(f"SELECT a FROM {numbers}")) == [(1,)]
    assert not connection.in_transaction


def test_blocks_in_blocks_are_savepoints(connection, numbers):
    with connection.transaction():
        connection.sql(f"INSERT INTO {numbers} VALUES (1)")
        with pytest.raises(bowshot.DataError), connection.transaction():  # noqa: PT012
            connection.sql(f"INSERT INTO {numbers} VALUES (2)")
            connection.sql("SELECT 1 / 0").arrow()
        with connection.transaction():
            connection.sql(f"INSERT INTO {numbers} VALUES (3)")
            with connection.transaction():
                connection.sql(f"INSERT INTO {numbers} VALUES (4)")
                raise bowshot.Rollback
        with pytest.raises(bowshot.ProgrammingError, match="block"):
            connection.commit()
    assert sorted(connection.sql(f"SELECT a FROM {numbers}")) == [(1,), (3,)]


def test_a_statement_that_fails_leaves_the_transaction_as_it_was(shared, numbers):
    with shared.connect() as other:
        other.sql(f"INSERT INTO {numbers} VALUES (1)")
        with pytest.raises(bowshot.Error):
            other.sql(f"INSERT INTO {numbers} SELECT 1 / 0")
        other.commit()
        assert count(other, numbers) == 1


def test_statements_of_sql(shared, connection, numbers):
    with shared.connect() as other:
        cursor = other.cursor()
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {numbers} VALUES (1)")
        cursor.execute("SAVEPOINT s")
        cursor.execute(f"INSERT INTO {numbers} VALUES (2)")
        cursor.execute("ROLLBACK TO SAVEPOINT s")
        cursor.execute("COMMIT")
        assert not other.in_transaction
        assert count(connection, numbers) == 1
        cursor.execute(f"INSERT INTO {numbers} VALUES (3)")
        cursor.execute("ROLLBACK")
        assert count(other, numbers) == 1
    connection.sql("BEGIN")
    connection.sql(f"INSERT INTO {numbers} VALUES (5)")
    connection.sql("ROLLBACK")
    assert count(connection, numbers) == 1


def test_autocommit_is_changed_between_transactions(shared, numbers):
    with shared.connect() as other:
        other.sql(f"INSERT INTO {numbers} VALUES (1)")
        with pytest.raises(bowshot.ProgrammingError):
            other.autocommit = True
        other.rollback()
        other.autocommit = True
        other.sql(f"INSERT INTO {numbers} VALUES (1)")
        assert not other.in_transaction


def test_a_transaction_that_was_idle_for_too_long(folder):
    with bowshot.server(folder, settings={"limits.transaction_timeout": "1s"}) as server, server.connect() as other:
        other.sql("CREATE TABLE t (a INT)")
        import time

        deadline = time.monotonic() + 120
        with pytest.raises(bowshot.NotFoundError, match="idle"):  # noqa: PT012
            while time.monotonic() < deadline:
                time.sleep(1.5)
                other.sql("SELECT 1")
        other.rollback()
        assert other.sql("SELECT 1").arrow().num_rows == 1


def test_catalogs_schemas_and_tables_of_a_transaction(shared, connection, table):
    with shared.connect() as other:
        other.sql(f"CREATE TABLE {table} (a INT PRIMARY KEY, b TEXT)")
        assert [found.name for found in other.tables(like=table)] == [table]
        assert other.table(table).schema.names == ["a", "b"]
        assert connection.tables(like=table) == []
        with pytest.raises(bowshot.NotFoundError):
            _ = connection.table(table).schema
        other.rollback()


def test_what_there_is(connection):
    assert "bowshot" in connection.catalogs()
    assert {"main", "information_schema"} <= set(connection.schemas())
    assert "main" in connection.schemas("bowshot")
    assert connection.schemas("nope") == []
    names = [table.name for table in connection.tables("main", catalog="bowshot")]
    assert {"nation", "numbers"} <= set(names)
    assert [str(found) for found in connection.tables(like="nat%")] == ['"bowshot"."main"."nation"']
    assert "queries" in [table.name for table in connection.tables("system")]
    nation = connection.table("nation")
    assert nation.columns == ["id", "name"]
    assert nation.count() == 5
    assert nation.scan(["name"], limit=2).arrow().num_rows == 2
    assert connection.table("bowshot.main.nation").arrow().num_rows == 5
    assert connection.table("queries", schema="system").count() > 0


def test_names_with_other_characters(connection):
    connection.sql('CREATE OR REPLACE TABLE "Odd.Name ""x""" ("A b" INT)')
    odd = connection.table('"Odd.Name ""x"""')
    assert odd.columns == ["A b"]
    assert odd.scan(["A b"]).columns == ["A b"]
    assert connection.table('Odd.Name "x"', schema="main").count() == 0
    connection.sql('DROP TABLE "Odd.Name ""x"""')


def test_options_of_the_session(connection):
    connection.set_options(time_zone="+02:00", endpoints="4")
    assert connection.options["time_zone"] == "+02:00"
    connection.set_options(time_zone=None)
    assert connection.options["time_zone"] == "+00:00"
    for name, words in (("nonsense", "no such option"), ("endpoints", "value")):
        with pytest.raises(bowshot.ProgrammingError, match=words):
            connection.set_options(**{name: "many"})
