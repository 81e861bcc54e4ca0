"""Nodes of a cluster as processes, and what each of them says of the others."""

import contextlib
import pathlib
import secrets
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import http_sql  # noqa: E402
import server  # noqa: E402
from server import BUSY_FACTOR, Server, binaries, clean_environment, wait_until  # noqa: E402, F401

# Short, so that a test sees what happens; long enough for a machine that does much else.
TIMES = ["--set", "cluster.heartbeat=100ms", "--set", "cluster.suspect_after=2s", "--set", "cluster.dead_after=5s"]
PATIENCE = 40


class Node(Server):
    """A server with an internal port. `proof` is what it proves itself with: arguments and environment."""

    def __init__(self, proof, join=(), listen="127.0.0.1:0", more=(), data="memory", sources=(), flight="127.0.0.1:0", user=None):
        arguments, environment = proof
        self.user = user
        joined = ["--join", ",".join(join)] if join else []
        super().__init__(
            *sources,
            arguments=["--cluster", listen, *joined, *TIMES, *arguments, *more],
            environment=environment,
            data=data,
            flight=flight,
        )

    @property
    def cluster(self):
        return self.ports["cluster"]

    def rows(self, sql, user=None):
        """Rows as lists, `None` of what has none; with a user, as a pair of name and password, those that the user sees."""
        user = user or self.user
        answer = http_sql.sql(self, sql, **({"authorization": http_sql.basic(*user)} if user else {}))
        assert answer.status < 300, answer.body
        return answer.json().get("rows")

    def states(self):
        """State of each member by its address."""
        return dict(self.rows("SELECT address, state FROM system.nodes"))

    def identifier(self):
        return self.rows("SELECT node_id FROM system.nodes WHERE this_node")[0][0]

    def until(self, expected, seconds=PATIENCE):
        """Waits until this node sees the others so."""
        seen = {}

        def check():
            seen.update({"now": self.states()})
            return seen["now"] == expected

        try:
            wait_until(check, "states", seconds)
        except AssertionError:
            raise AssertionError(f"{seen['now']}, not {expected}") from None

    def signal(self, number):
        self.process.send_signal(number)


PASSWORD = "a password"


def users_file(folder, **admins):
    """Arguments of nodes that know these users, all with one password; the value says whether one is an admin."""
    admins_alone = [name for name, is_admin in admins.items() if is_admin]
    return ["--users-file", server.users_file(folder, dict.fromkeys(admins, PASSWORD), admins=admins_alone)]


def secret(text=None):
    """A proof by a shared secret."""
    return [], {"BOWSHOT_CLUSTER_SECRET": text or secrets.token_hex(16)}


def run(*arguments, environment=None, said=""):
    """Runs the program to its end, with `said` on its standard input."""
    return subprocess.run(
        [str(binaries() / "bowshot"), *map(str, arguments)],
        capture_output=True,
        input=said,
        text=True,
        timeout=60,
        env=clean_environment(environment),
    )


def certificate(folder, name, hosts=("127.0.0.1",), first=False):
    """A proof by a certificate of the authority in a folder, which is made for the first node."""
    addresses = [word for host in hosts for word in ("--address", host)]
    made = run("cluster", "init" if first else "add-node", "--folder", folder, "--node", name, *addresses)
    assert made.returncode == 0, made.stderr
    place = pathlib.Path(folder) / name
    files = {"authority": "authority.pem", "certificate": "node.pem", "key": "node.key"}
    arguments = [word for key, file in files.items() for word in ("--set", f"cluster.tls.{key}={place / file}")]
    return arguments, {}


@contextlib.contextmanager
def cluster(number, proof=None, **more):
    """Nodes that have found one another: all join the first one."""
    proof = proof or secret()
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(proof, **more))]
        nodes += [stack.enter_context(Node(proof, join=[nodes[0].cluster], **more)) for _ in range(number - 1)]
        all_alive(nodes)
        yield nodes


def all_alive(nodes):
    """Waits until each node sees all of them, and no others, alive."""
    expected = {node.cluster: "alive" for node in nodes}
    for node in nodes:
        node.until(expected)


def connect(node):
    """A connection to the internal port, as anybody can make one."""
    host, port = node.cluster.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


STOP, CONTINUE = signal.SIGSTOP, signal.SIGCONT
