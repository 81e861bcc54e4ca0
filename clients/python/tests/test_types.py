"""Values of every type, out and in again."""

import datetime
import decimal
import enum
import uuid

import pyarrow as pa
import pytest

import bowshot

UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789_001)


@pytest.mark.parametrize(
    ("kind", "value", "back"),
    [
        ("BOOLEAN", True, True),
        ("TINYINT", -128, -128),
        ("INT", 5, 5),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BIGINT UNSIGNED", 2**64 - 1, 2**64 - 1),
        ("DECIMAL(38, 0)", 2**70, decimal.Decimal(2**70)),
        ("DOUBLE", 1.5, 1.5),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", float("inf"), float("inf")),
        ("REAL", 0.5, 0.5),
        ("DECIMAL(10, 3)", decimal.Decimal("-12.345"), decimal.Decimal("-12.345")),
        ("DECIMAL(10, 3)", decimal.Decimal("1E2"), decimal.Decimal("100.000")),
        ("TEXT", "größe 🏹", "größe 🏹"),
        ("TEXT", "", ""),
        ("BYTEA", b"\x00\xff", b"\x00\xff"),
        ("BYTEA", bytearray(b"a"), b"a"),
        ("BYTEA", memoryview(b"a"), b"a"),
        ("DATE", MOMENT.date(), MOMENT.date()),
        ("DATE", datetime.date(1, 1, 1), datetime.date(1, 1, 1)),
        ("TIME", MOMENT.time(), MOMENT.time()),
        ("TIMESTAMP", MOMENT, MOMENT),
        ("TIMESTAMP", datetime.datetime(1, 1, 1), datetime.datetime(1, 1, 1)),
        ("TIMESTAMP(9)", MOMENT, MOMENT),
        ("TIMESTAMPTZ", MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC)),
        (
            "TIMESTAMPTZ",
            MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
            (MOMENT - datetime.timedelta(hours=5, minutes=30)).replace(tzinfo=UTC),
        ),
        ("INTERVAL", datetime.timedelta(days=3, seconds=4, microseconds=5), datetime.timedelta(3, 4, 5)),
        ("INTERVAL", datetime.timedelta(days=-1), datetime.timedelta(days=-1)),
        ("UUID", uuid.UUID(int=7), str(uuid.UUID(int=7))),
        ("JSON", '{"a": 1}', '{"a": 1}'),
        ("INT[]", [1, None, 3], [1, None, 3]),
        ("INT[]", (), []),
        ("TEXT[]", ["a", "b"], ["a", "b"]),
        ("UUID[]", [uuid.UUID(int=7)], [str(uuid.UUID(int=7))]),
        ("STRUCT<a INT, b TEXT>", {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
        ("STRUCT<a INT, b TEXT>", {"a": 1}, {"a": 1, "b": None}),
        ("MAP<TEXT, INT>", {"k": 1, "l": None}, {"k": 1, "l": None}),
        ("MAP<TEXT, INT>[]", [{"k": 1}, None], [{"k": 1}, None]),
        ("STRUCT<m MAP<TEXT, INT>>", {"m": {"k": 1}}, {"m": {"k": 1}}),
        ("TIMESTAMP(9)[]", [MOMENT], [MOMENT]),
    ],
)
def test_a_value_comes_back(connection, kind, value, back):
    connection.sql(f"CREATE OR REPLACE TEMPORARY TABLE type_out (id INT, v {kind})")
    connection.cursor().executemany("INSERT INTO type_out VALUES (?, ?)", [(1, value), (2, None)])
    rows = connection.execute("SELECT v FROM type_out ORDER BY id").fetchall()
    assert rows == [(back,), (None,)]
    assert type(rows[0][0]) is type(back)


def test_values_of_other_libraries(connection):
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    kind = enum.Enum("Kind", {"A": 5})
    number = enum.IntEnum("Number", {"B": 6})
    values = [numpy.int32(1), numpy.float64(1.5), numpy.str_("x"), numpy.bool_(True), kind.A, number.B]
    row = connection.execute("SELECT ?, ?, ?, ?, ?, ?", values).fetchone()
    assert row == (1, 1.5, "x", True, 5, 6)
    moment = pandas.Timestamp("2024-01-02 03:04:05")
    row = connection.execute("SELECT ?, ?, ?, ?", [moment, pandas.NaT, numpy.array([1, 2]), pa.scalar(7)]).fetchone()
    assert row == (moment.to_pydatetime(), None, [1, 2], 7)


def test_numbers_of_several_classes_in_a_column(connection):
    connection.sql("CREATE OR REPLACE TEMPORARY TABLE mixed (v DECIMAL(20, 3), d DOUBLE)")
    rows = [(1, 1), (decimal.Decimal("2.5"), 2.5), (None, None)]
    connection.cursor().executemany("INSERT INTO mixed VALUES (?, ?)", rows)
    back = set(connection.execute("SELECT * FROM mixed"))
    assert back == {(decimal.Decimal("1.000"), 1.0), (decimal.Decimal("2.500"), 2.5), (None, None)}


@pytest.mark.parametrize(
    "value",
    [
        object(),
        1 << 300,
        datetime.time(1, tzinfo=UTC),
        [1, "x"],
    ],
)
def test_values_without_a_type(connection, value):
    with pytest.raises(bowshot.DataError):
        connection.execute("SELECT ?", [value])


def test_times_with_and_without_a_zone_do_not_mix(connection):
    connection.sql("CREATE OR REPLACE TEMPORARY TABLE zones (v TIMESTAMPTZ)")
    with pytest.raises(bowshot.DataError, match="zone"):
        connection.cursor().executemany("INSERT INTO zones VALUES (?)", [(MOMENT,), (MOMENT.replace(tzinfo=UTC),)])


def test_nothing_is_rounded_in_silence(connection):
    connection.sql("CREATE OR REPLACE TEMPORARY TABLE whole (v INT)")
    for value in (1.5, decimal.Decimal("1.5")):
        with pytest.raises(bowshot.DataError, match="whole number"):
            connection.execute("INSERT INTO whole VALUES (?)", [value])
    connection.execute("INSERT INTO whole VALUES (?)", [2.0])
    assert connection.execute("SELECT v FROM whole").fetchall() == [(2,)]


def test_months_stay_months(connection):
    (value,) = connection.execute("SELECT INTERVAL '1 month 2 days'").fetchone()
    assert (value.months, value.days) == (1, 2)
