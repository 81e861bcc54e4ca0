"""Scoring as one would write it without Bowshot: a service of FastAPI that takes rows as JSON, through the same XGBoost.

    python json_scoring.py PORT MODEL
"""

import json
import sys

import numpy
import uvicorn
import xgboost
from fastapi import FastAPI, Request

booster = xgboost.Booster(model_file=sys.argv[2])
app = FastAPI()


@app.post("/score")
async def score(request: Request):
    rows = json.loads(await request.body())["rows"]
    matrix = numpy.array(rows, dtype=numpy.float32)
    return {"predictions": booster.inplace_predict(matrix).tolist()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
