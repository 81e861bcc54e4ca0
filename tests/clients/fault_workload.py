"""What is done to durable tables on a disk that fails: statements of each kind, and the states that their tables may have then."""

import re

import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa

MANY = pa.table({"x": pa.array(range(100_000), pa.int64()), "word": pa.array([f"word {n % 97}" for n in range(100_000)])})

# What each table is before, what is done to it, and what it is then; `None` is no table. States are the number
# of rows and the sum of a column.
ALL = (100_000, sum(range(100_000)))
STATEMENTS = {
    "inserted": ((1, 1), (2, 3), ["INSERT INTO inserted VALUES (2, 'b')"]),
    "ingested": ((1, 1), (ALL[0] + 1, ALL[1] + 1), "ingest"),
    "copied": ((1, 1), (ALL[0] + 1, ALL[1] + 1), ["INSERT INTO copied SELECT * FROM many"]),
    "updated": ((1, 1), (1, 8), ["UPDATE updated SET x = x + 7"]),
    "deleted": ((1, 1), (0, None), ["DELETE FROM deleted"]),
    "created": (None, ALL, ["CREATE TABLE created AS SELECT * FROM many"]),
    "dropped": ((1, 1), None, ["DROP TABLE dropped"]),
    "altered": ((1, 1), (1, 1), ["ALTER TABLE altered ADD COLUMN more BIGINT DEFAULT 5"]),
    "optimised": ((1, 1), (1, 1), ["OPTIMIZE optimised"]),
    # One transaction over both.
    "left_half": ((1, 1), (2, 11), [
        "BEGIN", "INSERT INTO left_half VALUES (10, 'l')", "INSERT INTO right_half SELECT * FROM many", "COMMIT",
    ]),
    "right_half": ((1, 1), (ALL[0] + 1, ALL[1] + 1), []),
}  # fmt: skip


def make_tables(db):
    db.ingest("many", MANY)
    for name, (before, _, _) in STATEMENTS.items():
        if before is not None:
            db.run(f"CREATE TABLE {name} (x BIGINT, word VARCHAR)", f"INSERT INTO {name} VALUES (1, 'a')")


def observe(db):
    listed = {name for (name,) in db.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'")}
    found = {}
    for name in STATEMENTS:
        found[name] = db.rows(f"SELECT count(*), sum(x) FROM {name}")[0] if name in listed else None
    return found


def attempt(db, words=""):
    """The errors of all statements, None for each that was acknowledged. An error must have some of `words` in it."""
    errors = {name: attempt_one(db, name, words) for name in STATEMENTS if STATEMENTS[name][2]}
    errors["right_half"] = errors["left_half"]
    return errors


def attempt_one(db, name, words):
    statements = STATEMENTS[name][2]
    try:
        if statements == "ingest":
            db.ingest(name, MANY, mode="append")
        else:
            db.run(*statements)
    except dbapi.Error as error:
        text = str(error)
        assert re.search(words, text, re.IGNORECASE), f"{name}: {text}"
        assert "internal error" not in text.lower(), f"{name}: {text}"
        if statements[0] == "BEGIN":
            try:
                db.run("ROLLBACK")
            except dbapi.Error as ended:
                # The commit itself failed, and that was its end.
                assert "no transaction" in str(ended)
        return text
    return None


def check(found, errors, unsure):
    for name, (before, after, _) in STATEMENTS.items():
        allowed = [after] if errors[name] is None else [before, after] if unsure else [before]
        assert found[name] in allowed, f"{name} is {found[name]}, its statement said: {errors[name]}"
    halves = [found[name] == STATEMENTS[name][0] for name in ("left_half", "right_half")]
    assert halves[0] == halves[1], f"a transaction by half: {found}"
