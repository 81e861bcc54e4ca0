"""One server for all tests that leave its rules as they are; what they change, they change for nobody else."""

import contextlib
import os

import pytest

import world


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=1_000, help="random queries that are compared, for each seed")
    parser.addoption("--changes", type=int, default=0, help="random changes that are compared; a twentieth of the queries if 0")
    parser.addoption("--seeds", default=os.environ.get("BOWSHOT_SEED", "7"), help="numbers with commas between")
    parser.addoption("--keycloak", help="the folder that Keycloak was unpacked in")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        seeds = [int(seed) for seed in metafunc.config.getoption("--seeds").split(",")]
        metafunc.parametrize("seed", seeds, scope="module")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    with world.world(tmp_path_factory.mktemp("access")) as made:
        yield made


@pytest.fixture(scope="module")
def made(request, tmp_path_factory):
    """A server with what a module's SETUP makes, which its tests share."""
    with world.world(tmp_path_factory.mktemp(request.module.__name__), request.module.SETUP) as made:
        yield made


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    import directory
    from server import free_port

    with contextlib.closing(directory.Directory(tmp_path_factory.mktemp("slapd") / "d", free_port())) as made:
        yield made
