"""One object store and one set of files for all tests; each server's whole output is looked through for credentials."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import lake as files  # noqa: E402
import stores  # noqa: E402
from durable import Database, refused  # noqa: E402
from server import Server  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=300, help="random statements that are compared")
    parser.addoption("--statements", type=int, default=60, help="random statements on each database")
    parser.addoption("--seed", default="1", help="what they are drawn from")
    parser.addoption("--azurite", default="", help="where npm has installed Azurite")


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    return files.write(tmp_path_factory.mktemp("lake") / "lake")


@pytest.fixture(scope="session")
def s3(lake):
    with stores.SeaweedFS() as store:
        store.copy(lake, "lake/data")
        yield store


@pytest.fixture(scope="session")
def local(lake):
    with Server(lake) as server, Database(server) as database:
        yield database


class Remote(Server):
    """A server over object stores. What it writes must never hold a secret, whatever it is asked."""

    def __init__(self, *sources, environment=None, settings=(), data="memory", secrets=(stores.SECRET,)):
        arguments = [word for setting in settings for word in ("--set", setting)]
        self.secrets = secrets
        self.checked = False
        super().__init__(*sources, arguments=arguments, data=data,
                         environment={**stores.without_credentials(), **(environment or {})})
        self.database = Database(self)

    def rows(self, sql):
        return self.database.rows(sql)

    def refused(self, sql):
        """The words of the server."""
        text = refused(self.database, sql)
        for secret in (*self.secrets, stores.KEY):
            assert secret not in text, text
        return text

    def kill(self):
        self.check(log := super().kill())
        return log

    def stop(self):
        if not self.killed and not self.checked:
            self.database.close()
            self.check(self.log())
            super().stop()

    def check(self, log):
        self.checked = True
        for secret in (*self.secrets, stores.KEY):
            assert secret not in log, log


# Of the tests of other databases, whose packages the others do not need.


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("databases")


@pytest.fixture(scope="session")
def postgres():
    import databases

    cluster = databases.Postgres()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def other():
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def sources(folder, postgres, other):
    import databases

    made = [databases.postgres_source(postgres, cache_ttl='"0s"'), databases.sqlite_source(folder),
            databases.duckdb_source(folder), databases.flight_source(other)]
    return {source.name: source for source in made}


@pytest.fixture(scope="session")
def reader(folder, sources):
    import databases

    with databases.Reader(folder, "\n".join(source.config() for source in sources.values())) as server:
        yield server
