"""The dialect `bowshot://` of SQLAlchemy 2: `create_engine("bowshot://127.0.0.1:50051")`."""

from bowshot.sqlalchemy._dialect import BowshotDialect

__all__ = ["BowshotDialect"]
