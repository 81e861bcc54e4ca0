"""Federated rounds through a room of Bowshot and through a service of FastAPI that takes JSON. `bench/rooms.py` measures."""

import pathlib

from .. import apart, places, results
from ..options import Options
from .scoring import JSON, seconds

WORKERS = 3


def run(options: Options) -> None:
    programs, steps = pathlib.Path(places.program("bowshot")).parent, options.size(3, 10, 10)
    for numbers in options.size((10_000,), (10_000, 1_000_000), (10_000, 1_000_000)):
        words = [f"--workers={WORKERS}", f"--numbers={numbers}", f"--steps={steps}", f"--rounds={options.rounds}"]
        found = apart.client("models", "rooms.py", programs, *words)
        figures = {
            label: seconds(found["times"][way], found["numbers"] * found["workers"])
            for label, way in (("bowshot", "bowshot"), (JSON, "json"))
        }
        results.record(
            "rooms", f"{numbers:,} numbers", figures, options, axes={"numbers": numbers, "workers": WORKERS}, steps=steps,
            client_versions=apart.versions("models"),
        )
