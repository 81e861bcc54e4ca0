"""What is told of the times of many small queries, whoever has measured them."""

import statistics

PERCENTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999}


def figures(times: list, seconds: float) -> dict:
    """Of times in seconds in any order; `seconds` is what all of them took, which is less than their sum where some ran at
    once.
    """
    ordered = sorted(times)
    last = len(ordered) - 1
    shares = {name: 1e3 * ordered[min(int(len(ordered) * share), last)] for name, share in PERCENTILES.items()}
    return {"queries_per_second": len(ordered) / seconds, "median_ms": 1e3 * statistics.median(ordered), **shares}
