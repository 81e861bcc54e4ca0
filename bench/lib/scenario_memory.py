"""The server's memory while it streams 60 million rows (lineitem at scale 10, 10 GB of Arrow) to a fast client, to a
slow one, and to both at once. One run each: the figure is a peak, not a time.
"""

import threading

from . import data, measure, processes, results
from .options import Options

SLOW_BYTES_PER_SECOND = 100_000_000
LIMIT_BYTES = 512 * 1024 * 1024
QUERY = "SELECT * FROM lineitem"


def run(options: Options) -> None:
    tables = {"lineitem": data.lineitem(options.size(10, 0.1))}
    cases = {"fast": [0], "slow": [SLOW_BYTES_PER_SECOND], "fast and slow": [0, SLOW_BYTES_PER_SECOND]}
    with processes.bowshot(tables) as server:
        warm = measure.client(server, "flight-ticket", action="fetch", query="SELECT 1", repeats=10)
        assert warm["runs"]
        idle = server.memory()["VmRSS"]
        for name, rates in cases.items():
            if options.chosen(name):
                case(server, name, rates, idle, options)


def case(server: processes.Server, name: str, rates: list, idle: int, options: Options) -> None:
    answers = [None] * len(rates)

    def work(index):
        answers[index] = measure.client(
            server, "flight-ticket", action="paced", query=QUERY, bytes_per_second=rates[index]
        )

    sampler = processes.MemorySampler(server)
    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(rates))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peaks = sampler.close()
    peaks["idle_rss"], peaks["peak_above_idle"] = idle, peaks["peak_rss"] - idle
    if None in answers:
        raise RuntimeError(f"a client of the case `{name}` failed")
    figures = {"bowshot": {**peaks, "rows": answers[0]["runs"][0]["rows"], "seconds": max(
        answer["runs"][0]["seconds"] for answer in answers
    )}}
    ratios = {"peak above idle, in units of 512 MiB": results.at_most(peaks["peak_above_idle"] / LIMIT_BYTES, 1.0)}
    results.record("memory", name, figures, ratios, options, slow_bytes_per_second=SLOW_BYTES_PER_SECOND)
