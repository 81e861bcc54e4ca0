"""ONNX graphs of other operators than trees: as ONNX Runtime in Python answers; without its library, and of operators that are not known,
they are refused by name, and what somebody has made to do harm ends in an error."""

import random

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from conftest import Program
from graphs import GRAPHS, expected, graph, made, node, rows_of, softmax
from test_refused import read_damaged

# What 32 bits can tell apart after sums in another order.
RELATIVE, ABSOLUTE = 2e-6, 1e-6


def compared(program, name):
    file, rows = made(name), rows_of(name)
    label, probabilities = expected(file, rows)
    answer = program.predict(file, rows)
    said = answer["prediction"].to_pylist()
    if probabilities is None and "probabilities" in answer.column_names:
        # A graph that ends in a softmax: its classes are the places of the greatest.
        label, probabilities = label.argmax(axis=1), label
    if probabilities is None:
        numpy.testing.assert_allclose(numpy.array(said, dtype=float).reshape(len(rows), -1), label.reshape(len(rows), -1), RELATIVE, ABSOLUTE)
        return
    given = numpy.array(answer["probabilities"].to_pylist(), dtype=float)
    numpy.testing.assert_allclose(given, probabilities, RELATIVE, ABSOLUTE)
    # Where two classes are as good as equal, the last bit may choose.
    clear = numpy.sort(probabilities, axis=1)
    clear = clear[:, -1] - clear[:, -2] > 1e-5
    assert (numpy.array(said)[clear] == label[clear]).all() and clear.mean() > 0.9


@pytest.mark.parametrize("name", GRAPHS)
def test_as_onnx_runtime_answers(runtime, name):
    compared(runtime, name)


def test_without_the_library(program, tmp_path):
    """All are refused by their first operator, and none by another reason."""
    for name in GRAPHS:
        (tmp_path / name).write_bytes(made(name))
    for name, said in zip(GRAPHS, program.read([tmp_path / name for name in GRAPHS]), strict=True):
        operator = onnx.ModelProto.FromString(made(name)).graph.node[0].op_type
        assert said == f"error: the ONNX operator `{operator}` needs ONNX Runtime, whose library is not set"


def test_which_library(program):
    for library in ("/nowhere.so", program.path):
        with pytest.raises(Exception):
            Program(program.path, program.folder, ["--onnx-runtime", str(library)]).read([])


def single(*nodes, constants=None, inputs=None, outputs=None, opset=17):
    return lambda: unchecked([*nodes], inputs or {"x": 4}, outputs or {"y": 4}, constants or {}, opset)


def unchecked(nodes, inputs, outputs, constants, opset=17):
    check, onnx.checker.check_model = onnx.checker.check_model, lambda _: None
    try:
        return graph(nodes, inputs, outputs, constants, opset)
    finally:
        onnx.checker.check_model = check


def changed(change, file=softmax):
    def make():
        model = onnx.ModelProto.FromString(file())
        change(model)
        return model.SerializeToString()

    return make


def elsewhere(model):
    [tensor] = [tensor for tensor in model.graph.initializer if tensor.name == "b1"]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "/etc/passwd", "offset": "0", "length": "96"}.items():
        tensor.external_data.add(key=key, value=value)


def resized(dims):
    def change(model):
        tensor = model.graph.initializer[0]
        del tensor.dims[:]
        tensor.dims.extend(dims)

    return change


def loop():
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Identity", ["v"], ["w"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, None)],
    )  # fmt: skip
    return unchecked([node("Loop", ["n", "yes", "x"], ["y"], body=body)], {"x": 4}, {"y": 4}, {"n": numpy.int64(2**62), "yes": True})


def chain(length):
    names = ["x", *(f"v{at}" for at in range(1, length)), "y"]
    return lambda: unchecked([node("Relu", [a], [b]) for a, b in zip(names, names[1:])], {"x": 4}, {"y": 4}, {})


def outer(size, times):
    """Constants that multiply to a matrix, which is multiplied with itself over and over before any row comes."""
    nodes = [node("Mul", ["a", "b"], ["m0"])]
    nodes += [node("MatMul", [f"m{at}", f"m{at}"], [f"m{at + 1}"]) for at in range(times)]
    nodes += [node("ReduceSum", [f"m{times}"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])]
    constants = {"a": numpy.zeros((size, 1), numpy.float32), "b": numpy.zeros((1, size), numpy.float32)}
    return lambda: unchecked(nodes, {"x": 4}, {"y": 4}, constants)


def whole(operator, divisor):
    nodes = [node("Cast", ["x"], ["i"], to=7), node(operator, ["i", "i" if divisor is None else "by"], ["d"]), node("Cast", ["d"], ["y"], to=1)]
    return single(*nodes, constants={} if divisor is None else {"by": divisor})


def learned(operator, *arguments, **attributes):
    return node(operator, *arguments, domain="ai.onnx.ml", **attributes)


def linear(**changes):
    """A classifier whose lists do not go with its four columns and two classes, which its library has to believe."""
    attributes = {"coefficients": [0.5] * 8, "intercepts": [0.5] * 2, "classlabels_ints": [0, 1], **changes}
    attributes = {name: values for name, values in attributes.items() if values}
    return single(learned("LinearClassifier", ["x"], ["label", "y"], **attributes), outputs={"label": (TensorProto.INT64, None), "y": 2})


HARMFUL = {
    "external": (changed(elsewhere), "external data"),
    "huge-dimensions": (changed(resized([1 << 40, 1 << 40])), "not have the declared size"),
    "dimensions-of-nothing": (changed(resized([1 << 30, 0])), "not have the declared size"),
    "negative-dimensions": (changed(resized([-1, -192])), "not have the declared size"),
    "loop": (loop, "`Loop`"),
    "expand": (single(node("Expand", ["x", "shape"], ["y"]), constants={"shape": numpy.array([1 << 40, 4])}), "`Expand`"),
    "fill": (single(node("ConstantOfShape", ["shape"], ["y"]), constants={"shape": numpy.array([1 << 40])}), "`ConstantOfShape`"),
    "random": (single(node("RandomNormalLike", ["x"], ["y"])), "`RandomNormalLike`"),
    "other-domain": (single(node("Gelu", ["x"], ["y"], domain="com.microsoft")), "`Gelu`"),
    "outer-product": (outer(1 << 16, 0), "too many"),
    "work": (outer(2048, 100), "too many"),
    "deep": (chain(50_000), "too many operators"),
    "long": (chain(5_000), "too many operators"),
    "sum-of-rows": (single(node("ReduceSum", ["x", "axis"], ["s"]), node("Sub", ["x", "s"], ["y"]), constants={"axis": numpy.array([0])}), "other rows"),
    "squared-rows": (single(node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["y"])), "each row"),
    "misfit": (single(node("MatMul", ["x", "w"], ["y"]), constants={"w": numpy.zeros((5, 5), numpy.float32)}), "incompatible shapes"),
    "backwards": (single(node("Relu", ["z"], ["y"]), node("Relu", ["x"], ["z"])), "no earlier operator"),
    "from-nowhere": (single(node("Relu", ["x"], ["z"])), "no operator computes"),
    "same-name": (single(node("Relu", ["x"], ["y"]), node("Relu", ["x"], ["y"])), "two ONNX values"),
    "own-functions": (changed(lambda model: model.functions.add(name="F", domain="x")), "functions of their own"),
    "unknown-width": (lambda: unchecked([node("Relu", ["x"], ["y"])], {"x": "k"}, {"y": 4}, {}), "number of columns"),
    "whole-numbers": (single(node("Cast", ["x"], ["y"], to=7), outputs={"y": (TensorProto.INT64, 4)}), "outputs y"),
    "two-results": (single(node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["z"]), outputs={"y": 4, "z": 4}), "outputs y, z"),
    "places": (single(node("Gather", ["w", "i"], ["y"]), constants={"w": numpy.zeros((2, 4), numpy.float32), "i": numpy.array([9])}), ""),
    # This version of the library finds a constant zero itself.
    "divided": (whole("Div", numpy.array([0])), "by zero"),
    # Of 64 bits this ends a process, not only an answer.
    "divided-by-minus-one": (whole("Div", numpy.array([-1])), "divide integers"),
    "divided-by-a-column": (whole("Div", None), "divide integers"),
    "rest-of-zero": (whole("Mod", numpy.array([0])), "by zero"),
    "coefficients": (linear(coefficients=[0.5] * 7), "incompatible shapes"),
    "intercepts": (linear(intercepts=[0.5] * 3), "incompatible shapes"),
    "labels": (linear(classlabels_ints=[0, 1, 2]), "incompatible shapes"),
    "no-labels": (linear(classlabels_ints=[]), "incompatible shapes"),
    "scales": (single(learned("Scaler", ["x"], ["y"], offset=[0.0] * 3, scale=[1.0])), "incompatible shapes"),
    "imputed": (single(learned("Imputer", ["x"], ["y"], imputed_value_floats=[0.0] * 5)), "incompatible shapes"),
    "negative-places": (single(learned("ArrayFeatureExtractor", ["x", "i"], ["y"]), constants={"i": numpy.array([-1])}), "incompatible shapes"),
    "attribute-twice": (changed(lambda model: model.graph.node[-1].attribute.add(name="axis", i=0, type=2)), "a duplicate attribute"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful(runtime, tmp_path, name):
    make, word = HARMFUL[name]
    (tmp_path / "file").write_bytes(make())
    [said] = runtime.read([tmp_path / "file"])
    assert said.startswith("error: ") and word in said, said


def test_files_of_nothing(runtime, tmp_path):
    """Millions of empty messages: what they would be in memory is counted before."""

    def field(number, content):
        length, size = b"", len(content)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    many = 30_000_000
    files = {
        "nodes": field(7, b"\x0a\x00" * many), "constants": field(7, b"\x2a\x00" * many),
        "inputs": field(7, b"\x5a\x00" * many), "attributes": field(7, field(1, b"\x2a\x00" * many)),
        "dimensions": field(7, field(5, b"\x0a" + field(0, b"\x01" * many)[1:])),
        "texts": field(7, field(5, b"\x32\x00" * many)), "metadata": b"\x72\x00" * many,
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for said in runtime.read([tmp_path / name for name in files], memory=1 << 30):
        assert said.startswith("error: "), said


@pytest.mark.parametrize("name", ["logistic-names", "perceptron-two", "embedded", "labelled", "network"])
def test_damaged(runtime, tmp_path, name):
    read_damaged(runtime, tmp_path, made(name), 400, random.Random(name))
