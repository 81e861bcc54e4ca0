"""What the client reads in SQL, and the bytes of protobuf: without a server."""

import pytest

import bowshot
from bowshot import _messages, _protobuf, _sql


@pytest.mark.parametrize(
    ("sql", "values", "sent", "row"),
    [
        ("SELECT ?, ?", [1, 2], "SELECT $1, $2", [1, 2]),
        ("SELECT %s", [1], "SELECT $1", [1]),
        ("SELECT 7 %% 4, %s", [1], "SELECT 7 % 4, $1", [1]),
        ("SELECT 7 % 4, ?", [1], "SELECT 7 % 4, $1", [1]),
        ("SELECT :2, :1, :2", [1, 2], "SELECT $1, $2, $1", [2, 1]),
        ("SELECT $2, $1", [1, 2], "SELECT $1, $2", [2, 1]),
        ("SELECT :a + :b + :a", {"a": 1, "b": 2}, "SELECT $1 + $2 + $1", [1, 2]),
        ("SELECT %(a)s", {"a": 1, "more": 2}, "SELECT $1", [1]),
        ("SELECT $a", {"a": 1}, "SELECT $1", [1]),
        ("SELECT '?', \"?\", `?`, ? -- ?", [1], "SELECT '?', \"?\", `?`, $1 -- ?", [1]),
        ("SELECT 'it''s ?', ?", [1], "SELECT 'it''s ?', $1", [1]),
        (r"SELECT E'it\'s ?', ?", [1], r"SELECT E'it\'s ?', $1", [1]),
        (r"SELECT 'a\', ?", [1], r"SELECT 'a\', $1", [1]),
        ("SELECT $$ ? $$, $x$ ? $$ ? $x$, ?", [1], "SELECT $$ ? $$, $x$ ? $$ ? $x$, $1", [1]),
        ("/* ? /* ? */ ? */ SELECT ?", [1], "/* ? /* ? */ ? */ SELECT $1", [1]),
        ("SELECT x::int, a[1:2], a[b:c], :x FROM t", {"x": 1}, "SELECT x::int, a[1:2], a[b:c], $1 FROM t", [1]),
        ("SELECT {'a' :1, 'b' :2}, :1", [5], "SELECT {'a' :1, 'b' :2}, $1", [5]),
        ("SELECT a$1, ?", [1], "SELECT a$1, $1", [1]),
        ("SELECT '%s' LIKE %s", ["x"], "SELECT '%s' LIKE $1", ["x"]),
        ("SELECT ':a', :a", {"a": 1}, "SELECT ':a', $1", [1]),
        ("SELECT 1", [], "SELECT 1", []),
        ("SELECT 'unclosed ?", [], "SELECT 'unclosed ?", []),
    ],
)
def test_parameters(sql, values, sent, row):
    bound = _sql.bind(sql, isinstance(values, dict))
    assert (bound.sql, bound.row(values)) == (sent, row)


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        ("SELECT ?", [], "1 parameters, but 0"),
        ("SELECT ?", [1, 2], "1 parameters, but 2"),
        ("SELECT ?, :1", [1], "mixes"),
        ("SELECT :a, %(b)s", {"a": 1, "b": 2}, "mixes"),
        ("SELECT :a", {"b": 1}, "`a`"),
        ("SELECT :0", [1], ":0"),
        ("SELECT 1", [1], "0 parameters, but 1"),
    ],
)
def test_parameters_that_do_not_fit(sql, values, words):
    with pytest.raises(bowshot.ProgrammingError, match=words):
        _sql.bind(sql, isinstance(values, dict)).row(values)


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("select 1", ("SELECT", "", 1, False)),
        ("-- INSERT\n/* x */ select 1;", ("SELECT", "", 1, False)),
        ("select 1; select 'x;y'", ("SELECT", "SELECT", 2, False)),
        ("select ';'; -- ;", ("SELECT", "", 1, False)),
        ("insert into t values (1) returning a", ("INSERT", "INTO", 1, True)),
        ("insert into t values ('returning')", ("INSERT", "INTO", 1, False)),
        ("rollback to s", ("ROLLBACK", "TO", 1, False)),
        ("'text'", ("", "", 1, False)),
        (" ; -- x", ("", "", 0, False)),
    ],
)
def test_shapes(sql, shape):
    found = _sql.shape(sql)
    assert (found.first, found.second, found.statements, found.returning) == shape


def test_names():
    assert _sql.parts("Orders") == ["orders"]
    assert _sql.parts('main."My.Table"') == ["main", "My.Table"]
    assert _sql.parts('a.b."c""d"') == ["a", "b", 'c"d']
    for wrong in ("", "a.", "a..b", "a.b.c.d", '"'):
        with pytest.raises(bowshot.ProgrammingError):
            _sql.parts(wrong)


def test_numbers_of_protobuf():
    for number in (0, 1, 127, 128, 300, 2**32, 2**63 - 1, -1, -(2**63)):
        message = _protobuf.Message(_protobuf.field(5, number))
        assert message.number(5) == number
    assert _protobuf.varint(300) == b"\xac\x02"


def test_messages_of_protobuf_that_are_cut():
    whole = _protobuf.field(1, "text") + _protobuf.fixed64(2, 7) + _protobuf.field(3, 300)
    assert _protobuf.Message(whole).text(1) == "text"
    for end in (1, 3, 7, 10, len(whole) - 1):
        with pytest.raises(ValueError, match="middle"):
            _protobuf.Message(whole[:end])
    with pytest.raises(ValueError, match="wire type"):
        _protobuf.Message(b"\x0b")


def test_options_of_a_session_are_read_back():
    options = {"a": "text", "b": True, "c": -5, "d": 1.5, "e": ["x", "y"]}
    assert _messages.session_options(_messages.set_session_options(options)) == options
