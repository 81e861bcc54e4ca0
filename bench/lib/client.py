"""One measured client, run as its own process so that runs do not share warm memory or threads: takes a JSON order
on its standard input, prints a JSON answer. Connecting and importing are not timed unless the order is about them.
"""

import json
import math
import os
import pathlib
import random
import resource
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import digest, latencies, memory, readers, threads

MESSAGE_CHARACTERS = 300


def connect(order):
    return readers.KINDS[order["kind"]](order["uri"])


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_rss():
    """The highest resident set of this process so far, in bytes; getrusage would tell that of its parent if it is higher."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak) * 1024


def drain(order):
    """Reads a result on several connections at once and drops each batch."""
    streams = order["streams"]
    clients = [connect(order) for _ in range(streams)]
    runs, before = [], cpu_seconds()
    for _ in range(order["repeats"]):
        sizes, rows = [0] * streams, [0] * streams

        def work(index):
            for batch in clients[index].batches(order["query"]):
                sizes[index] += batch.nbytes
                rows[index] += batch.num_rows

        seconds = threads.run(streams, work)
        runs.append({"seconds": seconds, "bytes": sum(sizes), "rows": sum(rows)})
    return {"runs": runs, "client_cpu_s": cpu_seconds() - before}


def into_parquet(client, query):
    """Into a Parquet file in a folder of the system's; its path."""
    handle, path = tempfile.mkstemp(suffix=".parquet")
    os.close(handle)
    client.to_parquet(query, path)
    return path


def into_batches(client, query):
    """Record batches, each dropped when the next one comes; their rows and bytes."""
    rows = nbytes = 0
    for batch in client.batches(query):
        rows += batch.num_rows
        nbytes += batch.nbytes
    return rows, nbytes


INTO = {
    "arrow": lambda client, query: client.table(query), "pandas": lambda client, query: client.pandas(query),
    "rows": lambda client, query: client.rows(query), "batches": into_batches, "parquet": into_parquet,
}


def size(into, result):
    """Rows and bytes: of Arrow data or of the frame; of a file; 0 for Python rows, which have no size of their own."""
    import pyarrow.parquet as pq

    if into == "parquet":
        return pq.read_metadata(result).num_rows, os.path.getsize(result)
    if into == "rows":
        return len(result), 0
    if into == "batches":
        return result
    return len(result), result.nbytes if into == "arrow" else int(result.memory_usage(index=False).sum())


def warm_imports(into):
    """pandas is imported at the first frame, which is no part of the reading."""
    if into in ("pandas", "parquet"):
        import pandas
        import pyarrow as pa

        pa.Table.from_pandas(pandas.DataFrame({"a": [1]})).to_pandas()


def fetch(order):
    """Fetches a result as a whole, up to `repeats` times, but not again after `budget_s` seconds; with `check` the answer
    has the result's digest, taken outside of the time.
    """
    client, into = connect(order), order.get("into", "arrow")
    warm_imports(into)
    runs, found, used = [], None, 0.0
    for index in range(order["repeats"]):
        if sum(run["seconds"] for run in runs) > order.get("budget_s", math.inf):
            break
        memory.at_hand(order.get("needed_bytes", 0))
        before, started = cpu_seconds(), time.perf_counter()
        result = INTO[into](client, order["query"])
        seconds = time.perf_counter() - started
        used += cpu_seconds() - before
        rows, nbytes = size(into, result)
        runs.append({"seconds": seconds, "bytes": nbytes, "rows": rows})
        if index == 0 and order.get("check"):
            found = digested(client, order["query"], into, result)
        if into == "parquet":
            os.unlink(result)
        del result
    return {"runs": runs, "digest": found, "client_cpu_s": used}


def digested(client, query, into, result):
    """The digest of a result; of one that is gone already, read once more."""
    if into == "batches":
        again = digest.of_batches(client.batches(query))
        if again["rows"] != result[0]:
            raise RuntimeError(f"{result[0]} rows, and {again['rows']} when read again")
        return again
    import pyarrow as pa
    import pyarrow.parquet as pq

    if into == "rows":
        return digest.of_rows(result)
    if into == "pandas":
        result = pa.Table.from_pandas(result, preserve_index=False)
    return digest.of_table(pq.read_table(result) if into == "parquet" else result)


def queries(order):
    """Each query once, as a pyarrow table: seconds, or what went wrong. With `save` the answers go to files there."""
    import pyarrow as pa

    client, seconds, failures = connect(order), {}, {}
    for name, text in order["queries"].items():
        started = time.perf_counter()
        try:
            table = client.table(text)
            seconds[name] = time.perf_counter() - started
        except Exception as error:
            failures[name] = " ".join(str(error).split())[:MESSAGE_CHARACTERS]
            continue
        if order["save"]:
            with pa.OSFile(os.path.join(order["save"], name), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    return {"seconds": seconds, "failures": failures}


def row_count(client, query):
    """Rows of a small query, read in the way that is usual for the client."""
    return client.table(query).num_rows if hasattr(client, "table") else len(client.rows(query))


def latency(order):
    """Time of a small query, one after the other."""
    client = connect(order)
    times = []
    for index in range(order["repeats"] + order["warmup"]):
        started = time.perf_counter()
        rows = row_count(client, order["query"])
        if index >= order["warmup"]:
            times.append(time.perf_counter() - started)
        assert rows == 1, rows
    return latencies.figures(times, sum(times))


def with_key(order):
    """The query; with `keys` its parameter is a random number below that."""
    keys = order.get("keys", 0)
    return order["query"].replace("?", str(random.randrange(keys))) if keys else order["query"]


def concurrent(order):
    """A small query from many connections at once, for some seconds."""
    clients = [connect(order) for _ in range(order["clients"])]
    for client in clients:  # some connect when they first ask
        for _ in range(order["warmup"]):
            row_count(client, with_key(order))
    times = [[] for _ in clients]
    end = time.perf_counter() + order["seconds"]

    def work(index):
        while (started := time.perf_counter()) < end:
            rows = row_count(clients[index], with_key(order))
            times[index].append(time.perf_counter() - started)
            assert rows == 1, rows

    seconds = threads.run(len(clients), work)
    return latencies.figures([value for part in times for value in part], seconds)


def paced(order):
    """Reads a result and drops it, sleeping so that no more than `bytes_per_second` are taken; 0 for no limit."""
    client = connect(order)
    rate, nbytes, rows = order["bytes_per_second"], 0, 0
    started = time.perf_counter()
    for batch in client.batches(order["query"]):
        nbytes += batch.nbytes
        rows += batch.num_rows
        if rate:
            ahead = nbytes / rate - (time.perf_counter() - started)
            if ahead > 0:
                time.sleep(ahead)
    return {"runs": [{"seconds": time.perf_counter() - started, "bytes": nbytes, "rows": rows}]}


ACTIONS = {"drain": drain, "fetch": fetch, "queries": queries, "latency": latency, "concurrent": concurrent, "paced": paced}


def main():
    order = json.load(sys.stdin)
    answer = ACTIONS[order["action"]](order)
    answer.setdefault("client_cpu_s", cpu_seconds())
    answer["client_peak_rss"] = peak_rss()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
