"""SQLAlchemy's own suite for dialects; `run.py` starts it, with a server of its own."""

import os
import zlib

import pytest
from sqlalchemy.dialects import registry

for name in ("bowshot", "bowshot.flight"):
    registry.register(name, "bowshot.sqlalchemy", "BowshotDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402


def pytest_collection_modifyitems(session, config, items):
    """Leaves one of so many tests, the same ones each time."""
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    every = int(os.environ.get("BOWSHOT_EVERY", "1"))
    # Behind the first `_` the name of a class has the server's version.
    names = [item.cls.__name__.split("_")[0] + item.name for item in items]
    items[:] = [item for item, name in zip(items, names, strict=True) if zlib.crc32(name.encode()) % every == 0]


@provision.temp_table_keyword_args.for_db("bowshot")
def temporary(_config, _engine):
    return {"prefixes": ["TEMPORARY"]}
