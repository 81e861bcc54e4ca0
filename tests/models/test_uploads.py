"""Files of models by DoPut and over streams; the example that scores frames; ONNX graphs through SQL."""

import subprocess
import sys

import dask.dataframe
import numpy
import pandas
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import scoring
from cases import CASES
from exchanges import exchange
from graphs import LIBRARY, expected, made, rows_of
from served import Served, columns, matrix
from test_onnx_graphs import ABSOLUTE, HARMFUL, RELATIVE
from test_sql import stump


OPTIONS = ["--set", f"models.onnx_runtime={LIBRARY}"]


def refused(served, words, name, file, **options):
    with pytest.raises((pa.ArrowException, flight.FlightError)) as caught:
        scoring.upload(served.client, name, file, **options)
    assert words in str(caught.value), caught.value


def test_a_file_by_do_put(served):
    upload, asked = scoring.upload, "SELECT predict('sent', 0, 0)"
    upload(served.client, "sent", stump(1.0, 2.0))
    assert served.value(asked) == 1.0
    refused(served, "already exists", "sent", stump(3.0, 4.0))
    upload(served.client, "sent", stump(3.0, 4.0), if_exists="keep")
    assert served.value(asked) == 1.0
    upload(served.client, "sent", stump(3.0, 4.0), if_exists="replace", format="xgboost")
    assert served.value(asked) == 3.0
    [row] = served.rows("SELECT version, format, bytes FROM system.models WHERE model_name = 'sent'")
    assert row == {"version": 2, "format": "xgboost", "bytes": len(stump(3.0, 4.0))}
    served.run("CREATE SCHEMA apart")
    upload(served.client, 'apart."My model"', stump(5.0, 6.0))
    assert served.value("""SELECT predict('apart."My model"', 0, 0)""") == 5.0
    for words, name, file, options in (
        ("is a model of format `xgboost`, not `onnx`", "other", stump(1, 2), {"format": "onnx"}),
        ("invalid option `if_exists`", "other", stump(1, 2), {"if_exists": "maybe"}),
        ("invalid option `pandas`", "other", stump(1, 2), {"pandas": "{}"}),
        ("damaged", "other", b"nothing of the kind", {}),
        ("damaged", "other", b"", {}),
        ("schema `bowshot.nowhere` not found", "nowhere.m", stump(1, 2), {}),
        ("invalid model name", "m FROM 'x'", stump(1, 2), {}),
    ):
        refused(served, words, name, file, **options)
    assert not served.rows("SELECT 1 FROM system.models WHERE model_name IN ('other', 'm')")


def test_rows_that_are_no_file(served):
    for schema, words in (
        (pa.schema([("file", pa.string())]), "one column of bytes"),
        (pa.schema([("a", pa.binary()), ("b", pa.binary())]), "one column of bytes"),
    ):
        writer, reader = served.client.do_put(flight.FlightDescriptor.for_path("models", "wrong"), schema)
        with pytest.raises((pa.ArrowException, flight.FlightError), match=words):
            writer.done_writing()
            reader.read()
            writer.close()
    null = pa.table({"file": pa.array([b"x", None], pa.binary())})
    with pytest.raises(Exception, match="is NULL"):
        exchange(served.client, "CREATE MODEL wrong FROM input", null)
    # A table of three names is a table, whatever its schema is called.
    served.run("CREATE SCHEMA models")
    store = flight.FlightDescriptor.for_path("bowshot", "models", "plain")
    writer, reader = served.client.do_put(store, null.schema)
    with writer:
        writer.write_table(null)
        writer.done_writing()
        reader.read()
    assert served.value("SELECT count(*) FROM models.plain") == 2


def test_a_file_over_a_stream(served):
    file = stump(7.0, 8.0)
    table = pa.table({"part": pa.array([file[:10], file[10:]], pa.binary())})
    exchange(served.client, "CREATE MODEL streamed FROM input", table)
    exchange(served.client, "CREATE OR REPLACE MODEL streamed FROM \"Rows\" FORMAT xgboost", table, input="Rows")
    assert served.value("SELECT predict('streamed', 0, 0)") == 7.0
    for sql, words in (
        ("CREATE MODEL streamed FROM input", "already exists"),
        ("CREATE MODEL other FROM elsewhere", "no rows `elsewhere`"),
        ("CREATE MODEL other FROM input FORMAT", "FORMAT xgboost"),
        ("CREATE MODEL other FROM 'streamed.model'", "does not read `input`"),
    ):
        with pytest.raises(Exception, match=words):
            exchange(served.client, sql, table)
    served.fails("CREATE MODEL other FROM input", "no rows `input`")


def test_in_transactions(served):
    served.run("BEGIN")
    scoring.upload(served.client, "undone", stump(1.0, 2.0))
    assert served.value("SELECT predict('undone', 0, 0)") == 1.0
    served.run("ROLLBACK")
    served.fails("SELECT predict('undone', 0, 0)", "not found")


def test_too_large(served):
    schema = pa.schema([("file", pa.large_binary())])
    writer, reader = served.client.do_put(flight.FlightDescriptor.for_path("models", "large"), schema)
    part = pa.record_batch([pa.array([b"\0" * (8 << 20)], pa.large_binary())], schema=schema)
    with pytest.raises((pa.ArrowException, flight.FlightError), match="more than 268435456 bytes|is not|closed"):
        for _ in range(34):
            writer.write_batch(part)
        writer.done_writing()
        reader.read()
        writer.close()
    assert not served.rows("SELECT 1 FROM system.models WHERE model_name = 'large'")


def test_frames(served):
    model, asked = scoring.trained(), scoring.rows(30_000, seed=3)
    scoring.upload(served.client, "churn", bytes(model.get_booster().save_raw("ubj")), if_exists="replace")
    said = scoring.score(served.client, "churn", asked)
    assert said.index.equals(asked.index) and (said.to_numpy() == model.predict(asked)).all()
    likely = scoring.score(served.client, "churn", asked, probabilities=True)
    numpy.testing.assert_allclose(numpy.stack(likely), model.predict_proba(asked), RELATIVE, ABSOLUTE)
    parts = dask.dataframe.from_pandas(asked, npartitions=3)
    pandas.testing.assert_series_equal(
        scoring.score_dask(parts, served.server.grpc_tcp, "churn", said.dtype).compute(), said, check_names=False
    )
    one = scoring.OneByOne(served.client, "churn", asked.columns)
    assert [one(*row) for row in asked.head(50).itertuples(index=False)] == said.head(50).to_list()
    one.close()


@pytest.mark.parametrize("name", ["logistic-names", "perceptron-two", "network", "softmax", "embedded", "support-vectors"])
def test_graphs_in_sql(served, name):
    model, rows = name.replace("-", "_"), rows_of(name)
    scoring.upload(served.client, model, made(name), if_exists="replace", format="onnx")
    served.store(f"rows_{model}", columns(rows))
    arguments = ", ".join(f"f{at}" for at in range(rows.shape[1]))
    label, probabilities = expected(made(name), rows)
    answer = served.run(f"SELECT predict('{model}', {arguments}) AS p FROM rows_{model} ORDER BY id")["p"]
    if name == "softmax":
        label, probabilities = label.argmax(axis=1), label
    if probabilities is None:
        numpy.testing.assert_allclose(matrix(answer), label.ravel(), RELATIVE, ABSOLUTE)
        return
    assert (numpy.array(answer.to_pylist()) == label).mean() > 0.999
    answer = served.run(f"SELECT predict_proba('{model}', {arguments}) AS p FROM rows_{model} ORDER BY id")["p"]
    numpy.testing.assert_allclose(matrix(answer), probabilities, RELATIVE, ABSOLUTE)


@pytest.mark.parametrize("name", ["loop", "external", "work", "deep"])
def test_harmful_graphs(served, name):
    make, words = HARMFUL[name]
    refused(served, words, "harmful", make())
    assert served.server.alive()


def test_without_the_library(tmp_path):
    plain = Served(tmp_path)
    try:
        for words in ("operator `Concat` needs ONNX Runtime", "pip install onnxruntime", "`models.onnx_runtime`"):
            refused(plain, words, "network", made("network"))
        scoring.upload(plain.client, "trees", CASES["onnx-decision-tree"]().model, format="onnx")
    finally:
        plain.close()


def test_a_library_that_is_none_stops_the_server(served, tmp_path):
    (tmp_path / "libonnxruntime.so").write_text("no library")
    for library in (tmp_path / "libonnxruntime.so", tmp_path / "nowhere.so"):
        command = [served.server.command[0], "serve", "--flight", "127.0.0.1:0", "--set", f"models.onnx_runtime={library}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "ONNX Runtime cannot be loaded" in done.stderr, done.stderr


def test_the_example_runs(served):
    done = subprocess.run(
        [sys.executable, scoring.__file__, served.server.grpc_tcp], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "pandas: 1.000 equal, Dask: 1.000 equal"
