"""Where transactions begin and end that no statement begins: scripts, pipelines, many rows at once. What PostgreSQL 15 does, checked
there with the same file."""

import time

import psycopg
import pytest

from server import Server


@pytest.fixture
def connection(address):
    with psycopg.connect(**address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (n INT)")
        yield connection


def script(connection, sql):
    """Runs a text by the simple protocol; gives the tags of its statements, or the SQLSTATE."""
    results = []
    connection.pgconn.send_query(sql.encode())
    while (result := connection.pgconn.get_result()) is not None:
        error = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        results.append((error or result.command_status).decode())
    return results


def kept(connection):
    return [n for (n,) in connection.execute("SELECT n FROM kept ORDER BY n").fetchall()]


def test_a_script_is_one_transaction(connection):
    for sql, results, rows in [
        ("INSERT INTO kept VALUES (1); SELECT 1/0", ["INSERT 0 1", "22012"], []),
        ("INSERT INTO kept VALUES (1); INSERT INTO kept VALUES (1/0)", ["INSERT 0 1", "22012"], []),
        ("INSERT INTO kept VALUES (1); SELECT n FROM kept", ["INSERT 0 1", "SELECT 1"], [1]),
        ("SELECT 1; INSERT INTO kept VALUES (2); COMMIT; SELECT 1/0", ["SELECT 1", "INSERT 0 1", "COMMIT", "22012"], [1, 2]),
        ("INSERT INTO kept VALUES (3); ROLLBACK; INSERT INTO kept VALUES (4)", ["INSERT 0 1", "ROLLBACK", "INSERT 0 1"], [1, 2, 4]),
        ("BEGIN; INSERT INTO kept VALUES (5); COMMIT; INSERT INTO kept VALUES (6); SELECT 1/0",
         ["BEGIN", "INSERT 0 1", "COMMIT", "INSERT 0 1", "22012"], [1, 2, 4, 5]),
        ("CREATE TABLE made_then_lost (a INT); SELECT 1/0", ["CREATE TABLE", "22012"], [1, 2, 4, 5]),
        ("SELECT n FROM made_then_lost", ["42P01"], [1, 2, 4, 5]),
        ("DECLARE c CURSOR FOR SELECT n FROM kept; FETCH ALL FROM c", ["DECLARE CURSOR", "FETCH 4"], [1, 2, 4, 5]),
        ("SAVEPOINT a; SELECT 1", ["25P01"], [1, 2, 4, 5]),
    ]:
        assert script(connection, sql) == results, sql
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE, sql
        assert kept(connection) == rows, sql


def test_begin_takes_over_what_stands_before_it(connection):
    assert script(connection, "INSERT INTO kept VALUES (1); BEGIN; INSERT INTO kept VALUES (2)") == ["INSERT 0 1", "BEGIN", "INSERT 0 1"]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    script(connection, "ROLLBACK")
    assert kept(connection) == []


def test_a_transaction_is_followed_by_another_one_like_it(connection):
    connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    connection.execute("INSERT INTO kept VALUES (1)")
    assert script(connection, "COMMIT AND CHAIN") == ["COMMIT"]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert connection.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    connection.execute("INSERT INTO kept VALUES (2)")
    assert script(connection, "ROLLBACK WORK AND CHAIN") == ["ROLLBACK"]
    connection.execute("INSERT INTO kept VALUES (3)")
    assert script(connection, "SELECT 1/0") == ["22012"]
    # A failed one is rolled back, and the next one has not failed.
    assert script(connection, "COMMIT AND CHAIN") == ["ROLLBACK"]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    connection.execute("INSERT INTO kept VALUES (4)")
    assert script(connection, "COMMIT AND NO CHAIN") == ["COMMIT"]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert kept(connection) == [1, 4]
    assert script(connection, "COMMIT AND CHAIN") == ["25P01"]
    assert script(connection, "BEGIN READ ONLY; COMMIT AND CHAIN; INSERT INTO kept VALUES (5)") == ["BEGIN", "COMMIT", "25006"]
    connection.execute("ROLLBACK")


def test_what_is_set_locally_ends_with_its_script(connection):
    connection.execute("SET application_name = 'before'")
    sql = "SET LOCAL application_name = 'within'; SELECT 1/(current_setting('application_name') = 'within')::int"
    assert script(connection, sql) == ["SET", "SELECT 1"]
    assert connection.execute("SHOW application_name").fetchone() == ("before",)


def test_many_rows_at_once_are_one_transaction(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.cursor().executemany("INSERT INTO kept VALUES (%s / %s)", [(100, 1), (200, 0), (300, 1)])
    assert kept(connection) == []
    connection.cursor().executemany("INSERT INTO kept VALUES (%s / %s)", [(100, 1), (200, 2)])
    assert kept(connection) == [100, 100]


def test_rows_are_copied_into_a_temporary_table(connection):
    connection.execute("CREATE TEMP TABLE kept_for_now (n INT, t TEXT)")
    with connection.cursor().copy("COPY kept_for_now FROM STDIN") as copy:
        copy.write_row((1, "a"))
        copy.write_row((2, None))
    assert connection.execute("SELECT n, t FROM kept_for_now ORDER BY n").fetchall() == [(1, "a"), (2, None)]
    connection.execute("CREATE TEMP TABLE kept (n INT)")
    with connection.cursor().copy("COPY kept FROM STDIN") as copy:
        copy.write_row((9,))
    assert kept(connection) == [9]
    connection.execute("DROP TABLE kept")
    assert kept(connection) == []


def test_a_statement_whose_table_was_altered_is_to_be_prepared_again(connection, address):
    connection.execute("INSERT INTO kept VALUES (1)")
    for _ in range(2):
        assert connection.execute("SELECT * FROM kept", prepare=True).fetchall() == [(1,)]
    # Psycopg forgets its own prepared statements where it sees an ALTER.
    with psycopg.connect(**address, autocommit=True) as other:
        other.execute("ALTER TABLE kept ADD COLUMN t TEXT")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
        connection.execute("SELECT * FROM kept", prepare=True)


def test_a_fetch_is_prepared_before_its_cursor_is_declared(connection):
    connection.pgconn.prepare(b"f", b"FETCH 2 FROM later")
    described = connection.pgconn.describe_prepared(b"f")
    assert (described.status, described.nfields) == (psycopg.pq.ExecStatus.COMMAND_OK, 0)
    with connection.transaction():
        connection.execute("DECLARE later CURSOR FOR SELECT * FROM generate_series(1, 3)")
        result = connection.pgconn.exec_prepared(b"f", [])
        assert (result.status, result.ntuples) == (psycopg.pq.ExecStatus.TUPLES_OK, 2)


def test_maintenance_statements_are_taken(connection):
    for sql in ["VACUUM ANALYZE kept", "VACUUM", "VACUUM (ANALYZE) kept", "VACUUM FULL kept", "ANALYZE", "ANALYZE kept"]:
        assert script(connection, sql) == [sql.split()[0]], sql


def test_background_maintenance_is_nobodys_conflict(tmp_path):
    """Rows of a new table go from the catalog into a file within a few seconds: whoever drops or alters it meanwhile is the only writer."""
    with Server(arguments=["--pg", "127.0.0.1:0"], data=str(tmp_path / "data")) as server:
        with psycopg.connect(**server.postgres(autocommit=True)) as connection:
            for change in ["DROP TABLE made", "ALTER TABLE made ADD COLUMN t TEXT", "ALTER TABLE made RENAME COLUMN n TO m"]:
                connection.execute("CREATE TABLE made (n INT)")
                connection.execute("INSERT INTO made VALUES (1), (2)")
                with connection.transaction():
                    connection.execute("SELECT * FROM made")
                    time.sleep(4)
                    connection.execute(change)
                if change != "DROP TABLE made":
                    assert [row[0] for row in connection.execute("SELECT * FROM made ORDER BY 1")] == [1, 2]
                    connection.execute("INSERT INTO made SELECT * FROM made")
                    assert connection.execute("SELECT count(*) FROM made").fetchone() == (4,)
                    connection.execute("DROP TABLE made")
