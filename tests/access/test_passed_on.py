"""The token by which somebody has logged in is passed on to another Bowshot of the same identity provider: there it is its user
who asks, with the rights of that user. Nobody else's token is shown, and none is kept longer than its session."""

import contextlib

import adbc_driver_flightsql
import pyarrow.flight as flight
import pytest

import world
from issuer import AUDIENCE, Issuer
from server import wait_until
from test_identity import bearer, connected
from world import Refused, refused, table_of_bearer

FAR = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    "CREATE TABLE inbox (id INTEGER)",
    "CREATE VIEW who AS SELECT current_user AS name",
    "CREATE ROLE analyst",
    "CREATE ROLE europe",
    "GRANT SELECT ON t TO analyst, europe",
    "GRANT SELECT ON who TO analyst, europe",
    "GRANT SELECT, INSERT ON inbox TO analyst",
    "CREATE ROW POLICY own ON t FOR europe USING (region = 'EU')",
    "CREATE ROW POLICY every ON t FOR analyst USING (true)",
]
NEAR = ["CREATE ROLE analyst", "CREATE ROLE europe"]


def entry(issuer, *audiences):
    return f"""
[[jwt]]
issuer = "{issuer.name}"
audiences = {list(audiences)}
roles_claim = "realm_access.roles"
roles = {{ reader = "analyst", eu = "europe" }}
"""


class Shown(flight.ServerMiddleware):
    """The credentials of a call."""

    def __init__(self, texts):
        super().__init__()
        self.headers = [(b"authorization", text.encode()) for text in texts]


class AllShown(flight.ServerMiddlewareFactory):
    def start_call(self, info, headers):
        return Shown(headers.get("authorization", []))


class Between(flight.FlightServerBase):
    """Passes calls on to another server, and names other places for the rows of statements."""

    def __init__(self, target, *places):
        super().__init__("grpc+tcp://127.0.0.1:0", middleware={"shown": AllShown()})
        self.target, self.places, self.rows_asked = flight.connect(target), list(places), []

    def options(self, context):
        return flight.FlightCallOptions(headers=context.get_middleware("shown").headers)

    def get_flight_info(self, context, descriptor):
        info = self.target.get_flight_info(descriptor, self.options(context))
        if b"CommandStatementQuery" not in descriptor.command:
            return info
        endpoints = [flight.FlightEndpoint(endpoint.ticket, self.places) for endpoint in info.endpoints]
        return flight.FlightInfo(info.schema, descriptor, endpoints, info.total_records, info.total_bytes)

    def do_get(self, context, ticket):
        self.rows_asked.append(context.get_middleware("shown").headers)
        return flight.RecordBatchStream(self.target.do_get(ticket, self.options(context)).read_all())

    def do_action(self, context, action):
        return list(self.target.do_action(action, self.options(context)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two servers: the near one reads tables of the far one."""
    issuer, folder = Issuer(), tmp_path_factory.mktemp("passed_on")
    (folder / "far").mkdir()
    (folder / "near").mkdir()
    with contextlib.ExitStack() as stack:
        stack.callback(issuer.close)
        far = stack.enter_context(world.world(folder / "far", FAR, more=entry(issuer, AUDIENCE)))
        other = stack.enter_context(Between(far.server.grpc_tcp))
        away = stack.enter_context(Between(far.server.grpc_tcp, f"grpc+tcp://localhost:{other.port}"))
        both = stack.enter_context(Between(far.server.grpc_tcp, f"grpc+tcp://localhost:{other.port}", "arrow-flight-reuse-connection://?"))
        config = folder / "bowshot.toml"
        place = far.server.grpc_tcp.replace("grpc+tcp", "grpc")
        driver = adbc_driver_flightsql._driver_path()
        between = ", ".join(f'"grpc://127.0.0.1:{server.port}"' for server in (away, both))
        config.write_text(f'[attach]\nplaces = ["{place}", {between}, "grpc://192.0.2.1:1", "postgres://127.0.0.1:1/"]\n[drivers]\nflightsql = "{driver}"\n')
        arguments = ["--config", config]
        near = stack.enter_context(world.world(folder / "near", NEAR, more=entry(issuer, AUDIENCE, "near"), arguments=arguments))
        near.place = place
        root = near.at("root")
        root.rows(f"ATTACH '{near.place}' AS far (TYPE flightsql, FORWARD_TOKEN true, READ_ONLY false, CACHE_TTL '1s')")
        root.rows("GRANT SELECT, INSERT ON CATALOG far TO analyst, europe")
        near.far, near.issuer, near.other, near.away, near.both = far, issuer, other, away, both
        yield near


@pytest.mark.parametrize("door", [door for door in world.DOORS if door != "flight"])
def test_who_asks_is_who_asks_there(made, door):
    for user, roles, expected in (("ann", ["eu"], [("1",)]), ("ben", ["reader"], [("1",), ("2",)])):
        with connected(made, door, made.issuer.token(user=user, roles=roles)) as connection:
            assert connection.rows("SELECT id FROM far.main.t ORDER BY id") == expected
            assert connection.rows("SELECT name FROM far.main.who") == [(user,)]
            assert connection.rows("SELECT count(*) FROM far.main.t WHERE region = 'US'") == [(str(len(expected) - 1),)]


def test_as_a_bearer_token(made):
    token = made.issuer.token(user="ann", roles=["eu"])
    status, body = bearer(made, token, "SELECT name FROM far.main.who")
    assert status == 200 and "ann" in body, body
    assert table_of_bearer(made.server, token, "SELECT id FROM far.main.t").to_pydict() == {"id": [1]}


def test_the_token_goes_to_no_place_that_the_other_server_names(made):
    root = made.at("root")
    for name, server in (("away", made.away), ("both", made.both)):
        root.rows(f"ATTACH 'grpc://127.0.0.1:{server.port}' AS {name} (TYPE flightsql, FORWARD_TOKEN true)")
        root.rows(f"GRANT SELECT ON CATALOG {name} TO europe")
    with connected(made, "postgres", made.issuer.token(user="ann", roles=["eu"])) as ann:
        refused(ann, "SELECT id FROM away.main.t", "on another server")
        assert ann.rows("SELECT id FROM both.main.t") == [("1",)]
    assert made.other.rows_asked == [] and made.both.rows_asked
    for name in ("away", "both"):
        root.rows(f"DETACH {name}")


def test_both_servers_have_their_say(made):
    with connected(made, "postgres", made.issuer.token(user="eve")) as nobody:
        refused(nobody, "SELECT id FROM far.main.t", "not found")
    with connected(made, "postgres", made.issuer.token(user="ann", roles=["eu"])) as ann, pytest.raises(Refused):
        ann.rows("INSERT INTO far.main.inbox SELECT 1")
    with connected(made, "postgres", made.issuer.token(user="ben", roles=["reader"])) as ben:
        ben.rows("INSERT INTO far.main.inbox SELECT 7")
        assert ben.rows("SELECT id FROM far.main.inbox") == [("7",)] == made.far.at("root").rows("SELECT id FROM inbox")


def test_without_a_token_that_is_good_there(made):
    for door in ("flight", "postgres"):
        refused(made.at("root", door), "SELECT id FROM far.main.t", "needs the token of its caller")
    # Logged in by name and password over Flight: what comes back is a token of this server.
    with connected(made, "flight", made.issuer.token(user="ben", roles=["reader"])) as session:
        refused(session, "SELECT id FROM far.main.t", "needs the token of its caller")
    # Good here alone.
    with connected(made, "postgres", made.issuer.token(user="ben", roles=["reader"], aud="near")) as here:
        assert here.rows("SELECT current_user") == [("ben",)]
        refused(here, "SELECT id FROM far.main.t", "refused the login")


def test_nobody_has_the_token_of_another_or_of_before(made):
    def connections():
        return made.far.server.metrics()["bowshot_flight_connections"]

    ann, ben = (connected(made, "postgres", made.issuer.token(user=user, roles=roles)) for user, roles in (("ann", ["eu"]), ("ben", ["reader"])))
    for _ in range(3):
        assert ann.rows("SELECT name FROM far.main.who") == [("ann",)]
        assert ben.rows("SELECT name FROM far.main.who") == [("ben",)]
        assert len(ann.rows("SELECT * FROM far.main.t")) == 1 and len(ben.rows("SELECT * FROM far.main.t")) == 2
    held = connections()
    ann.close()
    ben.close()
    # What was opened with their tokens goes with their sessions.
    wait_until(lambda: connections() < held, "connections are closed", 10)


def test_it_is_told_nobody(made):
    token = made.issuer.token(user="ann", roles=["eu"])
    ann = connected(made, "postgres", token)
    plan = str(ann.rows("EXPLAIN SELECT id FROM far.main.t"))
    with pytest.raises(Refused) as refused:
        ann.rows("SELECT nothing FROM far.main.t")
    root = made.at("root")
    told = plan + str(refused.value) + str(root.rows("SELECT * FROM system.databases")) + str(root.rows("SELECT * FROM system.access_log"))
    told += made.server.log() + made.far.server.log()
    ann.close()
    assert token not in told and token.rsplit(".", 1)[1] not in told


@pytest.mark.parametrize(("place", "options", "words"), [
    ("grpc://192.0.2.1:1", "TYPE flightsql, FORWARD_TOKEN true", "grpc\\+tls"),
    (None, "TYPE flightsql, FORWARD_TOKEN true, USER 'ann', PASSWORD 'x'", "`user` or a password"),
    (None, "TYPE flightsql, FORWARD_TOKEN perhaps", "`true` or `false`"),
    ("postgres://127.0.0.1:1/x", "TYPE postgres, FORWARD_TOKEN true", "tokens are not supported"),
])
def test_where_it_does_not_go(made, place, options, words):
    with pytest.raises(Refused, match=words):
        made.at("root").rows(f"ATTACH '{place or made.place}' AS other ({options})")
