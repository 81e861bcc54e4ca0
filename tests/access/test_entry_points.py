"""Every way into the server obeys the rules. The ways are taken from the code: one that has no case here fails the test."""

import io
import json
import pathlib
import re

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as parquet
import pytest

import protobuf
from test_round import HIDDEN
from world import DOORS, PASSWORDS, Refused

CRATES = pathlib.Path(__file__).resolve().parents[2] / "crates"


def code(pattern, *places):
    """What a pattern finds in the sources, tests apart."""
    found = set()
    for place in places:
        path = CRATES / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.rs")):
            if "tests" not in file.parts and not file.name.startswith("tests"):
                found.update(re.findall(pattern, file.read_text().split("#[cfg(test)]")[0]))
    return found


def clean(answer):
    told = str(answer)
    for word in (*HIDDEN, "v_hidden", "'hidden'", "secrets"):
        assert word not in told, (word, told[:2000])
    return told


class FlightCalls:
    """pyarrow's own client, which sends what it is told."""

    def __init__(self, world, user):
        self.client = flight.connect(world.server.grpc_tcp)
        header = self.client.authenticate_basic_token(user, PASSWORDS[user])
        self.options = flight.FlightCallOptions(headers=[header])

    def command(self, name, body=b""):
        descriptor = flight.FlightDescriptor.for_command(protobuf.any_of(name, body))
        info = self.client.get_flight_info(descriptor, self.options)
        return self.client.do_get(info.endpoints[0].ticket, self.options).read_all().to_pylist()

    def act(self, name, body=b""):
        return [bytes(result.body) for result in self.client.do_action(flight.Action(name, body), self.options)]


def refused(call, *words):
    with pytest.raises(Exception) as raised:
        print(call())
    told = clean(str(raised.value).replace("secrets", "table"))
    assert any(word in told for word in words), told


NOT_THERE = ("not found", "not_found")


def prepared(calls, sql):
    """The handle of a prepared statement, in the form in which commands carry it."""
    request = protobuf.any_of("ActionCreatePreparedStatementRequest", protobuf.field(1, sql))
    _, body = protobuf.unwrap(calls.act("CreatePreparedStatement", request)[0])
    return protobuf.field(1, protobuf.fields(body)[1][0])


def of_table(name):
    return protobuf.field(3, name)


FLIGHT = {
    "CommandStatementQuery": lambda f: (
        clean(f.command("CommandStatementQuery", protobuf.field(1, "SELECT * FROM people"))),
        refused(lambda: f.command("CommandStatementQuery", protobuf.field(1, "SELECT * FROM secrets")), *NOT_THERE),
    ),
    "CommandStatementUpdate": lambda f: refused(lambda: put(f, "CommandStatementUpdate", protobuf.field(1, "DELETE FROM secrets")), *NOT_THERE),
    "CommandStatementIngest": lambda f: refused(lambda: ingest(f, "secrets"), *NOT_THERE),
    "CommandPreparedStatementQuery": lambda f: (
        clean(f.command("CommandPreparedStatementQuery", prepared(f, "SELECT * FROM people"))),
        refused(lambda: prepared(f, "SELECT * FROM secrets"), *NOT_THERE),
    ),
    "CommandPreparedStatementUpdate": lambda f: refused(lambda: prepared(f, "DELETE FROM secrets"), *NOT_THERE),
    "CommandStatementSubstraitPlan": lambda f: refused(lambda: f.command("CommandStatementSubstraitPlan", protobuf.field(1, protobuf.field(1, b"plan"))), "ubstrait"),
    "CommandGetTables": lambda f: (
        clean(f.command("CommandGetTables", protobuf.field(5, True))),
        clean(f.command("CommandGetTables", protobuf.field(3, "secrets") + protobuf.field(5, True))),
    ),
    "CommandGetDbSchemas": lambda f: clean(f.command("CommandGetDbSchemas")),
    "CommandGetCatalogs": lambda f: clean(f.command("CommandGetCatalogs")),
    "CommandGetTableTypes": lambda f: clean(f.command("CommandGetTableTypes")),
    "CommandGetSqlInfo": lambda f: clean(f.command("CommandGetSqlInfo")),
    "CommandGetXdbcTypeInfo": lambda f: clean(f.command("CommandGetXdbcTypeInfo")),
    "CommandGetPrimaryKeys": lambda f: keys(f, "CommandGetPrimaryKeys"),
    "CommandGetImportedKeys": lambda f: keys(f, "CommandGetImportedKeys"),
    "CommandGetExportedKeys": lambda f: keys(f, "CommandGetExportedKeys"),
    "CommandGetCrossReference": lambda f: keys(f, "CommandGetCrossReference"),
}


def keys(calls, name):
    """Nothing, or as little as for a table that is not there."""
    try:
        assert calls.command(name, of_table("secrets")) == []
    except flight.FlightError as error:
        clean(str(error).replace("secrets", "table"))


def put(calls, name, body):
    descriptor = flight.FlightDescriptor.for_command(protobuf.any_of(name, body))
    writer, reader = calls.client.do_put(descriptor, pa.schema([]), calls.options)
    with writer:
        writer.done_writing()
        return reader.read()


def ingest(calls, table):
    body = protobuf.field(1, protobuf.field(1, 1) + protobuf.field(2, 2)) + protobuf.field(2, table)
    descriptor = flight.FlightDescriptor.for_command(protobuf.any_of("CommandStatementIngest", body))
    rows = pa.table({"id": pa.array([1], pa.int32()), "text": ["x"]})
    writer, reader = calls.client.do_put(descriptor, rows.schema, calls.options)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        return reader.read()


def http(world, method, path, body=None, **headers):
    return world.at("ada", "http").ask(method, path, body, **headers)


def kept(world):
    """A result that is kept is cut as any other, and belongs to who asked."""
    started = json.loads(http(world, "POST", "/v1/queries", b"SELECT * FROM people"))
    path = f"/v1/queries/{started['query_id']}/rows"
    assert json.loads(http(world, "GET", path))["rows"]
    clean(http(world, "GET", path))
    refused(lambda: world.at("carl", "http").ask("GET", path), *NOT_THERE)


HTTP = {
    "/console": lambda w: clean(http(w, "GET", "/console")),
    "/console/{name}": lambda w: refused(lambda: http(w, "GET", "/console/none"), *NOT_THERE),
    "/console/access": lambda w: clean(http(w, "GET", "/console/access")),
    "/v1/queries": lambda w: (
        clean(http(w, "POST", "/v1/queries", b"SELECT * FROM people")),
        refused(lambda: http(w, "POST", "/v1/queries", b"SELECT * FROM secrets"), *NOT_THERE),
    ),
    "/v1/queries/{id}/rows": kept,
    "/": lambda w: clean(http(w, "GET", "/")),
    "/health": lambda w: clean(http(w, "GET", "/health")),
    "/ready": lambda w: clean(http(w, "GET", "/ready")),
    "/metrics": lambda w: clean(http(w, "GET", "/metrics").replace("999999", "")),
    "/v1/openapi.json": lambda w: clean(http(w, "GET", "/v1/openapi.json")),
    "/v1/sql": lambda w: (
        clean(http(w, "POST", "/v1/sql", b"SELECT * FROM people")),
        refused(lambda: http(w, "POST", "/v1/sql", b"SELECT * FROM secrets"), *NOT_THERE),
    ),
    "/v1/sessions": lambda w: clean(http(w, "POST", "/v1/sessions")),
    "/v1/sessions/{token}": lambda w: refused(lambda: http(w, "DELETE", "/v1/sessions/unheard"), *NOT_THERE),
    "/v1/queries/{id}": lambda w: refused(lambda: http(w, "GET", "/v1/queries/00000000-0000-4000-8000-000000000000"), *NOT_THERE, "invalid"),
    "/v1/tables": lambda w: clean(http(w, "GET", "/v1/tables")),
    "/v1/tables/{name}": lambda w: (
        refused(lambda: http(w, "GET", "/v1/tables/secrets"), *NOT_THERE),
        clean(http(w, "GET", "/v1/tables/orders").replace("note that", "")),
        refused(lambda: http(w, "PUT", "/v1/tables/secrets", b"id,text\n1,x\n", **{"content-type": "text/csv"}), "may not", *NOT_THERE),
        refused(lambda: http(w, "POST", "/v1/tables/secrets", b"id,text\n1,x\n", **{"content-type": "text/csv"}), *NOT_THERE),
        refused(lambda: http(w, "POST", "/v1/tables/desk", b"id,region,text\n70,US,x\n", **{"content-type": "text/csv"}), "may not see"),
        refused(lambda: http(w, "PUT", "/v1/tables/desk", b"id,region,text\n70,EU,x\n", **{"content-type": "text/csv"}), "may not"),
    ),
    "/v1/tables/{name}/rows": lambda w: (
        clean(http(w, "GET", "/v1/tables/people/rows")),
        refused(lambda: http(w, "GET", "/v1/tables/secrets/rows"), *NOT_THERE),
    ),
}

# The door below all front ends; each method that tells or changes something has its case above or in the named file.
SESSION = {
    "id": "says nothing of tables",
    "principal": "says nothing of tables",
    "statements": "takes a text apart",
    "describe": "CommandStatementQuery, by GetSchema",
    "prepare": "CommandPreparedStatementQuery",
    "prepare_substrait": "CommandStatementSubstraitPlan",
    "bind": "test_rules.py: prepared statements",
    "close_prepared": "says nothing of tables",
    "start": "test_round.py",
    "update": "CommandStatementUpdate",
    "origins": "test_entry_points.py: test_columns_are_of_tables_that_are_seen",
    "last_write": "says nothing of tables",
    "ingest": "CommandStatementIngest",
    "ingest_parquet": "test_entry_points.py: test_parquet_for_tables_of_others",
    "begin": "test_rules.py: transactions",
    "exchange": "test_exchange",
    "join": "test_models.py: rooms",
    "end": "test_rules.py: transactions",
    "begin_implicit": "test_entry_points.py: test_a_script_is_one_transaction",
    "end_implicit": "test_entry_points.py: test_a_script_is_one_transaction",
    "in_transaction": "says nothing of tables",
    "release_after_error": "says nothing of tables",
    "savepoint": "says nothing of tables",
    "end_savepoint": "says nothing of tables",
    "primary_key": "CommandGetPrimaryKeys",
    "option": "says nothing of tables",
    "options": "says nothing of tables",
    "setting": "says nothing of tables",
    "set_option": "says nothing of tables",
    "catalogs": "CommandGetCatalogs",
    "schemas": "CommandGetDbSchemas",
    "tables": "CommandGetTables",
    "close": "says nothing of tables",
    "set_number": "says nothing of tables",
    "until_closed": "says nothing of tables",
    "unsupported": "an error of ours",
    "message": "a notice of ours",
    "hint": "a notice of ours",
    "from_bytes": "reads a handle",
    "sql": "makes a request",
    "of": "makes a request",
    "prepared": "makes a request",
    "within": "makes a request",
}


def test_every_way_in_has_a_case():
    commands = code(r'\bCommand[A-Z][A-Za-z]+\b', "bowshot-flight/src")
    assert commands - {"CommandStatus"} == set(FLIGHT)
    routes = code(r'^        \("(/[^"]*)"', "bowshot-http/src/routes.rs") or code(r'\("(/[^"]*)", ', "bowshot-http/src/routes.rs")
    assert routes == set(HTTP)
    assert code(r"\bfn ([a-z_]+)", "bowshot-api/src/session.rs") == set(SESSION)
    assert set(re.findall(r"^    (\w+)\(", (CRATES / "bowshot-engine/src/authorize/mod.rs").read_text().split("pub enum Action")[1].split("}\n\n")[0], re.M)) == {
        "Write", "Cache", "Cursor", "Database", "Session", "Transaction",
    }, "a new kind of statement needs a rule in authorize/changes.rs, and a case here"


@pytest.mark.parametrize("protocol", ["flight", "http", "postgres"])
def test_cursors_are_over_tables_that_are_seen(shared, protocol):
    carl = shared.at("carl", protocol)
    with pytest.raises(Exception, match="not.found|does not exist"):
        carl.rows("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM people")


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("table", ["people", "annex.people", "nowhere"])
def test_parquet_for_tables_of_others(shared, method, table):
    body = io.BytesIO()
    parquet.write_table(pa.table({"id": [9]}), body)
    before = shared.at("root").rows("SELECT count(*) FROM people")
    with pytest.raises(Refused):
        shared.at("carl", "http").ask(method, f"/v1/tables/{table}", body.getvalue(), **{"content-type": "application/vnd.apache.parquet"})
    assert shared.at("root").rows("SELECT count(*) FROM people") == before


@pytest.mark.parametrize("sql", ["ATTACH 'sqlite:///nowhere' AS there", "DETACH there"])
@pytest.mark.parametrize("user", ["ada", "carl"])
def test_other_databases_are_opened_by_admins(shared, sql, user):
    with pytest.raises(Refused, match="admin"):
        shared.at(user).rows(sql)


@pytest.mark.parametrize("user", ["ada", "carl"])
@pytest.mark.parametrize("name", sorted(FLIGHT))
def test_flight(shared, name, user):
    if user == "carl" and name in ("CommandStatementQuery", "CommandPreparedStatementQuery"):
        calls = FlightCalls(shared, "carl")
        refused(lambda: calls.command("CommandStatementQuery", protobuf.field(1, "SELECT * FROM people")), *NOT_THERE)
        return
    FLIGHT[name](FlightCalls(shared, user))


@pytest.mark.parametrize("path", sorted(HTTP))
def test_http(shared, path):
    HTTP[path](shared)


def test_columns_are_of_tables_that_are_seen(shared):
    """What PostgreSQL's protocol says of columns: the number of their table, as who asks may look it up."""
    ada = shared.at("ada", "postgres")
    seen = {0, *(int(number) for (number,) in ada.rows("SELECT oid FROM pg_catalog.pg_class WHERE relname IN ('people', 'desk')"))}
    assert len(seen) == 3
    with ada.connection.cursor() as cursor:
        for sql in ("SELECT * FROM desk", "SELECT * FROM people", "SELECT * FROM v_people", "SELECT d.id, p.ssn FROM desk d JOIN people p ON p.id = d.id"):
            cursor.execute(sql)
            assert {cursor.pgresult.ftable(number) for number in range(cursor.pgresult.nfields)} <= seen, sql


def test_a_script_is_one_transaction(shared):
    ada, root = shared.at("ada", "postgres_simple"), shared.at("root")
    for last in ("INSERT INTO secrets VALUES (2, 'x')", "INSERT INTO desk VALUES (81, 'US', 'x')"):
        with pytest.raises(Refused):
            ada.rows(f"INSERT INTO desk VALUES (80, 'EU', 'x'); {last}")
        assert root.rows("SELECT count(*) FROM desk WHERE id IN (80, 81)") == [("0",)]


def exchanged(calls, sql):
    """What a statement answers over rows that are sent with it."""
    descriptor = flight.FlightDescriptor.for_command(sql.encode())
    ids = pa.table({"id": pa.array([1, 2, 3, 4, 5], pa.int32())})
    writer, reader = calls.client.do_exchange(descriptor, calls.options)
    with writer:
        writer.begin(ids.schema)
        writer.write_table(ids)
        writer.done_writing()
        return reader.read_all().to_pylist()


def test_exchange(shared):
    ada = FlightCalls(shared, "ada")
    rows = exchanged(ada, "SELECT p.id, p.name, p.ssn FROM input i JOIN people p ON p.id = i.id ORDER BY p.id")
    assert [(row["id"], row["name"]) for row in rows] == [(1, "Anna"), (2, "Bert")] and "111-22-3333" not in str(rows)
    for sql in (
        "SELECT count(*) FROM input i JOIN people p ON p.id = i.id WHERE CAST(p.code AS INTEGER) > 0",
        "SELECT i.id FROM input i WHERE i.id IN (SELECT id FROM people)",
    ):
        assert clean(exchanged(ada, sql))
    refused(lambda: exchanged(ada, "INSERT INTO people (id) SELECT id FROM input"), "may not")
    refused(lambda: exchanged(FlightCalls(shared, "carl"), "SELECT p.id FROM input i JOIN people p ON p.id = i.id"), *NOT_THERE)


def test_flight_outside_of_flight_sql(shared):
    calls = FlightCalls(shared, "ada")
    told = clean([flight_info.descriptor for flight_info in calls.client.list_flights(options=calls.options)])
    assert "people" in told or "Descriptor" in told
    ticket = flight.Ticket(b"SELECT * FROM people")
    assert calls.client.do_get(ticket, calls.options).read_all().num_rows == 2
    refused(lambda: calls.client.do_get(flight.Ticket(b"SELECT * FROM secrets"), calls.options).read_all(), *NOT_THERE)
    schema = calls.client.get_schema(flight.FlightDescriptor.for_command(b"SELECT * FROM orders"), calls.options).schema
    assert schema.names == ["id", "region", "amount"]


def test_tickets_are_no_use_to_others(shared):
    ada, bob = FlightCalls(shared, "ada"), FlightCalls(shared, "bob")
    info = ada.client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT * FROM people"), ada.options)
    with pytest.raises((flight.FlightError, pa.ArrowException), match="not found"):
        bob.client.do_get(info.endpoints[0].ticket, bob.options).read_all()
    assert ada.client.do_get(info.endpoints[0].ticket, ada.options).read_all().num_rows == 2


def test_objects_of_adbc(shared):
    with adbc.connect(shared.server.grpc_tcp, db_kwargs={"username": "ada", "password": PASSWORDS["ada"]}) as connection:
        clean(connection.adbc_get_objects(depth="all").read_all().to_pylist())
        assert connection.adbc_get_table_schema("orders").names == ["id", "region", "amount"]
        with pytest.raises(adbc.Error):
            connection.adbc_get_table_schema("secrets")


@pytest.mark.parametrize("user", ["ada", "carl"])
def test_no_table_about_tables_tells_of_what_is_hidden(shared, user):
    root, asked = shared.at("root"), shared.at(user)
    names = root.rows(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'bowshot' AND table_schema IN ('information_schema', 'pg_catalog', 'system')"
    )
    assert len(names) > 50
    for schema, name in names:
        try:
            rows = asked.rows(f'SELECT * FROM {schema}."{name}"')
        except Refused as error:
            assert "not found" in str(error) or "not supported" in str(error), error
            continue
        # Of its own statements everybody is told.
        if name not in ("queries", "plan_cache", "pg_stat_activity"):
            clean(rows)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("sql", ["SHOW TABLES", "SHOW ALL TABLES", "SHOW SCHEMAS", "SHOW DATABASES", "SHOW GRANTS", "SHOW COLUMNS FROM orders", "DESCRIBE orders", "DESCRIBE people", "SUMMARIZE orders", "SUMMARIZE people", "SHOW CREATE TABLE orders", "PRAGMA table_info('orders')", "SHOW FUNCTIONS", "SHOW STATUS"])
def test_statements_that_show(shared, sql, door):
    try:
        rows = shared.at("ada", door).rows(sql)
    except Refused as error:
        rows = str(error)
    told = clean(rows)
    if "orders" in sql and "SHOW CREATE" not in sql:
        assert "note" not in told, told


def test_openapi_names_all_paths(shared):
    assert set(json.loads(http(shared, "GET", "/v1/openapi.json"))["paths"]) <= set(HTTP)
