"""Trees that no converter makes: every comparison, missing values, aggregates, and the operator that takes the place of the
older two. The answers are those of ONNX' own reference, which computes value by value."""

import numpy
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

FEATURES = 3
ROWS = 500


def rows(missing):
    random = numpy.random.default_rng(4)
    values = random.integers(-3, 4, (ROWS, FEATURES)).astype(numpy.float32) / 2
    if missing:
        values[random.random(values.shape) < 0.2] = numpy.nan
    return values


def model(node, outputs, opset):
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, outputs])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", opset)])


def regressor(mode, tracks, aggregate):
    """Two trees: a split below another one, and a split alone."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_treeids=[0] * 5 + [1] * 3,
        nodes_nodeids=[0, 1, 2, 3, 4, 0, 1, 2],
        nodes_featureids=[0, 1, 0, 0, 0, 2, 0, 0],
        nodes_values=[0.5, -0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        nodes_modes=[mode, mode, "LEAF", "LEAF", "LEAF", mode, "LEAF", "LEAF"],
        nodes_truenodeids=[1, 3, 0, 0, 0, 1, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0, 2, 0, 0],
        nodes_missing_value_tracks_true=[tracks, tracks, 0, 0, 0, tracks, 0, 0],
        n_targets=1,
        target_treeids=[0, 0, 0, 1, 1],
        target_nodeids=[2, 3, 4, 1, 2],
        target_ids=[0] * 5,
        target_weights=[1.0, 10.0, 100.0, 0.25, 0.5],
        aggregate_function=aggregate,
        base_values=[1000.0] if aggregate == "SUM" else None,
    )
    return model(node, 1, 3)


def by_place(mode, tracks, aggregate):
    """The same trees, and a tree of one weight for each of two targets."""
    tensor = helper.make_tensor
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        tree_roots=[0, 2],
        n_targets=2,
        aggregate_function=aggregate,
        nodes_featureids=[0, 1, 2],
        nodes_splits=tensor("s", TensorProto.FLOAT, [3], [0.5, -0.5, 1.0]),
        nodes_modes=tensor("m", TensorProto.UINT8, [3], [mode] * 3),
        nodes_missing_value_tracks_true=[tracks] * 3,
        nodes_truenodeids=[1, 0, 3],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 1, 4],
        nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0, 1, 0, 1, 0],
        leaf_weights=tensor("w", TensorProto.FLOAT, [5], [10.0, 100.0, 1.0, 0.25, 0.5]),
    )
    return model(node, 2, 5)


def compare(program, made, asked):
    [expected] = ReferenceEvaluator(made).run(None, {"x": asked})
    answer = program.predict(made.SerializeToString(), asked)["prediction"].to_pylist()
    numpy.testing.assert_allclose(numpy.array(answer).reshape(expected.shape), expected, 1e-6)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
def test_every_comparison(program, mode, tracks, aggregate):
    # The reference has two answers for a missing value that is "not equal": no in this operator, yes in the newer one, as in
    # ONNX Runtime and here.
    compare(program, regressor(mode, tracks, aggregate), rows(missing=mode != "BRANCH_NEQ" or tracks == 1))


@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("tracks", [0, 1])
def test_trees_by_place(program, mode, tracks):
    compare(program, by_place(mode, tracks, 1), rows(missing=True))


def test_what_trees_refuse(program, tmp_path):
    for number, (made, word) in enumerate([(regressor("BRANCH_LEQ", 0, "MAX"), "`MAX`"), (by_place(6, 0, 1), "`BRANCH_MEMBER`")]):
        (tmp_path / str(number)).write_bytes(made.SerializeToString())
        [said] = program.read([tmp_path / str(number)])
        assert said.startswith("error: ") and word in said
    onnx.checker.check_model(regressor("BRANCH_LEQ", 0, "SUM"))
