"""Files in an object store are the tables that the same files on disk are, with the same answers."""

import time

import pytest

import lake as files
import proxy as faults
import stores
from conftest import Remote
from server import BUSY_FACTOR, wait_until

QUICK = ("object_store.refresh=200ms", "object_store.timeout=5s", "object_store.request_timeout=2s")


@pytest.fixture(scope="module")
def remote(s3):
    with Remote("s3://lake/data", environment=s3.environment(), settings=QUICK) as server:
        yield server


def compared(remote, local, statements):
    for sql in statements:
        there, here = remote.database.arrow(sql), local.arrow(sql)
        assert there.equals(here), f"{sql}\n{there}\n{here}"


def test_the_same_tables_are_found(remote, local):
    sql = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'main' ORDER BY 1, 2"
    assert remote.rows(sql) == local.rows(sql)
    assert {name for name, *_ in remote.rows(sql)} == set(files.TABLES)


def test_answers_are_those_of_local_files(remote, local, request):
    compared(remote, local, files.statements(request.config.getoption("--cases"), 7))
    for names in ("SELECT name, n FROM odd_names", "SELECT name, n FROM odd_folders", "SELECT k, n FROM odd_keys"):
        assert sorted(remote.rows(names)) == sorted(local.rows(names))
    assert sorted(remote.rows("SELECT name FROM odd_folders")) == sorted((name,) for name in files.ODD_FOLDERS)
    assert sorted(remote.rows("SELECT k FROM odd_keys")) == sorted((value,) for value in files.ODD_KEYS.values())


def test_partitions_are_pruned_and_nothing_is_read_twice(remote):
    place = "SELECT bytes_read, bytes_from_cache, failed FROM system.object_stores"
    assert remote.rows("SELECT count(*) FROM events WHERE year = 2023") == [(3000,)]
    remote.rows("SELECT sum(weight) FROM orders")
    (read, cached, failed), = remote.rows(place)
    remote.rows("SELECT sum(weight), max(note) FROM orders WHERE id >= 0")
    (read_again, cached_then, _), = remote.rows(place)
    assert read_again == read and cached_then >= cached and failed == 0


def test_new_changed_and_deleted_files_are_seen(s3, remote):
    s3.write("lake/data/grown/part-1.csv", b"a,b\n1,x\n")
    wait_until(lambda: "grown" in tables(remote), "a new table", 10)
    assert remote.rows("SELECT * FROM grown") == [(1, "x")]
    s3.write("lake/data/grown/part-2.csv", b"a,b\n2,y\n")
    eventually(remote, "SELECT count(*) FROM grown", 2)
    s3.write("lake/data/grown/part-1.csv", b"a,b\n7,z\n")
    eventually(remote, "SELECT sum(a) FROM grown", 9)
    s3.delete("lake/data/grown/part-1.csv")
    s3.delete("lake/data/grown/part-2.csv")
    wait_until(lambda: "grown" not in tables(remote), "a table that has gone", 10)


def eventually(server, sql, answer):
    """A file that is replaced while it is read is an error that says so, so that is no failure here."""
    wait_until(lambda: not fails(server, sql) and server.rows(sql) == [(answer,)], f"{sql}: {answer}", 10)


def tables(server):
    return {name for (name,) in server.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'")}


def test_named_sources_options_and_single_files(s3, local):
    s3.write("lake/plain/x.csv", b"1;2\n3;4\n")
    sources = ["all_events=s3://lake/data/events", "s3://lake/data/orders.parquet",
               "plain=s3://lake/plain/x.csv?header=false&delim=;", "s3a://lake/data/odd names"]
    with Remote(*sources, environment=s3.environment()) as server:
        assert {"all_events", "orders", "plain"} <= tables(server)
        assert server.rows("SELECT count(*), min(year) FROM all_events") == [(6000, 2023)]
        assert server.rows("SELECT * FROM plain ORDER BY 1") == [(1, 2), (3, 4)]
        sql = "SELECT sum(price), count(note) FROM orders"
        assert server.rows(sql) == local.rows(sql)


def test_the_cache_survives_a_restart_and_is_exact(s3, tmp_path):
    data = tmp_path / "data"
    s3.write("lake/kept/x.parquet", s3_parquet(1))
    sql = "SELECT sum(id), sum(weight), max(note) FROM x"
    with faults.Proxy(s3.port) as proxy:
        environment = s3.environment(proxy.endpoint)
        with Remote("s3://lake/kept", environment=environment, data=data) as server:
            answer = server.rows(sql)
            assert proxy.gets() > 0
        proxy.requests.clear()
        with Remote("s3://lake/kept", environment=environment, data=data) as server:
            assert server.rows(sql) == answer
            assert proxy.gets() == 0
        # A content of the same size, of which nothing that is kept is right.
        s3.write("lake/kept/x.parquet", s3_parquet(2))
        with Remote("s3://lake/kept", environment=environment, data=data) as server:
            assert server.rows(sql) != answer
            assert proxy.gets() > 0
        # What a disk has made of it is found.
        for block in (data / "object_cache").rglob("*-0000*"):
            content = bytearray(block.read_bytes())
            content[len(content) // 2] ^= 0xFF
            block.write_bytes(content)
        proxy.requests.clear()
        with Remote("s3://lake/kept", environment=environment, data=data) as server:
            assert server.rows("SELECT count(*) FROM x") == [(20_000,)]
            assert proxy.gets() > 0


def s3_parquet(seed):
    import io

    import pyarrow.parquet as parquet
    out = io.BytesIO()
    parquet.write_table(files.orders(20_000, seed), out, compression="none", use_dictionary=False)
    return out.getvalue()


def test_wrong_credentials_are_told_and_never_shown(s3):
    wrong = "wr0ng-secret-nobody-may-see"
    settings = (*QUICK, "log=info,bowshot=debug,object_store=debug")
    with Remote("orders=s3://lake/data/orders.parquet", environment=s3.environment(secret=wrong), settings=settings,
                secrets=(wrong, stores.SECRET)) as server:
        text = server.refused("SELECT * FROM orders")
        assert "table `orders`" in text and "s3://lake/data/orders.parquet" in text and "rejected the credentials" in text
        server.refused("EXPLAIN SELECT * FROM orders")
        shown = str(server.rows("SELECT * FROM system.object_stores") + server.rows("SELECT * FROM system.files"))
        assert wrong not in shown and stores.KEY not in shown


def test_credentials_of_the_configuration_file_and_of_profiles(s3, tmp_path):
    (tmp_path / "secret").write_text(stores.SECRET + "\n")
    config = tmp_path / "bowshot.toml"
    config.write_text(f'''
paths = ["s3://lake/data/orders.parquet"]
[[object_store.places]]
url = "s3://lake"
endpoint = "{s3.endpoint}"
region = "us-east-1"
access_key_id = "env:TEST_KEY"
secret_access_key = "file:{tmp_path / 'secret'}"
''')
    with Remote("--config", config, environment={"TEST_KEY": stores.KEY}) as server:
        assert server.rows("SELECT count(*) FROM orders") == [(60_000,)]
        plan = str(server.rows("EXPLAIN SELECT * FROM orders"))
        assert stores.SECRET not in plan and stores.KEY not in plan
    credentials = tmp_path / "credentials"
    credentials.write_text(f"[default]\naws_access_key_id=x\naws_secret_access_key=y\n\n[tests]\n"
                           f"aws_access_key_id = {stores.KEY}\naws_secret_access_key = {stores.SECRET}\n")
    environment = {"AWS_SHARED_CREDENTIALS_FILE": str(credentials), "AWS_PROFILE": "tests",
                   "AWS_ENDPOINT_URL": s3.endpoint, "AWS_REGION": "us-east-1"}
    with Remote("s3://lake/data/orders.parquet", environment=environment) as server:
        assert server.rows("SELECT count(*) FROM orders") == [(60_000,)]


def test_a_store_that_is_down_is_the_problem_of_its_own_tables(s3, lake):
    begun = time.monotonic()
    with faults.Proxy(s3.port) as proxy:
        proxy.fault = faults.hang_up
        with Remote("s3://lake/data", lake / "lines.csv", environment=s3.environment(proxy.endpoint),
                    settings=("object_store.timeout=2s", "object_store.refresh=200ms")) as server:
            assert time.monotonic() - begun < 30 * BUSY_FACTOR
            assert server.rows("SELECT count(*) FROM lines") == [(5_000,)]
            text = server.refused("SELECT * FROM data")
            assert "s3://lake/data" in text and ("cannot be reached" in text or "did not answer" in text)
            proxy.fault = None
            wait_until(lambda: "orders" in tables(server), "the tables of a store that is up", 20)
            assert server.rows("SELECT count(*) FROM orders") == [(60_000,)]
            proxy.fault = faults.status(503)
            wait_until(lambda: fails(server, "SELECT max(weight) FROM columns"), "a store that is down again", 20)
            begun = time.monotonic()
            text = server.refused("SELECT min(weight) FROM columns")
            assert "table `columns`" in text and "s3://lake/data/columns.orc" in text and "status 503" in text, text
            assert time.monotonic() - begun < 15 * BUSY_FACTOR
            proxy.fault = None
            wait_until(lambda: not fails(server, "SELECT sum(id) FROM columns"), "a store that is up again", 20)


def fails(server, sql):
    try:
        server.rows(sql)
        return False
    except Exception:
        return True


@pytest.fixture(scope="module")
def behind(s3):
    """A server that keeps nothing, so that each statement asks the store, through a proxy."""
    settings = ("object_store.refresh=200ms", "object_store.timeout=10s", "object_store.request_timeout=5s",
                "object_store.cache_bytes=0", "result_cache.memory_bytes=0", "storage.column_cache_bytes=0")
    sources = [f"s3://lake/data/{name}" for name in ("orders.parquet", "lines.csv", "columns.orc", "stream.arrows")]
    with faults.Proxy(s3.port) as proxy:
        with Remote(*sources, environment=s3.environment(proxy.endpoint), settings=settings) as server:
            yield proxy, server
            proxy.fault = None


FAULTS = {
    "500": faults.status(500), "503": faults.status(503), "429": faults.status(429), "hang_up": faults.hang_up,
    "cut": faults.cut, "late": faults.late(0.2), "other_range": faults.other_range, "shorter": faults.shorter,
    "whole": faults.whole, "other_content": faults.other_content,
}


@pytest.mark.parametrize("name", FAULTS)
def test_answers_are_right_or_errors_clear(behind, local, name):
    """One answer in three to the same question is broken, then all of them, then none."""
    proxy, server = behind
    some = [sql for sql in files.statements(200, len(name))
            if any(f"FROM {table} " in sql for table in ("orders", "lines", "columns", "stream"))][:8]
    proxy.fault = faults.once_in_each(3, FAULTS[name])
    refused = []
    for sql in some:
        begun = time.monotonic()
        try:
            answer = server.database.arrow(sql)
        except Exception as error:  # All faults but another content pass.
            refused.append(str(error))
        else:
            assert answer.equals(local.arrow(sql)), sql
        assert time.monotonic() - begun < 30 * BUSY_FACTOR
    assert not refused or name == "other_content", refused
    if name != "late":
        proxy.fault = FAULTS[name]
        begun = time.monotonic()
        text = server.refused("SELECT sum(weight) + 1 FROM orders WHERE note <> 'x'")
        assert "s3://lake/data/orders.parquet" in text, text
        assert time.monotonic() - begun < 15 * BUSY_FACTOR
    proxy.fault = None
    wait_until(lambda: not fails(server, "SELECT sum(weight) + 2 FROM orders"), "right again", 20)


LATE = 40


def test_answers_that_do_not_come_end_in_time(s3):
    with faults.Proxy(s3.port) as proxy:
        proxy.fault = lambda handler, *rest: faults.late(LATE)(handler, *rest) if faults.is_read(handler) else rest
        settings = ("object_store.timeout=2s", "object_store.request_timeout=1s")
        with Remote("o=s3://lake/data/orders.parquet", environment=s3.environment(proxy.endpoint), settings=settings) as server:
            begun = time.monotonic()
            text = server.refused("SELECT count(weight) FROM o")
            assert time.monotonic() - begun < LATE
            assert "s3://lake/data/orders.parquet" in text


def test_google(lake, local):
    with stores.Google() as store:
        store.copy(lake, "lake/data")
        for number in range(150):
            store.write(f"lake/data/many/part-{number:03}.csv", f"n\n{number}\n".encode())
        with Remote("gs://lake/data", environment=store.environment()) as server:
            assert server.rows("SELECT count(*), sum(n) FROM many") == [(150, 11175)]
            compared(server, local, files.statements(40, 5))


def test_a_name_that_cannot_be_asked_for_is_the_problem_of_its_table():
    with stores.Google() as store:
        for name in ("good/t.csv", "part/k=1/t.csv", "part/k=2//t.csv", "bad//t.csv"):
            store.write(f"lake/data/{name}", b"n\n1\n")
        with Remote("gs://lake/data", "other=gs://lake/data/good", environment=store.environment()) as server:
            assert server.rows("SELECT n FROM good") == server.rows("SELECT n FROM other") == [(1,)]
            for table in ("part", "bad"):
                assert "empty part" in server.refused(f"SELECT * FROM {table}")


def test_files_of_web_servers(lake, local):
    with stores.Google() as store:
        store.copy(lake, "web")
        sources = [f"{store.endpoint}/web/{name}" for name in ("orders.parquet", "lines.csv")]
        with Remote(*sources) as server:
            for sql in ("SELECT sum(price), count(note) FROM orders", "SELECT count(*), max(day) FROM lines"):
                assert server.rows(sql) == local.rows(sql)


def test_azure(lake, local, request):
    folder = request.config.getoption("--azurite")
    if not folder:
        pytest.skip("a suite of its own has Azurite")
    with stores.Azurite(folder) as store:
        for path in sorted(lake.rglob("*")):
            if path.is_file() and "odd" not in str(path):
                store.write(f"lake/data/{path.relative_to(lake).as_posix()}", path.read_bytes())
        environment = {"AZURE_STORAGE_ACCOUNT_NAME": store.ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": store.KEY,
                       "AZURE_STORAGE_ENDPOINT": store.endpoint}
        settings = ("object_store.exchange=az://lake/out",)
        with Remote("az://lake/data", environment=environment, settings=settings, secrets=(store.KEY,)) as server:
            compared(server, local, files.statements(60, 9))
            server.database.run("COPY (SELECT * FROM orders) TO 'az://lake/out/o.parquet'")
            server.database.run("CREATE TABLE back (id BIGINT, customer INT)")
            assert "already exists" in server.refused("COPY (SELECT 1 AS a) TO 'az://lake/out/o.parquet'")
