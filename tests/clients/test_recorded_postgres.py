"""What clients of PostgreSQL send by themselves is answered as PostgreSQL answers it: with the same columns, and with the same
rows, or there is a reason why not (`recorded_postgres.py`, which counts them)."""

import json
import shutil
import subprocess

import pytest

from recorded_postgres import ANSWERS, Replay, of_bowshot, statements, verdict
from server import Server

# Statements that are answered otherwise, by a part of them, and why.
OTHERWISE = {
    "LOCK TABLE": "transactions have snapshot isolation and take no locks: it is refused (0A000)",
    "db.oid,db.*": "`*` of the catalog has other columns in each version: daticulocale is of 15 and 16",
    "SELECT c.relname,a.*": "`*` of the catalog has other columns in each version: attcacheoff is of 17 and before",
}
# Of the statements that PostgreSQL answers itself.
FLOOR = 0.95
# Statements whose rows are others, by a part of them, and why.
OTHER_ROWS = {
    "version()": "the versions are the servers' own",
    "server_version_num": "the versions are the servers' own",
    "pg_opclass": "there are no operator classes",
    "pg_catalog.pg_attribute ORDER BY attrelid": "PostgreSQL has more tables of its own, whose numbers are of another type",
    "pg_catalog.pg_type": "PostgreSQL has more types",
    "WITH RECURSIVE typeinfo_tree": "rows of the same depth come in any order",
    "pg_my_temp_schema()": "the rows come in any order",
    "pg_proc": "functions have no types of parameters, and names of their own",
    "pg_catalog.pg_database": "PostgreSQL has more databases, and gives a database to who has made the cluster",
    "FROM pg_catalog.pg_namespace": "pg_toast is PostgreSQL's own",
    "unnest(current_schemas(true))": "names are looked for in pg_catalog last",
    "tmp.NON_UNIQUE": "the number of rows is known at once",
    "c.coninhcount <> 0": "NOT NULL is no constraint with a name",
    "SELECT c.oid,c.*,t.relname": "NOT NULL is no constraint with a name",
    "SELECT i.*,i.indkey": "there are no operator classes and no pages of an index",
    "SELECT * FROM pg_catalog.pg_settings": "what is said about a setting is the servers' own",
    "SELECT t.oid,t.*,c.relkind": "PostgreSQL has more types, and describes them",
    "rolname": "PostgreSQL has roles of its own",
    "pg_extension": "there is no procedural language",
    "pg_tablespace": "tables belong to who asks",
    "INFORMATION_SCHEMA.tables where": "the tables of the schema system are there",
    "has_any_column_privilege": "the tables of the schema system are there",
    "n.oid,n.*": "pg_toast is PostgreSQL's own, and schemas have no rights of their own in the catalog",
    "dep.deptype": "nothing depends on a table in the catalog",
    "pg_stat_activity": "each connection has its own number and user",
    "pg_table_size": "sizes are the servers' own",
    "1.5::numeric": "now() is now; numeric has a scale, which is 10 where nobody says otherwise",
    "select row(": "a row is JSON",
    "'pg_catalog.int4'::regtype": "a regtype by itself is its number",
}
# All of pg_dump is about a catalog that Bowshot does not have: its rows are others, and often none.
OTHER_ROWS_OF = "pg_dump18"


@pytest.fixture(scope="module")
def answers():
    expected = json.loads(ANSWERS.read_text())
    return [
        (statement, theirs, ours)
        for statement, theirs, ours in zip(statements(), expected, of_bowshot(), strict=True)
        # What the log has cut off.
        if "error" not in theirs
    ]


def reason(reasons, statement):
    return next((why for part, why in reasons.items() if part in statement.text), None)


def told(wrong):
    return "\n".join(f"{statement.client}: {theirs} != {ours}: {statement.text[:200]}" for statement, theirs, ours in wrong)


def test_all_but_a_few_are_answered_the_same(answers):
    wrong = [entry for entry in answers if not verdict(*entry[1:]).startswith("the same")]
    unexplained = [entry for entry in wrong if reason(OTHERWISE, entry[0]) is None]
    assert not unexplained, told(unexplained)
    assert len(wrong) <= (1 - FLOOR) * len(answers), f"{len(wrong)} of {len(answers)}"


def test_refusals_are_as_they_are_explained(answers):
    refused = [(statement, ours) for statement, _, ours in answers if "error" in ours]
    assert all("LOCK TABLE" in statement.text and ours["error"] == "0A000" for statement, ours in refused), refused


def test_rows_that_are_not_compared_have_a_reason(answers):
    others = [statement for statement, theirs, _ in answers if "rows" not in theirs]
    known = {**OTHERWISE, **OTHER_ROWS}
    unexplained = [statement.text[:200] for statement in others if statement.client != OTHER_ROWS_OF and not reason(known, statement)]
    assert not unexplained, "\n".join(unexplained)


def test_no_reason_is_left_over(answers):
    wrong = [statement.text for statement, *both in answers if not verdict(*both).startswith("the same")]
    assert all(any(part in text for text in wrong) for part in OTHERWISE)
    others = [statement.text for statement, theirs, _ in answers if "rows" not in theirs]
    assert all(any(part in text for text in others) for part in OTHER_ROWS)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize(
    "command",
    [
        r"\l", r"\dn", r"\dt", r"\d", r"\d t", r"\d+ t", r"\d w", r"\df", r"\du", r"\dT", r"\dx", r"\db", r"\di", r"\dv",
        r"\dm", r"\ds", r"\dp", r"\da", r"\dO", r"\dD", r"\dC", r"\do", r"\dc", r"\des", r"\dew", r"\det", r"\dRp", r"\dRs",
        r"\dX", r"\dy", r"\dg", r"\dL", r"\sv w", r"\conninfo", r"\dt *.*",
    ],
)
def test_psql_describes_what_there_is(described, command):
    run = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(described), "-U", "test", "bowshot", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "ERROR" not in run.stderr and run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def described():
    with Server(arguments=["--pg", "127.0.0.1:0"]) as server:
        Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot").end()
        yield server.pg_port
