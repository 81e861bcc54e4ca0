"""What clients of MySQL send by themselves is answered as MariaDB answers it: with the same columns, and with the same rows where
those do not tell one server from another (`recorded_mysql.py`)."""

import json

import pytest

from recorded_mysql import ANSWERS, replayed, statements
from server import Server

# Statements that are answered otherwise, by a part of them, and why.
OTHERWISE = {
    "/*M!100100": "a comment for MariaDB alone: MySQL calls it an empty query, too",
    "LOCK TABLES": "transactions have snapshot isolation and take no locks",
    "INFORMATION_SCHEMA.FILES": "there is no such table",
    "ROUTINE_COMMENT": "there is no such column",
    "utf8mb3_general_ci": "texts are ordered by their bytes",
    "SHOW KEYS": "the last columns are those of MySQL 8",
    "SHOW INDEX": "the last columns are those of MySQL 8",
}
# Of those that MariaDB answers.
FLOOR = 0.9


@pytest.fixture(scope="module")
def answers():
    with Server(arguments=["--mysql", "127.0.0.1:0"]) as server:
        ours = replayed(server.mysql_port)
    theirs = json.loads(ANSWERS.read_text())
    assert len(theirs) == len(ours), "run recorded_mysql.py"
    whole = zip(statements(), theirs, ours)
    return [(client, text, their, our) for (client, _, text), their, our in whole if their and "error" not in their]


def same(their, our):
    return "error" not in our and their["columns"] == our["columns"] and their.get("rows", our["rows"]) == our["rows"]


def test_all_but_a_few_are_answered_the_same(answers):
    wrong = [(client, text, their, our) for client, text, their, our in answers if not same(their, our)]
    unexplained = [entry for entry in wrong if not any(part in entry[1] for part in OTHERWISE)]
    assert not unexplained, "\n".join(f"{client}: {text[:200]}: {their} != {our}" for client, text, their, our in unexplained)
    assert len(wrong) <= (1 - FLOOR) * len(answers), f"{len(wrong)} of {len(answers)}"


def test_no_reason_is_left_over(answers):
    wrong = [text for _, text, their, our in answers if not same(their, our)]
    assert all(any(part in text for text in wrong) for part in OTHERWISE)
