"""What is not evaluated is refused by its name, and damaged files end in an error, whatever is in them."""

import pickle
import random

import numpy
import pytest
import xgboost
from sklearn import ensemble, pipeline, preprocessing, svm

from cases import CASES, binary, converted, data, lightgbm_case, target


def onnx_of(model, y):
    x = data(1, 200, missing=0)
    return converted(model.fit(x, y(x)), x).SerializeToString()


def linear_booster():
    x = data(1, 200)
    return bytes(xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(x, label=target(x)), 2).save_raw(raw_format="json"))


def vector_leaves():
    x = data(1, 200)
    model = xgboost.XGBRegressor(n_estimators=2, multi_strategy="multi_output_tree", tree_method="hist")
    model.fit(x, numpy.column_stack([target(x), target(x)]))
    return bytes(model.get_booster().save_raw(raw_format="ubj"))


REFUSED = {
    "operator": (lambda: onnx_of(svm.SVR(), target), "`SVMRegressor`"),
    "second-ensemble": (lambda: onnx_of(ensemble.AdaBoostClassifier(n_estimators=2), binary), "more than one tree ensemble"),
    "step": (
        lambda: onnx_of(pipeline.make_pipeline(preprocessing.Normalizer(), ensemble.RandomForestRegressor(2)), target),
        "`Normalizer`",
    ),
    "booster": (linear_booster, "`gblinear`"),
    "vector-leaves": (vector_leaves, "`multi_output_tree`"),
    "objective": (lambda: CASES["xgboost-squared"]().model.replace(b"reg:squarederror", b"reg:new"), "`reg:new`"),
    "linear-trees": (lambda: lightgbm_case("regression", linear_tree=True)().model, "`linear_tree`"),
    "pickle": (lambda: pickle.dumps({"a": 1}), "pickle"),
    "nothing": (lambda: b"", "damaged"),
    "other": (lambda: b"PAR1 is no model", "damaged"),
}


HOSTILE = ["xgboost-older", "xgboost-categories", "lightgbm-categories", "onnx-random-forest-names", "onnx-imputed"]


def mutated(model, chance):
    """A model file that something has happened to."""
    damaged = bytearray(model)
    for _ in range(chance.choice([1, 1, 3, 30])):
        at = chance.randrange(len(damaged))
        match chance.randrange(6):
            case 0:
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                damaged[at] = chance.choice(b"\x00\xff{}[]$#\"-9eN\n= ")
            case 2:
                del damaged[at : at + chance.choice([1, 4, 1000])]
            case 3:
                damaged[at:at] = damaged[chance.randrange(len(damaged)) :][: chance.choice([1, 8, 500])]
            case 4:
                damaged[at : at + 8] = chance.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"99999999", b"-1 -1 -1"])
            case 5:
                del damaged[at:]
        if not damaged:
            damaged = bytearray(b"{")
    return bytes(damaged)


def read_damaged(program, folder, model, count, chance):
    """Each damaged file is read or refused, in one process that must live on."""
    files = [folder / str(number) for number in range(count)]
    for file in files:
        file.write_bytes(mutated(model, chance))
    said = program.read(files)
    assert len(said) == count
    assert sum(line.startswith("error: ") for line in said) > 100


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_files(program, tmp_path, name):
    read_damaged(program, tmp_path, CASES[name]().model, 600, random.Random(name))
