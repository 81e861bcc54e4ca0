"""A lake that is empty, for each test."""

import pytest

from lake import Lake


@pytest.fixture
def lake(tmp_path):
    made = Lake(tmp_path / "lake")
    yield made
    made.close()


@pytest.fixture
def inlining(tmp_path):
    """One whose writer keeps small changes in the catalog."""
    made = Lake(tmp_path / "inlining", inlined=50)
    yield made
    made.close()
