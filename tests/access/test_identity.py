"""Users of an identity provider: who gets in with its tokens, through which door, with which roles, until when."""

import base64
import contextlib
import hashlib
import hmac
import json
import time

import psycopg
import pyarrow.flight as flight
import pymysql
import pytest

import http_sql
import world
from issuer import AUDIENCE, Issuer, Key
from server import Server, wait_until
from world import OPEN, Refused, do, psycopg_connect, refused, table_of_bearer

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    "CREATE ROLE analyst",
    "CREATE ROLE europe",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "GRANT SELECT ON t TO analyst",
    "GRANT SELECT ON t TO ada",
    "CREATE ROW POLICY own ON t FOR europe USING (region = 'EU')",
    "CREATE ROW POLICY every ON t FOR ada USING (true)",
]


@contextlib.contextmanager
def serving(folder, issuer, more="", setup=SETUP):
    entry = f"""
[[jwt]]
issuer = "{issuer.name}"
audiences = ["{AUDIENCE}"]
authorized_parties = ["tests"]
roles_claim = "realm_access.roles"
roles = {{ reader = "analyst", eu = "europe", stolen = "ada" }}
admin_role = "dba"
clock_skew_seconds = 0
{more}
"""
    folder.mkdir(exist_ok=True)
    with world.world(folder, setup, more=entry) as made:
        yield made


@pytest.fixture(scope="module")
def issuer():
    made = Issuer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory, issuer):
    with serving(tmp_path_factory.mktemp("identity"), issuer) as made:
        yield made


def subject(token):
    """Whose token it says to be."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]


def connected(made, door, token, user=None):
    """A connection whose password is a token. Where a password is proven and not shown, the name says that it is one."""
    user = user or subject(token)
    name = f"token:{user}" if door.startswith("postgres") else user
    return OPEN[door](made.server, name, token)


def bearer(made, token, sql="SELECT current_user"):
    """What HTTP answers to a bearer token: status and body."""
    return http_sql.answered(made.server, sql, f"Bearer {token}")


@pytest.mark.parametrize("door", world.DOORS)
def test_a_token_is_a_password_at_every_door(made, issuer, door):
    with connected(made, door, issuer.token(roles=["reader", "eu"])) as connection:
        assert connection.rows("SELECT current_user") == [("ann",)]
        assert connection.rows("SELECT id FROM t") == [("1",)], "the roles and the policy of the token's role"
    with connected(made, door, issuer.token()) as nobody:
        refused(nobody, "SELECT id FROM t", "not found")


def test_a_bearer_token_over_flight_and_http(made, issuer):
    for key in issuer.keys:
        status, body = bearer(made, issuer.token(key=key))
        assert status == 200 and "ann" in body, (key.algorithm, body)
    token = issuer.token(roles=["reader", "eu"])
    assert table_of_bearer(made.server, token, "SELECT id FROM t").to_pydict() == {"id": [1]}
    with flight.connect(made.server.grpc_tcp) as client:
        header = client.authenticate_basic_token("ann", token)
        options = flight.FlightCallOptions(headers=[header])
        assert client.do_get(flight.Ticket(b"SELECT id FROM t"), options).read_all().to_pydict() == {"id": [1]}


def test_a_role_of_the_provider_is_no_user(made, issuer):
    with connected(made, "flight", issuer.token(roles=["stolen", "ada", "analyst", "root"])) as connection:
        refused(connection, "SELECT id FROM t", "not found")


def test_an_admin_by_role(made, issuer):
    with connected(made, "flight", issuer.token(user="boss", roles=["dba"])) as connection:
        do(connection, "CREATE ROLE made_by_boss", "DROP ROLE made_by_boss")
    with connected(made, "flight", issuer.token(user="boss")) as connection:
        refused(connection, "CREATE ROLE made_by_boss", "may not change access rules")


def segment(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forged(issuer, header, key=b""):
    now = int(time.time())
    claims = {"iss": issuer.name, "aud": AUDIENCE, "azp": "tests", "sub": "root", "exp": now + 600}
    signed = f"{segment(header)}.{segment(claims)}"
    signature = hmac.digest(key, signed.encode(), hashlib.sha256) if key else b""
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


BAD = {
    "another audience": lambda i: i.token(aud="account"),
    "no audience": lambda i: i.token(aud=None),
    "another client": lambda i: i.token(azp="other"),
    "no client": lambda i: i.token(azp=None),
    "another issuer": lambda i: i.token(iss="http://127.0.0.1/other"),
    "expired": lambda i: i.token(seconds=-5),
    "no end": lambda i: i.token(exp=None),
    "not yet": lambda i: i.token(nbf=int(time.time()) + 600),
    "an unknown key": lambda i: i.token(key=Key("nowhere")),
    "a foreign key of a known name": lambda i: i.token(key=Key("one")),
    "the key for encryption": lambda i: i.token(key=_as(i.sealing, "RS256")),
    "the key for encryption under another name": lambda i: i.token(key=_as(i.sealing, "RS256"), headers={"kid": "one"}),
    "another algorithm than the key's": lambda i: i.token(key=_as(i.keys[0], "RS512")),
    "no signature": lambda i: forged(i, {"alg": "none", "kid": "one"}),
    "the public key as a secret": lambda i: forged(i, {"alg": "HS256", "kid": "one"}, i.keys[0].public_pem()),
    "another kind of token": lambda i: i.token(headers={"typ": "logout+jwt"}),
    "an extension": lambda i: i.token(headers={"crit": ["x"], "x": 1}),
    "cut off": lambda i: i.token()[:-8],
    "no name": lambda i: i.token(sub=None),
    "roles that are no list": lambda i: i.token(realm_access={"roles": 7}),
    "no token": lambda i: "eyJ.eyJ.x",
    "an admin of the server": lambda i: i.token(user="root"),
    "a user of the server": lambda i: i.token(user="ada", roles=["dba"]),
}  # fmt: skip


def _as(key, algorithm):
    """The same key under another algorithm."""
    other = Key.__new__(Key)
    other.kid, other.algorithm, other.private, other.entries = key.kid, algorithm, key.private, {}
    return other


@pytest.mark.parametrize("what", BAD)
def test_bad_tokens_are_refused_at_every_door(made, issuer, what):
    token = BAD[what](issuer)
    status, body = bearer(made, token)
    assert status == 401, body
    for door in world.DOORS:
        with pytest.raises((Refused, psycopg.OperationalError, pymysql.Error, Exception)) as caught:
            connected(made, door, token, "root").rows("SELECT 1")
        words = str(caught.value).lower()
        assert any(word in words for word in ("refused", "wrong", "unauthenticated", "token")), (door, words)
        assert token not in words and "traceback" not in words


def test_a_token_is_its_users_alone(made, issuer):
    token = issuer.token(user="ann", roles=["reader", "eu"])
    for user in ("bob", "root", "ada"):
        with pytest.raises(psycopg.OperationalError, match="wrong"):
            connected(made, "postgres", token, user)
        refused(connected(made, "http", token, user), "SELECT 1", "wrong")
    # Without a name, it is whose it is.
    with OPEN["postgres"](made.server, "token:", token) as anybody:
        assert anybody.rows("SELECT current_user, session_user") == [("ann", "ann")]


def test_a_provider_that_speaks_for_users_of_the_server(tmp_path, issuer):
    with serving(tmp_path / "local", issuer, "local_users = true") as made:
        ada = connected(made, "http", issuer.token(user="ada"), "ada")
        assert ada.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",)], "what SQL has given to the name"
        root = connected(made, "http", issuer.token(user="root"), "root")
        root.rows("CREATE USER late PASSWORD 'late'")


def test_a_user_made_later_ends_sessions_of_the_name(made, issuer):
    late = connected(made, "flight", issuer.token(user="late", roles=["reader", "eu"]), "late")
    assert late.rows("SELECT id FROM t") == [("1",)]
    made.at("root").rows("CREATE USER late PASSWORD 'another'")
    try:
        with pytest.raises(Refused):
            late.rows("SELECT id FROM t")
        assert bearer(made, issuer.token(user="late"))[0] == 401
    finally:
        made.at("root").rows("DROP USER late")


def test_sessions_end_with_the_token(made, issuer):
    for seconds in (4, 20, 60):
        token, ends = issuer.token(seconds=seconds), time.monotonic() + seconds
        try:
            connections = {door: connected(made, door, token) for door in world.DOORS}
            for connection in connections.values():
                assert connection.rows("SELECT current_user") == [("ann",)]
            break
        except Exception:
            assert time.monotonic() > ends - 1 and seconds < 60, "refused before the token has ended"
    # A statement that runs on, of a session whose token has ended.
    time.sleep(max(0, ends + 1.5 - time.monotonic()))
    for door, connection in connections.items():
        with pytest.raises(Refused):
            print(door, connection.rows("SELECT current_user"))
        with contextlib.suppress(Exception):
            connection.close()


def test_a_newer_token_carries_a_session_on(made, issuer):
    """As clients do that refresh their tokens: the same connection, another header."""
    def options(token):
        return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])

    def zone(token):
        ticket = flight.Ticket(b"SELECT current_setting('timezone') AS z")
        return client.do_get(ticket, options(token)).read_all()["z"][0].as_py()

    first, second = issuer.token(seconds=6), issuer.token(seconds=600)
    with flight.connect(made.server.grpc_tcp) as client:
        client.do_get(flight.Ticket(b"SET timezone = 'Asia/Tokyo'"), options(first)).read_all()
        assert zone(first) == zone(second) == "Asia/Tokyo"
        time.sleep(7.5)
        assert zone(second) == "Asia/Tokyo", "the session lives on"
        with pytest.raises(flight.FlightUnauthenticatedError):
            zone(first)


def test_keys_rotate_while_it_serves(tmp_path, issuer):
    with contextlib.closing(Issuer()) as own, serving(tmp_path / "rotation", own) as made:
        old = own.token()
        assert bearer(made, old)[0] == 200
        assert own.asked == 1
        assert bearer(made, own.token())[0] == 200 and own.asked == 1, "kept"
        time.sleep(10.5)
        own.keys, changed = [Key("new")], time.monotonic()
        assert bearer(made, own.token())[0] == 200 and own.asked == 2, "an unknown key is looked for"
        assert bearer(made, own.token(key=_as(own.keys[0], "RS256"), seconds=500))[0] == 200
        fresh = Issuer.token(own, key=_renamed(own.keys[0], "one"))
        assert bearer(made, fresh)[0] == 401, "the old name is gone"
        for index in range(30):
            assert bearer(made, own.token(key=_renamed(own.keys[0], f"unknown{index}")))[0] == 401
        assert own.asked <= 3 + (time.monotonic() - changed) // 10, "however many tokens come"


def _renamed(key, kid):
    other = _as(key, key.algorithm)
    other.kid = kid
    return other


def test_an_issuer_that_cannot_be_reached_lets_nobody_in_and_nobody_wait(tmp_path):
    own = Issuer()
    own.failing = True
    with contextlib.closing(own):
        with serving(tmp_path / "failing", own) as made:
            start, before = time.monotonic(), own.requests
            for _ in range(20):
                assert bearer(made, own.token())[0] == 401
            assert own.requests - before <= 4 + (time.monotonic() - start) // 10, "not each of them asks, and waits for it"
            assert made.at("root").rows("SELECT 1") == [("1",)], "others are not touched"
            own.failing = False
            wait_until(lambda: bearer(made, own.token())[0] == 200, "the issuer is asked again", 15)


def test_a_server_with_an_issuer_alone(tmp_path, issuer):
    file = tmp_path / "users.toml"
    file.write_text(f'[[jwt]]\nissuer = "{issuer.name}"\naudiences = ["{AUDIENCE}"]\n')
    arguments = ["--users-file", str(file), "--pg", "127.0.0.1:0"]
    with Server(arguments=arguments) as server:
        token = issuer.token()
        with psycopg_connect(server, "ann", token) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("ann",)
        for user, password in (("ann", "x"), ("bob", token), ("ann", token[:-8])):
            with pytest.raises(psycopg.OperationalError):
                psycopg_connect(server, user, password)
