#!/bin/sh
# A model that was trained without missing values takes NaN for 0, also where every value that it has seen is above 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check lightgbm==4.7.0 numpy==2.4.6
cd "$folder"
"$folder/python/bin/python" -W ignore - <<'END'
import lightgbm
import numpy

print("lightgbm", lightgbm.__version__)
rows = numpy.abs(numpy.random.default_rng(0).normal(size=(400, 1))) + 1
model = lightgbm.train({"verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}, lightgbm.Dataset(rows, label=rows[:, 0]), 20)
said = {str(x): float(model.predict(numpy.array([[x]]))[0]) for x in (numpy.nan, 0.0, rows.min(), rows.mean())}
for x, answer in said.items():
    print(x, "->", answer)
nan, zero, least, mean = said.values()
assert nan == zero == least and abs(nan - mean) > 0.3
END
