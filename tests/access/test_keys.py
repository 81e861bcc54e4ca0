"""What foreign keys and RETURNING tell of tables and columns that a user may not see."""

import pytest

from world import DOORS, Refused


# Ada sees `child`, and of what its keys point to one column.
SETUP = [
    "CREATE SCHEMA hidden",
    "CREATE TABLE hidden.parent (parent_id INTEGER PRIMARY KEY)",
    "CREATE TABLE partly (open_id INTEGER UNIQUE, closed_id INTEGER UNIQUE)",
    "CREATE TABLE child (id INTEGER, a INTEGER, b INTEGER REFERENCES hidden.parent (parent_id) NOT ENFORCED,"
    " c INTEGER REFERENCES partly (closed_id) NOT ENFORCED, d INTEGER REFERENCES partly (open_id) NOT ENFORCED)",
    "CREATE TABLE part (id INTEGER, secret INTEGER)",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "GRANT SELECT ON child TO ada",
    "GRANT SELECT (open_id) ON partly TO ada",
    "GRANT SELECT (id), DELETE ON part TO ada",
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("sql", [
    "SELECT * FROM information_schema.key_column_usage",
    "SELECT * FROM information_schema.referential_constraints",
    "SELECT * FROM information_schema.constraint_column_usage",
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT sql FROM duckdb_tables()",
])
def test_keys_do_not_tell_what_they_point_to(made, door, sql):
    for user, is_told in (("root", True), ("ada", False)):
        told = str(made.at(user, door).rows(sql))
        assert any(word in told for word in ("hidden", "parent", "closed_id")) == is_told, told
        assert "child" in told or "partly" in told, told


@pytest.mark.parametrize("door", DOORS)
def test_returning_does_not_tell_of_columns(made, door):
    for columns in ("id", "*", "nothing"):
        with pytest.raises(Refused) as refused:
            made.at("ada", door).rows(f"DELETE FROM part WHERE id = 99 RETURNING {columns}")
        assert "secret" not in str(refused.value) and "RETURNING" in str(refused.value), refused.value
