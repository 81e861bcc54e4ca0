"""Questions from the bench's own process, by pyarrow's Flight client: where what is measured depends on what was asked
before.
"""

import time

import pyarrow as pa
import pyarrow.flight as flight


def answer(client: flight.FlightClient, sql: str) -> pa.Table:
    return client.do_get(flight.Ticket(sql.encode())).read_all()


def timed(client: flight.FlightClient, sql: str) -> dict:
    """Seconds until the whole answer is here, its rows and bytes."""
    start = time.perf_counter()
    table = answer(client, sql)
    return {"seconds": time.perf_counter() - start, "rows": table.num_rows, "bytes": table.nbytes}


def explained(client: flight.FlightClient, sql: str) -> str:
    return str(answer(client, f"EXPLAIN {sql}").to_pydict())


def wait_until(is_so, seconds: float, failure: str) -> None:
    """Looks again and again for so long; says what did not come about."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(failure)
        time.sleep(0.2)
