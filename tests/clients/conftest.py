"""Fixtures of the client suites: one server for all tests of a run that only read, one for those that write, both checked
to be idle after each test."""

import os
import re

import pyarrow.flight as flight
import pytest

import data
from server import ROOT, Server, users_file


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """What is not installed is a reason to skip a test, but not in continuous integration, which installs all of it."""
    report = yield
    if report.skipped and "is not installed" in str(report.longrepr) and "CI" in os.environ:
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    return data.write_all(tmp_path_factory.mktemp("data") / "shop")


@pytest.fixture(scope="session")
def shared_server(data_folder):
    with Server(data_folder) as server:
        yield server


def leaves_nothing(server):
    yield server
    assert server.alive(), server.log()[-5000:]
    server.wait_idle(5.0)


@pytest.fixture
def server(shared_server):
    """The shared server; a test that leaves something behind fails."""
    yield from leaves_nothing(shared_server)


@pytest.fixture(scope="session")
def shared_store(data_folder):
    with Server(data_folder) as server:
        yield server


@pytest.fixture
def store(shared_store):
    """The server whose tables tests may make, over the same files; a query that a test leaves behind fails it."""
    yield from leaves_nothing(shared_store)


@pytest.fixture
def table(request):
    """A name for a table that no other test has."""
    return re.sub(r"\W+", "_", request.node.nodeid.split("::", 1)[1]).strip("_").lower()


@pytest.fixture
def private_server(data_folder):
    """A server for one test that keeps its processors busy; what it leaves behind cannot disturb another."""
    with Server(data_folder) as server:
        yield server


def row_protocols(*sources, more=(), data="memory"):
    """A server of PostgreSQL's and MySQL's protocols."""
    with Server(*sources, arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", *more], data=data) as server:
        yield server
        server.wait_idle(5.0)


@pytest.fixture(scope="module")
def shop(data_folder):
    """With the sample data."""
    yield from row_protocols(data_folder)


@pytest.fixture(scope="module")
def served():
    """Without any."""
    yield from row_protocols()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Without any, and with durable tables; modules that need another one have their own of this name."""
    yield from row_protocols(data=tmp_path_factory.mktemp("shared") / "data")


@pytest.fixture(scope="module")
def address(served):
    """Of `served`, for clients of PostgreSQL."""
    return served.postgres()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, data_folder):
    """With users, `ada` by password and `service` by token, and a certificate."""
    file = users_file(tmp_path_factory.mktemp("users"), {"ada": data.PASSWORD}, {"service": data.TOKEN})
    tls = ROOT / "tests" / "data" / "tls"
    more = ["--users-file", file, "--tls-certificate", tls / "first.pem", "--tls-key", tls / "first.key"]
    yield from row_protocols(data_folder, more=more)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """What makes system calls of a server fail."""
    import faults

    return faults.compile_into(tmp_path_factory.mktemp("faults"))


@pytest.fixture
def db(shared):
    # Not every suite that reads this file has the driver.
    from durable import Database

    with Database(shared) as database:
        yield database
    shared.wait_idle(5.0)


@pytest.fixture
def client(store):
    """pyarrow's own."""
    with flight.connect(store.grpc_tcp) as client:
        yield client


@pytest.fixture(name="data")
def data_of_a_test(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def connection(store):
    # Not every suite that reads this file has the driver.
    import writing_adbc

    with writing_adbc.connect(store) as connection:
        yield connection


@pytest.fixture
def cursor(connection):
    with connection.cursor() as cursor:
        yield cursor


@pytest.fixture
def transacting(store):
    """A connection without autocommit."""
    import writing_adbc

    with writing_adbc.connect(store, autocommit=False) as connection:
        yield connection
