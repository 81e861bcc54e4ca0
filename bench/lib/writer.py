"""One measured client that writes, run as its own process: takes a JSON order on its standard input, prints
a JSON answer. Importing, connecting, dropping what was there, and checking what arrived are not timed.
"""

import json
import math
import multiprocessing
import pathlib
import statistics
import sys
import time

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import databases, memory, threads
from lib.client import cpu_seconds

FLOOD_COLUMNS = 20
FLOOD_BATCH_ROWS = 65_536
FLOOD_BATCHES = 32
WARMUP_INSERTS = 20


def timed(work):
    """Seconds of the clock and of this process, and what `work` returned."""
    cpu, started = cpu_seconds(), time.perf_counter()
    result = work()
    return {"seconds": time.perf_counter() - started, "client_cpu_s": cpu_seconds() - cpu}, result


def expect(what, found, wanted):
    if found != wanted:
        raise RuntimeError(f"{what}: {found} and not {wanted}")


def counted(batches, sizes):
    """Passes batches on and counts them."""
    for batch in batches:
        sizes["rows"] += batch.num_rows
        sizes["bytes"] += batch.nbytes
        yield batch


def ingest_reader(database, table, schema, batches, keep):
    """Ingests batches into a new table, checks their number; drops the table unless it is to be kept."""
    database.drop(table)
    sizes = {"rows": 0, "bytes": 0}
    reader = pa.RecordBatchReader.from_batches(schema, counted(batches, sizes))
    answer, _ = timed(lambda: database.ingest(table, reader))
    expect(f"rows of {table}", database.count(table), sizes["rows"])
    if not keep:
        database.drop(table)
    return {**answer, **sizes}


def mapped(path, rows):
    """The schema and the batches of a mapped Arrow IPC file, up to about that many rows."""
    file = pa.ipc.open_file(pa.memory_map(path))
    count = file.num_record_batches
    if rows and count:
        count = min(count, math.ceil(rows / file.get_batch(0).num_rows))
    return file.schema, (file.get_batch(index) for index in range(count))


def ingest(order):
    """An Arrow IPC file into a new table."""
    database = databases.KINDS[order["kind"]](order["uri"])
    schema, batches = mapped(order["source"], order.get("rows"))
    return ingest_reader(database, order["table"], schema, batches, order.get("keep", False))


def put_streams(order):
    """The same batches from memory into a table for each stream, all streams at once, each on its own connection."""
    schema, batches = mapped(order["source"], None)
    batches = list(batches)
    streams = range(order["streams"])
    connected = [databases.KINDS[order["kind"]](order["uri"]) for _ in streams]
    for index in streams:
        connected[index].drop(f"put_{index}")

    def work(index):
        connected[index].ingest(f"put_{index}", pa.RecordBatchReader.from_batches(schema, batches))

    memory.at_hand(order.get("needed_bytes", 0))  # for the server, which keeps what it is given
    answer, _ = timed(lambda: threads.run(len(connected), work))
    rows, size = sum(batch.num_rows for batch in batches), sum(batch.nbytes for batch in batches)
    for index in streams:
        expect(f"rows of put_{index}", connected[index].count(f"put_{index}"), rows)
        connected[index].drop(f"put_{index}")
    return {**answer, "rows": rows * len(connected), "bytes": size * len(connected)}


def flood(order):
    """Random integers, made from batches that are in memory already, until so many bytes have gone."""
    database = databases.KINDS[order["kind"]](order["uri"])
    random, limits = np.random.default_rng(1), np.iinfo(np.int64)
    pool = []
    for _ in range(FLOOD_BATCHES):
        columns = {f"c{i:02}": random.integers(limits.min, limits.max, FLOOD_BATCH_ROWS) for i in range(FLOOD_COLUMNS)}
        pool.append(pa.RecordBatch.from_pydict(columns))
    batches = (pool[index % len(pool)] for index in range(math.ceil(order["bytes"] / pool[0].nbytes)))
    print("ready", file=sys.stderr, flush=True)
    return ingest_reader(database, order["table"], pool[0].schema, batches, False)


def insert_row(database, number):
    database.insert(f"INSERT INTO inserts VALUES ({number}, 'name of {number}', {number % 1000}.25)")


def insert_until(kind, uri, index, seconds, barrier, answers):
    """One client of `inserts`: sends rows one by one, each with its own number, and keeps how long each took."""
    try:
        database = databases.KINDS[kind](uri)
        number = index * 1_000_000_000
        for _ in range(WARMUP_INSERTS):
            insert_row(database, number)
            number += 1
        barrier.wait(120)
        times, started = [], time.perf_counter()
        end = started + seconds
        while (before := time.perf_counter()) < end:
            insert_row(database, number)
            times.append(time.perf_counter() - before)
            number += 1
        answers.put((times, time.perf_counter() - started, None))
    except Exception as error:
        barrier.abort()
        answers.put(([], 0.0, f"{type(error).__name__}: {error}"))


def inserts(order):
    """Rows one by one from several processes for some seconds; afterwards all that were acknowledged must be there."""
    database = databases.KINDS[order["kind"]](order["uri"])
    database.drop("inserts")
    database.run("CREATE TABLE inserts (id BIGINT NOT NULL, name VARCHAR, amount DOUBLE PRECISION)")
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(order["clients"]), context.Queue()
    same = (order["seconds"], barrier, answers)
    workers = [context.Process(target=insert_until, args=(order["kind"], order["uri"], index, *same)) for index in range(order["clients"])]
    for worker in workers:
        worker.start()
    parts = [answers.get(timeout=order["seconds"] + 240) for _ in workers]
    for worker in workers:
        worker.join()
    failures = [failure for *_, failure in parts if failure]
    if failures:
        raise RuntimeError(failures[0])
    times = sorted(value for part, *_ in parts for value in part)
    acknowledged = len(times) + WARMUP_INSERTS * len(workers)
    expect("rows in the table against those acknowledged", database.count("inserts"), acknowledged)
    expect("different ids", database.run("SELECT count(DISTINCT id) FROM inserts"), acknowledged)
    return {
        "inserts_per_second": sum(len(part) / seconds for part, seconds, _ in parts),
        "p50_ms": 1e3 * statistics.median(times),
        "p99_ms": 1e3 * times[int(len(times) * 0.99)],
        "max_ms": 1e3 * times[-1],
        "acknowledged": acknowledged,
    }


def change(order):
    """Changes rows by random ids and deletes others; each statement commits by itself."""
    database = databases.KINDS[order["kind"]](order["uri"])
    chosen = "WHERE id IN (SELECT id FROM chosen WHERE slice = {})"
    before = database.count("accounts")
    database.run("SELECT count(*) FROM accounts WHERE quantity + amount >= 0 AND name <> ''")  # all pages were read once
    update = f"UPDATE accounts SET quantity = quantity + 1000000000 {chosen.format(order['update_slice'])}"
    delete = f"DELETE FROM accounts {chosen.format(order['delete_slice'])}"
    updated, rows = timed(lambda: database.run(update))
    expect("updated rows", rows, order["rows"])
    expect("rows with the new value", database.run(
        f"SELECT count(*) FROM accounts WHERE quantity >= 1000000000 AND id IN "
        f"(SELECT id FROM chosen WHERE slice = {order['update_slice']})"
    ), order["rows"])
    deleted, rows = timed(lambda: database.run(delete))
    expect("deleted rows", rows, order["rows"])
    expect("rows left", database.count("accounts"), before - order["rows"])
    return {"update_seconds": updated["seconds"], "delete_seconds": deleted["seconds"]}


ACTIONS = {"ingest": ingest, "put_streams": put_streams, "flood": flood, "inserts": inserts, "change": change}


def main():
    order = json.load(sys.stdin)
    print(json.dumps(ACTIONS[order["action"]](order)))


if __name__ == "__main__":
    main()
