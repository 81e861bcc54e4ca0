"""ONNX models that are no tree ensembles, and what ONNX Runtime says of the same rows."""

import functools
import pathlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn import decomposition, impute, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm

from cases import COLOURS, FEATURES, ROWS, TRAINING, binary, converted, data, four, positive, target, two

# The wheel's library, as an operator names it.
[LIBRARY] = pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")


def learned(model, y, missing=0, names=None, **options):
    def make():
        x = data(1, TRAINING, missing)
        answers = numpy.array(names)[y(x)] if names else y(x)
        return converted(model.fit(x, answers), x, **options).SerializeToString()

    return make


def graph(nodes, inputs, outputs, constants, opset=17):
    """A model of operators; inputs and outputs are names with widths, or with types and widths."""

    def value(name, kind):
        kind, width = kind if isinstance(kind, tuple) else (TensorProto.FLOAT, kind)
        return helper.make_tensor_value_info(name, kind, ["rows"] if width is None else ["rows", width])

    made = helper.make_graph(
        nodes,
        "g",
        [value(*each) for each in inputs.items()],
        [value(*each) for each in outputs.items()],
        [numpy_helper.from_array(numpy.asarray(constant), name) for name, constant in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def layer(random, *shape, kind=numpy.float32):
    return (random.normal(size=shape) / numpy.sqrt(shape[0])).astype(kind)


node = helper.make_node


def network():
    """Two layers between columns that are inputs of their own and a number."""
    random = numpy.random.default_rng(5)
    names = [f"f{at}" for at in range(FEATURES)]
    nodes = [
        node("Concat", names, ["x"], axis=1),
        node("Gemm", ["x", "w1", "b1"], ["h1"], transB=1),
        node("BatchNormalization", ["h1", "scale", "shift", "mean", "variance"], ["n1"]),
        node("LeakyRelu", ["n1"], ["a1"], alpha=0.1),
        node("MatMul", ["a1", "w2"], ["h2"]),
        node("LayerNormalization", ["h2", "scale2"], ["n2"], axis=-1),
        node("Tanh", ["n2"], ["a2"]),
        node("Gemm", ["a2", "w3"], ["y"], alpha=2.0),
    ]
    constants = {
        "w1": layer(random, 32, FEATURES), "b1": layer(random, 32), "scale": layer(random, 32), "shift": layer(random, 32),
        "mean": layer(random, 32), "variance": numpy.abs(layer(random, 32)) + 1, "w2": layer(random, 32, 16), "scale2": layer(random, 16),
        "w3": layer(random, 16, 1),
    }  # fmt: skip
    return graph(nodes, dict.fromkeys(names, 1), {"y": 1}, constants)


def softmax(classes=4, depth=FEATURES, hidden=24):
    random = numpy.random.default_rng(6)
    nodes = [
        node("MatMul", ["x", "w1"], ["h"]), node("Add", ["h", "b1"], ["hb"]), node("Relu", ["hb"], ["a"]),
        node("MatMul", ["a", "w2"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
    ]  # fmt: skip
    constants = {"w1": layer(random, depth, hidden), "b1": layer(random, hidden), "w2": layer(random, hidden, classes) * 4}
    return graph(nodes, {"x": depth}, {"p": classes}, constants)


def embedded():
    """Whole numbers that are places in a table, and missing numbers that another one takes the place of."""
    random = numpy.random.default_rng(7)
    nodes = [
        node("Gather", ["table", "colour"], ["found"]), node("Reshape", ["found", "flat"], ["vector"]),
        node("IsNaN", ["x"], ["missing"]), node("Where", ["missing", "zero", "x"], ["known"]),
        node("Concat", ["vector", "known"], ["all"], axis=1), node("MatMul", ["all", "w"], ["h"]), node("Sigmoid", ["h"], ["a"]),
        node("ReduceSum", ["a", "one"], ["y"], keepdims=1), node("Clip", ["y", "low", "high"], ["z"]),
    ]  # fmt: skip
    constants = {
        "table": layer(random, 40, 3), "flat": numpy.array([-1, 3]), "zero": numpy.float32(0.5), "w": layer(random, 3 + 7, 5),
        "one": numpy.array([1]), "low": numpy.float32(1), "high": numpy.float32(4),
    }  # fmt: skip
    return graph(nodes, {"x": 7, "colour": (TensorProto.INT64, 1)}, {"z": 1}, constants)


def doubles():
    random = numpy.random.default_rng(8)
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["a"]), node("Mul", ["a", "a"], ["y"])]
    kind = TensorProto.DOUBLE
    return graph(nodes, {"x": (kind, FEATURES)}, {"y": (kind, 3)}, {"w": layer(random, FEATURES, 3, kind=numpy.float64)})


def labelled():
    """Numbered classes, which no list names."""
    random = numpy.random.default_rng(9)
    nodes = [
        node("MatMul", ["x", "w"], ["s"]), node("Softmax", ["s"], ["p"]), node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
    ]  # fmt: skip
    outputs = {"label": (TensorProto.INT64, None), "p": 5}
    return graph(nodes, {"x": FEATURES}, outputs, {"w": layer(random, FEATURES, 5)})


GRAPHS = {
    "logistic": learned(linear_model.LogisticRegression(max_iter=1000), binary),
    "logistic-names": learned(linear_model.LogisticRegression(max_iter=1000), four, names=COLOURS, zipmap=False),
    "linear": learned(linear_model.LinearRegression(), target),
    "two-targets": learned(linear_model.Ridge(), two),
    "poisson": learned(linear_model.PoissonRegressor(), positive),
    "perceptron-two": learned(
        pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPClassifier((16,), max_iter=30, random_state=0)), binary
    ),
    "perceptron-names": learned(neural_network.MLPClassifier((16, 8), max_iter=30, random_state=0), four, names=COLOURS),
    "perceptron-number": learned(
        pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPRegressor(hidden_layer_sizes=(16,), max_iter=30, random_state=0)), target
    ),
    "descent": learned(linear_model.SGDClassifier(loss="log_loss", random_state=0), four),
    "bayes": learned(naive_bayes.GaussianNB(), four),
    "components": learned(
        pipeline.make_pipeline(impute.SimpleImputer(), decomposition.PCA(3), linear_model.LogisticRegression(max_iter=1000)), four, missing=0.15
    ),
    "normalized": learned(
        pipeline.make_pipeline(preprocessing.Normalizer(), preprocessing.RobustScaler(), linear_model.LinearRegression()), target
    ),
    "binarized": learned(pipeline.make_pipeline(preprocessing.Binarizer(threshold=0.2), linear_model.LogisticRegression(max_iter=1000)), binary),
    "network": network,
    "softmax": softmax,
    "embedded": embedded,
    "doubles": doubles,
    "labelled": labelled,
    "support-vectors": learned(svm.SVR(), target),
    "support-vectors-classes": learned(svm.SVC(probability=True, random_state=0), four, names=COLOURS),
}


@functools.cache
def made(name):
    return GRAPHS[name]()


def rows_of(name):
    rows = data(2, ROWS, 0.15 if name in ("components", "embedded") else 0)
    if name == "embedded":
        rows[:, 7] = numpy.nan_to_num(rows[:, 7])
    return rows


def expected(file, rows):
    """What ONNX Runtime says: prediction, and probabilities if it is a classifier."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options)
    kinds = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(int64)": numpy.int64}
    given, first = {}, 0
    for each in session.get_inputs():
        width = each.shape[1]
        given[each.name] = rows[:, first : first + width].astype(kinds[each.type])
        first += width
    outputs = session.run(None, given)
    if len(outputs) == 1:
        return outputs[0], None
    label, probabilities = outputs
    if isinstance(probabilities, list):
        probabilities = numpy.array([list(each.values()) for each in probabilities])
    return label, probabilities
