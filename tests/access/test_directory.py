"""Users whose passwords a directory knows (slapd): who gets in through which door, with which roles, and who does not,
whatever the name looks like and whatever happens to the directory."""


import psycopg
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import directory as slapd
import world
from directory import ODD, PEOPLE, READER
from directory_served import NAMED, REFUSED, ROLES, SETUP, basic, connect, entry, rows, searched, serving
from server import wait_until
from world import Refused, do, psycopg_connect, wait_for_end

# What would be another name, another filter, everybody, or nobody, if it were not a value.
INJECTIONS = [
    "*", "a*", "*)(uid=*", "ann)(|(uid=*", "*)(&", "ann)(cn=*))(|(uid=x", "\\2a", "\\00", "ann\\00", "ann\\", "ann\\29",
    f"ann,{PEOPLE}", "ann,ou=people", "ann+cn=ann", "ann\\2c", "#ann", " ann", "ann ", "ANN", "Ann", "ann,", "=", "(", ")", "&", "|",
    ODD + "x", ODD.upper(), "{user}", "{dn}", "x" * 128, "x" * 5000, "ﬀ", "ann\u0301",
]  # fmt: skip


@pytest.fixture(scope="module", params=["named", "searched"])
def made(request, tmp_path_factory, there):
    how = NAMED if request.param == "named" else searched(there.password_file())
    with serving(tmp_path_factory.mktemp("served"), entry(there, "insecure = true\ncache_seconds = 0\n" + how + ROLES)) as made:
        yield made


@pytest.mark.parametrize("door", world.DOORS)
def test_a_user_of_the_directory_at_every_door(made, door):
    with connect(made.server, door, "ann", "ann's own") as connection:
        assert connection.rows("SELECT current_user") == [("ann",)]
        assert connection.rows("SELECT id FROM t") == [("1",)], "the role and the policy of the groups"
    for password in ("ben's own", "ann's own ", "x"):
        with pytest.raises(REFUSED):
            rows(made.server, door, "ann", password)


def test_roles_come_of_groups(made):
    with pytest.raises(Refused, match="not found"):
        rows(made.server, "flight", "ben", "ben's own", "SELECT id FROM t")
    # Whose group is called as a user of the server is not that user, and rights are no group's but a role's.
    assert rows(made.server, "flight", "ben", "ben's own") == [("ben",)]
    assert len(rows(made.server, "postgres", ODD, slapd.PASSWORDS[ODD], "SELECT id FROM t")) == 0, "no policy of its own"
    assert rows(made.server, "mysql", ODD, slapd.PASSWORDS[ODD]) == [(ODD,)]
    with connect(made.server, "flight", "kim", "kim's own") as kim:
        do(kim, "CREATE ROLE made_by_kim", "DROP ROLE made_by_kim")
    with pytest.raises(Refused, match="may not change access rules"):
        rows(made.server, "flight", "ann", "ann's own", "CREATE ROLE made_by_ann")


def test_a_handshake_gives_a_token(made):
    with flight.connect(made.server.grpc_tcp) as client:
        header = client.authenticate_basic_token("ann", "ann's own")
        options = flight.FlightCallOptions(headers=[header])
        assert client.do_get(flight.Ticket(b"SELECT id FROM t"), options).read_all().to_pydict() == {"id": [1]}
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.authenticate_basic_token("ann", "wrong")


def test_an_empty_password_is_no_question(made, there):
    """This directory takes a name without a password for nobody in particular, and says yes."""
    before = there.binds()
    for user in ("ann", "root", "nobody", READER):
        status, body = basic(made.server, user, "")
        assert status == 401, body
    with flight.connect(made.server.grpc_tcp) as client, pytest.raises(flight.FlightError):
        client.authenticate_basic_token("ann", "")
    for door in ("postgres", "mysql"):
        with pytest.raises(REFUSED):
            rows(made.server, door, "ann", "")
    assert there.binds() == before, "the directory was asked"


@pytest.mark.parametrize("user", INJECTIONS)
def test_a_name_is_a_value(made, user):
    for password in ("ann's own", slapd.PASSWORDS[ODD], "x"):
        # A name is text in headers: what HTTP cannot carry goes another way.
        status, body = basic(made.server, user, password)
        assert status == 401, (user, password, body)
    if len(user) < 200:
        with pytest.raises(REFUSED):
            rows(made.server, "postgres", user, "ann's own")
    assert basic(made.server, "ann", "ann's own")[0] == 200, "others get in"


def test_unknown_users_and_odd_passwords(made):
    for user, password in (("nobody", "x"), ("ann", "*"), ("ann", "x" * 1025), ("ann", "a\\00"), ("", "x")):
        assert basic(made.server, user, password)[0] == 401, (user, password)
    for user in ("", "a\0b", "a:b"):
        with flight.connect(made.server.grpc_tcp) as client, pytest.raises((flight.FlightError, pa.ArrowException)):
            client.authenticate_basic_token(user, "x")


def test_users_of_the_server_are_not_the_directorys(made, there):
    before = there.binds()
    assert rows(made.server, "flight", "ada", "ada's own") == [("ada",)]
    assert rows(made.server, "postgres", "root", world.PASSWORDS["root"]) == [("root",)]
    for user, password in (("root", "not root's"), ("ada", "x"), ("dave", "x")):
        assert basic(made.server, user, password)[0] == 401
    assert there.binds() == before, "passwords of the server's own users have left it"


def test_the_question_is_the_same_for_everybody(made):
    """PostgreSQL's clients are asked for the password itself, whoever they say they are: another question would tell whose names
    are the server's own."""
    for user in ("root", "ada", "dave", "ann", "nobody"):
        with pytest.raises(psycopg.OperationalError) as refused:
            psycopg_connect(made.server, user, "x", require_auth="scram-sha-256")
        assert "password" in str(refused.value), user


def test_local_users_with_the_directorys_password(tmp_path, there):
    there.change("ldapadd", text=slapd.ldif([(slapd.dn("dave"), {
        "objectClass": ["inetOrgPerson"], "uid": ["dave"], "cn": ["d"], "sn": ["d"], "userPassword": ["dave's own"]})]))  # fmt: skip
    more = "insecure = true\nlocal_users = true\n" + NAMED
    setup = [*SETUP, "GRANT SELECT ON t TO dave", "CREATE ROW POLICY daves ON t FOR dave USING (id = 2)"]
    with serving(tmp_path, entry(there, more), setup=setup) as made:
        assert rows(made.server, "flight", "dave", "dave's own", "SELECT id FROM t") == [("2",)], "the user that the server knows"
        before = there.binds()
        assert basic(made.server, "ada", "x")[0] == 401, "who has a password here has no second one"
        assert there.binds() == before
    there.change("ldapdelete", slapd.dn("dave"))


def test_what_was_right_is_not_asked_again_for_a_while(tmp_path, there):
    more = "insecure = true\ncache_seconds = 2\n" + searched(there.password_file()) + ROLES
    with serving(tmp_path, entry(there, more)) as made:
        assert basic(made.server, "ann", "ann's own")[0] == 200
        before = there.binds()
        for _ in range(5):
            assert basic(made.server, "ann", "ann's own")[0] == 200
        assert there.binds() == before
        for count in range(1, 4):
            assert basic(made.server, "ann", "wrong")[0] == 401
        assert there.binds() > before, "a wrong password is asked about each time"
        there.set_password("ann", "another")
        try:
            wait_until(lambda: basic(made.server, "ann", "ann's own")[0] == 401, "the old password is worth nothing")
            assert basic(made.server, "ann", "another")[0] == 200
        finally:
            there.set_password("ann", "ann's own")


def test_a_login_ends_with_its_time(tmp_path, there):
    with serving(tmp_path, entry(there, "insecure = true\nsession_seconds = 2\n" + NAMED + ROLES)) as made:
        connection = connect(made.server, "postgres", "ann", "ann's own")
        assert connection.rows("SELECT id FROM t") == [("1",)]
        wait_for_end(connection)
