"""A service of the operator's that decides on each statement beside the rules: what it is asked at every door, that its no is a
no everywhere, and that without its yes nothing runs."""

import json

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pytest

import world
from decisions import ALLOW, PEOPLE, Decisions, deny, objects, serving
from server import wait_until
from world import PASSWORDS, Refused, psycopg_connect, refused


@pytest.fixture(scope="module")
def service():
    made = Decisions()
    yield made
    made.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory, service):
    folder = tmp_path_factory.mktemp("decisions")
    with serving(folder, service, {"BOWSHOT_AUDIT_FILE": str(folder / "audit.jsonl")}) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(service):
    service.reset()
    service.asked.clear()
    service.headers.clear()
    service.most = 0


@pytest.mark.parametrize("door", world.DOORS)
def test_what_is_asked_at_every_door(made, service, door):
    connection = made.at("ada", door)
    service.asked.clear()
    assert connection.rows("SELECT id FROM people WHERE name <> 'x'") == [("1",)]
    asked = service.about("query")
    assert asked, "nobody was asked"
    for one in asked:
        assert (one["user"], one["admin"], sorted(one["roles"])) == ("ada", False, ["clerk", "exchange", "staff"])
        assert one["client"] == "127.0.0.1" and len(one["query"]) == 36
        assert objects(one) == {PEOPLE: {"id", "name"}}
    service.decide = lambda asked: deny("it is late")
    refused(connection, "SELECT id FROM people WHERE name <> 'x'", "it is late")
    service.reset()
    assert connection.rows("SELECT id FROM people WHERE name <> 'x'") == [("1",)]


@pytest.mark.parametrize(("sql", "expected"), [
    ("SELECT count(*) FROM people", {"main.people": set()}),
    ("SELECT * FROM people", {"main.people": {"id", "name", "region", "ssn"}}),
    ("SELECT p.id FROM people p JOIN other o ON p.id = o.id", {"main.people": {"id"}, "main.other": {"id"}}),
    ("SELECT id FROM (SELECT id, ssn FROM people)", {"main.people": {"id"}}),
    ("SELECT id FROM people ORDER BY ssn", {"main.people": {"id", "ssn"}}),
    ("SELECT region FROM people GROUP BY region HAVING max(ssn) > '0'", {"main.people": {"region", "ssn"}}),
    ("WITH x AS (SELECT ssn, name FROM people) SELECT name FROM x WHERE ssn = '1'", {"main.people": {"ssn", "name"}}),
    ("SELECT id FROM other UNION ALL SELECT id FROM people", {"main.people": {"id"}, "main.other": {"id"}}),
    ("SELECT name FROM names", {"main.people": {"name"}, "main.names": None}),
    ("SELECT secret FROM annex.people", {"annex.people": {"secret"}}),
    ("SELECT a.secret FROM annex.people a, people p WHERE a.id = p.id", {"annex.people": {"id", "secret"}, "main.people": {"id"}}),
    ("SELECT 1", {}),
])
def test_tables_and_columns(made, service, sql, expected):
    connection = made.at("ada")
    service.asked.clear()
    connection.rows(sql)
    expected = {f"bowshot.{name}": columns for name, columns in expected.items()}
    for one in service.about("query"):
        found = {name: columns for (name, _), columns in objects(one).items()}
        assert found == expected


@pytest.mark.parametrize("sql", [
    "SELECT id FROM other WHERE EXISTS (SELECT 1 FROM people p WHERE p.ssn = other.text)",
    "SELECT id, (SELECT max(ssn) FROM people) FROM other",
    "SELECT id FROM other WHERE text IN (SELECT ssn FROM people)",
    "SELECT o.id, p.ssn FROM other o, LATERAL (SELECT ssn FROM people p WHERE p.id = o.id) p",
    "SELECT max(ssn) OVER () FROM people",
    "SELECT DISTINCT ssn FROM people",
    "SELECT id FROM other EXCEPT SELECT length(ssn) FROM people",
    "SELECT row_number() OVER (ORDER BY ssn) FROM people",
    "SELECT count(DISTINCT ssn) FROM people",
    "SELECT count(*) FROM people WHERE ssn LIKE '1%'",
    "SELECT 1 FROM people LIMIT (SELECT count(ssn) FROM people)",
    "SELECT id FROM names WHERE id IN (SELECT id FROM people WHERE ssn > '0')",
    "EXPLAIN SELECT ssn FROM people",
    "EXPLAIN ANALYZE SELECT ssn FROM people",
    "SUMMARIZE people",
    "DESCRIBE SELECT ssn FROM people",
    "CREATE TABLE copied AS SELECT ssn FROM people",
    "CREATE TEMPORARY TABLE copied_here AS SELECT ssn FROM people",
    "COPY (SELECT ssn FROM people) TO 'out.csv'",
    "INSERT INTO people SELECT id, ssn, 'EU', name FROM people",
    "UPDATE people SET name = ssn",
    "DELETE FROM people WHERE ssn = '9'",
    "UPDATE people SET name = 'x' WHERE id IN (SELECT id FROM people WHERE ssn = '9')",
])
def test_a_column_that_is_denied_is_read_in_no_way(made, service, sql):
    """The service allows all but the numbers of people: nothing gets at them."""

    def decide(asked):
        touched = any("ssn" in (columns or ()) for columns in objects(asked, "read").values())
        return deny("no numbers") if touched else ALLOW

    service.decide = decide
    for door in ("flight", "postgres", "mysql", "http"):
        with pytest.raises(Refused) as caught:
            made.at("ada", door).rows(sql)
        assert "no numbers" in str(caught.value), (door, caught.value)


@pytest.mark.parametrize(("sql", "action", "changed"), [
    ("INSERT INTO people VALUES (7, 'Ann', 'EU', '7')", "insert", "main.people"),
    ("UPDATE people SET name = 'B' WHERE id = 7", "update", "main.people"),
    ("DELETE FROM people WHERE id = 7", "delete", "main.people"),
    ("CREATE TABLE made (id INTEGER)", "create", "main.made"),
    ("ALTER TABLE made ADD COLUMN x INTEGER", "alter", "main.made"),
    ("TRUNCATE made", "truncate", "main.made"),
    ("CREATE VIEW seen AS SELECT id FROM people", "create", "main.seen"),
    ("DROP VIEW seen", "drop", "main.seen"),
    ("DROP TABLE made", "drop", "main.made"),
    ("COPY (SELECT 1) TO 'one.csv'", "copy_to", None),
])
def test_changes_have_their_own_words(made, service, sql, action, changed):
    ada = made.at("ada")
    service.decide = lambda asked: deny("read only") if asked["action"] != "query" else ALLOW
    refused(ada, sql, "read only")
    service.reset()
    service.asked.clear()
    ada.rows(sql)
    asked = service.about(action)
    assert asked, [one["action"] for one in service.asked]
    expected = set() if changed is None else {f"bowshot.{changed}"}
    assert {name for name, _ in objects(asked[-1], "write")} == expected


def test_reads_that_are_in_no_query_of_the_plan(made, service):
    """What a view reads of the table that is changed, what RETURNING shows, and the files of an external table."""
    root, ada = made.at("root"), made.at("ada")
    root.rows("CREATE VIEW part_of_people AS SELECT id, ssn FROM people")
    root.rows("GRANT SELECT (id) ON part_of_people TO staff")
    service.asked.clear()
    ada.rows("INSERT INTO people (id, region) SELECT id + 50, 'EU' FROM part_of_people WHERE id < 0")
    read = objects(service.about("insert")[-1], "read")
    assert {name for name, _ in read} == {"bowshot.main.part_of_people", "bowshot.main.people"}
    service.asked.clear()
    assert ada.rows("INSERT INTO people VALUES (70, 'Ann', 'EU', '7') RETURNING ssn") == [("7",)]
    assert objects(service.about("insert")[-1])[PEOPLE] == {"ssn"}
    ada.rows("DELETE FROM people WHERE id = 70")
    service.asked.clear()
    root.rows("CREATE EXTERNAL TABLE told_orders STORED AS PARQUET LOCATION 'orders.parquet'")
    assert ("orders.parquet", "read") in objects(service.about("create")[-1])
    for name in ("VIEW part_of_people", "TABLE told_orders"):
        root.rows(f"DROP {name}")


def test_rights_and_roots_statements_too(made, service):
    root = made.at("root")
    service.decide = lambda asked: deny("nobody") if asked["action"] == "rights" else ALLOW
    for sql in ("CREATE USER eve PASSWORD 'hunter2'", "GRANT SELECT ON other TO ada", "DROP ROLE clerk"):
        refused(root, sql, "nobody")
    assert service.asked[-1]["admin"] is True
    assert "hunter2" not in json.dumps(service.asked), "no text of a statement is sent"


def test_what_concerns_the_session_alone_is_not_asked_about(made, service):
    connection = made.at("ada", "postgres")
    service.asked.clear()
    service.decide = lambda asked: deny()
    for sql in ("BEGIN", "SET TIME ZONE 'UTC'", "ROLLBACK"):
        connection.rows(sql)
    assert service.asked == []


def test_a_prepared_statement_is_asked_about_each_time(made, service):
    with psycopg_connect(made.server, "ada", autocommit=True, prepare_threshold=0) as connection:
        ask = "SELECT id FROM people WHERE id < %s"
        for _ in range(3):
            service.asked.clear()
            assert connection.execute(ask, (10,)).fetchall() == [(1,)]
            assert len({asked["query"] for asked in service.about("query")}) >= 1
        service.decide = lambda asked: deny("no more")
        with pytest.raises(psycopg.Error, match="no more"):
            connection.execute(ask, (10,))
        service.reset()
        assert connection.execute(ask, (10,)).fetchall() == [(1,)]


def test_rows_that_are_uploaded_and_lists(made, service):
    login = {"username": "ada", "password": PASSWORDS["ada"]}
    with adbc.connect(made.server.grpc_tcp, db_kwargs=login, autocommit=True) as connection, connection.cursor() as cursor:
        rows = pa.table({"id": pa.array([1], pa.int32())})
        service.decide = lambda asked: deny("no uploads") if asked["action"] in ("insert", "create") else ALLOW
        with pytest.raises(adbc.Error, match="no uploads"):
            cursor.adbc_ingest("uploaded", rows, mode="create")
        service.reset()
        cursor.adbc_ingest("uploaded", rows, mode="create")
        assert service.about("create")[-1]["objects"][0]["name"] == ["bowshot", "main", "uploaded"]
        service.decide = lambda asked: deny("no uploads") if asked["action"] == "insert" else ALLOW
        with pytest.raises(adbc.Error, match="no uploads"):
            cursor.adbc_ingest("uploaded", rows, mode="append")
        service.decide = lambda asked: deny("no lists") if asked["action"] == "list" else ALLOW
        with pytest.raises(adbc.Error, match="no lists"):
            connection.adbc_get_objects(depth="tables").read_all()
        service.reset()
        assert connection.adbc_get_objects(depth="tables").read_all().num_rows > 0


def test_an_answer_of_before_is_no_way_round(made, service):
    """The answer to a query that was computed before is kept; it is asked about all the same."""
    connection = made.at("ada")
    ask = "SELECT region, count(*) FROM people GROUP BY region"
    for _ in range(3):
        assert connection.rows(ask) == [("EU", "1")]
    service.decide = lambda asked: deny("not now")
    refused(connection, ask, "not now")


def test_the_rules_come_first(made, service):
    service.asked.clear()
    refused(made.at("ada"), "SELECT * FROM orders", "not found")
    assert not service.about("query"), "what may not be seen is nobody's business"


@pytest.mark.parametrize("spoil", [
    {"status": 500}, {"status": 403}, {"status": 204}, {"status": 302}, {"broken": True},
    {"decide": lambda asked: b""}, {"decide": lambda asked: b"true"}, {"decide": lambda asked: b"{}"},
    {"decide": lambda asked: {"result": None}}, {"decide": lambda asked: {"result": "yes"}},
    {"decide": lambda asked: {"result": {"allow": "true"}}}, {"decide": lambda asked: {"result": {}}},
    {"decide": lambda asked: {"allow": True}},
    # A condition that is not understood is none that holds.
    {"decide": lambda asked: {"result": {"allow": True, "row_filter": "id = 1"}}},
    {"decide": lambda asked: b'{"result": {"allow": true}} trailing'},
    {"decide": lambda asked: b'{"result": {"allow": true}, "x": "' + b"x" * (1 << 20) + b'"}'},
])  # fmt: skip
def test_without_a_decision_nothing_runs(made, service, spoil):
    connection = made.at("ada")
    for name, value in spoil.items():
        setattr(service, name, value)
    refused(connection, "SELECT id FROM people", "gave no decision")
    refused(connection, "INSERT INTO people VALUES (8, 'Ann', 'EU', '8')", "gave no decision")
    service.reset()
    assert connection.rows("SELECT id FROM people WHERE id = 8") == []


def test_the_trail_has_the_decision(made, service):
    ada = made.at("ada")
    service.decide = lambda asked: deny("for the trail")
    with pytest.raises(Refused):
        ada.rows("SELECT id AS denied_here FROM people")
    service.reset()
    service.status = 500
    with pytest.raises(Refused):
        ada.rows("SELECT id AS undecided_here FROM people")
    service.reset()
    ada.rows("SELECT id AS allowed_here FROM people")
    for word in ("denied", "undecided", "allowed"):

        def told(word=word):
            lines = [json.loads(line) for line in (made.folder / "audit.jsonl").read_text().splitlines()]
            return [line["decision"] for line in lines if f"{word}_here" in str(line["statement"])]

        assert wait_until(told, "it is told")[0] == word
    found = made.at("root").rows("SELECT decision FROM system.access_log WHERE statement LIKE '%denied_here%' AND user_name = 'ada'")
    assert ("denied",) in found
    query = [asked["query"] for asked in service.asked if asked["action"] == "query" and asked["user"] == "ada"][-1]
    trail = (made.folder / "audit.jsonl").read_text()
    assert query in trail, "the trail and the service call a statement the same"


@pytest.mark.parametrize(("sql", "read", "changed"), [
    ("CREATE TABLE like_other (LIKE other)", {"main.other"}, {"main.like_other"}),
    ("CREATE TABLE like_plain LIKE annex.people", {"annex.people"}, {"main.like_plain"}),
    ("SHOW CREATE TABLE other", {"main.other"}, set()),
    ("CREATE TABLE pointing (id INTEGER REFERENCES other (id) NOT ENFORCED)", {"main.other"}, {"main.pointing"}),
    ("ALTER TABLE pointing ADD FOREIGN KEY (id) REFERENCES annex.people (id) NOT ENFORCED", {"annex.people"}, {"main.pointing"}),
    ("ALTER TABLE pointing RENAME TO pointed", set(), {"main.pointing", "main.pointed"}),
    ("CREATE VIEW viewed AS SELECT o.id FROM other AS o JOIN names AS n ON o.id = n.id", {"main.other", "main.names", "main.people"}, {"main.viewed"}),
    ("ALTER TABLE other OWNER TO staff", set(), {"main.other"}),
    ("REVOKE GRANT OPTION FOR SELECT ON other FROM ada", set(), {"main.other"}),
])
def test_tables_that_are_named_and_not_read(made, service, sql, read, changed):
    """Every table that a statement names is told, whether its rows are read or not."""
    root = made.at("root")
    names = lambda tables: {f"bowshot.{name}" for name in tables}  # noqa: E731
    service.decide = lambda asked: deny("not that") if names(read or changed) & {name for name, _ in objects(asked)} else ALLOW
    refused(root, sql, "not that")
    service.reset()
    service.asked.clear()
    root.rows(sql)
    told = [one for one in service.asked if objects(one)]
    assert {name for one in told for name, _ in objects(one, "read")} == names(read)
    assert {name for one in told for name, _ in objects(one, "write")} == names(changed)
