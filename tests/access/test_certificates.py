"""Clients whose certificate says who they are: who gets in through which door, who does not, and until when."""

import contextlib
import datetime
import signal
import ssl
import subprocess

import adbc_driver_flightsql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pymysql
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

import http_sql
import world
from authority import DAY, Authority, now
from server import Server, binaries, wait_until
from world import PASSWORDS

SETUP = [
    "CREATE TABLE t (id INTEGER, region VARCHAR)",
    "INSERT INTO t VALUES (1, 'EU'), (2, 'US')",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "CREATE USER bob PASSWORD 'bob''s own'",
    "CREATE USER dave",
    "GRANT SELECT ON t TO ada, dave",
    "CREATE ROW POLICY own ON t FOR ada, dave USING (region = 'EU')",
]
REFUSED = (flight.FlightError, pa.ArrowException, adbc.Error, psycopg.Error, pymysql.Error, OSError)


def rows_of(connection):
    def rows(sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(map(str, row)) for row in cursor.fetchall()]

    return rows


class Guarded:
    """A server with an authority for its clients."""

    def __init__(self, server, authority):
        self.server, self.authority = server, authority

    def context(self, pair):
        context = ssl.create_default_context(cafile=str(self.authority.own.pem))
        if pair:
            context.load_cert_chain(str(pair.pem), str(pair.key))
        return context

    def flight(self, pair=None, user=None, password=None):
        own = {"cert_chain": pair.pem.read_bytes(), "private_key": pair.key.read_bytes()} if pair else {}
        client = flight.connect(self.server.flight, tls_root_certs=self.authority.own.pem.read_bytes(), **own)
        headers = [client.authenticate_basic_token(user, password)] if password else []
        options = flight.FlightCallOptions(headers=headers, timeout=30)

        def rows(sql):
            table = client.do_get(flight.Ticket(sql.encode()), options).read_all()
            return [tuple(map(str, row.values())) for row in table.to_pylist()]

        return rows

    def adbc(self, pair=None, user=None, password=None):
        options = {"adbc.flight.sql.client_option.tls_root_certs": self.authority.own.pem.read_text()}
        if pair:
            options["adbc.flight.sql.client_option.mtls_cert_chain"] = pair.pem.read_text()
            options["adbc.flight.sql.client_option.mtls_private_key"] = pair.key.read_text()
        if password:
            options |= {"username": user, "password": password}
        connection = adbc.connect(self.server.flight, db_kwargs=options, autocommit=True)
        return rows_of(connection)

    def postgres(self, pair=None, user=None, password=None):
        own = {"sslcert": str(pair.pem), "sslkey": str(pair.key)} if pair else {"sslcert": "/nowhere", "sslkey": "/nowhere"}
        own |= {"sslmode": "verify-full", "sslrootcert": str(self.authority.own.pem), "connect_timeout": 30}
        return rows_of(world.psycopg_connect(self.server, user or "ada", password or "", autocommit=True, **own))

    def mysql(self, pair=None, user=None, password=None):
        connection = pymysql.connect(
            host="127.0.0.1", port=self.server.mysql_port, user=user or "ada", password=password or "", autocommit=True,
            ssl=self.context(pair), connect_timeout=30,
        )  # fmt: skip
        return rows_of(connection)

    def http(self, pair=None, user=None, password=None, plain=False, **headers):
        if password:
            headers["authorization"] = http_sql.basic(user, password)

        def rows(sql):
            answer = http_sql.sql(self.server, sql, context=None if plain else self.context(pair), **headers)
            if answer.status >= 400:
                raise OSError(f"{answer.status}: {answer.body.decode()}")
            return [tuple(map(str, row)) for row in answer.rows()]

        return rows

    def shell(self, pair, *sql):
        own = ["--client-certificate", str(pair.pem), "--client-key", str(pair.key)] if pair else []
        command = [str(binaries() / "bowshot"), "sql", "--uri", self.server.flight, "--ca-file", str(self.authority.own.pem)]
        return subprocess.run([*command, *own, *sql], capture_output=True, timeout=60, text=True)

    def reload(self):
        self.server.process.send_signal(signal.SIGHUP)


DOORS = ("flight", "adbc", "postgres", "mysql", "http")


@contextlib.contextmanager
def serving(folder, *more, setup=(), users='[[users]]\nname = "eve"\nadmin = true\n', authority=None):
    folder.mkdir(exist_ok=True)
    authority = authority or Authority(folder / "pki")
    pair = authority.server()
    users = world.users_file(folder, users)
    arguments = [
        "--users-file", str(users), "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--tls-certificate", str(pair.pem),
        "--tls-key", str(pair.key), "--tls-client-authority", str(authority.own.pem), *map(str, more),
    ]  # fmt: skip
    with Server(data=folder / "data", arguments=arguments) as server:
        guarded = Guarded(server, authority)
        root = guarded.flight(authority.issue("root"))
        for sql in setup:
            root(sql)
        guarded.root = root
        yield guarded


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("certificates"), setup=SETUP) as made:
        yield made


@pytest.fixture(scope="module")
def required(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("required"), "--set", "tls.client_certificates=required", setup=SETUP) as made:
        yield made


@pytest.mark.parametrize("door", DOORS)
def test_a_certificate_is_a_login_at_every_door(made, door):
    for user in ("ada", "dave"):
        rows = getattr(made, door)(made.authority.issue(user), user)
        assert rows("SELECT current_user") == [(user,)]
        assert rows("SELECT id FROM t") == [("1",)], "the rights and the policy of the user"


def test_an_admin_without_a_password(made):
    assert made.shell(made.authority.issue("eve"), "CREATE ROLE by_eve; DROP ROLE by_eve").returncode == 0
    with pytest.raises(REFUSED):
        made.flight(user="eve", password="eve")


@pytest.mark.parametrize("door", DOORS)
def test_certificates_that_let_nobody_in(made, door, tmp_path):
    foreign = Authority(tmp_path / "foreign")
    issue = made.authority.issue
    for what, pair in [
        ("expired", issue("ada", start=now() - 2 * DAY, end=now() - datetime.timedelta(seconds=5))),
        ("not yet valid", issue("ada", start=now() + DAY)),
        ("of another authority", foreign.issue("ada")),
        ("for servers", issue("ada", usage=ExtendedKeyUsageOID.SERVER_AUTH)),
        ("of nobody", issue("nobody")),
        ("of two", issue("dave", "ada")),
        ("of none", issue()),
        ("of another case", issue("ADA")),
        ("with more behind the name", issue("ada ")),
        ("of a token", issue("token:ada")),
        ("of a role", issue("public")),
    ]:
        with pytest.raises(REFUSED):
            rows = getattr(made, door)(pair, "ada")
            raise AssertionError(f"{what}: {rows('SELECT current_user')}")


@pytest.mark.parametrize("door", ("postgres", "mysql"))
def test_a_certificate_makes_nobody_else(made, door):
    ada = made.authority.issue("ada")
    for password in (None, "wrong", PASSWORDS["ada"]):
        with pytest.raises(REFUSED):
            getattr(made, door)(ada, "bob", password)
    assert getattr(made, door)(ada, "bob", PASSWORDS["bob"])("SELECT current_user") == [("bob",)]


@pytest.mark.parametrize("door", DOORS)
def test_without_a_certificate_passwords_count(made, door):
    assert getattr(made, door)(None, "ada", PASSWORDS["ada"])("SELECT current_user") == [("ada",)]
    with pytest.raises(REFUSED):
        getattr(made, door)(None, "ada", "wrong")("SELECT 1")
    with pytest.raises(REFUSED):
        getattr(made, door)(None, "dave", None)("SELECT 1")


@pytest.mark.parametrize("door", DOORS)
def test_required_means_required(required, door):
    with pytest.raises(REFUSED):
        getattr(required, door)(None, "ada", PASSWORDS["ada"])("SELECT 1")
    ada = required.authority.issue("ada")
    assert getattr(required, door)(ada, "ada")("SELECT current_user") == [("ada",)]
    assert getattr(required, door)(ada, "bob", PASSWORDS["bob"])("SELECT current_user") == [("bob",)]


def test_required_over_http_that_is_not_encrypted(required):
    with pytest.raises(OSError, match="client certificate"):
        required.http(None, "ada", PASSWORDS["ada"], plain=True)("SELECT 1")
    assert http_sql.ask(required.server, "GET", "/health").status == 200


def test_pages_of_other_sites_do_not_use_the_certificate_of_a_browser(made):
    ada = made.authority.issue("ada")
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.example"}):
        with pytest.raises(OSError, match="403"):
            made.http(ada, **headers)("SELECT 1")
    assert made.http(ada, **{"sec-fetch-site": "none"})("SELECT 1") == [("1",)]


def ended(sessions, seconds=10):
    for rows in sessions:
        with pytest.raises(REFUSED):
            wait_until(lambda rows=rows: not rows("SELECT 1"), "the session ends", seconds)


def nobody_in(made, pair, user):
    for door in DOORS:
        with pytest.raises(REFUSED):
            getattr(made, door)(pair, user)("SELECT 1")


def test_a_user_who_goes_is_out_at_once(made):
    made.root("CREATE USER gone")
    pair, others = made.authority.issue("gone"), made.authority.issue("ada")
    open_ones = [getattr(made, door)(pair, "gone") for door in DOORS]
    stays = made.postgres(others, "ada")
    assert all(rows("SELECT current_user") == [("gone",)] for rows in open_ones)
    made.root("DROP USER gone")
    ended(open_ones, 5)
    nobody_in(made, pair, "gone")
    assert stays("SELECT current_user") == [("ada",)]


def test_revoked_certificates_end_open_sessions(tmp_path):
    revoked = tmp_path / "revoked.pem"
    authority = Authority(tmp_path / "other")
    authority.revoke(file=revoked)
    served = ["--set", f"tls.client_revoked={revoked}"]
    # A list of another authority covers nobody: not even the first statement of the setup may run.
    with pytest.raises(REFUSED), serving(tmp_path / "served", *served, setup=SETUP):
        pass
    pki = Authority(tmp_path / "pki")
    pki.revoke(file=revoked)
    users = '[[users]]\nname = "eve"\n[[users]]\nname = "ada"\n'
    with serving(tmp_path / "again", *served, users=users, authority=pki) as made:
        ada, eve = pki.issue("ada"), pki.issue("eve")
        open_ones = [getattr(made, door)(ada, "ada") for door in DOORS]
        stay = [getattr(made, door)(eve, "eve") for door in DOORS]
        assert all(rows("SELECT current_user") == [("ada",)] for rows in open_ones)
        pki.revoke(ada, file=revoked)
        made.reload()
        ended(open_ones)
        nobody_in(made, ada, "ada")
        assert all(rows("SELECT current_user") == [("eve",)] for rows in stay), "the others go on"
        # What is no list leaves the server with the one it has.
        revoked.write_text("nothing")
        made.reload()
        wait_until(lambda: "cannot reload the CAs" in made.server.log(), "it says so", 10)
        assert made.flight(eve)("SELECT current_user") == [("eve",)]
        with pytest.raises(REFUSED):
            made.flight(ada)("SELECT 1")
        # Nor does a certificate count once its authority is another one, of the same name.
        other = Authority(tmp_path / "third")
        other.revoke(file=revoked)
        pki.own.pem.write_bytes(other.own.pem.read_bytes())
        made.reload()
        ended(stay)


def test_a_certificate_that_expires_ends_its_sessions(made):
    pair = made.authority.issue("ada", end=now() + datetime.timedelta(seconds=12))
    open_ones = [getattr(made, door)(pair, "ada") for door in DOORS]
    assert all(rows("SELECT current_user") == [("ada",)] for rows in open_ones)
    ended(open_ones, 30)


@pytest.mark.parametrize("kind", ("email", "dns"))
def test_other_names_of_a_certificate(kind, tmp_path):
    user, name = {"email": ("ada@example.org", x509.RFC822Name), "dns": ("ada.example.org", x509.DNSName)}[kind]
    with serving(tmp_path, "--set", f"tls.client_name={kind}", users=f'[[users]]\nname = "{user}"\n') as made:
        issue = made.authority.issue
        assert made.flight(issue("whoever", names=[name(user)]))("SELECT current_user") == [(user,)]
        for pair in (issue(user), issue("x", names=[name(user), name("b." + user)])):
            with pytest.raises(REFUSED):
                made.flight(pair)("SELECT 1")


def test_configurations_that_let_nobody_believe_what_is_not_so(tmp_path):
    authority = Authority(tmp_path / "pki")
    old = Authority(tmp_path / "old", end=-DAY)
    pair = authority.server()
    users = ["--users-file", str(world.users_file(tmp_path))]
    tls = ["--tls-certificate", str(pair.pem), "--tls-key", str(pair.key)]
    trust = ["--tls-client-authority", str(authority.own.pem)]
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for arguments, reason in [
        ([*users, *trust], "need TLS"),
        ([*tls, *trust], "none are configured"),
        ([*users, *tls, "--set", "tls.client_certificates=required"], "need a certificate authority"),
        ([*users, *tls, "--set", f"tls.client_revoked={empty}"], "need a certificate authority"),
        ([*users, *tls, *trust, "--set", "tls.client_certificates=yes"], "cannot be `yes`"),
        ([*users, *tls, *trust, "--set", "tls.client_name=cn"], "cannot be `cn`"),
        ([*users, *tls, *trust, "--set", f"tls.client_revoked={empty}"], "expected a revocation list"),
        ([*users, *tls, "--tls-client-authority", str(empty)], "expected a certificate"),
        ([*users, *tls, "--tls-client-authority", str(tmp_path / "missing")], "cannot be read"),
        ([*users, *tls, "--tls-client-authority", str(old.own.pem)], "has expired"),
    ]:
        run = subprocess.run([str(binaries() / "bowshot"), "check", *arguments], capture_output=True, timeout=60, text=True)
        assert (run.returncode, reason in run.stderr) == (2, True), (arguments, run.stderr)
