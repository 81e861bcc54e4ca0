"""Logins over PostgreSQL's protocol: passwords that are proven by SCRAM-SHA-256, and those that are asked for over TLS."""

import asyncio
import socket
import ssl
import struct

import asyncpg
import psycopg
import pytest

from data import PASSWORD
from server import ROOT, Server, hash_password, users_file

TLS = ROOT / "tests" / "data" / "tls"


def test_passwords_are_proven_and_not_shown_and_go_over_tls_alone(guarded):
    """SCRAM-SHA-256, as libpq and asyncpg do it; a server that asked for the password itself would be refused."""
    verified = {"sslmode": "verify-ca", "sslrootcert": str(TLS / "ca.pem"), "require_auth": "scram-sha-256"}
    with psycopg.connect(**guarded.postgres(password=PASSWORD, **verified)) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ada",)
    for options in ({"password": "wrong"}, {"password": PASSWORD, "user": "eve"}, {"password": PASSWORD + " "}):
        with pytest.raises(psycopg.OperationalError, match="user, password or token is wrong"):
            psycopg.connect(**guarded.postgres(**{**verified, **options}))
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(**guarded.postgres(password=PASSWORD, sslmode="disable"))
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(**guarded.postgres(password=PASSWORD, channel_binding="require", **verified))

    async def connected(password):
        parameters = guarded.postgres(password=password)
        context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
        context.check_hostname = False
        connection = await asyncpg.connect(database=parameters.pop("dbname"), timeout=20, ssl=context, **parameters)
        try:
            return await connection.fetchval("SELECT current_user")
        finally:
            await connection.close()

    async def refused():
        with pytest.raises(asyncpg.InvalidPasswordError):
            await connected("wrong")
        # asyncpg closes its socket in a later turn of the loop.
        await asyncio.sleep(0.1)

    assert asyncio.run(connected(PASSWORD)) == "ada"
    asyncio.run(refused())


class Scram:
    """The first half of an exchange on a bare socket: what a server tells of a name before any password."""

    def __init__(self, server, user):
        with socket.create_connection(("127.0.0.1", server.pg_port), timeout=20) as self.socket:
            self.send(b"", struct.pack(">i", 196608) + f"user\0{user}\0\0".encode())
            self.methods = self.receive()
            first = b"n,,n=,r=abcdefgh"
            self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first)
            kind, code, challenge = self.receive()
            assert (kind, code) == (b"R", 11), challenge
            self.parts = dict(part.split("=", 1) for part in challenge.decode().split(","))

    def send(self, kind, body):
        self.socket.sendall(kind + struct.pack(">i", len(body) + 4) + body)

    def receive(self):
        kind, length = struct.unpack(">ci", self.socket.recv(5, socket.MSG_WAITALL))
        body = self.socket.recv(length - 4, socket.MSG_WAITALL)
        return kind, struct.unpack(">i", body[:4])[0], body[4:]


def test_what_is_told_of_a_name_does_not_tell_whether_it_is_a_users(tmp_path, data_folder):
    file, older, salts = users_file(tmp_path, {"ada": "one"}), hash_password("two").split(" ")[0], []
    for _ in range(2):
        with Server(data_folder, arguments=["--pg", "127.0.0.1:0", "--users-file", str(file)]) as server:
            ada, eve, again = Scram(server, "ada"), Scram(server, "eve"), Scram(server, "eve")
            assert ada.methods == eve.methods == (b"R", 10, b"SCRAM-SHA-256\0\0")
            assert ada.parts["i"] == eve.parts["i"] and len(ada.parts["s"]) == len(eve.parts["s"])
            assert eve.parts["s"] == again.parts["s"] != ada.parts["s"]
            assert eve.parts["r"] != again.parts["r"] and eve.parts["r"].startswith("abcdefgh")
            salts.append(eve.parts["s"])
    assert salts[0] == salts[1], "a restart does not tell either"
    # Who has a hash alone, made before there were verifiers, is asked for the password; and so is nobody's name.
    file.write_text(f'[[users]]\nname = "ada"\npassword_hash = "{older}"\n')
    with Server(data_folder, arguments=["--pg", "127.0.0.1:0", "--users-file", str(file)]) as server:
        with psycopg.connect(**server.postgres(password="two", require_auth="password")) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("ada",)
        for user in ("ada", "eve"):
            with pytest.raises(psycopg.OperationalError, match="user, password or token is wrong"):
                psycopg.connect(**server.postgres(user=user, password="x", require_auth="password"))


def test_users_that_sql_makes_prove_their_passwords(tmp_path, data_folder):
    arguments = ["--pg", "127.0.0.1:0", "--users-file", users_file(tmp_path, {"root": "root"}, admins=["root"])]
    proven = {"require_auth": "scram-sha-256"}
    with Server(data_folder, arguments=arguments, data=tmp_path / "data") as server:
        with psycopg.connect(**server.postgres(user="root", password="root", **proven), autocommit=True) as root:
            root.execute("CREATE USER bob PASSWORD 'bob''s own'")
            with psycopg.connect(**server.postgres(user="bob", password="bob's own", **proven), autocommit=True) as bob:
                bob.execute("ALTER USER bob PASSWORD 'bob''s new one'")
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(**server.postgres(user="bob", password="bob's own", **proven))
            psycopg.connect(**server.postgres(user="bob", password="bob's new one", **proven)).close()
    with Server(data_folder, arguments=arguments, data=tmp_path / "data") as server:
        psycopg.connect(**server.postgres(user="bob", password="bob's new one", **proven)).close()
        with psycopg.connect(**server.postgres(user="root", password="root"), autocommit=True) as root:
            root.execute("DROP USER bob")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**server.postgres(user="bob", password="bob's new one", **proven))
