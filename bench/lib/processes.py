"""Starts servers, waits until they say that they are ready, reads what the kernel counts about them."""

import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from . import environments, places

TICKS = os.sysconf("SC_CLK_TCK")
READY_TIMEOUT_S = 120
SETTLED_TIMEOUT_S = 60


@dataclasses.dataclass
class Server:
    """A running server. `kind` says which client code speaks to it; `addresses` are those by front end, where it has several. `pid` is 0
    where there is no server: the database runs in the client's process, and `uri` is its file."""

    name: str
    kind: str
    uri: str
    pid: int
    addresses: dict = dataclasses.field(default_factory=dict)

    def cpu_seconds(self) -> float:
        """User and system time of the process and its children so far."""
        return tree_ticks(self.pid) / TICKS

    def memory(self) -> dict:
        """Resident set in bytes, whole and without file pages."""
        return memory_of(self.pid)

    def metrics(self) -> dict:
        """What it counts about itself: every number without labels, by name."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever the environment says of proxies
        with direct.open(f"{self.addresses['http']}/metrics", timeout=READY_TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
        samples = [line.split() for line in lines if line and not line.startswith("#") and "{" not in line]
        return {name: float(value) for name, value, *_ in samples}


def memory_of(pid: int) -> dict:
    """Resident set of a process in bytes, whole and without file pages; nothing of one that has ended."""
    values = {}
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return values
    for line in lines:
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            values[name] = int(rest.split()[0]) * 1024
    return values


def tree_ticks(pid: int) -> int:
    """Processor time of a process, of its children that are still there, and of those that have ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15]) + sum(tree_ticks(int(child)) for child in children)


class ProcessorTimes:
    """Seconds since now of this process and all that it has started, and of a server, if one is named."""

    def __init__(self, server: int | None):
        self.pids = {"client_cpu_s": os.getpid(), "server_cpu_s": server or 0}
        self.before = {name: tree_ticks(pid) for name, pid in self.pids.items()}

    def so_far(self) -> dict:
        return {name: (tree_ticks(pid) - self.before[name]) / TICKS for name, pid in self.pids.items()}


def settle(servers: list) -> None:
    """Waits until no server works in the background any more, so that nobody pays for what another one left to do."""
    if not servers:
        return
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    os.sync()
    while time.monotonic() < deadline:
        before = [server.cpu_seconds() for server in servers]
        time.sleep(0.5)
        if all(server.cpu_seconds() - value < 0.05 for server, value in zip(servers, before)):
            return
    print("a server is busy although nobody asks anything of it", file=sys.stderr)


class MemorySampler:
    """Samples a server's memory until it is closed; keeps the peaks, and the resident set over time. Of the clients that it
    is told of, it samples the largest at each moment, and all of them together, at the same times.
    """

    def __init__(self, server: Server, interval_s: float = 0.05):
        self.server, self.interval_s = server, interval_s
        self.idle = server.memory()
        self.peak = dict(self.idle)
        self.clients, self.started = [], time.monotonic()
        self.times, self.resident, self.largest_client, self.all_clients = [0.0], [self.idle["VmRSS"]], [0], [0]
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def watch(self, pid: int) -> None:
        """Samples a client too, from now on until it ends."""
        self.clients.append(pid)

    def _run(self):
        while not self.stopped.wait(self.interval_s):
            sample = self.server.memory()
            sizes = [memory_of(pid).get("VmRSS", 0) for pid in list(self.clients)]
            self.times.append(time.monotonic() - self.started)
            self.resident.append(sample["VmRSS"])
            self.largest_client.append(max(sizes, default=0))
            self.all_clients.append(sum(sizes))
            for name, value in sample.items():
                self.peak[name] = max(self.peak[name], value)

    def tenths(self) -> list:
        """The peak of the resident set in each tenth of the time."""
        count = len(self.resident)
        parts = [self.resident[count * part // 10 : count * (part + 1) // 10] for part in range(10)]
        return [max(part) for part in parts if part]

    def over_time(self, count: int, sizes: list | None = None) -> list:
        """At most `count` pairs of seconds and the peak in that part of the time: of the server's resident set, or of other
        `sizes` that were sampled."""
        sizes = self.resident if sizes is None else sizes
        step = max(1, -(-len(sizes) // count))
        return [(round(self.times[start], 2), max(sizes[start : start + step])) for start in range(0, len(sizes), step)]

    def close(self) -> dict:
        self.stopped.set()
        self.thread.join()
        return {
            "idle_rss": self.idle["VmRSS"],
            "peak_rss": self.peak["VmRSS"],
            "peak_above_idle": self.peak["VmRSS"] - self.idle["VmRSS"],
            "peak_anonymous": self.peak["RssAnon"],
        }


@contextlib.contextmanager
def started(name: str, kind: str, command: list, answer, **popen):
    """Runs `command`, calls `answer(process)` for the address, ends the process afterwards."""
    log = tempfile.NamedTemporaryFile("w+", prefix=f"{name}-", suffix=".log")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, **popen)
    try:
        yield Server(name, kind, answer(process), process.pid)
    except Exception:
        log.seek(0)
        print(f"--- {name} ---\n{log.read()[-4000:]}", file=sys.stderr)
        raise
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def wait_until_ready(process, name: str, is_ready):
    """What `is_ready` says at last, asked again and again while the process lives."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not (found := is_ready()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{name} did not start; its exit code: {process.returncode}")
        time.sleep(0.02)
    return found


def is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def first_line(process) -> str:
    """The address that a peer prints as its first line."""
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError("the server ended before it was ready")
    return line


def free_port() -> int:
    """A port that was free just now, for servers that cannot pick one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def bowshot(tables: dict, *options: str, data: str = "memory", kept_results: str = "0", http: str = "off"):
    """Bowshot with the given tables (name to path); `data` is the folder of durable tables, or `memory`. It computes each
    answer, unless `kept_results` gives it memory for those that it has given. `http` is where it tells its metrics."""
    with tempfile.TemporaryDirectory() as folder:
        ports = pathlib.Path(folder) / "ports.json"
        command = [
            places.program("bowshot"), "serve", *as_words(tables),
            "--flight", "127.0.0.1:0", "--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--http", http, "--data", data,
            "--ports-file", str(ports),
            "--set", f"result_cache.memory_bytes={kept_results}", *options,
        ]

        def answer(process):
            wait_until_ready(process, "bowshot", lambda: ports.exists() and ports.stat().st_size > 0)
            return json.loads(ports.read_text())["flight"].replace("grpc://", "grpc+tcp://")

        with started("bowshot", "flight-sql", command, answer) as server:
            server.addresses = json.loads(ports.read_text())
            yield server


def choose_protocol(server: Server, protocol: str) -> Server:
    """The same server by another protocol, `pg` or `mysql`, as the readers of those databases take its address."""
    port = int(server.addresses[protocol].split("://")[1].split("/")[0].rsplit(":", 1)[1])
    if protocol == "pg":
        return dataclasses.replace(server, kind="psycopg", uri=f"postgresql://postgres@127.0.0.1:{port}/postgres")
    return dataclasses.replace(server, kind="pymysql", uri=json.dumps({"port": port, "database": "main"}))


def as_words(tables: dict) -> list:
    return [f"{name}={path}" for name, path in tables.items()]


def peer(name: str, kind: str, script: str, tables: dict, *options: str, environment: str = "main"):
    """A peer written in Python (`bench/peers`), run in one of the environments of `bench/requirements`."""
    command = [str(environments.python(environment)), str(places.PEERS / script), *options, *as_words(tables)]
    return started(name, kind, command, first_line)


def service(script: str, *arguments: str):
    """One of `bench/peers` that speaks HTTP, run by this interpreter; its address is its port."""
    port = free_port()

    def answer(process):
        wait_until_ready(process, script, lambda: is_listening(port))
        return port

    return started(script, "http", [sys.executable, str(places.PEERS / script), str(port), *arguments], answer)


def stock_flight(tables: dict):
    """The stock encoder of the arrow-flight crate behind tonic, serving Arrow IPC files."""
    return started("stock-arrow-flight", "flight-ticket", [places.program("stock_flight"), *as_words(tables)], first_line)


def roapi(tables: dict):
    """ROAPI with all tables in memory, which is its default; its Flight SQL endpoint."""
    ports = {name: free_port() for name in ("http", "postgres", "flight-sql")}
    command = [str(environments.python("roapi").with_name("roapi"))]
    command += [word for name, port in ports.items() for word in (f"--addr-{name}", f"127.0.0.1:{port}")]
    command += [word for table in as_words(tables) for word in ("--table", f"{table},format=parquet")]

    def answer(process):
        wait_until_ready(process, "ROAPI", lambda: is_listening(ports["flight-sql"]))
        return f"grpc+tcp://127.0.0.1:{ports['flight-sql']}"

    return started("roapi", "adbc", command, answer)
