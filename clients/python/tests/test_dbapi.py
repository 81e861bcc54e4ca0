"""PEP 249, point by point."""

import datetime

import pytest
from conftest import side_by_side

import bowshot


@pytest.fixture
def people(connection, table):
    connection.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, name TEXT, born DATE, pay DECIMAL(10, 2), photo BYTEA)")
    return table


def test_globals():
    assert (bowshot.apilevel, bowshot.threadsafety, bowshot.paramstyle) == ("2.0", 2, "qmark")


def test_exceptions_are_a_tree():
    assert issubclass(bowshot.Warning, Exception)
    for name in ("InterfaceError", "DatabaseError"):
        assert issubclass(getattr(bowshot, name), bowshot.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):
        assert issubclass(getattr(bowshot, name), bowshot.DatabaseError)
        assert getattr(bowshot.Connection, name) is getattr(bowshot, name)


def test_constructors():
    assert bowshot.Date(2024, 2, 29) == datetime.date(2024, 2, 29)
    assert bowshot.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert bowshot.Timestamp(2024, 2, 29, 1, 2, 3) == datetime.datetime(2024, 2, 29, 1, 2, 3)
    assert bowshot.Binary(b"x") == b"x"
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3)
    ticks = moment.timestamp()
    assert bowshot.DateFromTicks(ticks) == moment.date()
    assert bowshot.TimeFromTicks(ticks) == moment.time()
    assert bowshot.TimestampFromTicks(ticks) == moment


def test_description_and_type_objects(connection, people):
    cursor = connection.cursor()
    assert cursor.description is None
    cursor.execute(f"SELECT *, 1.5::double AS d, now() AS t FROM {people}")
    description = cursor.description
    assert [column[0] for column in description] == ["id", "name", "born", "pay", "photo", "d", "t"]
    assert all(len(column) == 7 for column in description)
    kinds = [bowshot.NUMBER, bowshot.STRING, bowshot.DATETIME, bowshot.NUMBER, bowshot.BINARY, bowshot.NUMBER, bowshot.DATETIME]
    for column, kind in zip(description, kinds, strict=True):
        assert column[1] == kind
        others = {bowshot.NUMBER, bowshot.STRING, bowshot.DATETIME, bowshot.BINARY, bowshot.ROWID} - {kind}
        assert all(column[1] != other for other in others)
    assert description[3][4:6] == (10, 2)
    assert description[0][6] is False
    assert description[1][6] is True
    cursor.execute(f"INSERT INTO {people} (id) VALUES (1)")
    assert cursor.description is None
    assert cursor.rowcount == 1


def test_execute_and_fetch(connection, people):
    cursor = connection.cursor()
    assert cursor.rowcount == -1
    cursor.executemany(f"INSERT INTO {people} (id, name) VALUES (?, ?)", [(n, f"name {n}") for n in range(10)])
    assert cursor.rowcount == 10
    cursor.execute(f"SELECT id FROM {people} ORDER BY id")
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(2,), (3,), (4,)]
    assert cursor.fetchmany(2) == [(5,), (6,)]
    assert cursor.rownumber == 7
    assert cursor.fetchall() == [(7,), (8,), (9,)]
    assert cursor.fetchone() is None
    assert cursor.fetchmany(5) == []
    assert cursor.fetchall() == []
    assert list(cursor.execute(f"SELECT id FROM {people} WHERE id < 3 ORDER BY id")) == [(0,), (1,), (2,)]
    assert cursor.rowcount == 3


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("id = ? AND name = ?", (1, "x")),
        ("id = :1 AND name = :2", (1, "x")),
        ("id = $1 AND name = $2", (1, "x")),
        ("id = %s AND name = %s", (1, "x")),
        ("id = :id AND name = :name", {"id": 1, "name": "x"}),
        ("id = %(id)s AND name = %(name)s", {"id": 1, "name": "x"}),
        ("id = $id AND name = $name", {"id": 1, "name": "x"}),
    ],
)
def test_styles_of_parameters(connection, table, sql, values):
    connection.sql(f"CREATE OR REPLACE TEMPORARY TABLE {table[:20]} AS SELECT 1 AS id, 'x' AS name")
    cursor = connection.cursor().execute(f"SELECT count(*) FROM {table[:20]} WHERE {sql}", values)
    assert cursor.fetchall() == [(1,)]


def test_values_are_values_and_no_sql(connection, people):
    nasty = "'; DROP TABLE people; -- \0 \\ %s ? :x 😀"
    connection.execute(f"INSERT INTO {people} (id, name) VALUES (?, ?)", (1, nasty))
    assert connection.execute(f"SELECT name FROM {people}").fetchone() == (nasty,)


def test_executemany_with_rows_and_with_names(connection, people):
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO {people} (id) VALUES (:id) RETURNING id * 10 AS x", [{"id": 1}, {"id": 2}])
    assert sorted(cursor.fetchall()) == [(10,), (20,)]
    assert cursor.executemany(f"DELETE FROM {people} WHERE id = ?", []).rowcount == 0
    with pytest.raises(bowshot.ProgrammingError):
        cursor.executemany(f"DELETE FROM {people} WHERE id = ?", [(1,), {"id": 1}])
    # As one change: the second row is refused, and the first one is not there.
    with pytest.raises(bowshot.IntegrityError):
        cursor.executemany(f"INSERT INTO {people} (id) VALUES (?)", [(5,), (1,)])
    assert connection.execute(f"SELECT count(*) FROM {people} WHERE id = 5").fetchone() == (0,)


def test_what_is_not_there(connection):
    cursor = connection.cursor()
    with pytest.raises(bowshot.NotSupportedError):
        cursor.callproc("p")
    assert cursor.nextset() is None
    assert cursor.setinputsizes([1]) is None
    assert cursor.setoutputsize(10) is None


def test_wrong_uses(connection):
    cursor = connection.cursor()
    for wrong in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(bowshot.Error):
            wrong()
    for parameters in ("text", 5, b"x"):
        with pytest.raises(bowshot.InterfaceError):
            cursor.execute("SELECT ?", parameters)
        with pytest.raises(bowshot.InterfaceError, match="one value"):
            connection.sql("SELECT ?", parameters)
    with pytest.raises(bowshot.InterfaceError):
        cursor.execute(5)
    cursor.execute("CREATE TEMPORARY TABLE wrong_uses (a INT)")
    with pytest.raises(bowshot.Error):
        cursor.fetchone()


def test_closing(shared):
    connection = shared.connect()
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(bowshot.Error):
        cursor.execute("SELECT 1")
    other = connection.cursor().execute("SELECT 1")
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, other.fetchone, lambda: other.execute("SELECT 1")):
        with pytest.raises(bowshot.Error):
            use()


def test_context_managers(shared, table):
    with shared.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (a INT)")
    assert connection.closed
    with pytest.raises(ZeroDivisionError), shared.connect() as connection:  # noqa: PT012
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        raise ZeroDivisionError
    with shared.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_new_statement_ends_the_rows_of_the_one_before(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT n FROM numbers")
    assert cursor.fetchone() is not None
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_several_statements_give_the_rows_of_the_last(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE several (a INT); INSERT INTO several VALUES (1), (2); SELECT a FROM several")
    assert sorted(cursor.fetchall()) == [(1,), (2,)]


def test_threads_share_a_connection(connection):
    def work(number):
        return [connection.cursor().execute("SELECT ? + 0", [number]).fetchall() for _ in range(10)]

    assert side_by_side(work, 8) == [[[(number,)]] * 10 for number in range(8)]
