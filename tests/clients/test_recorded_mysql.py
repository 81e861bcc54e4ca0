"""What clients of MySQL send by themselves is answered as MariaDB answers it: with the same columns, and with the same rows, or there
is a reason why not (`recorded_mysql.py`, which counts them)."""

import json

import pytest

from recorded_mysql import ANSWERS, of_bowshot, statements, verdict

# Statements that are answered otherwise, by a part of them, and why.
OTHERWISE = {
    "/*M!100100": "a comment for MariaDB alone: MySQL calls it an empty query, too",
    "SHOW KEYS": "the last columns are those of MySQL 8",
    "SHOW INDEX": "the last columns are those of MySQL 8",
    "SELECT LOGFILE_GROUP_NAME": "a column that is neither grouped nor aggregated is refused, as by ONLY_FULL_GROUP_BY",
}
# Of those that MariaDB answers.
FLOOR = 0.95
# Statements whose rows are others, by a part of them, and why.
OTHER_ROWS = {
    "VERSION()": "the versions are the servers' own",
    "@@version_comment": "the versions are the servers' own",
    "@@socket": "there is none",
    "@@session.auto_increment_increment": "the licence and the collation of a connection are the servers' own",
    "SHOW schemas": "the schemas of the servers themselves are their own",
    "SHOW DATABASES": "the schemas of the servers themselves are their own",
    "SCHEMATA": "the schemas of the servers themselves are their own, and their texts are compared by bytes",
    "SHOW CREATE TABLE": "the type is `int`, as in MySQL 8; the engine is Bowshot; NULL is not written where it is the default",
    "show create table": "the same",
    "DESCRIBE": "the type is `int`, as in MySQL 8",
    "describe": "the type is `int`, as in MySQL 8",
    "SHOW FULL COLUMNS": "the type is `int`, as in MySQL 8",
    "SHOW FUNCTION STATUS": "MariaDB has functions of its own",
    "SHOW PROCEDURE STATUS": "MariaDB has procedures of its own",
    "ROUTINE_NAME": "MariaDB has routines of its own, and Bowshot tells its functions",
    "CARDINALITY": "how many values a key has is not told",
    "COLUMN_DEF": "no default is NULL, as in MySQL, and not the text NULL",
    "USER()": "users have no host",
    "SELECT engine": "the engine is Bowshot",
    "LOCK TABLES": "what locks and flushes is answered, and does nothing",
    "LOCAL TEMPORARY": "the rows of UNION come in any order",
}


@pytest.fixture(scope="module")
def answers():
    whole = zip(statements(), json.loads(ANSWERS.read_text()), of_bowshot(), strict=True)
    return [(client, text, their, our) for (client, _, text), their, our in whole if their and "error" not in their]


def is_same(entry):
    return verdict(*entry[2:]).startswith("the same")


def test_all_but_a_few_are_answered_the_same(answers):
    wrong = [entry for entry in answers if not is_same(entry)]
    unexplained = [entry for entry in wrong if not any(part in entry[1] for part in OTHERWISE)]
    assert not unexplained, "\n".join(f"{client}: {text[:200]}: {their} != {our}" for client, text, their, our in unexplained)
    assert len(wrong) <= (1 - FLOOR) * len(answers), f"{len(wrong)} of {len(answers)}"


def test_rows_that_are_not_compared_have_a_reason(answers):
    others = [text for _, text, their, _ in answers if "rows" not in their]
    unexplained = [text[:200] for text in others if not any(part in text for part in {**OTHERWISE, **OTHER_ROWS})]
    assert not unexplained, "\n".join(unexplained)


def test_no_reason_is_left_over(answers):
    wrong = [entry[1] for entry in answers if not is_same(entry)]
    assert all(any(part in text for text in wrong) for part in OTHERWISE)
    others = [text for _, text, their, _ in answers if "rows" not in their]
    assert all(any(part in text for text in others) for part in OTHER_ROWS)
