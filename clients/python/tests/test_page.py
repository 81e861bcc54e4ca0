"""The examples of the page run, in order; and the public names are those that are documented, typed and checked."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import reference

import bowshot

ROOT = pathlib.Path(__file__).parents[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    registry = pytest.importorskip("sqlalchemy.dialects").registry
    registry.register("bowshot", "bowshot.sqlalchemy", "BowshotDialect")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("order_id,name,total\n1,ada,4.5\n2,bob,5.5\n")
    names = {}
    try:
        for block in BLOCKS:
            exec(compile(block, "README.md", "exec"), names)
        assert len(BLOCKS) >= 10
        assert (tmp_path / "orders.parquet").exists()
        assert names["connection"].table("people").count() == 8
    finally:
        if "engine" in names:
            names["engine"].dispose()
        if "connection" in names:
            names["connection"].close()
        names["server"].stop()


def test_the_reference_is_that_of_the_docstrings():
    assert reference.PAGE.read_text() == reference.page(), "run `python clients/python/tests/reference.py`"


def test_public_names():
    found = {name for name in vars(bowshot) if not name.startswith("_")}
    modules = {name for name in found if type(getattr(bowshot, name)).__name__ == "module"}
    imported = {"annotations", "Any", "Mapping", "OptionValue", "configure"}
    assert set(bowshot.__all__) == found - modules - imported
    tree = (ROOT / "src/bowshot/_errors.py").read_text().split('"""')[1]
    for name in bowshot.__all__:
        thing = getattr(bowshot, name)
        if isinstance(thing, type) and issubclass(thing, bowshot.Error):
            assert name in tree


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict"]],
    ids=["lint", "format", "types"],
)
def test_checks(command, tmp_path):
    pytest.importorskip(command[0])
    environment = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path), "RUFF_NO_CACHE": "true"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
