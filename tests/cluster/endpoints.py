"""Results that nodes hand out themselves: tables that are large enough, and clients that go where FlightInfo says."""

import concurrent.futures
import contextlib

import nodes
import protobuf
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq

ROWS = 1_200_000
EVERYTHING = "SELECT x, g, s FROM t"
# More than sockets hold on their way.
LARGE = "SELECT x, g, repeat(s, 8) AS s FROM t"
# Where the rows of the last stage are on several nodes.
SPREAD = [
    EVERYTHING,
    "SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g",
    "SELECT a.x, b.g FROM t a JOIN t b ON a.x = b.g WHERE a.x % 7 = 0",
    "SELECT x FROM t WHERE x % 2 = 0",
]
REUSE = b"arrow-flight-reuse-connection://?"


def write(path, count=ROWS, groups=99_991):
    """A table in five files, whose rows take some megabytes: more than buffers hold that are as small as below."""
    path.mkdir()
    numbers = pa.array(range(count), pa.int64())
    groups = pa.array([number * 7919 % groups for number in range(count)], pa.int32())
    texts = pa.array([f"row {number}" for number in range(count)])
    rows, part = pa.table({"x": numbers, "g": groups, "s": texts}), count // 5
    for number in range(5):
        pq.write_table(rows.slice(number * part, part), path / f"part-{number}.parquet", row_group_size=20_000)
    return path


def settings(**more):
    """Settings of nodes over such a table: everything is worth all nodes, and buffers hold a part of the rows."""
    given = {
        "cluster.bytes_per_thread": 1,
        "result_cache.memory_bytes": 0,
        "engine.threads": 2,
        "limits.result_buffer_bytes": 1 << 20,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return [word for name, value in given.items() for word in ("--set", f"{name}={value}")]


# For tests that lose no node: a machine that does much else makes none of them look lost.
STEADY = {"cluster__suspect_after": "20s", "cluster__dead_after": "40s"}


def started(table, number=3, more=(), proof=None, user=None, **other):
    return nodes.cluster(number, proof, more=[*settings(**other), *more], sources=[f"t={table}"], user=user)


class Client:
    """A client of one node, with the connections to others that its endpoints send it to."""

    def __init__(self, uri, endpoints="auto", user=None, seconds=60 * nodes.BUSY_FACTOR):
        self.infos = []
        self.seconds, self.user = seconds, user
        self.others, self.main = {}, self._connect(uri)
        if endpoints:
            self.run(f"SET endpoints = '{endpoints}'")

    def _connect(self, uri):
        client = flight.connect(uri)
        options = flight.FlightCallOptions(timeout=self.seconds)
        if self.user:
            header = client.authenticate_basic_token(*self.user)
            options = flight.FlightCallOptions(timeout=self.seconds, headers=[header])
        return client, options

    def info(self, sql):
        client, options = self.main
        info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()), options)
        self.infos.append(info)
        return info

    def reader(self, endpoint, at=None):
        """Reads an endpoint where it says, or at another node."""
        uri = at or next((place.uri.decode() for place in endpoint.locations if place.uri != REUSE), None)
        if uri is None:
            client, options = self.main
        else:
            if uri not in self.others:
                self.others[uri] = self._connect(uri)
            client, options = self.others[uri]
        return client.do_get(endpoint.ticket, options)

    def run(self, sql, at=None):
        """All rows, one endpoint after another."""
        info = self.info(sql)
        return pa.concat_tables([self.reader(endpoint, at).read_all() for endpoint in info.endpoints])

    def parallel(self, sql):
        """All rows, all endpoints at once."""
        return self.all_of(self.info(sql))

    def all_of(self, info):
        # Connections are made one after another.
        readers = [self.reader(endpoint) for endpoint in info.endpoints]
        with concurrent.futures.ThreadPoolExecutor(len(readers)) as pool:
            return pa.concat_tables(pool.map(lambda reader: reader.read_all(), readers))

    def cancel(self, info):
        client, options = self.main
        request = protobuf.field(1, info.serialize())
        return list(client.do_action(flight.Action("CancelFlightInfo", request), options))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # What a test leaves that has failed is not for the next one.
        for info in self.infos if kind else []:
            with contextlib.suppress(Exception):
                self.cancel(info)
        for client, _ in [self.main, *self.others.values()]:
            client.close()


def answers(table):
    """The rows of each statement, by one server alone."""
    with nodes.Server(f"t={table}") as server, Client(server.grpc_tcp, endpoints=None) as client:
        return {sql: in_order(client.run(sql)) for sql in SPREAD}


def places(info):
    """Where the endpoints of a result are; `None` for the node that was asked."""
    return [next((place.uri.decode() for place in end.locations if place.uri != REUSE), None) for end in info.endpoints]


def rest(reader):
    """How many rows are left. `read_all` takes a CANCELLED of the server for Ctrl-C."""
    count = 0
    try:
        while True:
            count += reader.read_chunk().data.num_rows
    except StopIteration:
        return count


def in_order(rows):
    return rows.combine_chunks().sort_by([(name, "ascending") for name in rows.column_names])


def idle(members, seconds=15):
    """Nothing of a statement is left anywhere."""
    for member in members:
        member.wait_idle(seconds)
