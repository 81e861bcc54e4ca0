"""Scoring by the server, for `scoring.py`: through SQL, row by row over an open stream, and by a service of FastAPI beside it."""

import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import pyarrow
import pyarrow.flight as flight
import xgboost

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "clients"))

from scoring import asked_rows, timed, trained  # noqa: E402
from server import Server  # noqa: E402

# Rows of one request of the other service: as many as it likes.
JSON_ROWS = 5_000
SINGLE_ROWS = 2_000

OTHER = """
import json, sys
import numpy, xgboost, uvicorn
from fastapi import FastAPI, Request

booster = xgboost.Booster(model_file=sys.argv[1])
app = FastAPI()


@app.post("/score")
async def score(request: Request):
    rows = json.loads(await request.body())["rows"]
    matrix = numpy.array(rows, dtype=numpy.float32)
    return {"predictions": booster.inplace_predict(matrix).tolist()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
"""


def asked(client, sql):
    info = client.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
    return pyarrow.concat_tables(client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints)


def stored(client, table):
    writer, reader = client.do_put(flight.FlightDescriptor.for_path("asked"), table.schema)
    with writer:
        writer.write_table(table, 65_536)
        writer.done_writing()
        reader.read()


def singly(client, table):
    """Seconds of each single row over one open stream."""
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_path("score", "scored"))
    writer.begin(table.schema)
    batches = [table.slice(at, 1).combine_chunks().to_batches()[0] for at in range(SINGLE_ROWS)]
    seconds = []
    for batch in batches:
        start = time.perf_counter()
        writer.write_batch(batch)
        reader.read_chunk()
        seconds.append(time.perf_counter() - start)
    writer.done_writing()
    writer.close()
    return seconds


class Other:
    """The service of FastAPI, and one connection to it that stays open."""

    def __init__(self, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, "-c", OTHER, str(model), str(port)])
        deadline = time.monotonic() + 60
        while True:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            try:
                self.connection.connect()
                return
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None
                time.sleep(0.05)

    def score(self, rows):
        # JSON has no missing number but null.
        body = json.dumps({"rows": [[None if value != value else value for value in row] for row in rows.tolist()]})
        self.connection.request("POST", "/score", body, {"content-type": "application/json"})
        return json.loads(self.connection.getresponse().read())["predictions"]

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait(30)


def percentiles(seconds):
    ordered = sorted(seconds)
    return {"p50_ms": ordered[len(ordered) // 2] * 1000, "p99_ms": ordered[len(ordered) * 99 // 100] * 1000}


def measured(chosen):
    threads = os.cpu_count()
    booster = trained(chosen, threads)
    booster.set_param({"nthread": threads})
    rows, table = asked_rows(chosen)
    sql = f"SELECT predict_proba('scored', {', '.join(table.column_names)})[2] AS p FROM asked"
    times = {"sql": [], "xgboost_matrix": [], "xgboost_arrow": []}
    os.environ["BOWSHOT_BIN"] = str(chosen.programs)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        booster.save_model(folder / "model.ubj")
        # Each answer is computed: cached ones would say nothing.
        off = {"BOWSHOT_RESULT_CACHE_MEMORY_BYTES": "0"}
        arguments = ["--set", f"storage.exchange_folder={folder}"]
        with Server(arguments=arguments, environment=off) as server, flight.connect(server.grpc_tcp) as client:
            asked(client, "CREATE MODEL scored FROM 'model.ubj'")
            stored(client, table)
            for turn in range(chosen.rounds + 1):
                seconds, answer = timed(lambda: asked(client, sql))
                matrix, expected = timed(lambda: booster.inplace_predict(rows))
                arrow, _ = timed(lambda: booster.predict(xgboost.DMatrix(table, nthread=threads)))
                if turn:
                    times["sql"].append(seconds)
                    times["xgboost_matrix"].append(matrix)
                    times["xgboost_arrow"].append(arrow)
            single = percentiles(singly(client, table)[100:])
        worst = abs(numpy.sort(answer["p"].to_numpy()) - numpy.sort(expected)).max()
        assert worst < 1e-6, worst
        other = Other(folder / "model.ubj")
        try:
            some = rows[: min(len(rows), 10 * JSON_ROWS)]
            seconds, predictions = timed(
                lambda: [p for at in range(0, len(some), JSON_ROWS) for p in other.score(some[at : at + JSON_ROWS])]
            )
            assert abs(numpy.array(predictions) - expected[: len(some)]).max() < 1e-6
            other_single = percentiles([timed(lambda at=at: other.score(rows[at : at + 1]))[0] for at in range(SINGLE_ROWS)][100:])
        finally:
            other.close()
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "rows": chosen.rows, "columns": chosen.columns, "trees": chosen.trees, "depth": chosen.depth, "threads": threads,
        "times": times, "median": median, "speed_of_xgboost": median["xgboost_matrix"] / median["sql"],
        "json_rows": len(some), "json_rows_per_second": len(some) / seconds, "speed_of_json": chosen.rows / median["sql"] / (len(some) / seconds),
        "single": single, "json_single": other_single, "worst_difference": float(worst),
    }  # fmt: skip
