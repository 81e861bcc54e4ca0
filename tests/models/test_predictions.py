"""Columns of other types than doubles. What each model predicts is compared with its library in `test_sql.py`."""

import numpy
import pyarrow

from cases import CASES, data


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
