"""What clients of PostgreSQL and MySQL send by themselves is answered as PostgreSQL and MariaDB answer it: with the same columns, and
with the same rows, or there is a reason why not (`recordings.py`, which counts them)."""

import shutil
import subprocess

import pytest

import recorded_mysql
import recorded_postgres
from recordings import verdict
from server import Server

# Statements that are answered otherwise, by a part of them, and why.
OTHERWISE = {
    "postgres": {
        "LOCK TABLE": "transactions have snapshot isolation and take no locks: it is refused (0A000)",
        "db.oid,db.*": "`*` of the catalog has other columns in each version: daticulocale is of 15 and 16",
        "SELECT c.relname,a.*": "`*` of the catalog has other columns in each version: attcacheoff is of 17 and before",
    },
    "mysql": {
        "/*M!100100": "a comment for MariaDB alone: MySQL calls it an empty query, too",
        "SHOW KEYS": "the last columns are those of MySQL 8",
        "SHOW INDEX": "the last columns are those of MySQL 8",
        "SELECT LOGFILE_GROUP_NAME": "a column that is neither grouped nor aggregated is refused, as by ONLY_FULL_GROUP_BY",
    },
}
# Of the statements that the other server answers itself.
FLOOR = 0.95
# Statements whose rows are others, by a part of them, and why.
OTHER_ROWS = {
    "postgres": {
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
    },
    "mysql": {
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
    },
}
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
        recorded_postgres.Replay(f"host=127.0.0.1 port={server.pg_port} user=test dbname=bowshot").end()
        yield server.pg_port
