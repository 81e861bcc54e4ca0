"""Models of many kinds, each with what its own library says of the same rows."""

import json
import os

# Small models: threads would wait for one another, most of all on a busy machine. Read when the libraries start.
os.environ["OMP_NUM_THREADS"] = "1"

import lightgbm
import numpy
import onnx
import skl2onnx
import xgboost
from sklearn import ensemble, impute, pipeline, preprocessing, tree
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

FEATURES = 8
TRAINING = 600
ROWS = 2_000


class Case:
    """A model file, the rows that it is asked about, and the answers of its library."""

    def __init__(self, model, rows, prediction, probabilities=None):
        self.model = model
        self.rows = rows
        self.prediction = prediction
        self.probabilities = probabilities


def data(seed, rows, missing=0.15):
    """Rows of which some values are missing; the last two columns are small whole numbers."""
    random = numpy.random.default_rng(seed)
    values = random.normal(size=(rows, FEATURES)).astype(numpy.float32)
    values[:, 6] = random.integers(0, 6, rows)
    values[:, 7] = random.integers(0, 40, rows)
    values[random.random(values.shape) < 0.1] = 0
    values[random.random(values.shape) < missing] = numpy.nan
    return values


def target(rows):
    filled = numpy.nan_to_num(rows)
    return (filled[:, 0] * 2 + numpy.sin(filled[:, 1] * 3) + (filled[:, 6] % 2) + filled[:, 2] * filled[:, 3]).astype(numpy.float32)


def labels(rows, count):
    values = target(rows)
    return numpy.searchsorted(numpy.quantile(values, numpy.linspace(0, 1, count + 1)[1:-1]), values)


def booster_case(parameters, y, form="json", rounds=12, names=None, types=None):
    x, asked = data(1, TRAINING), data(2, ROWS)
    matrix = xgboost.DMatrix(x, label=y(x), feature_names=names, feature_types=types, enable_categorical=types is not None)
    booster = xgboost.train({"max_depth": 5, "eta": 0.3, "seed": 7, "nthread": 1, **parameters}, matrix, rounds)
    asked_matrix = xgboost.DMatrix(asked, feature_names=names, feature_types=types, enable_categorical=types is not None)
    answer = booster.predict(asked_matrix)
    model = bytes(booster.save_raw(raw_format=form))
    objective = parameters["objective"]
    if objective == "multi:softprob":
        return Case(model, asked, answer.argmax(axis=1), answer)
    if objective == "multi:softmax":
        return Case(model, asked, answer.astype(int))
    if objective in ("binary:logistic", "binary:hinge"):
        return Case(model, asked, (answer > 0.5).astype(int), numpy.column_stack([1 - answer, answer]))
    return Case(model, asked, answer)


def xgboost_case(objective, y=target, form="json", **parameters):
    return lambda: booster_case({"objective": objective, **parameters}, y, form)


def positive(rows):
    return numpy.exp(target(rows) / 4)


def binary(rows):
    return labels(rows, 2)


def four(rows):
    return labels(rows, 4)


def unit(rows):
    return 1 / (1 + numpy.exp(-target(rows)))


def xgboost_categories(one_hot):
    types = ["q"] * 6 + ["c", "c"]
    return lambda: booster_case(
        {"objective": "reg:squarederror", "tree_method": "hist", "max_cat_to_onehot": 64 if one_hot else 1}, target, "ubj", types=types
    )


def xgboost_stopped():
    """Stopped early: the best round counts, as in XGBoost's interface for scikit-learn."""
    x, check, asked = data(1, TRAINING), data(3, TRAINING), data(2, ROWS)
    model = xgboost.XGBRegressor(n_estimators=200, learning_rate=0.7, early_stopping_rounds=3, max_depth=6, n_jobs=1)
    model.fit(x, target(x), eval_set=[(check, target(check))], verbose=False)
    assert model.best_iteration + 1 < len(model.get_booster().get_dump())
    return Case(bytes(model.get_booster().save_raw(raw_format="ubj")), asked, model.predict(asked))


def xgboost_targets():
    x, asked = data(1, TRAINING), data(2, ROWS)
    model = xgboost.XGBRegressor(n_estimators=10, max_depth=4, n_jobs=1)
    model.fit(x, numpy.column_stack([target(x), unit(x)]))
    return Case(bytes(model.get_booster().save_raw(raw_format="json")), asked, model.predict(asked))


def xgboost_forest():
    x, asked = data(1, TRAINING), data(2, ROWS)
    model = xgboost.XGBRFClassifier(n_estimators=20, max_depth=6, n_jobs=1)
    model.fit(x, four(x))
    return Case(bytes(model.get_booster().save_raw(raw_format="ubj")), asked, model.predict(asked), model.predict_proba(asked))


def xgboost_old():
    """As XGBoost before 3.1 wrote it: one base score, a number in a text."""
    case = booster_case({"objective": "binary:logistic"}, binary)
    document = json.loads(case.model)
    parameters = document["learner"]["learner_model_param"]
    parameters["base_score"] = parameters["base_score"].strip("[]")
    for each in document["learner"]["gradient_booster"]["model"]["trees"]:
        del each["split_type"], each["categories"], each["categories_nodes"], each["categories_segments"], each["categories_sizes"]
    case.model = json.dumps(document, indent=1).encode()
    return case


def lightgbm_case(objective, y=target, categories=None, **parameters):
    def make():
        x, asked = data(1, TRAINING).astype(float), data(2, ROWS).astype(float)
        options = {"objective": objective, "num_leaves": 15, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "seed": 3, **parameters}
        matrix = lightgbm.Dataset(x, label=y(x), categorical_feature=categories or "auto", free_raw_data=False)
        booster = lightgbm.train(options, matrix, 12)
        answer = booster.predict(asked)
        model = booster.model_to_string().encode()
        if objective in ("multiclass", "multiclassova"):
            return Case(model, asked, answer.argmax(axis=1), answer)
        if objective == "binary":
            return Case(model, asked, (answer > 0.5).astype(int), numpy.column_stack([1 - answer, answer]))
        return Case(model, asked, answer)

    return make


def converted(model, rows, **options):
    """ONNX of a scikit-learn model. onnx takes no numpy scalars, which the converter hands on."""
    make = onnx.helper.make_attribute

    def plain(key, value, *arguments, **keywords):
        if isinstance(value, list):
            value = [each.item() if isinstance(each, numpy.generic) else int(each) if isinstance(each, bool) else each for each in value]
        return make(key, value, *arguments, **keywords)

    onnx.helper.make_attribute = plain
    try:
        kind = options.pop("kind", FloatTensorType)
        opset = {"": 15, "ai.onnx.ml": 3}
        return skl2onnx.to_onnx(model, initial_types=[("rows", kind([None, rows.shape[1]]))], target_opset=opset, options=options or None)
    finally:
        onnx.helper.make_attribute = make


def onnx_case(model, y, missing=0.15, names=None, **options):
    def make():
        x, asked = data(1, TRAINING, missing), data(2, ROWS, missing)
        answers = y(x)
        if names:
            answers = numpy.array(names)[answers]
        model.fit(x, answers)
        file = converted(model, x, **options).SerializeToString()
        probabilities = model.predict_proba(asked) if hasattr(model, "predict_proba") else None
        return Case(file, asked, model.predict(asked), probabilities)

    return make


def two(rows):
    return numpy.column_stack([target(rows), unit(rows)])


COLOURS = ["blue", "green", "red", "yellow"]

CASES = {
    "xgboost-squared": xgboost_case("reg:squarederror"),
    "xgboost-absolute-ubj": xgboost_case("reg:absoluteerror", form="ubj"),
    "xgboost-logistic": xgboost_case("binary:logistic", binary),
    "xgboost-logistic-ubj": xgboost_case("binary:logistic", binary, "ubj", scale_pos_weight=3),
    "xgboost-logitraw": xgboost_case("binary:logitraw", binary),
    "xgboost-hinge": xgboost_case("binary:hinge", binary),
    "xgboost-unit": xgboost_case("reg:logistic", unit),
    "xgboost-poisson": xgboost_case("count:poisson", positive),
    "xgboost-gamma": xgboost_case("reg:gamma", positive),
    "xgboost-tweedie": xgboost_case("reg:tweedie", positive, "ubj"),
    "xgboost-softprob": xgboost_case("multi:softprob", four, num_class=4),
    "xgboost-softmax": xgboost_case("multi:softmax", four, "ubj", num_class=4),
    "xgboost-dart": xgboost_case("reg:squarederror", booster="dart", rate_drop=0.3),
    "xgboost-lossguide": xgboost_case("reg:squarederror", grow_policy="lossguide", max_leaves=40, max_depth=0),
    "xgboost-base-score": xgboost_case("binary:logistic", binary, base_score=0.9),
    "xgboost-categories": xgboost_categories(one_hot=False),
    "xgboost-one-hot": xgboost_categories(one_hot=True),
    "xgboost-stopped-early": xgboost_stopped,
    "xgboost-two-targets": xgboost_targets,
    "xgboost-random-forest": xgboost_forest,
    "xgboost-older": xgboost_old,
    "lightgbm-regression": lightgbm_case("regression"),
    "lightgbm-root": lightgbm_case("regression", reg_sqrt=True),
    "lightgbm-l1": lightgbm_case("regression_l1"),
    "lightgbm-poisson": lightgbm_case("poisson", positive),
    "lightgbm-binary": lightgbm_case("binary", binary, sigmoid=1.7),
    "lightgbm-multiclass": lightgbm_case("multiclass", four, num_class=4),
    "lightgbm-one-against-all": lightgbm_case("multiclassova", four, num_class=4),
    "lightgbm-cross-entropy": lightgbm_case("cross_entropy", unit),
    "lightgbm-cross-entropy-lambda": lightgbm_case("cross_entropy_lambda", unit),
    "lightgbm-zero-missing": lightgbm_case("regression", zero_as_missing=True),
    "lightgbm-no-missing": lightgbm_case("regression", use_missing=False),
    "lightgbm-categories": lightgbm_case("regression", categories=[6, 7], min_data_per_group=5, cat_smooth=1),
    "lightgbm-random-forest": lightgbm_case("binary", binary, boosting="rf", bagging_freq=1, bagging_fraction=0.6),
    "lightgbm-dart": lightgbm_case("regression", boosting="dart"),
    "onnx-decision-tree": onnx_case(tree.DecisionTreeClassifier(max_depth=6, random_state=0), four, missing=0),
    "onnx-random-forest": onnx_case(ensemble.RandomForestClassifier(20, max_depth=8, random_state=0), four, missing=0),
    "onnx-random-forest-two": onnx_case(ensemble.RandomForestClassifier(20, max_depth=8, random_state=0), binary, missing=0),
    "onnx-random-forest-names": onnx_case(ensemble.RandomForestClassifier(9, max_depth=8, random_state=0), four, 0, COLOURS, zipmap=False),
    "onnx-forest-regressor": onnx_case(ensemble.RandomForestRegressor(20, max_depth=8, random_state=0), target, missing=0),
    "onnx-extra-trees-two-targets": onnx_case(ensemble.ExtraTreesRegressor(10, max_depth=6, random_state=0), two, missing=0),
    "onnx-boosting": onnx_case(ensemble.GradientBoostingRegressor(n_estimators=20, random_state=0), target, missing=0),
    "onnx-boosting-two": onnx_case(ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0), binary, missing=0),
    "onnx-boosting-four": onnx_case(ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0), four, missing=0),
    "onnx-histograms": onnx_case(ensemble.HistGradientBoostingRegressor(max_iter=20, random_state=0), target),
    "onnx-histograms-two": onnx_case(ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0), binary),
    "onnx-histograms-four": onnx_case(ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0), four),
    "onnx-imputed": onnx_case(
        pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), ensemble.RandomForestRegressor(10, max_depth=6, random_state=0)), target
    ),
    "onnx-doubles": onnx_case(ensemble.RandomForestRegressor(10, max_depth=6, random_state=0), target, missing=0, kind=DoubleTensorType),
    "onnx-scaled": onnx_case(
        pipeline.make_pipeline(preprocessing.MinMaxScaler(), tree.DecisionTreeClassifier(max_depth=4, random_state=0)), four, missing=0
    ),
}
