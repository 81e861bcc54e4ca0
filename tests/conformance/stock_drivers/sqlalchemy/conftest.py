"""SQLAlchemy's own suite for dialects, by its stock dialects; `run.py` starts it."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.postgresql import base, provision as _stock  # noqa: E402, F401
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


@provision.post_configure_engine.for_db("postgresql")
def leave_out_extensions(_url, _engine, _follower):
    """The stock hook creates the extensions citext and hstore, and no test runs where it cannot."""


# `COMMENT ON CONSTRAINT` is refused, and each of the 700 tests that reflect tables begins with one.
base.PGDialect.supports_constraint_comments = False
