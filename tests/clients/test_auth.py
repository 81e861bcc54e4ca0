"""A server with users: every way of saying who one is, and what the others get."""

import signal
import subprocess

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as dbapi
import pyarrow.flight as flight
import pytest

from data import PASSWORD, TOKEN
from server import Server, binaries, users_file, wait_until


@pytest.fixture(scope="module")
def users(tmp_path_factory, data_folder):
    file = users_file(tmp_path_factory.mktemp("users"), {"ada": PASSWORD}, {"service": TOKEN})
    with Server(data_folder, arguments=["--users-file", str(file)]) as server:
        yield server
        server.wait_idle(5)


def count(client, header=None):
    options = flight.FlightCallOptions(headers=[header] if header else [])
    return client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM nation"), options).read_all().to_pylist()[0]["n"]


def test_nobody_gets_in_without_credentials(users):
    with flight.connect(users.grpc_tcp) as client:
        for call in (
            lambda: count(client),
            lambda: list(client.list_flights()),
            lambda: list(client.list_actions()),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT 1")),
            lambda: list(client.do_action(flight.Action("GetSessionOptions", b""))),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError):
                call()


def test_wrong_credentials_get_one_answer(users):
    messages = set()
    for user, password in (("ada", "wrong"), ("nobody", PASSWORD), ("", "")):
        with flight.connect(users.grpc_tcp) as client:
            with pytest.raises(flight.FlightUnauthenticatedError) as caught:
                client.authenticate_basic_token(user, password)
            messages.add(str(caught.value).split(". ")[0])
    assert len(messages) == 1, messages
    with flight.connect(users.grpc_tcp) as client, pytest.raises(flight.FlightUnauthenticatedError):
        count(client, (b"authorization", b"Bearer forged"))


def test_adbc_with_user_and_token(users):
    options = {"username": "ada", "password": PASSWORD}
    with dbapi.connect(users.grpc_tcp, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM nation")
        assert cursor.fetchone() == (25,)
    header = {adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}"}
    with dbapi.connect(users.grpc_tcp, db_kwargs=header, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM nation")
        assert cursor.fetchone() == (25,)


def test_the_shell(users):
    def sql(*arguments):
        command = [str(binaries() / "bowshot"), "sql", "--uri", users.flight, *arguments, "--format", "csv"]
        return subprocess.run([*command, "SELECT count(*) AS n FROM nation"], capture_output=True, timeout=60)

    assert sql("--user", "ada", "--password", PASSWORD).stdout.split() == [b"n", b"25"]
    assert sql("--token", TOKEN).stdout.split() == [b"n", b"25"]
    assert sql().returncode == 1


def header_of(server, user, password):
    with flight.connect(server.grpc_tcp) as client:
        header = client.authenticate_basic_token(user, password)
        assert header[0] == b"authorization" and header[1].startswith(b"Bearer ")
        return header


def comes_in(server, header):
    with flight.connect(server.grpc_tcp) as client:
        try:
            return count(client, header) == 25
        except flight.FlightUnauthenticatedError:
            return False


def test_users_come_and_go_with_their_file(tmp_path, data_folder):
    file = users_file(tmp_path, {"ada": "one", "eve": "two"}, {"service": TOKEN})
    with Server(data_folder, arguments=["--users-file", str(file)]) as server:
        ada, eve = header_of(server, "ada", "one"), header_of(server, "eve", "two")
        fixed = (b"authorization", f"Bearer {TOKEN}".encode())
        with flight.connect(server.grpc_tcp) as open_one:
            assert count(open_one, ada) == count(open_one, eve) == count(open_one, fixed) == 25
            # Eve and the service go, Bob comes; Ada stays, but for her password in the next step.
            users_file(tmp_path, {"ada": "one", "bob": "three"})
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: not comes_in(server, eve), "Eve is out", 4)
            assert not comes_in(server, fixed)
            assert comes_in(server, ada) and comes_in(server, header_of(server, "bob", "three"))
            for header in (eve, fixed):
                with pytest.raises(flight.FlightUnauthenticatedError):
                    count(open_one, header)
            assert count(open_one, ada) == 25, "who stays notices nothing"
        # What cannot be understood changes nothing, and a server with users does not lose them all.
        for broken in ("[[users]]\nname = 'ada'\npasswort = 'x'\n", "", "not TOML"):
            file.write_text(broken)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: server.log().count("cannot reload the users") > 0, "a word about it", 10)
            assert comes_in(server, ada)
        # Without a signal too.
        users_file(tmp_path, {"ada": "changed"})
        wait_until(lambda: not comes_in(server, ada), "the old token is worth nothing", 15)
        assert comes_in(server, header_of(server, "ada", "changed"))
