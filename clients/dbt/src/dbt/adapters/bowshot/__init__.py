"""The adapter of dbt for Bowshot, over the Python client."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.bowshot.connections import BowshotConnectionManager, BowshotCredentials
from dbt.adapters.bowshot.impl import BowshotAdapter
from dbt.include import bowshot

Plugin = AdapterPlugin(adapter=BowshotAdapter, credentials=BowshotCredentials, include_path=bowshot.PACKAGE_PATH)

__all__ = ["BowshotAdapter", "BowshotConnectionManager", "BowshotCredentials", "Plugin"]
