"""The command line of `bench/run.py`."""

import argparse

from . import scenario_latency, scenario_memory, scenario_select, scenario_transport

SCENARIOS = {
    "transport": scenario_transport,
    "select": scenario_select,
    "latency": scenario_latency,
    "memory": scenario_memory,
}


def main(arguments: list) -> int:
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, "all"], help="what to run")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender after the warm-up (default 5)")
    parser.add_argument("--only", help="contenders whose label contains this text (for trying out; ratios are left out)")
    chosen = parser.parse_args(arguments)
    names = list(SCENARIOS) if "all" in chosen.scenarios else chosen.scenarios
    for name in names:
        SCENARIOS[name].run(chosen.rounds, chosen.only)
    return 0
