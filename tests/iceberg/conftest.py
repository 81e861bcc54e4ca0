"""One object store for all tests that need one."""

import contextlib
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "clients"))
sys.path.insert(0, str(HERE.parents[1] / "sources"))

import durable  # noqa: E402
import stores  # noqa: E402
from durable import Database  # noqa: E402
from server import Server  # noqa: E402

# So often stores and catalogs are asked again, and so long they are waited for.
QUICK = ("object_store.refresh=200ms", "object_store.timeout=5s", "object_store.request_timeout=2s")


@pytest.fixture(scope="session")
def s3():
    with stores.SeaweedFS() as store:
        yield store


@pytest.fixture(scope="session")
def s3_tables(s3):
    """A writer of tables in the store's own catalog, and a server's entry and environment for it."""
    from pyiceberg.catalog.rest import RestCatalog

    s3.table_bucket("tables")
    writer = RestCatalog("weed", uri=s3.catalog, warehouse="s3://tables", credential=f"{stores.KEY}:{stores.SECRET}", **{
        "s3.endpoint": s3.endpoint, "s3.access-key-id": stores.KEY, "s3.secret-access-key": stores.SECRET, "s3.region": "us-east-1",
    })
    entry = (f'[[databases]]\nname = "lake"\nkind = "iceberg"\nuri = "{s3.catalog}"\nwarehouse = "s3://tables"\n'
             'client_id = "env:TEST_KEY"\nclient_secret = "env:TEST_SECRET"\ncache_ttl = "200ms"\n')
    return writer, entry, {**s3.environment(), "TEST_KEY": stores.KEY, "TEST_SECRET": stores.SECRET}


@contextlib.contextmanager
def serving_real(s3_tables, tmp_path, *sources, more="read_only = false\n"):
    """A server that asks the store's own catalog, and may write it."""
    _, own, environment = s3_tables
    (tmp_path / "bowshot.toml").write_text(own + more)
    arguments = ["--config", tmp_path / "bowshot.toml", *(word for setting in QUICK for word in ("--set", setting))]
    with Server(*sources, arguments=arguments, environment={**stores.without_credentials(), **environment}) as server, Database(server) as database:
        yield database


@contextlib.contextmanager
def serving(*sources, s3, endpoint=None, settings=QUICK, environment=None, secrets=()):
    """A server over an object store. What it writes must never hold a secret, whatever it is asked."""
    arguments = [word for setting in settings for word in ("--set", setting)]
    environment = {**stores.without_credentials(), **s3.environment(endpoint), **(environment or {})}
    with Server(*sources, arguments=arguments, environment=environment) as server:
        with Database(server) as database:
            yield database
        log = server.log()
        for secret in (stores.SECRET, stores.KEY, *secrets):
            assert secret not in log, log


def refused(database, sql, *says):
    """The words of the server, which has nothing broken and tells no secret."""
    text = durable.refused(database, sql, *says)
    assert "INTERNAL" not in text and stores.SECRET not in text and stores.KEY not in text, text
    return text
