"""Fixtures of the client suites: one server for all tests of a run that only read, checked to be idle after each."""

import pytest

import data
from server import Server


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    return data.write_all(tmp_path_factory.mktemp("data") / "shop")


@pytest.fixture(scope="session")
def shared_server(data_folder):
    with Server(data_folder) as server:
        yield server


@pytest.fixture
def server(shared_server):
    """The shared server; a test that leaves something behind fails."""
    yield shared_server
    assert shared_server.alive(), shared_server.log()[-5000:]
    shared_server.wait_idle(5.0)


@pytest.fixture
def private_server(data_folder):
    """A server for one test that keeps its processors busy; what it leaves behind cannot disturb another."""
    with Server(data_folder) as server:
        yield server
