"""Tokens that users make for their programs: made, used at every door, listed, dropped."""

import psycopg
import pyarrow.flight as flight
import pytest

import world
from test_identity import bearer
from world import OPEN, Refused, psycopg_connect, refused, wait_for_end

SETUP = [
    "CREATE TABLE t (id INTEGER)",
    "INSERT INTO t VALUES (7)",
    "CREATE USER ada PASSWORD 'ada''s own'",
    "CREATE USER bob PASSWORD 'bob''s own'",
    "GRANT SELECT ON t TO ada",
]


def token(connection, name, more=""):
    rows = connection.rows(f"CREATE TOKEN {name} {more}")
    assert len(rows) == 1 and rows[0][0] == name, rows
    assert rows[0][1].startswith("bst_") and len(rows[0][1]) == 47
    return rows[0][1]


def at(made, door, user, password):
    return OPEN[door](made.server, f"token:{user}" if door.startswith("postgres") else user, password)


@pytest.mark.parametrize("door", world.DOORS)
def test_made_and_used_at_every_door(made, door):
    own = made.at("ada", door)
    secret = token(own, f"of_{door}", "EXPIRES '30 days'")
    for other in world.DOORS:
        with at(made, other, "ada", secret) as connection:
            assert connection.rows("SELECT current_user, id FROM t") == [("ada", "7")]
        with pytest.raises((Refused, psycopg.Error, Exception), match="(?i)wrong|unauth"):
            at(made, other, "bob", secret).rows("SELECT 1")
    assert bearer(made, secret, "SELECT id FROM t")[0] == 200
    listed = own.rows("SELECT token_name, user_name FROM system.tokens")
    assert (f"of_{door}", "ada") in listed and secret not in str(own.rows("SELECT * FROM system.tokens"))
    own.rows(f"DROP TOKEN of_{door}")
    assert bearer(made, secret)[0] == 401


def test_a_dropped_token_is_worth_nothing_on_open_connections_too(made):
    ada = made.at("ada")
    secret = token(ada, "soon_gone")
    with flight.connect(made.server.grpc_tcp) as client:
        options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {secret}".encode())])
        assert client.do_get(flight.Ticket(b"SELECT id FROM t"), options).read_all().num_rows == 1
        ada.rows("DROP TOKEN soon_gone")
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.do_get(flight.Ticket(b"SELECT id FROM t"), options).read_all()


def test_sessions_end_with_their_token(made):
    ada = made.at("ada")
    secret = token(ada, "of_sessions")
    opened = [at(made, door, "ada", secret) for door in world.DOORS]
    for connection in opened:
        assert connection.rows("SELECT 1") == [("1",)]
    ada.rows("DROP TOKEN of_sessions")
    for connection in opened:
        wait_for_end(connection, 5)
    assert ada.rows("SELECT 1") == [("1",)], "her other sessions go on"


def test_tokens_are_their_users_affair(made):
    root, ada, bob = made.at("root"), made.at("ada"), made.at("bob")
    token(ada, "mine")
    for sql in ("CREATE TOKEN theirs FOR ada", "DROP TOKEN mine FOR ada", "CREATE TOKEN x FOR nobody"):
        refused(bob, sql, "may not change access rules")
    assert bob.rows("SELECT * FROM system.tokens WHERE user_name = 'ada'") == []
    assert bob.rows("CREATE TOKEN mine EXPIRES NEVER")[0][2] is None, "names are each user's own"
    refused(ada, "CREATE TOKEN mine", "already")
    refused(ada, "DROP TOKEN none", "no token")
    ada.rows("DROP TOKEN IF EXISTS none")
    secret = token(root, "made_by_root", "FOR bob")
    assert '"bob"' in bearer(made, secret, "SELECT current_user AS u")[1]
    assert len(root.rows("SELECT * FROM system.tokens WHERE user_name IN ('ada', 'bob')")) == 3
    root.rows("DROP TOKEN made_by_root FOR bob")
    ada.rows("DROP TOKEN mine")


def test_a_dropped_user_takes_tokens_along(made):
    root = made.at("root")
    root.rows("CREATE USER carl PASSWORD 'carl''s own'")
    secret = token(made.at("carl"), "of_carl")
    assert bearer(made, secret)[0] == 200
    root.rows("DROP USER carl")
    assert bearer(made, secret)[0] == 401
    root.rows("CREATE USER carl PASSWORD 'another'")
    assert bearer(made, secret)[0] == 401, "the new Carl is another"
    root.rows("DROP USER carl")


def test_what_is_rolled_back_was_never_a_token(made):
    with psycopg_connect(made.server, "ada") as connection:
        secret = connection.execute("CREATE TOKEN never").fetchone()[1]
        assert bearer(made, secret)[0] == 401
        connection.rollback()
        assert bearer(made, secret)[0] == 401
        secret = connection.execute("CREATE TOKEN there").fetchone()[1]
        connection.commit()
        assert bearer(made, secret)[0] == 200
        connection.execute("DROP TOKEN there")


def test_tokens_are_no_rules_and_outlive_a_restart(tmp_path):
    for turn in (1, 2):
        folder = tmp_path if turn == 1 else tmp_path / "again"
        folder.mkdir(exist_ok=True)
        if turn == 2:
            (tmp_path / "data").rename(folder / "data")
        with world.world(folder, ["CREATE TABLE open_to_all (id INTEGER)"] if turn == 1 else []) as made:
            if turn == 1:
                secret = token(made.at("root"), "of_root")
            status, body = bearer(made, secret, "SELECT count(*) AS n FROM open_to_all")
            assert status == 200, body
            assert made.at("root").rows("SELECT * FROM system.grants") == []
