"""Questions from the bench's own process, by pyarrow's Flight client: where what is measured depends on what was asked
before.
"""

import time

import pyarrow as pa
import pyarrow.flight as flight

from . import measure, tpc
from .options import Options


def answer(client: flight.FlightClient, sql: str) -> pa.Table:
    return client.do_get(flight.Ticket(sql.encode())).read_all()


def timed(client: flight.FlightClient, sql: str) -> dict:
    """Seconds until the whole answer is here, its rows and bytes."""
    start = time.perf_counter()
    table = answer(client, sql)
    return {"seconds": time.perf_counter() - start, "rows": table.num_rows, "bytes": table.nbytes}


def explained(client: flight.FlightClient, sql: str) -> str:
    return str(answer(client, f"EXPLAIN {sql}").to_pydict())


def dashboard(source: str, keys: list, values: list, filters: list) -> list:
    """Queries that group the same rows: by each key for each value, by every other key with a condition."""
    return [
        f"SELECT {key}, {value} FROM {source}" + (f" WHERE {condition}" if at % 2 else "") + f" GROUP BY {key}"
        for at, key in enumerate(keys)
        for value, condition in zip(values, filters, strict=True)
    ]


def all_in_turn(queries: list, clients: dict, options: Options) -> dict:
    """By label of a client the time of all queries, which it has asked before; all answers are those that the last client had first."""
    *_, expected = ([answer(client, sql) for sql in queries] for client in clients.values())

    def once(client):
        start = time.perf_counter()
        found = [answer(client, sql) for sql in queries]
        seconds = time.perf_counter() - start
        for sql, ours, theirs in zip(queries, found, expected, strict=True):
            tpc.expect_equal(sql, ours, theirs)
        return {"seconds": seconds}

    answers = measure.in_turn(list(clients.items()), options, once)
    return {label: measure.medians(answers[label], "seconds") for label in answers}


def wait_until(is_so, seconds: float, failure: str) -> None:
    """Looks again and again for so long; says what did not come about."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(failure)
        time.sleep(0.2)
