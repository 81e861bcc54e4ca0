"""One measured client, run as its own process so that runs do not share warm memory or threads: takes a JSON order as
its only argument, prints a JSON answer. Connecting and importing are not timed unless the order is about them.
"""

import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))


class FlightTicket:
    """pyarrow.flight, one round trip: the ticket is the table's name or SQL text."""

    def __init__(self, uri):
        import pyarrow.flight as flight

        self.flight = flight
        self.client = flight.FlightClient(uri)

    def reader(self, text):
        return self.client.do_get(self.flight.Ticket(text.encode()))

    def table(self, text):
        return self.reader(text).read_all()

    def batches(self, text):
        for chunk in self.reader(text):
            yield chunk.data


class FlightInfo(FlightTicket):
    """pyarrow.flight, two round trips: GetFlightInfo with SQL text, DoGet of every endpoint."""

    def reader(self, text):
        info = self.client.get_flight_info(self.flight.FlightDescriptor.for_command(text.encode()))
        (endpoint,) = info.endpoints
        return self.client.do_get(endpoint.ticket)


class Adbc:
    """The ADBC Flight SQL driver through its DBAPI."""

    def __init__(self, uri):
        import adbc_driver_flightsql.dbapi as dbapi

        self.connection = dbapi.connect(uri, autocommit=True)

    def table(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetch_arrow_table()


class Quack:
    """DuckDB as client of its own protocol, attached once; the query runs on the server."""

    def __init__(self, uri):
        import duckdb
        import quack

        self.connection = duckdb.connect()
        quack.load(self.connection)
        self.connection.execute(f"CREATE SECRET (TYPE quack, TOKEN '{quack.TOKEN}')")
        self.connection.execute(f"ATTACH '{uri}' AS remote")

    def table(self, text):
        quoted = text.replace("'", "''")
        return self.connection.execute(f"FROM quack_query_by_name('remote', '{quoted}')").to_arrow_table()


KINDS = {"flight-ticket": FlightTicket, "flight-info": FlightInfo, "adbc": Adbc, "quack": Quack}


def in_threads(count, work):
    """Runs `work(index)` in threads; returns the wall time. A failure in one fails all."""
    failures = []

    def guarded(index):
        try:
            work(index)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    return seconds


def drain(order):
    """Reads a result on several connections at once and drops each batch."""
    streams = order["streams"]
    clients = [KINDS[order["kind"]](order["uri"]) for _ in range(streams)]
    runs = []
    for _ in range(order["repeats"]):
        sizes, rows = [0] * streams, [0] * streams

        def work(index):
            for batch in clients[index].batches(order["query"]):
                sizes[index] += batch.nbytes
                rows[index] += batch.num_rows

        seconds = in_threads(streams, work)
        runs.append({"seconds": seconds, "bytes": sum(sizes), "rows": sum(rows)})
    return {"runs": runs}


def fetch(order):
    """Fetches a result as one pyarrow table."""
    client = KINDS[order["kind"]](order["uri"])
    runs = []
    for _ in range(order["repeats"]):
        started = time.perf_counter()
        table = client.table(order["query"])
        seconds = time.perf_counter() - started
        runs.append({"seconds": seconds, "bytes": table.nbytes, "rows": table.num_rows})
        del table
    return {"runs": runs}


def latency(order):
    """Time of a small query, one after the other."""
    client = KINDS[order["kind"]](order["uri"])
    times = []
    for index in range(order["repeats"] + order["warmup"]):
        started = time.perf_counter()
        rows = client.table(order["query"]).num_rows
        if index >= order["warmup"]:
            times.append(time.perf_counter() - started)
        assert rows == 1, rows
    times.sort()
    return {"median_ms": 1e3 * statistics.median(times), "p99_ms": 1e3 * times[int(len(times) * 0.99)]}


def concurrent(order):
    """A small query from many connections at once, for some seconds."""
    clients = [KINDS[order["kind"]](order["uri"]) for _ in range(order["clients"])]
    times = [[] for _ in clients]
    end = time.perf_counter() + order["seconds"]

    def work(index):
        while (started := time.perf_counter()) < end:
            clients[index].table(order["query"])
            times[index].append(time.perf_counter() - started)

    seconds = in_threads(len(clients), work)
    everything = sorted(value for part in times for value in part)
    return {
        "queries_per_second": len(everything) / seconds,
        "median_ms": 1e3 * statistics.median(everything),
        "p99_ms": 1e3 * everything[int(len(everything) * 0.99)],
    }


def paced(order):
    """Reads a result and drops it, sleeping so that no more than `bytes_per_second` are taken; 0 for no limit."""
    client = KINDS[order["kind"]](order["uri"])
    rate, size, rows = order["bytes_per_second"], 0, 0
    started = time.perf_counter()
    for batch in client.batches(order["query"]):
        size += batch.nbytes
        rows += batch.num_rows
        if rate:
            ahead = size / rate - (time.perf_counter() - started)
            if ahead > 0:
                time.sleep(ahead)
    return {"runs": [{"seconds": time.perf_counter() - started, "bytes": size, "rows": rows}]}


ACTIONS = {"drain": drain, "fetch": fetch, "latency": latency, "concurrent": concurrent, "paced": paced}


def main():
    order = json.loads(sys.argv[1])
    print(json.dumps(ACTIONS[order["action"]](order)))


if __name__ == "__main__":
    main()
