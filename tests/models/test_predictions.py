"""Predictions are those of the model's own library, over random rows with missing values."""

import numpy
import pyarrow
import pytest

from cases import CASES, data

# The bound; beside it what 32 bits can tell apart of large numbers.
ABSOLUTE, RELATIVE = 1e-6, 1e-6


def matrix(column):
    return numpy.array(column.to_pylist(), dtype=float)


@pytest.mark.parametrize("name", CASES)
def test_equals_its_library(program, name):
    case = CASES[name]()
    answer = program.predict(case.model, case.rows)
    if numpy.asarray(case.prediction).dtype.kind in "iU":
        assert answer["prediction"].to_pylist() == list(case.prediction)
    else:
        numpy.testing.assert_allclose(matrix(answer["prediction"]), case.prediction, RELATIVE, ABSOLUTE)
    if case.probabilities is not None:
        numpy.testing.assert_allclose(matrix(answer["probabilities"]), case.probabilities, RELATIVE, ABSOLUTE)


def test_columns_of_other_types(program):
    """Whole numbers, decimals, truth values and NULL are numbers to a model."""
    case = CASES["xgboost-squared"]()
    rows = numpy.nan_to_num(data(5, 300)).round()
    columns = {f"f{at}": pyarrow.array(rows[:, at]) for at in range(rows.shape[1])}
    columns["f0"] = columns["f0"].cast("int64")
    columns["f1"] = columns["f1"].cast("int8")
    columns["f2"] = columns["f2"].cast(pyarrow.decimal128(9, 2))
    columns["f3"] = pyarrow.array(rows[:, 3] > 0)
    columns["f4"] = pyarrow.nulls(300)
    rows[:, 3] = rows[:, 3] > 0
    rows[:, 4] = numpy.nan
    expected = program.predict(case.model, rows)["prediction"]
    assert program.predict(case.model, rows, columns)["prediction"].equals(expected)
