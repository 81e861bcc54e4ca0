"""Hostile inputs, many at a time: each gets an answer or a clear error, the server lives and stays small, another client
hardly notices, and afterwards nothing is held."""

import concurrent.futures
import time

import pytest

import hostile
from durable import Database
from server import Server, wait_until
from watch import Watch, is_quiet

pytestmark = pytest.mark.timed

MEMORY = 3 << 30
LIMITS = {
    "BOWSHOT_LIMITS_STATEMENT_TIMEOUT": "4s",
    "BOWSHOT_LIMITS_PLANNING_TIMEOUT": "3s",
    "BOWSHOT_LIMITS_MEMORY_BYTES": str(MEMORY),
    "BOWSHOT_LIMITS_QUERY_MEMORY_BYTES": "1GiB",
    "BOWSHOT_STORAGE_MEMORY_BYTES": "256MiB",
    "BOWSHOT_STORAGE_TEMPORARY_BYTES": "128MiB",
    "BOWSHOT_STORAGE_COLUMN_CACHE_BYTES": "64MiB",
    "BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "64MiB",
}
ATTACKERS = 4
# What a client says that was told something else than an answer.
UNCLEAR = ("panicked", "broke down", "stack", "transport is closing", "server: EOF", "Socket closed")


def attack(server, name, send):
    began = time.monotonic()
    try:
        send(server)
        said = ""
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    return name, said, time.monotonic() - began


@pytest.mark.timeout(400)
def test_nothing_hurts():
    inputs = list(hostile.everything())
    assert len(inputs) >= 310
    with Server(environment=LIMITS) as server:
        with Database(server) as db:
            db.run(
                "CREATE TABLE numbers AS SELECT value AS a, value * 2 AS b FROM generate_series(1, 10) AS s(value)",
                "CREATE TABLE many AS SELECT value AS a FROM generate_series(1, 8192) AS s(value)",
                "CREATE TABLE sink (a BIGINT)",
            )
        with Watch(server) as watch, concurrent.futures.ThreadPoolExecutor(ATTACKERS) as pool:
            done = list(pool.map(lambda one: attack(server, *one), inputs))
        slow = sorted(((seconds, name) for name, _, seconds in done), reverse=True)[:10]
        unclear = [(name, said) for name, said, _ in done if any(word in said for word in UNCLEAR)]
        waits = sorted(watch.waits)
        p99 = waits[int(len(waits) * 0.99)]
        report = (
            f"{len(inputs)} inputs, SELECT 1: median {waits[len(waits) // 2]:.3f} s, p99 {p99:.3f} s, longest {waits[-1]:.3f} s; "
            f"health: longest {max(watch.health):.3f} s; memory: {watch.peak >> 20} MiB; slowest: {slow}"
        )
        print(report)
        assert server.alive(), server.log()[-5000:]
        assert not watch.failures, watch.failures
        assert not unclear, unclear
        assert slow[0][0] < 15, report
        assert watch.peak < MEMORY * 1.25, report
        assert p99 <= P99, report
        assert max(watch.health) <= 1.5, report
        server.wait_idle(10)
        wait_until(lambda: is_quiet(server), "nothing burns", 10)


# Of a machine whose two processors are as busy as the attackers can make them, and that runs the clients too.
P99 = 0.25
