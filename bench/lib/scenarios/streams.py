"""The micro-benchmark of Arrow Flight's paper: records of 32 bytes (four int64), kept in memory, read by DoGet and written
by DoPut with 1 to 16 streams at once, each moving all records once over a connection of its own.

Beside Arrow's own C++ Flight stand two ceilings, which are no peers: plain TCP (iperf3) and a copy from memory to memory.
Then the same over TLS, whose ceiling is plain TCP no more: nothing stands beside it.
"""

import json
import subprocess
import time

import numpy as np

from .. import data, measure, processes, threads
from ..arena import ENCRYPTED, TRANSPORT, Arena, Contender
from ..environments import Unavailable, find_program
from ..options import Options

OURS, CPP = "bowshot", "Arrow C++ Flight"
CONTENDERS = [Contender(OURS, "bowshot", "bowshot-put"), Contender(CPP, "arrow-cpp-flight", "flight-put")]
QUERIES = {OURS: "SELECT * FROM records", CPP: "records"}
TCP, COPY = "iperf3 (plain TCP)", "copy in memory"
REPEATS = 3
COPY_BYTES = 256 * 2**20
# Records have 32 bytes; those on the way come to those that the server keeps.
NEEDED_BYTES_PER_ROW = 48


def run(options: Options) -> None:
    rows = options.size(50_000, 4_000_000, 10_000_000)
    source = str(data.arrow("records", rows))
    for way, starts, counts in (
        ("", TRANSPORT, options.size((1, 2), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16))),
        (" over TLS", ENCRYPTED, options.size((1,), (1, 4, 16), (1, 4, 16))),
    ):
        with Arena(options, {}, starts=starts) as arena:
            chosen = arena.choose(CONTENDERS)
            for _, server, contender in chosen:
                measure.writer(server, contender.reader, [server], action="ingest", table="records", source=source, keep=True)
            asked = [(label, server, QUERIES[label]) for label, server, _ in chosen]
            for streams in counts:
                record(f"DoGet{way}", get(asked, streams, REPEATS, options), streams, rows, arena)
                needed = 0 if options.small else NEEDED_BYTES_PER_ROW * rows * streams
                order = {"action": "put_streams", "source": source, "streams": streams, "needed_bytes": needed}
                answers = arena.write(chosen, lambda _, order=order: order)
                figures = {label: measure.written(answers[label]) for label in answers}
                record(f"DoPut{way}", figures, streams, rows, arena)


def get(contenders: list, streams: int, repeats: int, options: Options) -> dict:
    """Figures of labels, servers and what they are asked for."""
    order = {"action": "drain", "streams": streams, "repeats": repeats}
    answers = measure.in_turn(contenders, options, lambda server, query: measure.client(server, "flight-ticket", query=query, **order))
    return {label: measure.transfer(answers[label]) for label in answers}


def record(way: str, figures: dict, streams: int, rows: int, arena: Arena) -> None:
    ceilings = {}
    plain = [(TCP, "iperf3", measure_tcp), (COPY, "memcpy", measure_copies)] if arena.starts is TRANSPORT else []
    for label, peer, measured in plain:
        if arena.options.has_peer(peer) and peer not in arena.missing:
            try:
                ceilings[label] = {"gb_per_second": measured(streams, arena.options.size(0.5, 2, 3))}
            except Unavailable as reason:
                arena.leave_out(peer, str(reason))
    arena.record(
        "streams", f"{way}, {streams} stream(s)", {**figures, **ceilings}, axes={"way": way, "streams": streams},
        ceilings=list(ceilings), rows_of_a_stream=rows, put_needed_bytes_per_row=NEEDED_BYTES_PER_ROW,
    )


def measure_tcp(streams: int, seconds: float) -> float:
    """What iperf3 moves over loopback, in GB/s at the receiver."""
    find_program("iperf3", "iperf3")
    port = str(processes.free_port())
    command = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = ["iperf3", "-c", "127.0.0.1", "-p", port, "-P", str(streams), "-t", str(max(1, round(seconds))), "-J"]
        for _ in range(50):
            done = subprocess.run(client, capture_output=True, text=True)
            if "sum_received" in (summary := json.loads(done.stdout)["end"]):
                return summary["sum_received"]["bits_per_second"] / 8e9
            time.sleep(0.05)  # the server may not listen yet
        raise RuntimeError(f"iperf3 failed: {done.stdout[-500:]}")
    finally:
        server.terminate()
        server.wait()


def measure_copies(streams: int, seconds: float) -> float:
    """What threads copy from memory to memory, in GB/s: the largest rate at which anything could be handed over."""
    size = COPY_BYTES // streams
    pairs = [(np.ones(size, np.uint8), np.empty(size, np.uint8)) for _ in range(streams)]
    for source, target in pairs:
        np.copyto(target, source)  # so that its pages are there
    counts, end = [0] * streams, time.perf_counter() + seconds

    def work(index):
        source, target = pairs[index]
        while time.perf_counter() < end:
            np.copyto(target, source)
            counts[index] += 1

    seconds = threads.run(streams, work)
    return sum(counts) * size / seconds / 1e9
