"""Users, tokens and TLS."""

import hashlib
import os
import pathlib
import subprocess

import pytest

import bowshot

TLS = pathlib.Path(__file__).parents[3] / "tests" / "data" / "tls"
PASSWORD = "geheim: ä"
TOKEN = "a fixed token"


@pytest.fixture(scope="module")
def users(tmp_path_factory, folder):
    program = os.environ.get("BOWSHOT_PROGRAM", "bowshot")
    run = subprocess.run([program, "hash-password"], input=f"{PASSWORD}\n".encode(), capture_output=True, check=True)
    file = tmp_path_factory.mktemp("users") / "users.toml"
    file.write_text(
        f'[[users]]\nname = "ada"\npassword_hash = "{run.stdout.decode().strip()}"\n'
        f'[[tokens]]\nuser = "service"\nsha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"\n'
    )
    file.chmod(0o600)
    with bowshot.server(folder, arguments=["--users-file", str(file)]) as server:
        yield server


def test_user_and_token(users):
    for arguments, name in (({"user": "ada", "password": PASSWORD}, "ada"), ({"token": TOKEN}, "service")):
        with users.connect(autocommit=True, options={"endpoints": "4"}, **arguments) as connection:
            assert connection.execute("SELECT current_user").fetchone() == (name,)
            assert connection.sql("SELECT n FROM numbers").arrow().num_rows == 200_000
            with connection.transaction():
                connection.ingest(f"of_{name}", [{"a": 1}])
            assert connection.table(f"of_{name}").count() == 1
    with bowshot.connect(users.uri.replace("grpc://", "bowshot://ada:geheim%3A%20%C3%A4@")) as connection:
        assert connection.session_id


@pytest.mark.parametrize("arguments", [{}, {"user": "ada", "password": "x"}, {"user": "ada"}, {"token": "x"}])
def test_wrong_credentials(users, arguments):
    with pytest.raises(bowshot.UnauthenticatedError) as caught:
        users.connect(**arguments)
    assert PASSWORD not in str(caught.value)


@pytest.mark.skipif(not TLS.exists(), reason="outside of the repository")
def test_tls(folder):
    arguments = ["--tls-certificate", str(TLS / "first.pem"), "--tls-key", str(TLS / "first.key")]
    with bowshot.server(folder, arguments=arguments) as server:
        assert server.uri.startswith("grpc+tls://")
        options = {"endpoints": "4"}
        with server.connect(tls_ca=TLS / "ca.pem", options=options, autocommit=True) as connection:
            assert connection.sql("SELECT n FROM numbers").arrow().num_rows == 200_000
        with server.connect(tls_verify=False) as connection:
            assert connection.sql("SELECT 1").arrow().num_rows == 1
        # Nobody vouches for it; and no TLS where the server has it.
        for uri in (server.uri, server.uri.replace("grpc+tls://", "grpc://")):
            with pytest.raises(bowshot.OperationalError):
                bowshot.connect(uri, connect_timeout=5)
