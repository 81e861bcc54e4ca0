"""The fixtures that the tests of the source distribution ask for, under the names of the servers that they were written
for. Here each of them is one Bowshot with one user."""


import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pytest

from server import Server, hash_password

USER, PASSWORD = "adbc", "the password of the tests"
CREDENTIALS = {adbc_driver_manager.DatabaseOptions.USERNAME.value: USER, adbc_driver_manager.DatabaseOptions.PASSWORD.value: PASSWORD}


@pytest.fixture(scope="session")
def bowshot(tmp_path_factory):
    users = tmp_path_factory.mktemp("users") / "users.toml"
    users.write_text(f'[[users]]\nname = "{USER}"\npassword_hash = "{hash_password(PASSWORD)}"\n')
    with Server(arguments=["--users-file", str(users)]) as server:
        yield server
        server.wait_idle(5.0)


@pytest.fixture
def gizmosql(bowshot):
    with adbc_driver_flightsql.connect(bowshot.grpc_tcp, db_kwargs=CREDENTIALS) as database:
        with adbc_driver_manager.AdbcConnection(database) as connection:
            yield connection


@pytest.fixture
def gizmosql_dbapi(bowshot):
    with dbapi.connect(bowshot.grpc_tcp, db_kwargs=CREDENTIALS, autocommit=True) as connection:
        yield connection


dremio = gizmosql
dremio_dbapi = gizmosql_dbapi


@pytest.fixture
def dremio_uri(bowshot):
    return bowshot.grpc_tcp


@pytest.fixture
def dremio_user():
    return USER


@pytest.fixture
def dremio_pass():
    return PASSWORD
