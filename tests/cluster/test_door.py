"""The internal port lets in nodes of its cluster, and nobody else, whatever they send."""

import concurrent.futures
import socket
import ssl
import time

import nodes
import pytest

# What a connection may take until it is closed that proves nothing.
CLOSED_WITHIN = 15

HOSTILE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "postgres": b"\0\0\0\x08\x04\xd2\x16\x2f",
    "tls": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    "zeros": bytes(100_000),
    "ones": b"\xff" * 100_000,
    "line": b"a" * 100_000,
    "members": b"bowshot-cluster/1 members\n\0\0\0\2{}",
    "work": b"bowshot-cluster/1 work 00000000-0000-0000-0000-000000000000\n",
    "hello": b"bowshot-cluster/1 secret " + b"0" * 64 + b"\n" + b"1" * 64 + b"\nbowshot-cluster/1 members\n",
    "half a hello": b"bowshot-cluster/1 sec",
    "nothing": b"",
}


@pytest.fixture(scope="module", params=["secret", "certificates"])
def guarded(request, tmp_path_factory):
    """Two nodes that know one another by the one or the other proof."""
    if request.param == "secret":
        proof = nodes.secret()
    else:
        proof = nodes.certificate(tmp_path_factory.mktemp("authority"), "one", first=True)
    with nodes.cluster(2, proof) as members:
        yield members


def closed(connection):
    """What the other side sends until it closes."""
    answer = b""
    connection.settimeout(CLOSED_WITHIN)
    try:
        while chunk := connection.recv(1 << 16):
            answer += chunk
    except ConnectionError:
        pass
    return answer


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_bytes_are_closed(guarded, what):
    began = time.monotonic()
    with nodes.connect(guarded[0]) as connection:
        try:
            connection.sendall(HOSTILE[what])
        except ConnectionError:
            pass
        answer = closed(connection)
    assert time.monotonic() - began < CLOSED_WITHIN
    assert b"HTTP" not in answer and b'"kind"' not in answer, answer
    nodes.all_alive(guarded)


def test_slow_ones_and_many_ones_keep_nobody_out(guarded):
    def drip(_):
        with nodes.connect(guarded[0]) as connection:
            try:
                for _ in range(CLOSED_WITHIN * 4):
                    connection.sendall(b"b")
                    time.sleep(0.25)
            except (ConnectionError, socket.timeout):
                return True
        return False

    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert all(pool.map(drip, range(100)))
    nodes.all_alive(guarded)
    # They cost a line now and then, and not one for each.
    assert guarded[0].log().count("refused") < 20, guarded[0].log()
    _, _, metrics = guarded[0].get("/metrics")
    assert "bowshot_cluster_refused_connections_total" in metrics


def test_another_secret_is_refused():
    with nodes.cluster(1) as [first]:
        refused = nodes.run(
            "serve", "--flight", "127.0.0.1:0", "--http", "off", "--cluster", "127.0.0.1:0", "--join", first.cluster,
            environment=nodes.secret()[1],
        )  # fmt: skip
        assert refused.returncode == 1 and "another secret" in refused.stderr, refused
        assert "the same secret" in refused.stderr
        assert list(first.states()) == [first.cluster]


def test_a_foreign_authority_is_refused(tmp_path):
    ours = nodes.certificate(tmp_path / "ours", "one", first=True)
    theirs = nodes.certificate(tmp_path / "theirs", "one", first=True)
    two = nodes.certificate(tmp_path / "ours", "two")
    with nodes.cluster(1, ours) as [first]:
        refused = nodes.run(
            "serve", "--flight", "127.0.0.1:0", "--http", "off", "--cluster", "127.0.0.1:0", "--join", first.cluster,
            *theirs[0],
        )  # fmt: skip
        assert refused.returncode == 1 and "refused this node" in refused.stderr, refused
        assert list(first.states()) == [first.cluster]
        with nodes.Node(two, join=[first.cluster]) as second:
            nodes.all_alive([first, second])
        # A client without a certificate, and with one of another authority: TLS itself ends it.
        host, port = first.cluster.rsplit(":", 1)
        foreign = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        foreign.check_hostname, foreign.verify_mode = False, ssl.CERT_NONE
        for own in (None, tmp_path / "theirs" / "one"):
            if own:
                foreign.load_cert_chain(own / "node.pem", own / "node.key")
            with pytest.raises((ssl.SSLError, ConnectionError)):
                with socket.create_connection((host, int(port)), timeout=CLOSED_WITHIN) as plain:
                    with foreign.wrap_socket(plain) as connection:
                        connection.sendall(b"bowshot-cluster/1 members\n")
                        if not connection.recv(1):
                            raise ConnectionError("closed")


def test_settings_that_would_leave_the_port_open_are_refused(tmp_path):
    serve = ["serve", "--flight", "127.0.0.1:0", "--http", "off", "--cluster"]
    secret = nodes.secret()[1]
    for arguments, environment, words in [
        ([*serve, "127.0.0.1:0"], {}, "bowshot cluster init"),
        ([*serve, "0.0.0.0:0", "--advertise", "10.0.0.1:7400"], secret, "does not protect"),
        ([*serve, "127.0.0.1:0"], {"BOWSHOT_CLUSTER_SECRET": "short"}, "16 bytes"),
        ([*serve, "127.0.0.1:0", "--set", "cluster.secret=" + "s" * 32], {}, "every user of this machine"),
        ([*serve, "127.0.0.1:0", "--set", f"cluster.tls.key={tmp_path}"], {}, "authority"),
        (["serve", "--flight", "127.0.0.1:0", "--http", "off", "--join", "127.0.0.1:1"], {}, "no cluster port"),
        ([*serve, "127.0.0.1:0", "--join", "nowhere"], secret, "HOST:PORT"),
    ]:
        refused = nodes.run(*arguments, environment=environment)
        assert refused.returncode == 2 and words in refused.stderr, (arguments, refused)
        assert "s" * 32 not in refused.stderr


def test_the_authority_is_made_once_and_its_keys_are_the_owners(tmp_path):
    nodes.certificate(tmp_path, "one", first=True)
    for key in (tmp_path / "authority.key", tmp_path / "one" / "node.key"):
        assert key.stat().st_mode & 0o777 == 0o600
    again = nodes.run("cluster", "init", "--folder", tmp_path)
    assert again.returncode == 2 and "exists" in again.stderr, again
    assert nodes.run("cluster", "add-node", "--folder", tmp_path, "--node", "../x", "--address", "a").returncode == 2
