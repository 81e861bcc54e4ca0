"""SQLAlchemy's own suite for dialects; `run.py` starts it, with a server of its own."""

import pytest
from sqlalchemy.dialects import registry

for name in ("bowshot", "bowshot.flight"):
    registry.register(name, "bowshot.sqlalchemy", "BowshotDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402


@provision.temp_table_keyword_args.for_db("bowshot")
def temporary(_config, _engine):
    return {"prefixes": ["TEMPORARY"]}
