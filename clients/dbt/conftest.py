"""A server and a profile for the tests of dbt's own suite."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "dbt" / "src"), str(ROOT / "python" / "src")]

import bowshot  # noqa: E402

if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def server():
    with bowshot.server() as server:
        yield server


@pytest.fixture(scope="class")
def dbt_profile_target(server):
    return {"type": "bowshot", "uri": server.uri, "threads": 2}


@pytest.fixture(scope="class")
def profile_user():
    return None


@pytest.fixture(scope="module")
def test_data_dir():
    """The files of the tests of hooks, which are in the package."""
    import dbt.tests.adapter

    return str(pathlib.Path(next(iter(dbt.tests.adapter.__path__))) / "hooks" / "data")
