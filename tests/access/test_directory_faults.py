"""A directory that is gone, slow, lies, or whose certificate nobody vouches for; what stops the start."""

import contextlib
import json
import socket
import ssl
import threading

import pyarrow.flight as flight
import pymysql
import pytest

import directory as slapd
import world
from authority import Authority
from directory import BASE, GROUPS, READER, Directory
from directory_served import NAMED, REFUSED, ROLES, basic, connect, entry, rows, searched, serving
from server import Server, free_port, wait_until
from world import psycopg_connect, wait_for_end


def test_a_directory_that_is_gone_from_the_file_lets_nobody_in(tmp_path, there):
    with serving(tmp_path, entry(there, "insecure = true\n" + NAMED + ROLES)) as made:
        connection = connect(made.server, "postgres", "ann", "ann's own")
        assert connection.rows("SELECT id FROM t") == [("1",)]
        world.users_file(tmp_path)
        made.server.process.send_signal(1)
        wait_for_end(connection)
        assert basic(made.server, "ann", "ann's own")[0] == 401
        assert rows(made.server, "flight", "ada", "ada's own") == [("ada",)]


@pytest.mark.parametrize("how", ["named", "searched"])
def test_a_directory_that_ends_while_we_serve(tmp_path, how):
    own = Directory(tmp_path / "d", free_port())
    how = NAMED if how == "named" else searched(own.password_file())
    with contextlib.closing(own):
        with serving(tmp_path / "s", entry(own, "insecure = true\ncache_seconds = 0\ntimeout_seconds = 2\n" + how + ROLES)) as made:
            assert basic(made.server, "ann", "ann's own")[0] == 200
            own.close()
            for user, password in (("ann", "ann's own"), ("ann", "x"), ("nobody", "x")):
                status, body = basic(made.server, user, password)
                assert status == 503 and "does not answer" in body, (status, body)
            with flight.connect(made.server.grpc_tcp) as client, pytest.raises(flight.FlightUnavailableError, match="does not answer"):
                client.authenticate_basic_token("ann", "ann's own")
            for door in ("postgres", "mysql"):
                with pytest.raises(REFUSED, match="does not answer"):
                    rows(made.server, door, "ann", "ann's own")
            assert rows(made.server, "flight", "ada", "ada's own") == [("ada",)], "the server's own users"
            assert "does not answer" in made.server.log() and "ann's own" not in made.server.log()
            own.start()
            assert basic(made.server, "ann", "ann's own")[0] == 200, "at once, when it is back"


def test_a_directory_that_does_not_answer_holds_nobody_else_up(tmp_path):
    """It takes connections and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        more = f'\n[[ldap]]\nurl = "ldap://127.0.0.1:{silent.getsockname()[1]}"\ninsecure = true\ntimeout_seconds = 5\nmax_connections = 2\n{NAMED}'
        with serving(tmp_path, more) as made:
            answers = []
            threads = [threading.Thread(target=lambda n=n: answers.append(basic(made.server, f"u{n}", "x"))) for n in range(4)]
            [thread.start() for thread in threads]
            assert rows(made.server, "flight", "ada", "ada's own") == [("ada",)]
            assert answers == [], "a user of the server's own waited"
            [thread.join() for thread in threads]
            assert [status for status, _ in answers] == [503] * 4, answers


def test_answers_that_are_no_answers(tmp_path):
    """A directory that says something else than it was asked, or that it is none."""
    answer = {"bytes": b""}
    with socket.socket() as odd:
        odd.bind(("127.0.0.1", 0))
        odd.listen(100)

        def talk():
            with contextlib.suppress(OSError):
                while True:
                    one, _ = odd.accept()
                    with one, contextlib.suppress(OSError):
                        one.recv(4096)
                        one.sendall(answer["bytes"])

        threading.Thread(target=talk, daemon=True).start()
        more = f'\n[[ldap]]\nurl = "ldap://127.0.0.1:{odd.getsockname()[1]}"\ninsecure = true\ntimeout_seconds = 1\n{NAMED}'
        with serving(tmp_path, more) as made:
            for said in (
                b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\x30\x00", b"\xff" * 1000, b"\x30\x84\xff\xff\xff\xff",
                bytes.fromhex("300c02010161070a010004000400")[:7],
                # A success, for another question; the end of a search that nobody asked for.
                bytes.fromhex("300c02014161070a010004000400"), bytes.fromhex("300c02010165070a010004000400"),
                # A bind's answer of the wrong form.
                bytes.fromhex("30050201016100"), bytes.fromhex("30070201016102" + "0a00"),
            ):  # fmt: skip
                answer["bytes"] = said
                status, body = basic(made.server, "ann", "x")
                assert status in (401, 503), (said, body)
            assert rows(made.server, "flight", "ada", "ada's own") == [("ada",)]
        odd.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("secure", [True, False])
def test_tls_to_the_directory(tmp_path, authority, secure):
    own = Directory(tmp_path / "d", free_port(), authority.server(), authority.own, secure=secure)
    others = Authority(tmp_path / "others")
    start = "" if secure else "starttls = true\n"
    with contextlib.closing(own):
        with serving(tmp_path / "good", entry(own, f'{start}ca_file = "{authority.own.pem}"\n{NAMED}{ROLES}')) as made:
            assert basic(made.server, "ann", "ann's own")[0] == 200
            assert basic(made.server, "ann", "x")[0] == 401
        for number, ca in enumerate((f'ca_file = "{others.own.pem}"\n', "")):
            before = own.binds()
            with serving(tmp_path / f"bad{number}", entry(own, start + ca + NAMED)) as made:
                assert basic(made.server, "ann", "ann's own")[0] == 503, "another authority vouches for it"
            assert own.binds() == before, "the password was sent"


def test_starttls_that_is_refused_is_no_reason_to_go_on_without(tmp_path, there, authority):
    before = there.binds()
    with serving(tmp_path, entry(there, f'starttls = true\nca_file = "{authority.own.pem}"\n{NAMED}')) as made:
        status, body = basic(made.server, "ann", "ann's own")
        assert status == 503 and "does not answer" in body, body
    assert there.binds() == before, "the password was sent"


def test_the_password_of_the_account(tmp_path, there):
    """It may come of the environment, and may change in its file; a wrong one lets nobody in."""
    more = f'insecure = true\ncache_seconds = 0\nuser_base = "{BASE}"\nbind_dn = "{READER}"\nbind_password_env = "READER_PASSWORD"\n'
    with serving(tmp_path / "env", entry(there, more), environment={"READER_PASSWORD": slapd.READER_PASSWORD}) as made:
        assert basic(made.server, "ann", "ann's own")[0] == 200
    file = there.password_file("wrong")
    with serving(tmp_path / "file", entry(there, "insecure = true\ncache_seconds = 0\n" + searched(file))) as made:
        assert basic(made.server, "ann", "ann's own")[0] == 503
        file.write_text(slapd.READER_PASSWORD)
        assert basic(made.server, "ann", "ann's own")[0] == 200
        file.write_text("")
        assert basic(made.server, "ann", "ann's own")[0] == 503


def test_two_entries_of_one_name(tmp_path):
    own = Directory(tmp_path / "d", free_port())
    with contextlib.closing(own):
        other = f"uid=ann,{GROUPS}"
        own.change("ldapadd", text=slapd.ldif([(other, {
            "objectClass": ["inetOrgPerson"], "uid": ["ann"], "cn": ["a"], "sn": ["a"], "userPassword": ["hers too"]})]))  # fmt: skip
        with serving(tmp_path / "s", entry(own, "insecure = true\n" + searched(own.password_file()))) as made:
            for password in ("ann's own", "hers too"):
                assert basic(made.server, "ann", password)[0] == 401
            assert basic(made.server, "ben", "ben's own")[0] == 200


def test_over_tls_for_clients_of_other_machines(tmp_path, there, authority):
    """The password itself goes over TLS: PostgreSQL's clients send it when asked, MySQL's by full authentication."""
    pair = authority.server()
    arguments = ["--tls-certificate", str(pair.pem), "--tls-key", str(pair.key), "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
    file = world.users_file(tmp_path, entry(there, "insecure = true\n" + NAMED + ROLES))
    with Server(arguments=["--users-file", str(file), *arguments]) as server:
        trust = {"sslmode": "verify-full", "sslrootcert": str(authority.own.pem)}
        with psycopg_connect(server, "ann", "ann's own", **trust) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("ann",)
        context = ssl.create_default_context(cafile=str(authority.own.pem))
        for password, good in (("ann's own", True), ("x", False), ("", False)):
            try:
                connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="ann", password=password, ssl=context)
                with connection, connection.cursor() as cursor:
                    cursor.execute("SELECT current_user()")
                    assert good and "ann" in str(cursor.fetchone())
            except pymysql.Error:
                assert not good, password


def test_roles_and_user_are_in_the_trail(tmp_path, there):
    environment = {"BOWSHOT_AUDIT_FILE": str(tmp_path / "audit.jsonl")}
    with serving(tmp_path / "s", entry(there, "insecure = true\n" + NAMED + ROLES), environment) as made:
        assert rows(made.server, "flight", "ann", "ann's own", "SELECT id FROM t") == [("1",)]

        def told():
            lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
            return [line for line in lines if line["statement"] == "SELECT id FROM t"]

        assert wait_until(told, "the read is told")[0]["user"] == "ann"
