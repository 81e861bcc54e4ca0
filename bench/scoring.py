"""Scoring: rows through an XGBoost model, by Bowshot and by XGBoost itself, in turn.

    cargo build --release -p bowshot
    pip install -r bench/requirements/models.txt
    python bench/scoring.py FOLDER_OF_PROGRAMS [--rows 1000000] [--columns 30] [--trees 100] [--depth 6] [--rounds 5]

`SELECT predict(…)` over a stored table, the answer read to its end by a client of Flight SQL, against XGBoost in process with as many
threads as there are processors (`inplace_predict` over a NumPy matrix in rows, its fastest way, and `DMatrix` over an Arrow table);
a service of FastAPI that takes rows as JSON, with the rows that it manages within some seconds; and single rows over one open stream
of the scoring service, and one request each of the other. Prints one JSON line. The answers are compared, too.
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import pyarrow
import pyarrow.flight as flight
import xgboost

from lib import places, processes

# Rows of one request of the other service: as many as it likes.
JSON_ROWS = 5_000
SINGLE_ROWS = 2_000


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    for name, value in {"rows": 1_000_000, "columns": 30, "trees": 100, "depth": 6, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def train(chosen):
    random = numpy.random.default_rng(1)
    x = random.normal(size=(50_000, chosen.columns)).astype(numpy.float32)
    y = (x[:, 0] * x[:, 1] + numpy.sin(x[:, 2]) + random.normal(size=len(x)) > 0).astype(int)
    parameters = {"objective": "binary:logistic", "max_depth": chosen.depth, "nthread": os.cpu_count(), "seed": 1}
    return xgboost.train(parameters, xgboost.DMatrix(x, label=y), chosen.trees)


def timed(action):
    start = time.perf_counter()
    answer = action()
    return time.perf_counter() - start, answer


def make_rows(chosen):
    rows = numpy.random.default_rng(2).normal(size=(chosen.rows, chosen.columns)).astype(numpy.float32)
    rows[numpy.random.default_rng(3).random(rows.shape) < 0.05] = numpy.nan
    return rows, pyarrow.table({f"f{at}": numpy.ascontiguousarray(rows[:, at]) for at in range(chosen.columns)})


def in_turn(chosen, ours, booster, rows, table):
    """Seconds of `ours()` and of XGBoost, turn by turn after one that warms up; and both last answers."""
    times = {"sql": [], "xgboost_matrix": [], "xgboost_arrow": []}
    for turn in range(chosen.rounds + 1):
        seconds, answer = timed(ours)
        matrix, expected = timed(lambda: booster.inplace_predict(rows))
        arrow, _ = timed(lambda: booster.predict(xgboost.DMatrix(table, nthread=os.cpu_count())))
        if turn:
            for found, one in zip(times.values(), (seconds, matrix, arrow), strict=True):
                found.append(one)
    return times, answer, expected


def measure(chosen, folder, booster, rows, table):
    sql = f"SELECT predict_proba('scored', {', '.join(table.column_names)})[2] AS p FROM asked"
    settings = ["--set", f"storage.exchange_folder={folder}"]
    with processes.bowshot({}, *settings) as server, flight.connect(server.uri) as client:
        ask(client, "CREATE MODEL scored FROM 'model.ubj'")
        writer, reader = client.do_put(flight.FlightDescriptor.for_path("asked"), table.schema)
        with writer:
            writer.write_table(table, 65_536)
            writer.done_writing()
            reader.read()
        times, answer, expected = in_turn(chosen, lambda: ask(client, sql), booster, rows, table)
        single = percentiles(score_singly(client, table))
    worst = abs(numpy.sort(answer["p"].to_numpy()) - numpy.sort(expected)).max()
    assert worst < 1e-6, worst
    with processes.service("json_scoring.py", str(folder / "model.ubj")) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.uri, timeout=120)
        some = rows[: min(len(rows), 10 * JSON_ROWS)]
        pieces = [some[at : at + JSON_ROWS] for at in range(0, len(some), JSON_ROWS)]
        seconds, predictions = timed(lambda: [p for piece in pieces for p in score_json(connection, piece)])
        assert abs(numpy.array(predictions) - expected[: len(some)]).max() < 1e-6
        json_single = percentiles([timed(lambda at=at: score_json(connection, rows[at : at + 1]))[0] for at in range(SINGLE_ROWS)])
    speed = len(some) / seconds
    return {
        "threads": os.cpu_count(), "times": times, "json_rows": len(some), "json_rows_per_second": speed,
        "speed_of_json": chosen.rows / statistics.median(times["sql"]) / speed, "single": single, "json_single": json_single,
        "worst_difference": float(worst),
    }  # fmt: skip


def ask(client, sql):
    info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
    return pyarrow.concat_tables(client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints)


def score_singly(client, table):
    """Seconds of each single row over one open stream."""
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_path("score", "scored"))
    writer.begin(table.schema)
    seconds = []
    for batch in [table.slice(at, 1).combine_chunks().to_batches()[0] for at in range(SINGLE_ROWS)]:
        start = time.perf_counter()
        writer.write_batch(batch)
        reader.read_chunk()
        seconds.append(time.perf_counter() - start)
    writer.done_writing()
    writer.close()
    return seconds


def score_json(connection, rows):
    # JSON has no missing number but null.
    body = json.dumps({"rows": [[None if value != value else value for value in row] for row in rows.tolist()]})
    connection.request("POST", "/score", body, {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())["predictions"]


def percentiles(seconds):
    """Without the first hundred, which warm up."""
    ordered = sorted(seconds[100:])
    return {"p50_ms": ordered[len(ordered) // 2] * 1000, "p99_ms": ordered[len(ordered) * 99 // 100] * 1000}


def main():
    chosen = parse_options()
    places.PROGRAMS = chosen.programs.resolve()
    booster = train(chosen)
    booster.set_param({"nthread": os.cpu_count()})
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        booster.save_model(folder / "model.ubj")
        found = measure(chosen, folder, booster, *make_rows(chosen))
    median = {name: statistics.median(values) for name, values in found["times"].items()}
    speed = median["xgboost_matrix"] / median["sql"]
    settings = {name: getattr(chosen, name) for name in ("rows", "columns", "trees", "depth")}
    print(json.dumps({**settings, **found, "median": median, "speed_of_xgboost": speed}))


if __name__ == "__main__":
    main()
