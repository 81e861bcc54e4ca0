"""Attempts to get round the rules, through every front end: each is denied, or sees what is left, for the reason that is
given in `round.jsonl`. Ada is a clerk of region EU: of `people` two rows with masked numbers are hers, of `orders` three columns."""

import json
import pathlib

import pytest

from world import DOORS, Refused, refused

# Words that only hidden rows, columns and tables have.
HIDDEN = ("Cleo", "Dora", "Egon", "333-44", "444-55", "boom", "topsecret", "999999", "111-22")

# Statements with the rows that must come out, in any order, or with words of their refusal.
CASES = [json.loads(line) for line in (pathlib.Path(__file__).parent / "round.jsonl").read_text().splitlines()]
READS = [(case["sql"], {tuple(row) for row in case["rows"]}) for case in CASES if "rows" in case]
REFUSED = [(case["sql"], case["refused"]) for case in CASES if "refused" in case]


def everywhere(questions, but=()):
    """All questions through all front ends."""
    return [(sql, what, door) for sql, what in questions for door in DOORS if (sql, door) not in but]


# MySQL's form is made of the columns that are seen, and tells nothing else.
OWN_FORMS = {("SHOW CREATE TABLE people", "mysql")}


@pytest.mark.parametrize(("sql", "expected", "door"), everywhere(READS))
def test_what_is_read_is_what_is_left(shared, sql, expected, door):
    rows = shared.at("ada", door).rows(sql)
    normal = {tuple({"t": "True", "f": "False", "1": value}.get(value, value) if value in ("t", "f") else value for value in row) for row in rows}
    truth = {tuple({"True": "1", "False": "0"}.get(value, value) for value in row) for row in expected}
    assert normal in (expected, truth) or {tuple(str(value).lower() for value in row) for row in normal} == {
        tuple(str(value).lower() for value in row) for row in expected
    }, rows


@pytest.mark.parametrize(("sql", "words", "door"), everywhere(REFUSED, OWN_FORMS))
def test_what_is_not_allowed_is_refused(shared, sql, words, door):
    with pytest.raises(Refused) as caught:
        print(shared.at("ada", door).rows(sql))
    told = str(caught.value)
    assert words in told, told
    assert not any(word in told for word in HIDDEN), told


@pytest.mark.parametrize("door", DOORS)
def test_what_is_hidden_is_refused_as_what_is_not_there(shared, door):
    ada = shared.at("ada", door)

    def told(sql):
        with pytest.raises(Refused) as caught:
            ada.rows(sql)
        return str(caught.value)

    for form in ("SELECT * FROM {}", "INSERT INTO {} VALUES (1)", "DELETE FROM {}", "DROP TABLE {}", "DESCRIBE {}", "TRUNCATE TABLE {}"):
        hidden, missing = told(form.format("secrets")), told(form.format("missing"))
        assert hidden.replace("secrets", "missing").split("query")[0][:120] == missing.split("query")[0][:120]
    for sql in ("DROP TABLE IF EXISTS secrets", "DROP TABLE IF EXISTS missing", "ALTER TABLE IF EXISTS secrets ADD COLUMN a INTEGER"):
        ada.rows(sql)
    assert shared.at("root").rows("SELECT text FROM secrets") == [("topsecret",)]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE VERBOSE"])
def test_plans_tell_nothing_of_what_is_hidden(shared, how, door):
    lines = " ".join(str(value) for row in shared.at("ada", door).rows(f"{how} SELECT * FROM people WHERE name <> 'x'") for value in row)
    assert "GuardedScan" in lines or "people" in lines
    for word in ("user_attribute", "partial(", "char_length", "rows=5", "output_rows=5", "'EU'", *HIDDEN):
        assert word not in lines, lines


@pytest.mark.parametrize("door", [door for door in DOORS if door != "http"])
def test_temporary_copies_have_what_is_left(shared, door):
    ada = shared.at("ada", door)
    ada.rows("CREATE OR REPLACE TEMPORARY TABLE copied AS SELECT * FROM people")
    assert {row[3] for row in ada.rows("SELECT * FROM copied")} == {"*******3333", "*******4444"}
    ada.rows("DROP TABLE copied")


@pytest.mark.parametrize("door", DOORS)
def test_carl_has_nothing(shared, door):
    carl = shared.at("carl", door)
    for table in ("people", "desk", "orders", "secrets", "v_people", "drop_box"):
        refused(carl, f"SELECT * FROM {table}", "not found")
    assert carl.rows("SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('main', 'hidden')") == [("0",)]


@pytest.mark.parametrize("sql", ["SELECT * FROM {}", "DELETE FROM {}", "DESCRIBE {}"])
def test_only_tables_that_are_seen_are_suggested(shared, sql):
    refused(shared.at("ada"), sql.format("peple"), "did you mean `people`")
    for user, name in (("ada", "secrts"), ("ada", "secrets"), ("carl", "peple"), ("carl", "people")):
        with pytest.raises(Refused, match="not found") as raised:
            shared.at(user).rows(sql.format(name))
        assert "did you mean" not in str(raised.value), (user, name)


@pytest.mark.parametrize("door", DOORS)
def test_bob_sees_his_own_region_even_after_ada(shared, door):
    for _ in range(2):
        for user, names in (("ada", ["Anna", "Bert"]), ("bob", ["Cleo", "Dora"])):
            rows = shared.at(user, door).rows("SELECT name FROM people ORDER BY name")
            assert [name for (name,) in rows] == names
            joined = shared.at(user, door).rows("SELECT count(*) FROM people p JOIN people q ON p.region = q.region")
            assert joined == [("4",)]


@pytest.mark.parametrize("door", DOORS)
def test_rows_by_key_are_those_that_are_left_also_with_an_index(shared, door):
    for key, region in ((1, "EU"), (2, "US"), (3, "EU")):
        for user in ("root", "ada", "bob") * 3:
            rows = shared.at(user, door).rows(f"SELECT region FROM desk WHERE id = {key}")
            sees = user == "root" or region == {"ada": "EU", "bob": "US"}[user]
            assert rows == ([(region,)] if sees else []), (user, key)
    shown = [str(shared.at(user, door).rows("EXPLAIN SELECT region FROM desk WHERE id = 2")) for user in ("root", "ada")]
    assert ["KeyLookup" in lines for lines in shown] == [True, False]


def test_nothing_that_was_refused_has_happened(shared):
    root = shared.at("root")
    assert root.rows("SELECT count(*) FROM people") == [("5",)]
    assert root.rows("SELECT count(*) FROM secrets") == [("1",)]
    assert sorted(root.rows("SELECT * FROM desk")) == [("1", "EU", "one"), ("2", "US", "two"), ("3", "EU", "three")]
    assert root.rows("SELECT count(*) FROM drop_box") == [("0",)]
    assert root.rows("SELECT row_count FROM system.tables WHERE table_name = 'people'") == [("5",)]
