"""What clients of PostgreSQL and MySQL send by themselves is answered as PostgreSQL and MariaDB answer it: with the same columns, and
with the same rows, or there is a reason why not (`recordings.py`, which counts them)."""

import shutil
import subprocess
import tomllib

import pytest

import recorded_mysql
import recorded_postgres
from recordings import FOLDER, verdict
from server import Server

# Statements that are answered otherwise, and those whose rows are others, by a part of them, and why.
REASONS = tomllib.loads((FOLDER / "reasons.toml").read_text())
OTHERWISE = {name: parts["otherwise"] for name, parts in REASONS.items()}
OTHER_ROWS = {name: parts["other_rows"] for name, parts in REASONS.items()}
# Of the statements that the other server answers itself.
FLOOR = 0.95
# All of pg_dump is about a catalog that Bowshot does not have: its rows are others, and often none.
OTHER_ROWS_OF = "pg_dump18"


@pytest.fixture(scope="module")
def postgres():
    return recorded_postgres.RECORDING.answers()


@pytest.fixture(scope="module", params=OTHERWISE)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def answers(name, request):
    return request.getfixturevalue("postgres") if name == "postgres" else recorded_mysql.RECORDING.answers()


def differing(answers):
    return [entry for entry in answers if not verdict(*entry[1:]).startswith("the same")]


def without_rows(answers):
    return [statement for statement, theirs, _ in answers if "rows" not in theirs]


def is_explained(reasons, statement):
    return any(part in statement.text for part in reasons)


def test_all_but_a_few_are_answered_the_same(name, answers):
    wrong = differing(answers)
    unexplained = [entry for entry in wrong if not is_explained(OTHERWISE[name], entry[0])]
    assert not unexplained, "\n".join(f"{it.client}: {theirs} != {ours}: {it.text[:200]}" for it, theirs, ours in unexplained)
    assert len(wrong) <= (1 - FLOOR) * len(answers), f"{len(wrong)} of {len(answers)}"


def test_rows_that_are_not_compared_have_a_reason(name, answers):
    reasons = {**OTHERWISE[name], **OTHER_ROWS[name]}
    others = [it.text[:200] for it in without_rows(answers) if it.client != OTHER_ROWS_OF and not is_explained(reasons, it)]
    assert not others, "\n".join(others)


def test_no_reason_is_left_over(name, answers):
    wrong, others = [statement for statement, *_ in differing(answers)], without_rows(answers)
    assert all(any(part in it.text for it in wrong) for part in OTHERWISE[name])
    assert all(any(part in it.text for it in others) for part in OTHER_ROWS[name])


def test_refusals_are_as_they_are_explained(postgres):
    refused = [(statement, ours) for statement, _, ours in postgres if "error" in ours]
    assert all("LOCK TABLE" in statement.text and ours["error"] == "0A000" for statement, ours in refused), refused


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize("command", [
    r"\l", r"\dn", r"\dt", r"\d", r"\d t", r"\d+ t", r"\d w", r"\df", r"\du", r"\dT", r"\dx", r"\db", r"\di", r"\dv",
    r"\dm", r"\ds", r"\dp", r"\da", r"\dO", r"\dD", r"\dC", r"\do", r"\dc", r"\des", r"\dew", r"\det", r"\dRp", r"\dRs",
    r"\dX", r"\dy", r"\dg", r"\dL", r"\sv w", r"\conninfo", r"\dt *.*",
])
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
        recorded_postgres.Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot").end()
        yield server.pg_port
