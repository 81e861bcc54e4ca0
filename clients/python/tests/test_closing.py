"""Connections that are closed while threads are in their calls, and what is left of them."""

import gc
import os
import threading

import pyarrow as pa
import pytest

import bowshot


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are counted by Linux alone")
def test_nothing_is_left_of_connections_and_results(shared):
    def work():
        with shared.connect(autocommit=True, options={"endpoints": "4"}) as connection:
            connection.sql("SELECT * FROM numbers").arrow()
            connection.sql("SELECT * FROM numbers")  # forgotten, unread
            result = connection.sql("SELECT * FROM numbers a CROSS JOIN numbers b")
            next(result.batches())
            for part in connection.partitions("numbers", count=2):
                part.arrow()
            upload = connection.upload("nothing")
            upload.put(pa.table({"a": [1]}))
            upload.abort()

    def settled():
        gc.collect()
        return threading.active_count(), descriptors()

    for _ in range(3):
        work()
    deadline = threading.Event()
    threads, files = settled()
    for _ in range(10):
        work()
    for _ in range(1_000):
        now = settled()
        if now[0] <= threads and now[1] <= files + 6:
            return
        deadline.wait(0.1)
    raise AssertionError((now, (threads, files)))


def test_closing_while_others_call(shared):
    """Results that are forgotten are closed by threads of their own; the connection may be closed meanwhile."""
    for number in range(60):
        connection = shared.connect(autocommit=True)
        for _ in range(3):
            connection.sql("SELECT * FROM numbers")
        callers = [threading.Thread(target=call, args=(connection,)) for _ in range(2 * (number % 2))]
        for caller in callers:
            caller.start()
        connection.close()
        for caller in callers:
            caller.join()


def call(connection):
    try:
        while True:
            connection.options  # noqa: B018 - a call to the server
    except bowshot.Error:
        pass
