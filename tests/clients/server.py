"""Starts and stops the built program for one test run: own folder, free ports, log shown when something fails."""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The seconds that tests name are those of a machine that does nothing else; beside other work they may take this much longer.
BUSY_FACTOR = float(os.environ.get("BOWSHOT_TEST_BUSY_FACTOR", "6"))


def binaries():
    """The folder of the release programs: BOWSHOT_BIN, else the target folder's."""
    if "BOWSHOT_BIN" in os.environ:
        return pathlib.Path(os.environ["BOWSHOT_BIN"])
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


@functools.cache
def hash_password(password):
    """What the program keeps of a password."""
    command = [binaries() / "bowshot", "hash-password"]
    return subprocess.run(command, input=password.encode(), capture_output=True, timeout=60, check=True).stdout.decode().strip()


def users_file(folder, passwords=(), tokens=(), admins=()):
    """Who may log in, with what: names and their passwords or tokens. Gives the file for `--users-file`."""
    entries = [("users", "name", name, "password_hash", hash_password(password)) for name, password in dict(passwords).items()]
    entries += [("tokens", "user", name, "sha256", hashlib.sha256(token.encode()).hexdigest()) for name, token in dict(tokens).items()]
    file = pathlib.Path(folder) / "users.toml"
    file.write_text(
        "".join(
            f'[[{table}]]\n{key} = "{name}"\n{secret} = "{value}"\n' + ("admin = true\n" if name in admins else "")
            for table, key, name, secret, value in entries
        )
    )
    return file


def wait_until(check, what, seconds=20.0):
    """Asks again until `check` answers something true, and returns that; for what a server does in its own time."""
    seconds *= BUSY_FACTOR
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


def free_port(below=None):
    """A port that is free, of those that the system gives nobody unasked: so nobody takes it before it is used."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        # Not the generator that tests seed: those that run at the same time would choose the same.
        port = random.SystemRandom().randrange(10_000, below or max(first, 20_000))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextlib.contextmanager
def beside(*functions):
    """Runs functions while a block runs. Each gets an event that ends it; the first error of any of them is ours."""
    ended, errors = threading.Event(), []

    def run(function):
        try:
            function(ended)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def repeated(work, pause=0.3):
    """Does something again and again beside a block, until the block ends: a cancel may come before what it is to end, and
    some drivers refuse it then."""

    def repeat(ended):
        while not ended.wait(pause):
            with contextlib.suppress(Exception):
                work()

    return beside(repeat)


def together(*functions):
    """Runs functions at once; the first error of any of them is ours."""
    ready = threading.Barrier(len(functions))
    with beside(*(lambda _, function=function: (ready.wait(30), function()) for function in functions)):
        pass


def clean_environment(more=None):
    """Our environment without settings of the server, and with what a test adds."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOWSHOT_")}
    return {**environment, **(more or {})}


class Process:
    """A program that writes a ports file when it is ready."""

    def __init__(self, program, arguments, ports_flag="--ports-file", environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="bowshot-test-")
        self.terminated = False
        self.killed = False
        self.log_path = pathlib.Path(self.folder.name) / "log"
        self.ports_path = pathlib.Path(self.folder.name) / "ports.json"
        self.command = [str(program), *map(str, arguments), ports_flag, str(self.ports_path)]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(environment)
            )
        try:
            self.ports = wait_until(self._ready, f"ready: {' '.join(self.command)}", 60)
        except AssertionError as error:
            self.process.kill()
            self.process.wait()
            log = self.log()
            self.folder.cleanup()
            raise AssertionError(f"{error}\n{log}") from None

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"ended with {self.process.returncode} before it was ready")
        try:
            return json.loads(self.ports_path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def terminate(self):
        """SIGTERM, once: a second one would cut off what still runs."""
        if self.alive() and not self.terminated:
            self.terminated = True
            self.process.send_signal(signal.SIGTERM)

    def kill(self):
        """SIGKILL: the program gets no chance to tidy up. Gives its log."""
        self.killed = True
        self.process.kill()
        self.process.wait()
        log = self.log()
        self.folder.cleanup()
        return log

    def stop(self):
        """Ends the program; anything but a clean end is an error. Nothing to do after `kill`."""
        if self.killed:
            return
        self.terminate()
        try:
            code = self.process.wait(60 * BUSY_FACTOR)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still there {60 * BUSY_FACTOR:g} s after SIGTERM\n{self.log()}") from None
        log = self.log()
        self.folder.cleanup()
        assert code == 0, f"ended with {code}\n{log}"

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _trace):
        if kind is not None and not self.killed:
            print(f"--- log of {self.command[0]}\n{self.log()[-20000:]}")
        self.stop()


class Server(Process):
    """`bowshot serve` over some sources; `data` is the folder of durable tables."""

    def __init__(self, *sources, arguments=(), data="memory", environment=None, program=None, flight="127.0.0.1:0"):
        super().__init__(
            program or binaries() / "bowshot",
            ["serve", *sources, "--flight", flight, "--http", "127.0.0.1:0", "--data", data, *arguments],
            environment=environment,
        )

    @property
    def flight(self):
        return self.ports["flight"]

    @property
    def http(self):
        return self.ports["http"].rstrip("/")

    @property
    def pg_port(self):
        """The port of PostgreSQL's protocol; only with `--pg` among the arguments."""
        return int(self.ports["pg"].split("://")[1].split("/")[0].rsplit(":", 1)[1])

    @property
    def mysql_port(self):
        """The port of MySQL's protocol; only with `--mysql` among the arguments."""
        return int(self.ports["mysql"].split("://")[1].split("/")[0].rsplit(":", 1)[1])

    def postgres(self, **more):
        """What drivers of PostgreSQL connect with."""
        return {"host": "127.0.0.1", "port": self.pg_port, "user": "ada", "dbname": "bowshot", **more}

    def mysql(self, **more):
        """What drivers of MySQL connect with."""
        return {"host": "127.0.0.1", "port": self.mysql_port, "user": "ada", "database": "main", **more}

    @property
    def host(self):
        return self.flight.split("://")[1].rsplit(":", 1)[0]

    @property
    def port(self):
        return int(self.flight.rsplit(":", 1)[1].rstrip("/"))

    @property
    def grpc_tcp(self):
        """The address as the ADBC drivers and pyarrow both read it."""
        return f"grpc+tcp://{self.host}:{self.port}"

    def get(self, path):
        """Status, headers and text of an HTTP path."""
        try:
            with urllib.request.urlopen(self.http + path, timeout=10 * BUSY_FACTOR) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def metrics(self):
        """Every sample without labels, as numbers."""
        status, _, text = self.get("/metrics")
        assert status == 200, text
        samples = {}
        for line in text.splitlines():
            if line and not line.startswith("#") and "{" not in line:
                name, value = line.split()[:2]
                samples[name] = float(value)
        return samples

    def held(self):
        """What the server holds for queries right now; all zero when it is idle."""
        names = [
            "bowshot_running_queries",
            "bowshot_queued_queries",
            "bowshot_open_results",
            "bowshot_result_buffer_bytes",
            "bowshot_result_spill_bytes",
            "bowshot_query_memory_bytes",
        ]
        samples = self.metrics()
        return {name: samples[name] for name in names if samples[name] != 0}

    def wait_idle(self, seconds=1.0):
        """The promise: whatever a client did, a second later nothing of it is held."""
        last = {}

        def idle():
            nonlocal last
            last = self.held()
            return not last

        try:
            wait_until(idle, "idle", seconds)
        except AssertionError:
            raise AssertionError(f"still held after {seconds * BUSY_FACTOR:g} s: {last}") from None


def computing(*sources, environment=None, **options):
    """A server that computes each answer, also one that it has given before."""
    return Server(*sources, environment={"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0", **(environment or {})}, **options)
