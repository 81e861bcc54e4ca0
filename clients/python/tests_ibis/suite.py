"""What Ibis's suite for backends asks of one: its name, and its tables with the data that the wheel does not have. Those here
have the same columns and are made, so that the suite compares with pandas over the same rows."""

import importlib
import os
import pathlib
import sys
import types

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tomllib
from ibis.backends.sql import compilers
from ibis.backends.tests.base import BackendTest
from ibis.backends.tests.data import array_types, json_types, struct_types, topk, win

ROWS = 7300


def functional_alltypes():
    number = np.arange(ROWS)
    day = np.datetime64("2009-01-01") + (number // 10).astype("timedelta64[D]")
    small = number % 10
    moments = day.astype("datetime64[us]") + (small * 60_000_000 + small * (small - 1) // 2 * 100_000).astype("timedelta64[us]")
    days = pd.DatetimeIndex(day)
    return pa.table(
        {
            "id": pa.array(number, pa.int32()),
            "bool_col": pa.array(number % 2 == 0),
            "tinyint_col": pa.array(small, pa.int8()),
            "smallint_col": pa.array(small, pa.int16()),
            "int_col": pa.array(small, pa.int32()),
            "bigint_col": pa.array(small * 10, pa.int64()),
            "float_col": pa.array((small * 1.1).astype("float32")),
            "double_col": pa.array(small * 10.1),
            "date_string_col": pa.array(days.strftime("%m/%d/%y").tolist()),
            "string_col": pa.array([str(value) for value in small]),
            "timestamp_col": pa.array(moments, pa.timestamp("us")),
            "year": pa.array(days.year, pa.int32()),
            "month": pa.array(days.month, pa.int32()),
        }
    )


def made(name, rows, seed):
    """A table of the suite's columns with values that repeat."""
    from ibis.backends.conftest import TEST_TABLES

    random = np.random.default_rng(seed)
    columns = {}
    for column, kind in TEST_TABLES[name].items():
        if kind.is_string():
            columns[column] = pa.array([f"{column} {value}" for value in random.integers(0, 40, rows)])
        elif kind.is_integer():
            columns[column] = pa.array(random.integers(0, 200, rows), pa.int64())
        else:
            columns[column] = pa.array(np.round(random.uniform(0, 60, rows), 2))
    return columns


def tables():
    batting = made("batting", 5000, 1)
    batting["yearID"] = pa.array(1870 + np.arange(5000) % 140, pa.int64())
    awards = made("awards_players", 2000, 2)
    awards["playerID"] = batting["playerID"].slice(0, 2000)
    awards["yearID"] = pa.array(1870 + np.arange(2000) % 140, pa.int64())
    diamonds = made("diamonds", 5000, 3)
    diamonds["cut"] = pa.array([["Ideal", "Premium", "Good", "Very Good", "Fair"][at % 5] for at in range(5000)])
    yield "functional_alltypes", functional_alltypes()
    yield "batting", pa.table(batting)
    yield "awards_players", pa.table(awards)
    yield "diamonds", pa.table(diamonds)
    yield "astronauts", pa.table(made("astronauts", 1000, 4))
    frames = {"struct": struct_types, "json_t": json_types, "topk": topk, "win": win}
    for name, frame in frames.items():
        yield name, frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)


class TestConf(BackendTest):
    __test__ = False
    supports_map = True
    supports_tpch = supports_tpcds = False
    stateful = False
    deps = ("bowshot",)
    force_sort = True

    @classmethod
    def name(cls):
        return "bowshot"

    @staticmethod
    def connect(*, tmpdir, worker_id, **arguments):
        return ibis.bowshot.connect(os.environ["BOWSHOT_URI"], **arguments)

    def _load_data(self, **_):
        for name, table in tables():
            self.connection.con.ingest(name, table.replace_schema_metadata(None), mode="replace")
        self.connection.create_table("array_types", array_types, overwrite=True)
        self.connection.raw_sql(
            "CREATE OR REPLACE TABLE map AS SELECT 1 AS idx, MAP {'a': 1, 'b': 2, 'c': 3} AS kv"
            " UNION ALL SELECT 2, MAP {'d': 4, 'e': 5, 'f': 6}"
        )


module = types.ModuleType("ibis.backends.bowshot.tests.conftest")
module.TestConf = TestConf
sys.modules["ibis.backends.bowshot.tests.conftest"] = module
sys.modules.setdefault("ibis.backends.bowshot", importlib.import_module("bowshot.ibis"))
compilers.bowshot = importlib.import_module("bowshot._ibis_compiler")


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def entries():
    with open(pathlib.Path(__file__).with_name("not_supported.toml"), "rb") as file:
        return tomllib.load(file)["entry"]


ENTRIES = entries()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Failures that the list knows are expected ones."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed or call.excinfo is None:
        return
    text = f"{call.excinfo.typename}: {call.excinfo.value}"
    name = item.name.split("[")[0]
    for entry in ENTRIES:
        if name in entry.get("tests", []) or any(part in text for part in entry.get("error", [])):
            report.outcome = "skipped"
            report.wasxfail = entry["reason"]
            return
