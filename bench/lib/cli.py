"""The command line of `bench/run.py`."""

import argparse
import signal
import sys

from . import (
    options,
    scenario_change,
    scenario_ingest,
    scenario_ingest_memory,
    scenario_inserts,
    scenario_latency,
    scenario_memory,
    scenario_put,
    scenario_select,
    scenario_transport,
)

SCENARIOS = {
    "transport": scenario_transport,
    "select": scenario_select,
    "latency": scenario_latency,
    "memory": scenario_memory,
    "ingest": scenario_ingest,
    "put": scenario_put,
    "inserts": scenario_inserts,
    "change": scenario_change,
    "ingest_memory": scenario_ingest_memory,
}


def main(arguments: list) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end and folders go
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, "all"], help="what to run")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender after the warm-up (default 5)")
    parser.add_argument("--only", help="contenders whose label contains this text (for trying out; ratios are left out)")
    parser.add_argument(
        "--scale", choices=["full", "small"], default="full",
        help="small: little data, for trying out; results go to the cache folder",
    )
    parser.add_argument("--gigabytes", type=float, help="size of `ingest_memory` (default 20, small 0.5)")
    chosen = parser.parse_args(arguments)
    names = list(SCENARIOS) if "all" in chosen.scenarios else chosen.scenarios
    asked = options.Options(chosen.rounds, chosen.only, chosen.scale == "small", chosen.gigabytes)
    for name in names:
        SCENARIOS[name].run(asked)
    return 0
