"""Types, style, and what is special here: transactions that roll back as a whole, and errors that dbt can show."""

import os
import pathlib
import subprocess
import sys

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

ROOT = pathlib.Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict"]],
    ids=["lint", "format", "types"],
)
def test_checks(command, tmp_path):
    environment = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path), "RUFF_NO_CACHE": "true"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class TestIncrementalStrategies:
    """Two runs of each strategy over a source that changes, and one that fails in the middle."""

    @pytest.fixture(scope="class")
    def models(self):
        body = (
            "{% if is_incremental() %} select 2 as id, 'new' as name union all select 3, 'new' {% else %}"
            " select 1 as id, 'old' as name union all select 2, 'old' {% endif %}"
        )
        config = "{{{{ config(materialized='incremental', incremental_strategy='{}'{}) }}}} "
        return {
            "appended.sql": config.format("append", "") + body,
            "replaced.sql": config.format("delete+insert", ", unique_key='id'") + body,
            "merged.sql": config.format("merge", ", unique_key='id'") + body,
        }

    def rows(self, project, name):
        return sorted(project.run_sql(f"select id, name from {project.test_schema}.{name}", fetch="all"))

    def test_strategies(self, project):
        for _ in range(2):
            assert len(run_dbt(["run"])) == 3
        old, new = [(1, "old"), (2, "old")], [(2, "new"), (3, "new")]
        assert self.rows(project, "appended") == sorted(old + new)
        assert self.rows(project, "replaced") == self.rows(project, "merged") == [(1, "old"), *new]

    def test_a_model_that_fails_leaves_what_was_there(self, project):
        before = self.rows(project, "merged")
        path = pathlib.Path(project.project_root) / "models" / "merged.sql"
        path.write_text("{{ config(materialized='table') }} select cast('x' as integer) as id")
        _, output = run_dbt_and_capture(["run", "--select", "merged"], expect_pass=False)
        assert "invalid input syntax for type integer: `x`" in output
        assert self.rows(project, "merged") == before
