"""What rules hide and something else may still hold: buffers of Arrow below NULLs, dictionaries, views, kept rows, names of roles,
logs."""

import contextlib
import json

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as parquet
import pytest

import decisions
import http_sql
import world
from issuer import Issuer
from test_entry_points import FlightCalls
from world import Refused, refused

ADA = ["CREATE USER ada PASSWORD 'ada''s own' SET region = 'EU'"]
SECRET, NUMBER = "MASKED-VALUE", 77000001
MASKED = [
    "CREATE TABLE people AS SELECT * FROM (VALUES "
    "(1, 'mine', 1, named_struct('ssn', 'mine'), ['1']), "
    f"(2, '{SECRET}', {NUMBER}, named_struct('ssn', '{SECRET}'), ['{SECRET}'])) AS v(id, t, n, st, l)",
    *ADA,
    "GRANT SELECT ON people TO ada",
    *(f"CREATE MASK m{column} ON people ({column}) FOR ada USING (CASE WHEN id = 1 THEN {column} END)" for column in ("t", "n", "st", "l")),
]
POLICY = "CREATE ROW POLICY p ON clients FOR ada USING (region = user_attribute('region'))"


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    with world.world(tmp_path_factory.mktemp("masked"), MASKED) as made:
        yield made


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """A file whose texts are a dictionary, of which a policy hides one."""
    folder = tmp_path_factory.mktemp("clients")
    texts = pa.array(["1", "HIDDEN-VALUE", "2"])
    rows = {"id": [1, 2, 3], "region": ["EU", "US", "EU"], "code": texts.dictionary_encode()}
    parquet.write_table(pa.table(rows), folder / "clients.parquet")
    setup = [*ADA, "GRANT SELECT ON clients TO ada", POLICY]
    with world.world(folder, setup, arguments=[str(folder / "clients.parquet")]) as made:
        yield made


def arrow_over_http(made, user, sql):
    answer = http_sql.sql(made.server, sql, **{**made.at(user, "http").headers, "accept": http_sql.STREAM})
    assert answer.status == 200, answer.body
    return answer.body


def held(table):
    return b"".join(bytes(buffer) for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer)


@pytest.mark.parametrize("column", ["t", "n", "st", "l"])
def test_nothing_lies_below_a_null(masked, column):
    sql = f"SELECT id, {column} FROM people ORDER BY id"
    got = masked.at("ada").table(sql)
    assert got[column].to_pylist()[1] is None
    for secret in (SECRET.encode(), NUMBER.to_bytes(4, "little")):
        assert secret not in held(got)
        assert secret not in arrow_over_http(masked, "ada", sql)


@pytest.mark.parametrize("door", world.DOORS)
def test_fields_and_casts_of_what_is_masked(masked, door):
    ada = masked.at("ada", door)
    assert len(ada.rows("SELECT id FROM people WHERE st.ssn IS NOT NULL")) == 1
    assert ada.rows(f"SELECT id FROM people WHERE st.ssn LIKE '{SECRET[:5]}%'") == []
    assert len(ada.rows("SELECT id, CAST(l AS INTEGER[]) AS x FROM people")) == 2


@pytest.mark.parametrize("door", world.DOORS)
def test_casts_of_a_dictionary_see_its_seen_values(clients, door):
    assert len(clients.at("ada", door).rows("SELECT CAST(code AS INTEGER) AS c FROM clients")) == 2


def test_a_dictionary_has_the_values_of_the_rows(clients):
    ada = clients.at("ada")
    ada.rows("SET dictionaries = true")
    try:
        got = ada.table("SELECT code FROM clients")
        assert sorted(got["code"].to_pylist()) == ["1", "2"]
        assert b"HIDDEN-VALUE" not in held(got)
        assert all("HIDDEN-VALUE" not in chunk.dictionary.to_pylist() for chunk in got["code"].chunks)
    finally:
        ada.rows("RESET dictionaries")


def test_kept_rows_end_with_their_rights(tmp_path):
    setup = ["CREATE USER carl PASSWORD 'carl''s own'", "CREATE TABLE t AS SELECT 'value' AS x", "GRANT SELECT ON t TO carl"]
    with world.world(tmp_path, setup) as made:
        http, calls = made.at("carl", "http"), FlightCalls(made, "carl")
        query = json.loads(http.ask("POST", "/v1/queries", b"SELECT * FROM t"))["query_id"]
        rows = f"/v1/queries/{query}/rows?format=csv"
        assert "value" in http.ask("GET", rows)
        calls.client.get_flight_info(flight.FlightDescriptor.for_command(b"SET retryable_results = true"), calls.options)
        info = calls.client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT * FROM t"), calls.options)

        def retried():
            return calls.client.do_get(info.endpoints[0].ticket, calls.options).read_all()

        assert retried().num_rows == 1
        # What takes nothing away changes nothing.
        made.at("root").rows("CREATE ROLE unrelated")
        assert "value" in http.ask("GET", rows) and retried().num_rows == 1
        made.at("root").rows("REVOKE SELECT ON t FROM carl")
        with pytest.raises(Refused, match="access rules have changed"):
            http.ask("GET", rows)
        with pytest.raises((flight.FlightError, pa.ArrowException), match="access rules have changed"):
            retried()
        calls.client.close()


@pytest.mark.parametrize("first", [True, False])
def test_nobody_of_an_identity_provider_has_the_name_of_a_role(tmp_path, first):
    issuer = Issuer()
    more = f'\n[[jwt]]\nissuer = "{issuer.name}"\naudiences = ["bowshot"]\n'
    role = ["CREATE ROLE hr", "CREATE TABLE pay AS SELECT 'pay' AS x", "GRANT SELECT ON pay TO hr"]

    def status(made, user):
        return http_sql.answered(made.server, "SELECT x FROM pay", "Bearer " + issuer.token(user))[0]

    with contextlib.closing(issuer):
        with world.world(tmp_path, role if first else [], more=more) as made:
            for sql in [] if first else role:
                assert status(made, "hr") != 200
                made.at("root").rows(sql)
            assert status(made, "hr") in (401, 403) and status(made, "public") in (401, 403)
            assert status(made, "ann") == 404


def test_the_log_has_no_password_at_any_level(tmp_path):
    with world.world(tmp_path, [], arguments=["--log", "trace"]) as made:
        root = made.at("root")
        root.rows("CREATE USER eve PASSWORD 'zz-clear-password'")
        token = root.rows("CREATE TOKEN tk")[0][1]
        with adbc.connect(made.server.grpc_tcp, db_kwargs={"username": "eve", "password": "zz-clear-password"}):
            pass
        made.close()
        log = made.server.log()
        assert "DEBUG" in log and "zz-clear-password" not in log and token not in log


def test_who_decides_is_told_what_rights_are_about(tmp_path):
    service = decisions.Decisions()
    environment = {"BOWSHOT_ACCESS_DECISION_URL": service.url}
    with contextlib.closing(service), world.world(tmp_path, world.SETUP, environment=environment) as made:
        about = lambda asked: any("people" in thing["name"] for thing in asked["objects"])  # noqa: E731
        service.decide = lambda asked: decisions.deny("closed") if about(asked) else decisions.ALLOW
        for sql in ("GRANT SELECT ON people TO carl", "DROP ROW POLICY own_region ON people", "DROP MASK ssn ON people"):
            refused(made.at("root"), sql, "closed")
