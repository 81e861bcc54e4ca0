"""Rows through an XGBoost model of 100 trees: by SQL and the scoring service of Bowshot, by XGBoost in process with the same
threads, and by a service of FastAPI that takes JSON. `bench/scoring.py` measures, in an environment of its own."""

import json
import pathlib
import subprocess
import sys

from .. import environments, places, results
from ..options import Options

XGBOOST, JSON = "XGBoost (in process)", "FastAPI (JSON)"
COLUMNS, TREES = 30, 100
SINGLE_MS = 0.5


def run(options: Options) -> None:
    rows = options.size(20_000, 200_000, 1_000_000)
    found = measured("scoring.py", "--served", f"--rows={rows}", f"--columns={COLUMNS}", f"--trees={TREES}", f"--rounds={options.rounds}")
    times, median = found["times"], found["median"]
    settings = {
        "rows": rows, "columns": COLUMNS, "trees": TREES, "threads": found["threads"],
        "client_versions": {f"{name} (models)": version for name, version in environments.pinned("models").items()},
    }
    figures = {
        "bowshot": seconds(times["sql"], median["sql"], rows),
        XGBOOST: seconds(times["xgboost_matrix"], median["xgboost_matrix"], rows),
        JSON: {
            "seconds": rows / found["json_rows_per_second"], "rows": rows,
            "rows_per_second": found["json_rows_per_second"], "scaled_from_rows": found["json_rows"],
        },
    }
    ratios = {
        "speed against XGBoost in process": results.at_least(found["speed_of_xgboost"], 0.8),
        "speed against FastAPI with JSON": results.at_least(found["speed_of_json"], 20),
    }
    results.record("scoring", "many rows", figures, ratios, options, axes={"way": "many rows", "rows": rows}, **settings)
    figures = {"bowshot": single(found["single"]), JSON: single(found["json_single"])}
    ratios = {
        "median in units of 0.5 ms": results.at_most(found["single"]["p50_ms"] / SINGLE_MS, 1),
        "median against FastAPI with JSON": results.plain(found["json_single"]["p50_ms"] / found["single"]["p50_ms"]),
    }
    results.record("scoring", "single rows", figures, ratios, options, axes={"way": "single rows"}, **settings)


def seconds(all_seconds: list, median: float, rows: int) -> dict:
    return {"seconds": median, "all_seconds": [round(one, 4) for one in all_seconds], "rows": rows, "rows_per_second": rows / median}


def single(found: dict) -> dict:
    return {"median_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}


def measured(script: str, *arguments: str) -> dict:
    """What a script of the bench prints, run in the environment of models."""
    command = [environments.python("models"), environments.BENCH / script, pathlib.Path(places.program("bowshot")).parent, *arguments]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=sys.stderr, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
