"""Federated rounds through a room of Bowshot and through a service of FastAPI that takes JSON. `bench/rooms.py` measures."""

import statistics

from .. import environments, results
from ..options import Options
from .scoring import JSON, measured

WORKERS = 3


def run(options: Options) -> None:
    for numbers in options.size((10_000,), (10_000, 1_000_000), (10_000, 1_000_000)):
        steps = options.size(3, 10, 10)
        found = measured("rooms.py", f"--workers={WORKERS}", f"--numbers={numbers}", f"--steps={steps}", f"--rounds={options.rounds}")
        figures = {"bowshot": of(found["times"]["bowshot"], found), JSON: of(found["times"]["json"], found)}
        results.record(
            "rooms", f"{numbers:,} numbers", figures,
            {"speed against FastAPI with JSON": results.at_least(found["speed_of_json"], 5)}, options,
            axes={"numbers": numbers, "workers": WORKERS}, steps=steps,
            client_versions={f"{name} (models)": version for name, version in environments.pinned("models").items()},
        )


def of(all_seconds: list, found: dict) -> dict:
    median = statistics.median(all_seconds)
    return {
        "seconds": median, "all_seconds": [round(one, 5) for one in all_seconds],
        "rows_per_second": found["numbers"] * found["workers"] / median,
    }
