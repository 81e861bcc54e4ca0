"""TLS: who gets in, who is told what, and certificates that are renewed under a running server."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import warnings

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as dbapi
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from server import ROOT, Server, binaries, wait_until

FILES = ROOT / "tests" / "data" / "tls"
AUTHORITY = FILES / "ca.pem"
COUNT = "SELECT count(*) AS n FROM nation"
TABLE = "SELECT * FROM lineitem ORDER BY l_orderkey, l_linenumber, l_partkey, l_comment"


def arguments(certificate, key):
    return ["--tls-certificate", str(certificate), "--tls-key", str(key)]


@pytest.fixture(scope="module")
def tls_server(data_folder):
    with Server(data_folder, arguments=arguments(FILES / "first.pem", FILES / "first.key")) as server:
        assert server.flight.startswith("grpc+tls://")
        yield server
        server.wait_idle(5)


def connect(server, roots=AUTHORITY, **options):
    return flight.connect(server.flight, tls_root_certs=roots.read_bytes(), **options)


def ask(client, sql):
    return client.do_get(flight.Ticket(sql.encode())).read_all()


def shell(server, *more):
    command = [str(binaries() / "bowshot"), "sql", "--uri", server.flight, *map(str, more), COUNT]
    return subprocess.run(command, capture_output=True, timeout=60, text=True)


@contextlib.contextmanager
def tls_socket(server, protocols=("h2",)):
    context = ssl.create_default_context(cafile=str(AUTHORITY))
    context.set_alpn_protocols(list(protocols))
    with socket.create_connection((server.host, server.port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname=server.host) as encrypted:
            yield encrypted


def common_name(server):
    with tls_socket(server) as connection:
        return dict(pair for part in connection.getpeercert()["subject"] for pair in part)["commonName"]


def test_rows_are_the_same_as_without(tls_server, server):
    with connect(tls_server) as client, flight.connect(server.grpc_tcp) as plain:
        assert ask(client, TABLE).equals(ask(plain, TABLE))


def test_adbc(tls_server):
    options = {adbc_driver_flightsql.DatabaseOptions.TLS_ROOT_CERTS.value: AUTHORITY.read_text()}
    with dbapi.connect(tls_server.flight, db_kwargs=options) as connection, connection.cursor() as cursor:
        cursor.execute(COUNT)
        assert cursor.fetchall() == [(25,)]
        cursor.adbc_ingest("sent", pa.table({"n": range(100_000)}), mode="create")
        cursor.execute("SELECT sum(n) AS n FROM sent")
        assert cursor.fetchall() == [(99_999 * 100_000 // 2,)]
        cursor.execute("DROP TABLE sent")


def test_clients_that_do_not_know_the_authority_refuse(tls_server):
    with pytest.raises(flight.FlightUnavailableError), flight.connect(tls_server.flight) as client:
        ask(client, COUNT)
    run = shell(tls_server)
    assert run.returncode != 0
    assert "UnknownIssuer" in run.stderr and "--ca-file" in run.stderr, run.stderr


def test_the_shell(tls_server, tmp_path):
    run = shell(tls_server, "--ca-file", AUTHORITY)
    assert run.returncode == 0 and "25" in run.stdout, run.stderr
    for content, complaint in (("no certificate", "no certificate in PEM form"), (None, "No such file")):
        file = tmp_path / "ca.pem"
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
        run = shell(tls_server, "--ca-file", file)
        assert run.returncode != 0 and complaint in run.stderr, run.stderr


def test_a_client_without_encryption_is_told(tls_server):
    with flight.connect(tls_server.grpc_tcp) as client:
        with pytest.raises(flight.FlightUnauthenticatedError, match="speaks TLS only.*grpc\\+tls"):
            ask(client, COUNT)
    plain = tls_server.flight.replace("+tls", "")
    run = subprocess.run([binaries() / "bowshot", "sql", "--uri", plain, COUNT], capture_output=True, timeout=60, text=True)
    assert run.returncode == 1 and "speaks TLS only" in run.stderr, run.stderr


def test_a_client_with_encryption_at_a_server_without(server):
    uri = server.flight.replace("grpc://", "grpc+tls://")
    run = subprocess.run(
        [binaries() / "bowshot", "sql", "--uri", uri, "--ca-file", AUTHORITY, COUNT],
        capture_output=True, timeout=60, text=True,
    )
    assert run.returncode == 1 and "does the server speak TLS?" in run.stderr, run.stderr
    run = subprocess.run(
        [binaries() / "bowshot", "sql", "--uri", server.flight, "--ca-file", AUTHORITY, COUNT],
        capture_output=True, timeout=60, text=True,
    )
    assert run.returncode == 1 and "not encrypted" in run.stderr, run.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes a certificate as the guide says, with something else in place of a part of the command."""
    guide = (ROOT / "docs" / "how-to" / "configuration.md").read_text(encoding="utf-8")
    command = guide[guide.index("openssl req -x509"):].split("```")[0]

    def make(part="", other=""):
        assert part in command
        folder = tmp_path_factory.mktemp("tls")
        subprocess.run(command.replace(part, other), shell=True, check=True, capture_output=True, timeout=60, cwd=folder)
        return folder / "server.pem", folder / "server.key"

    return make


def test_the_certificate_of_the_guide(made, data_folder):
    certificate, key = made()
    with Server(data_folder, arguments=arguments(certificate, key)) as server:
        run = shell(server, "--ca-file", certificate)
        assert run.returncode == 0 and "25" in run.stdout, run.stderr
        with connect(server, certificate) as client:
            assert ask(client, COUNT).to_pylist() == [{"n": 25}]


@pytest.mark.parametrize("part, other, complaint", [
    (" -addext basicConstraints=critical,CA:FALSE", "", "CA:FALSE"),
    ("DNS:localhost,IP:127.0.0.1", "DNS:elsewhere.example", "in the certificate"),
])
def test_certificates_that_do_not_fit_are_refused_with_a_hint(part, other, complaint, made, data_folder):
    certificate, key = made(part, other)
    key.chmod(0o644)
    with Server(data_folder, arguments=arguments(certificate, key)) as server:
        run = shell(server, "--ca-file", certificate)
        assert run.returncode == 1 and complaint in run.stderr, run.stderr
        assert "can read the private key" in server.log()


@pytest.mark.parametrize("version, answer", [(ssl.TLSVersion.TLSv1_1, "ALERT"), (ssl.TLSVersion.TLSv1_2, None)])
def test_versions(version, answer, tls_server):
    context = ssl.create_default_context(cafile=str(AUTHORITY))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    with socket.create_connection((tls_server.host, tls_server.port), timeout=10) as plain:
        if answer is None:
            with context.wrap_socket(plain, server_hostname=tls_server.host) as encrypted:
                assert encrypted.version() == "TLSv1.2"
        else:
            with pytest.raises(ssl.SSLError, match=answer):
                context.wrap_socket(plain, server_hostname=tls_server.host)


def test_a_renewed_certificate_needs_no_restart(data_folder, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"

    def put(name, place):
        fresh = place.with_suffix(".new")
        shutil.copy(FILES / name, fresh)
        fresh.rename(place)

    put("first.pem", certificate)
    put("first.key", key)
    with Server(data_folder, arguments=arguments(certificate, key)) as server, connect(server) as early:
        assert ask(early, COUNT).num_rows == 1
        assert common_name(server) == "first"
        put("second.pem", certificate)
        wait_until(lambda: "it is not the key of" in server.log(), "the half renewal is noticed")
        assert common_name(server) == "first"
        put("second.key", key)
        wait_until(lambda: common_name(server) == "second", "the renewal is noticed")
        key.unlink()
        wait_until(lambda: "cannot be read" in server.log(), "the missing key is noticed")
        assert common_name(server) == "second"
        assert ask(early, COUNT).num_rows == 1, "connections that were open go on"
        with connect(server) as late:
            assert ask(late, COUNT).num_rows == 1


@pytest.mark.parametrize("certificate, key, complaint", [
    ("first.pem", "second.key", "it is not the key of"),
    ("first.pem", "README.md", "no unencrypted private key"),
    ("README.md", "first.key", "no certificate"),
    ("first.pem", "missing.key", "cannot be read"),
])
def test_files_that_do_not_fit_stop_the_start(certificate, key, complaint, data_folder):
    for command in ("serve", "check"):
        run = subprocess.run(
            [binaries() / "bowshot", command, data_folder, "--flight", "127.0.0.1:0", "--http", "off"]
            + arguments(FILES / certificate, FILES / key),
            capture_output=True, timeout=60, text=True,
        )
        assert run.returncode == 2 and complaint in run.stderr, run.stderr
