"""Work in several threads at once."""

import concurrent.futures
import time


def run(count: int, work) -> float:
    """Runs `work(index)` in so many threads; the wall time. A failure in one fails all."""
    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))
    return time.perf_counter() - started
