"""What clients of PostgreSQL send by themselves is answered as PostgreSQL answers it: with the same columns, and with the same
rows where those do not tell one server from another (`recorded_postgres.py`)."""

import json
import shutil
import subprocess

import pytest

from recorded_postgres import ANSWERS, Replay, statements
from server import Server

# Texts that Bowshot refuses, by a part of them, and why.
REFUSED = {
    "LOCK TABLE": "transactions have snapshot isolation and take no locks",
}
# All of pg_dump is a catalog that Bowshot does not have: how much of it is answered is told, and no more.
NOT_PROMISED = "pg_dump18"
# Of the texts of all others that PostgreSQL itself answers.
FLOOR = 0.95


@pytest.fixture(scope="module")
def answers():
    with Server(arguments=["--pg", "127.0.0.1:0"]) as server:
        replay = Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot")
        answered = [replay.run(statement) for statement in statements()]
        replay.close()
    expected = json.loads(ANSWERS.read_text())
    assert len(expected) == len(answered), "run recorded_postgres.py"
    return [
        (statement, theirs, ours)
        for statement, theirs, ours in zip(statements(), expected, answered)
        # What the log has cut off.
        if "error" not in theirs
    ]


def refusal(statement):
    return next((reason for part, reason in REFUSED.items() if part in statement.text), None)


def test_all_but_a_few_are_answered(answers):
    promised = [(statement, ours) for statement, _, ours in answers if statement.client != NOT_PROMISED]
    refused = [(statement, ours) for statement, ours in promised if "error" in ours]
    assert len(refused) <= (1 - FLOOR) * len(promised), "\n".join(
        f"{statement.client}: {ours['message']}: {statement.text[:200]}" for statement, ours in refused
    )
    unexplained = [(statement, ours) for statement, ours in refused if not refusal(statement)]
    assert not unexplained, "\n".join(
        f"{statement.client}: {ours['message']}: {statement.text[:200]}" for statement, ours in unexplained
    )


def test_refusals_are_as_they_are_explained(answers):
    for statement, _, ours in answers:
        if refusal(statement):
            assert ours.get("error") == "0A000", f"{statement.text[:200]}: {ours}"


def test_most_of_pg_dump_is_answered(answers):
    asked = [ours for statement, _, ours in answers if statement.client == NOT_PROMISED]
    assert sum("error" not in ours for ours in asked) >= 0.8 * len(asked)


def test_columns_have_the_names_of_postgresql(answers):
    wrong = [
        f"{statement.client}: {theirs['columns']} != {ours['columns']}: {statement.text[:200]}"
        for statement, theirs, ours in answers
        # What `*` gives of the catalog differs from version to version.
        if "error" not in ours and ".*" not in statement.text and "SELECT *" not in statement.text
        and theirs["columns"] != ours["columns"]
    ]
    assert not wrong, "\n".join(wrong)


def test_rows_are_those_of_postgresql(answers):
    wrong = [
        f"{statement.client}: {theirs['rows']} != {ours.get('rows')}: {statement.text[:200]}"
        for statement, theirs, ours in answers
        if "rows" in theirs and theirs["rows"] != ours.get("rows")
    ]
    assert not wrong, "\n".join(wrong)


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
        Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot").close()
        yield server.pg_port
