"""SQLAlchemy's own list of what PostgreSQL and MySQL do (`test/requirements.py` of its source distribution), but for
unique indexes and comments on constraints: the class that reflects tables would not get past the first, and none of its
tests would run."""

import sqlalchemy_requirements
from sqlalchemy.testing import exclusions


class Requirements(sqlalchemy_requirements.DefaultRequirements):
    index_reflection = property(lambda self: exclusions.closed())
    constraint_comment_reflection = index_reflection
