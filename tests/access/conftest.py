"""One server for all tests that leave its rules as they are; what they change, they change for nobody else."""

import pytest

import world


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=1_000, help="random statements that are compared")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    with world.world(tmp_path_factory.mktemp("access")) as made:
        yield made
