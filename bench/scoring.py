"""Scoring: rows through an XGBoost model, by Bowshot and by XGBoost itself, in turn.

    cargo build --release -p bowshot -p bowshot-models --example predict_model
    pip install -r tests/models/requirements.txt fastapi uvicorn
    python bench/scoring.py FOLDER_OF_PROGRAMS [--rows 1000000] [--columns 30] [--trees 100] [--depth 6] [--rounds 5] [--served]

Without `--served` it is the crate `bowshot-models`, one thread each: ours is the time of `predict` over Arrow batches of 65,536
rows; XGBoost's that of `inplace_predict` over a NumPy matrix in rows, which is its fastest way, and of `DMatrix` and `predict`
over an Arrow table, which is where its data would come from.

With `--served` it is the server: `SELECT predict(…)` over a stored table, the answer read to its end by a client of Flight SQL,
against XGBoost in process with as many threads as there are processors; a service of FastAPI that takes rows as JSON, with the rows that
it manages within some seconds; and single rows over one open stream of the scoring service, and one request each of the other.
Prints one JSON line. The answers are compared, too.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import pyarrow
import pyarrow.ipc
import xgboost


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    for name, value in {"rows": 1_000_000, "columns": 30, "trees": 100, "depth": 6, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--served", action="store_true", help="ask the server instead of the crate")
    return parser.parse_args()


def trained(chosen, threads=1):
    random = numpy.random.default_rng(1)
    x = random.normal(size=(50_000, chosen.columns)).astype(numpy.float32)
    y = (x[:, 0] * x[:, 1] + numpy.sin(x[:, 2]) + random.normal(size=len(x)) > 0).astype(int)
    parameters = {"objective": "binary:logistic", "max_depth": chosen.depth, "nthread": threads, "seed": 1}
    return xgboost.train(parameters, xgboost.DMatrix(x, label=y), chosen.trees)


def timed(action):
    start = time.perf_counter()
    answer = action()
    return time.perf_counter() - start, answer


def asked_rows(chosen):
    rows = numpy.random.default_rng(2).normal(size=(chosen.rows, chosen.columns)).astype(numpy.float32)
    rows[numpy.random.default_rng(3).random(rows.shape) < 0.05] = numpy.nan
    return rows, pyarrow.table({f"f{at}": numpy.ascontiguousarray(rows[:, at]) for at in range(chosen.columns)})


def main():
    chosen = options()
    if chosen.served:
        import scoring_served

        print(json.dumps(scoring_served.measured(chosen)))
        return
    booster = trained(chosen)
    booster.set_param({"nthread": 1})
    rows, table = asked_rows(chosen)
    times = {"ours": [], "xgboost_matrix": [], "xgboost_arrow": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        booster.save_model(folder / "model.ubj")
        with pyarrow.ipc.new_file(str(folder / "in.arrow"), table.schema) as file:
            file.write_table(table, max_chunksize=65_536)
        command = [chosen.programs / "examples" / "predict_model", folder / "model.ubj", folder / "in.arrow", folder / "out.arrow"]
        for turn in range(chosen.rounds + 1):
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            seconds, expected = timed(lambda: booster.inplace_predict(rows))
            arrow, _ = timed(lambda: booster.predict(xgboost.DMatrix(table, nthread=1)))
            if turn:
                times["ours"].append(int(done.stdout.split()[0]) / 1000)
                times["xgboost_matrix"].append(seconds)
                times["xgboost_arrow"].append(arrow)
        with pyarrow.ipc.open_file(str(folder / "out.arrow")) as file:
            answer = file.read_all()
    classes = answer["prediction"].to_numpy()
    worst = abs(numpy.stack(answer["probabilities"].to_numpy())[:, 1] - expected).max()
    assert worst < 1e-6 and (classes == (expected > 0.5)).all(), worst
    median = {name: statistics.median(values) for name, values in times.items()}
    print(json.dumps({"rows": chosen.rows, "columns": chosen.columns, "trees": chosen.trees, "depth": chosen.depth, "times": times,
                      "median": median, "speed_of_xgboost": median["xgboost_matrix"] / median["ours"], "worst_difference": float(worst)}))


if __name__ == "__main__":
    main()
