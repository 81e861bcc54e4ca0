"""Rows through an XGBoost model of 100 trees: by SQL and the scoring service of Bowshot, by XGBoost in process with the same
threads, and by a service of FastAPI that takes JSON. `bench/scoring.py` measures, in an environment of its own."""

import pathlib
import statistics

from .. import apart, places, results
from ..options import Options

XGBOOST, JSON = "XGBoost (in process)", "FastAPI (JSON)"
COLUMNS, TREES = 30, 100


def run(options: Options) -> None:
    rows = options.size(20_000, 200_000, 1_000_000)
    programs = pathlib.Path(places.program("bowshot")).parent
    words = [f"--rows={rows}", f"--columns={COLUMNS}", f"--trees={TREES}", f"--rounds={options.rounds}"]
    found = apart.client("models", "scoring.py", programs, *words)
    settings = {
        "rows": rows, "columns": COLUMNS, "trees": TREES, "threads": found["threads"],
        "client_versions": apart.versions("models"),
    }
    figures = {
        "bowshot": seconds(found["times"]["sql"], rows),
        XGBOOST: seconds(found["times"]["xgboost_matrix"], rows),
        JSON: {
            "seconds": rows / found["json_rows_per_second"], "rows": rows,
            "rows_per_second": found["json_rows_per_second"], "scaled_from_rows": found["json_rows"],
        },
    }
    results.record("scoring", "many rows", figures, options, axes={"way": "many rows", "rows": rows}, **settings)
    figures = {"bowshot": single(found["single"]), JSON: single(found["json_single"])}
    results.record("scoring", "single rows", figures, options, axes={"way": "single rows"}, **settings)


def seconds(all_seconds: list, rows: int) -> dict:
    median = statistics.median(all_seconds)
    return {"seconds": median, "all_seconds": [round(one, 5) for one in all_seconds], "rows": rows, "rows_per_second": rows / median}


def single(found: dict) -> dict:
    return {"median_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}
