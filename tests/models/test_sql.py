"""Models through SQL: CREATE MODEL, predict in queries and views, versions, transactions, restarts, the scoring service."""

import os
import random

import adbc_driver_flightsql.dbapi as dbapi
import numpy
import pyarrow
import pyarrow.flight as flight
import pytest
import xgboost

from cases import CASES, FEATURES, booster_case, target
from served import Served, columns, matrix
from test_refused import HOSTILE, REFUSED, mutated

# The bound that is asked for; beside it what 32 bits can tell apart of large numbers.
ABSOLUTE, RELATIVE = 1e-6, 1e-6
NAMES = [f"f{at}" for at in range(FEATURES)]
ARGUMENTS = ", ".join(NAMES)


@pytest.fixture
def alone(tmp_path):
    """A folder in which servers follow one another."""
    running = []

    def start():
        running.append(Served(tmp_path))
        return running[-1]

    yield start
    for served in running:
        served.client.close()
        if served.server.alive():
            served.server.stop()


def stump(low, high, names=("a", "b")):
    """One split: a below one half gives the one, else the other; missing is high."""
    document = {
        "learner": {
            "attributes": {},
            "feature_names": list(names),
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "tree_info": [0],
                    "trees": [
                        {
                            "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
                            "split_conditions": [0.5, low, high], "default_left": [0, 0, 0],
                            "tree_param": {"num_nodes": "3", "size_leaf_vector": "1"},
                        }
                    ],
                },
            },
            "learner_model_param": {"base_score": "0", "num_class": "0", "num_feature": str(len(names) or 2), "num_target": "1"},
            "objective": {"name": "reg:squarederror"},
        }
    }
    return str(document).replace("'", '"').encode()


@pytest.mark.parametrize("name", CASES)
def test_equals_its_library(served, name):
    """Every model, over a stored table with missing values; each third has NaN in the place of NULL."""
    case, model = CASES[name](), "case_" + name.replace("-", "_")
    served.model(model, case.model)
    served.store(f"rows_{model}", columns(case.rows, nulls=len(name) % 3 != 0))
    answer = served.run(f"SELECT predict('{model}', {ARGUMENTS}) AS p FROM rows_{model} ORDER BY id")
    if numpy.asarray(case.prediction).dtype.kind in "iU":
        assert answer["p"].to_pylist() == list(case.prediction)
    else:
        numpy.testing.assert_allclose(matrix(answer["p"]), case.prediction, RELATIVE, ABSOLUTE)
    if case.probabilities is not None:
        answer = served.run(f"SELECT predict_proba('{model}', {ARGUMENTS}) AS p FROM rows_{model} ORDER BY id")
        numpy.testing.assert_allclose(matrix(answer["p"]), case.probabilities, RELATIVE, ABSOLUTE)


@pytest.fixture(scope="module")
def named(served):
    case = booster_case({"objective": "reg:squarederror"}, target, names=NAMES)
    served.model("named", case.model)
    served.store("asked", columns(case.rows))
    return case


def test_rows_of_a_table(served, named):
    """Columns are found by their names, wherever they stand and whatever their case."""
    expected = served.run(f"SELECT id, predict('named', {ARGUMENTS}) AS p FROM asked ORDER BY id")["p"]
    upper = ", ".join(f'{name} AS "{name.upper()}"' for name in NAMES)
    for rows in (
        "TABLE asked",
        "table main.asked",
        "(SELECT 1 AS other, f7, f6, f5, f4, f3, f2, f1, f0, id FROM asked)",
        f"(SELECT id, {upper} FROM asked)",
    ):
        answer = served.run(f"SELECT id, prediction FROM predict('named', {rows}) ORDER BY id")
        assert answer["prediction"].equals(expected), rows
    joined = served.run("SELECT sum(p.prediction) AS s, count(*) AS n FROM predict('named', TABLE asked) AS p JOIN asked a USING (id)")
    assert joined["n"].to_pylist() == [len(named.rows)]
    within = served.run("WITH few AS (SELECT * FROM asked WHERE id < 5) SELECT prediction FROM predict('named', TABLE few) ORDER BY id")
    assert within["prediction"].to_pylist() == expected.to_pylist()[:5]
    served.run("CREATE OR REPLACE VIEW scored AS SELECT id, prediction FROM predict('named', TABLE asked)")
    assert served.run("SELECT prediction FROM scored ORDER BY id")["prediction"].equals(expected)
    # A model without names takes the columns in their order, and no others.
    served.model("nameless", CASES["xgboost-squared"]().model)
    answer = served.run(f"SELECT prediction FROM predict('nameless', (SELECT {ARGUMENTS} FROM asked ORDER BY id))")
    assert answer.num_rows == len(named.rows)
    served.fails("SELECT * FROM predict('nameless', TABLE asked)", "takes 8 columns without names", "has 9")
    served.fails("SELECT * FROM predict('named', (SELECT f0 FROM asked))", "needs a column `f1`", "the input has f0")


def test_what_is_checked_before_anything_runs(served, named):
    for sql, *words in (
        ("SELECT predict('named', f0) FROM asked", "expected 8 columns, got 1", "f0, f1, f2"),
        (f"SELECT predict('named', {ARGUMENTS.replace('f1', 'CAST(f1 AS VARCHAR)')}) FROM asked", "column 2 (`f1`)", "must be a number"),
        (f"SELECT predict_proba('named', {ARGUMENTS}) FROM asked", "not a classifier"),
        (f"SELECT predict('nothing', {ARGUMENTS}) FROM asked", "model `bowshot.main.nothing` not found", "SHOW MODELS"),
        ("SELECT predict(id, f0) FROM asked", "as a text in quotes"),
        ("SELECT predict() FROM asked", "predict"),
        ("SELECT predict('a b', f0) FROM asked", "not a valid model name"),
        ("SELECT * FROM predict('named')", "name of a model and the rows"),
        ("SELECT * FROM predict('nothing', TABLE asked)", "not found"),
        ("CREATE MODEL named FROM 'named.model'", "already exists"),
        ("CREATE MODEL x FROM '../named.model'", "not in the exchange folder"),
        ("CREATE MODEL x FROM 'missing.model'", "not in the exchange folder"),
        ("CREATE MODEL nowhere.x FROM 'named.model'", "schema `bowshot.nowhere` not found"),
        ("CREATE MODEL x", "CREATE [OR REPLACE] MODEL"),
        ("DROP MODEL x", "not found"),
        (f"CREATE TABLE d (a DOUBLE, p DOUBLE DEFAULT predict('named', {', '.join(['1'] * 8)}))", "models are not allowed in"),
    ):
        served.fails(sql, *words)
    served.run("DROP MODEL IF EXISTS x")
    served.run("CREATE MODEL IF NOT EXISTS named FROM 'missing.model'")


def test_in_every_place_of_a_statement(served, named):
    served.model("small", stump(-1.0, 2.0))
    served.run("CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES (1, 0.25, 1), (2, 0.75, 1), (3, NULL, 1)) AS v(id, a, b)")
    one = "predict('small', a, b)"
    assert served.value("SELECT predict('small', 0.1, 5)") == -1.0
    assert served.value("SELECT predict('small', NULL, NULL)") == 2.0
    assert served.value(f"SELECT count(*) FROM t WHERE {one} > 1") == 2
    assert served.rows(f"SELECT {one} AS p, count(*) AS n FROM t GROUP BY 1 ORDER BY p") == [{"p": -1.0, "n": 1}, {"p": 2.0, "n": 2}]
    assert served.value(f"SELECT sum({one}) FROM t") == 3.0
    assert served.value(f"SELECT id FROM t ORDER BY {one}, id LIMIT 1") == 1
    assert served.value(f"SELECT count(*) FROM t AS x JOIN t AS y ON predict('small', x.a, x.b) = predict('small', y.a, y.b)") == 5
    assert served.value(f"SELECT max(p) FROM (SELECT {one} AS p, row_number() OVER (ORDER BY {one}) AS n FROM t) AS s") == 2.0
    assert served.run(f"SELECT {one} AS p FROM t").schema.names == ["p"]
    served.run(f"CREATE OR REPLACE TABLE u AS SELECT id, {one} AS p FROM t")
    served.run(f"UPDATE u SET p = predict('small', t.a, t.b) + 1 FROM t WHERE t.id = u.id")
    served.run(f"INSERT INTO u SELECT id + 10, {one} FROM t")
    served.run(f"DELETE FROM t WHERE {one} < 0")
    assert served.rows("SELECT id, p FROM u ORDER BY id") == [
        {"id": id, "p": p} for id, p in ((1, 0.0), (2, 3.0), (3, 3.0), (11, -1.0), (12, 2.0), (13, 2.0))
    ]
    assert served.value("SELECT count(*) FROM t") == 2


def test_versions_and_what_is_told(served):
    served.run("CREATE SCHEMA IF NOT EXISTS s")
    served.model("s_v", stump(1.0, 2.0))
    served.run("CREATE MODEL s.v FROM 's_v.model'")
    served.run("CREATE OR REPLACE TABLE versions AS SELECT 0.0 AS a, 0.0 AS b")
    asked = "SELECT predict('s.v', a, b) AS p FROM versions"
    served.run(f"CREATE OR REPLACE VIEW s.seen AS {asked}")
    # Twice, so that the second one may come from the cache of results.
    for version, low in ((1, 1.0), (2, 5.0), (3, 7.0)):
        if version > 1:
            (served.exchange / "s_v.model").write_bytes(stump(low, 2.0))
            served.run("CREATE OR REPLACE MODEL s.v FROM 's_v.model'")
        for _ in range(3):
            assert served.value(asked) == low and served.value("SELECT p FROM s.seen") == low
        [told] = served.rows("SELECT * FROM system.models WHERE model_schema = 's'")
        assert told["version"] == version and len(told["sha256"]) == 64
    assert (told["model_name"], told["format"], told["features"], told["feature_count"]) == ("v", "xgboost", ["a", "b"], 2)
    assert (told["prediction_type"], told["trees"], told["objective"], told["owner"]) == ("Float32", 1, "reg:squarederror", None)
    assert told["bytes"] == len(stump(7.0, 2.0)) and told["created"] is not None
    assert [row["name"] for row in served.rows("SHOW MODELS FROM s")] == ["v"]
    assert [row["name"] for row in served.rows("SHOW MODELS LIKE 's_v'")] == ["s_v"]
    served.fails("DROP SCHEMA s", "not empty")
    served.run("DROP SCHEMA s CASCADE")
    served.fails(asked, "not found")
    served.run("CREATE SCHEMA s")
    served.fails(asked, "not found")


def test_transactions(served):
    served.run("CREATE OR REPLACE TABLE one AS SELECT 0.0 AS a, 0.0 AS b")
    served.model("kept", stump(1.0, 2.0))
    with flight.connect(served.server.grpc_tcp) as other:
        def elsewhere(sql):
            info = other.get_flight_info(flight.FlightDescriptor.for_command(sql.encode()))
            return [row for end in info.endpoints for row in other.do_get(end.ticket).read_all().to_pylist()]

        asked = "SELECT predict('kept', a, b) AS p FROM one"
        served.run("BEGIN")
        (served.exchange / "next.model").write_bytes(stump(9.0, 2.0))
        served.run("CREATE OR REPLACE MODEL kept FROM 'next.model'")
        served.run("CREATE MODEL fresh FROM 'next.model'")
        assert served.rows(asked) == [{"p": 9.0}] and elsewhere(asked) == [{"p": 1.0}]
        served.run("ROLLBACK")
        assert served.rows(asked) == [{"p": 1.0}]
        served.fails("SELECT predict('fresh', 0, 0)", "not found")
        # A transaction asks the model that it saw first.
        served.run("BEGIN")
        assert served.rows(asked) == [{"p": 1.0}]
        elsewhere("CREATE OR REPLACE MODEL kept FROM 'next.model'")
        assert served.rows(asked) == [{"p": 1.0}] and elsewhere(asked) == [{"p": 9.0}]
        served.run("COMMIT")
        assert served.rows(asked) == [{"p": 9.0}]
        # Two who make the same one.
        served.run("BEGIN")
        served.run("CREATE OR REPLACE MODEL kept FROM 'next.model'")
        elsewhere("DROP MODEL kept")
        served.fails("COMMIT", "model `bowshot.main.kept`", "another transaction")


def test_prepared_statements(served):
    served.model("bound", stump(-1.0, 2.0))
    with dbapi.connect(served.server.grpc_tcp, autocommit=True) as connection, connection.cursor() as cursor:
        sql = "SELECT predict('bound', ?, ?) AS p"
        for a, p in ((0.1, -1.0), (0.9, 2.0)):
            cursor.execute(sql, (a, 1.0))
            assert cursor.fetchall() == [(p,)]
        (served.exchange / "bound.model").write_bytes(stump(-3.0, 2.0))
        served.run("CREATE OR REPLACE MODEL bound FROM 'bound.model'")
        cursor.execute(sql, (0.1, 1.0))
        assert cursor.fetchall() == [(-3.0,)]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(served, name):
    make, word = REFUSED[name]
    (served.exchange / "refused").write_bytes(make())
    served.fails("CREATE MODEL refused FROM 'refused'", word, "`refused`")
    assert served.value("SELECT count(*) FROM system.models WHERE model_name = 'refused'") == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_files(served, name):
    """Each is a model or refused, by a server that lives on and takes little memory for it."""
    model, chance = CASES[name]().model, random.Random(name)
    refused = 0
    for _ in range(60):
        (served.exchange / "damaged").write_bytes(mutated(model, chance))
        try:
            served.run("CREATE OR REPLACE MODEL damaged FROM 'damaged'")
        except (pyarrow.ArrowException, flight.FlightError) as error:
            assert "`damaged`" in str(error), error
            refused += 1
    assert refused > 5 and served.server.alive()
    served.run("DROP MODEL IF EXISTS damaged")
    [status] = [line for line in open(f"/proc/{served.server.process.pid}/status") if line.startswith("VmHWM")]
    assert int(status.split()[1]) < 2_000_000, status


def test_scoring(served, named):
    rows = columns(named.rows)
    for chunk in (None, 100):
        answer = served.exchanged(("score", "named"), rows, chunk)
        assert answer.schema.names == ["prediction"]
        numpy.testing.assert_allclose(matrix(answer["prediction"]), named.prediction, RELATIVE, ABSOLUTE)
    case = CASES["onnx-random-forest-two"]()
    served.model("forest", case.model)
    answer = served.exchanged(("score", "main.forest", "probabilities"), columns(case.rows).drop_columns(["id"]))
    numpy.testing.assert_allclose(matrix(answer["probabilities"]), case.probabilities, RELATIVE, ABSOLUTE)
    # One row after the other, each answered before the next one is sent.
    writer, reader = served.client.do_exchange(flight.FlightDescriptor.for_path("score", "named"))
    writer.begin(rows.schema)
    for at in range(50):
        writer.write_table(rows.slice(at, 1))
        [answer] = reader.read_chunk().data.to_pylist()
        assert abs(answer["prediction"] - named.prediction[at]) < 1e-5
    writer.done_writing()
    with pytest.raises(StopIteration):
        reader.read_chunk()
    writer.close()
    for path, table, word in (
        (("score", "nothing"), rows, "not found"),
        (("score", "named"), rows.drop_columns(["f3"]), "needs a column `f3`"),
        (("score", "named"), rows.set_column(1, "f0", pyarrow.array(["x"] * rows.num_rows)), "must be a number"),
        (("score", "it's"), rows, "not a valid model name"),
        (("other", "named"), rows, "the path does not exist"),
    ):
        with pytest.raises(Exception, match=word):
            served.exchanged(path, table)


def test_what_was_committed_survives(alone):
    served = alone()
    served.model("kept", stump(1.0, 2.0))
    served.model("gone", stump(3.0, 4.0))
    served.run("DROP MODEL gone")
    served.run("CREATE OR REPLACE MODEL kept FROM 'gone.model'")
    asked = "SELECT predict('kept', 0, 0)"
    assert served.value(asked) == 3.0
    folder = served.exchange.parent / "data" / "models"
    assert all(os.stat(file).st_mode & 0o077 == 0 for file in folder.iterdir()) and os.stat(folder).st_mode & 0o077 == 0
    served.client.close()
    served.server.kill()
    served = alone()
    assert served.value(asked) == 3.0 and served.value("SELECT version FROM system.models") == 2
    # The file of the first version went at the start.
    assert len(list(folder.iterdir())) == 1
    served.run("BEGIN")
    served.run("CREATE MODEL open FROM 'kept.model'")
    served.client.close()
    served.server.kill()
    served = alone()
    assert [row["model_name"] for row in served.rows("SELECT model_name FROM system.models")] == ["kept"]
    assert served.value(asked) == 3.0 and len(list(folder.iterdir())) == 1
    # A file that was changed behind the server's back is not asked.
    served.client.close()
    served.server.stop()
    [file] = folder.iterdir()
    file.chmod(0o600)
    file.write_bytes(stump(0.0, 0.0))
    served = alone()
    served.fails(asked, "CREATE OR REPLACE MODEL")
    served.run("CREATE OR REPLACE MODEL kept FROM 'kept.model'")
    assert served.value(asked) == 1.0


def test_threads_and_large_batches(served):
    """More rows than are asked in one go, on all processors, equal to XGBoost."""
    random = numpy.random.default_rng(3)
    x = random.normal(size=(2_000, 5)).astype(numpy.float32)
    booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(x, label=x[:, 0] * x[:, 1]), 50)
    rows = random.normal(size=(200_000, 5)).astype(numpy.float32)
    served.model("large", bytes(booster.save_raw(raw_format="ubj")))
    served.store("many", columns(rows))
    answer = served.run("SELECT predict('large', f0, f1, f2, f3, f4) AS p FROM many ORDER BY id")
    numpy.testing.assert_allclose(matrix(answer["p"]), booster.inplace_predict(rows), RELATIVE, ABSOLUTE)
