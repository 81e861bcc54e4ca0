"""Tables of MariaDB: faults on the way, TLS, credentials, many connections."""

import threading
import time

import adbc_driver_flightsql.dbapi as dbapi
import pytest

import databases
import mariadb
from databases import PASSWORD, Reader, eventually, seconds_of, six_at_once
from durable import Database
from mariadb import MySource, Way, entry
from server import BUSY_FACTOR

RUNNING = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%{}%' AND id <> connection_id()"


@pytest.fixture(scope="module")
def my(folder):
    server = mariadb.MariaDb()
    server.run("CREATE TABLE shop.t (a INT PRIMARY KEY, b VARCHAR(40))", "INSERT INTO shop.t SELECT seq, CONCAT('row number ', seq) FROM shop.seq_1_to_1000",
               "CREATE VIEW shop.slow AS SELECT SLEEP(600) AS x", "CREATE VIEW shop.naps AS SELECT SLEEP(1) AS x",
               "CREATE VIEW shop.endless AS SELECT a.seq AS g, REPEAT('x', 100) AS t FROM shop.seq_1_to_1000000 a JOIN shop.seq_1_to_1000 b",
               "CREATE VIEW shop.drops AS SELECT seq AS g, SLEEP(0.3) AS x, REPEAT('x', 40000) AS t FROM shop.seq_1_to_8")
    yield server
    server.close()


def source_of(server, name="my", **more):
    return MySource(name, "mysql", "shop", entry(server, **more), None, [])


def test_a_server_that_is_not_there_fails_its_own_tables_alone(folder, my):
    gone = source_of(my, "gone", uri=f'"mysql://127.0.0.1:{databases.free_port()}/shop"')
    nowhere = source_of(my, "nowhere", uri='"mysql://nowhere.invalid/shop?sslmode=disable"', connect_timeout='"2s"')
    with Reader(folder, gone.config() + nowhere.config() + source_of(my).config()) as server:
        for name in ("gone", "nowhere"):
            taken = seconds_of(lambda: server.refused(f"SELECT * FROM {name}.shop.t"))
            assert taken < 8 * BUSY_FACTOR, (name, taken)
            assert "cannot be reached" in server.refused(f"SELECT * FROM {name}.shop.t") or name == "nowhere"
        assert server.rows("SELECT count(*) FROM my.shop.t") == [(1000,)]
        problems = dict(server.rows("SELECT name, problem FROM system.databases"))
        assert problems["my"] is None and "cannot be reached" in problems["gone"], problems


def test_a_slow_server_is_given_up_and_its_statement_ends(folder, my):
    with Reader(folder, source_of(my, timeout='"1500ms"', pool="2").config()) as server:
        for _ in range(3):
            start = time.monotonic()
            assert "did not answer within" in server.refused("SELECT x FROM my.shop.slow")
            assert time.monotonic() - start < 6 * BUSY_FACTOR
        eventually(lambda: my.rows(RUNNING.format("`slow`")) == [(0,)], "what nobody waits for is killed")
        assert server.rows("SELECT count(*) FROM my.shop.t WHERE a < 10") == [(9,)]
        # Rows that come one by one come in time, however long all of them take: each is more than the server gathers before it sends.
        assert server.rows("SELECT count(x), min(character_length(t)) FROM my.shop.drops") == [(8, 40_000)]


def test_a_way_that_hangs_is_given_up(folder, my):
    """Nobody can be told to end the statement; who waits for it is told, and no thread and no connection stays."""
    with Way(my.port) as way:
        source = source_of(my, uri=f'"mysql://127.0.0.1:{way.port}/shop"', timeout='"1s"', connect_timeout='"1s"', pool="1")
        with Reader(folder, source.config()) as server:
            assert server.rows("SELECT count(*) FROM my.shop.t") == [(1000,)]
            way.answers.clear()
            for _ in range(2):
                assert seconds_of(lambda: server.refused("SELECT b FROM my.shop.t")) < 10 * BUSY_FACTOR
            way.answers.set()
            assert eventually(lambda: server.rows("SELECT count(*) FROM my.shop.t") == [(1000,)], "it is back")


def test_a_connection_that_was_kept_and_is_gone_is_made_again(folder, my):
    with Way(my.port) as way:
        with Reader(folder, source_of(my, uri=f'"mysql://127.0.0.1:{way.port}/shop"').config()) as server:
            for _ in range(3):
                assert server.rows("SELECT sum(a) FROM my.shop.t") == [(500_500,)]
                way.cut()
            my.run("SET GLOBAL wait_timeout = 1")
            way.cut()
            assert server.rows("SELECT sum(a) FROM my.shop.t") == [(500_500,)]
            my.run("SET GLOBAL wait_timeout = 28800")
            time.sleep(2)
            assert server.rows("SELECT sum(a) FROM my.shop.t") == [(500_500,)]


def test_rows_that_nobody_reads_are_not_asked_for(folder, my):
    with Way(my.port) as way, Reader(folder, source_of(my, uri=f'"mysql://127.0.0.1:{way.port}/shop"').config()) as server:
        connection = dbapi.connect(server.grpc_tcp)
        cursor = connection.cursor()
        cursor.execute("SELECT g, t FROM my.shop.endless")
        batches = cursor.fetch_record_batch()
        assert next(iter(batches)).num_rows > 0
        # Back pressure: the server holds a few batches and no more.
        before = eventually(lambda: still(way), "nothing comes any more", 30)
        assert my.rows(RUNNING.format("endless")) == [(1,)]
        assert before < 256 << 20
        batches.close()
        cursor.close()
        connection.close()
        eventually(lambda: my.rows(RUNNING.format("endless")) == [(0,)], "the statement has ended")
        server.wait_idle(10)


def still(way):
    """How much has come, if nothing more does."""
    carried = way.carried
    time.sleep(0.5)
    return carried if way.carried == carried else None


def test_a_server_that_is_killed_while_it_is_read(folder):
    my = mariadb.MariaDb()
    try:
        my.run("CREATE TABLE shop.t (a INT) AS SELECT seq AS a FROM shop.seq_1_to_1000",
               "CREATE VIEW shop.endless AS SELECT a.seq AS a FROM shop.seq_1_to_1000000 a JOIN shop.seq_1_to_10000 b", "CREATE TABLE shop.target (a INT)")
        with Reader(folder, source_of(my, read_only="false", timeout='"10s"').config()) as server:
            assert server.rows("SELECT sum(a) FROM my.shop.t") == [(500_500,)]
            words = []
            statements = ["SELECT sum(a) FROM my.shop.endless", "INSERT INTO my.shop.target SELECT a FROM generate_series(1, 100000000) AS g(a)"]
            asking = [threading.Thread(target=lambda sql=sql: words.append(server.refused(sql, Database(server)))) for sql in statements]
            for thread in asking:
                thread.start()
            time.sleep(1.5)
            my.kill()
            for thread in asking:
                thread.join(30 * BUSY_FACTOR)
            assert len(words) == 2 and all("`my`" in word for word in words), words
            assert "cannot be reached" in server.refused("SELECT sum(a) FROM my.shop.t")
            my.start()
            assert server.rows("SELECT sum(a) FROM my.shop.t") == [(500_500,)]
            assert my.rows("SELECT count(*) FROM shop.target") == [(0,)]
            server.wait_idle(10)
    finally:
        my.close()


def test_an_insert_that_is_cancelled_leaves_nothing(folder, my):
    my.run("CREATE TABLE shop.locked (a INT PRIMARY KEY)")
    with Reader(folder, source_of(my, read_only="false", timeout='"2s"').config()) as server:
        holder = my.connect(autocommit=False)
        try:
            with holder.cursor() as cursor:
                cursor.execute("INSERT INTO shop.locked VALUES (5)")
            assert "did not answer" in server.refused("INSERT INTO my.shop.locked SELECT a FROM generate_series(1, 3000000) AS g(a)")
        finally:
            holder.rollback()
            holder.close()
        eventually(lambda: my.rows(RUNNING.format("locked")) == [(0,)], "the statement has ended")
        assert my.rows("SELECT count(*) FROM shop.locked") == [(0,)]


def test_all_connections_taken(folder, my):
    with Reader(folder, source_of(my, timeout='"20s"', pool="2").config()) as server:
        answers, taken = six_at_once(server, "SELECT x FROM my.shop.naps")
        assert answers == [[(0,)]] * 6 and taken > 2.5, taken


def test_tls_is_used_or_the_server_is_not(folder, my):
    login = {"user": '"reader"', "password_env": '"THE_PASSWORD"'}
    here, place = {"THE_PASSWORD": PASSWORD}, f"localhost:{my.port}/shop"
    my.run("ALTER USER reader@'%' REQUIRE SSL")
    other = folder / "other-authority"
    other.mkdir(exist_ok=True)
    mariadb.certificates(other)
    try:
        with Way(my.port) as way:
            passing = f"localhost:{way.port}/shop"
            ways = {"good": f"mysql://{passing}?sslmode=verify-full&sslrootcert={my.folder}/ca.pem", "named": f"mysql://{place}?sslrootcert={my.folder}/ca.pem",
                    "any": f"mysql://{place}?sslmode=require", "plain": f"mysql://{place}?sslmode=disable", "stranger": f"mysql://{place}?sslmode=verify-full&sslrootcert={other}/ca.pem",
                    "address": f"mysql://127.0.0.1:{my.port}/shop?sslmode=verify-full&sslrootcert={my.folder}/ca.pem", "machine": f"mysql://{place}?sslmode=verify-full",
                    "missing": f"mysql://{place}?sslmode=verify-full&sslrootcert=/nowhere.pem"}
            config = "\n".join(source_of(my, name, uri=f'"{uri}"', **login).config() for name, uri in ways.items())
            with Reader(folder, config, environment=here) as server:
                for name in ("good", "named", "any"):
                    assert server.rows(f'SELECT count(*) FROM "{name}".shop.t') == [(1000,)], name
                assert server.rows("SELECT min(b) FROM good.shop.t") == [("row number 1",)]
                assert b"row number" not in way.seen and b"shop" not in way.seen
                assert "refused the login" in server.refused("SELECT * FROM plain.shop.t")
                for name in ("stranger", "address", "machine"):
                    assert "TLS" in server.refused(f'SELECT * FROM "{name}".shop.t'), name
                assert "does not exist" in server.refused("SELECT * FROM missing.shop.t")
            # The authorities of the machine are those that it names.
            with Reader(folder, config, environment={**here, "SSL_CERT_FILE": str(my.folder / "ca.pem")}) as server:
                assert server.rows('SELECT count(*) FROM "machine".shop.t') == [(1000,)]
    finally:
        my.run("ALTER USER reader@'%' REQUIRE NONE")


def test_a_server_without_tls_is_not_asked_where_it_is_wanted(folder):
    my = mariadb.MariaDb("--skip-ssl")
    try:
        my.run("CREATE TABLE shop.t (a INT)")
        wanted = source_of(my, "wanted", uri=f'"mysql://localhost:{my.port}/shop?sslmode=require"', user='"reader"', password_env='"THE_PASSWORD"')
        with Reader(folder, wanted.config() + source_of(my).config(), environment={"THE_PASSWORD": PASSWORD}) as server:
            assert "offers no TLS" in server.refused("SELECT * FROM wanted.shop.t")
            assert server.rows("SELECT count(*) FROM my.shop.t") == [(0,)]
    finally:
        my.close()


def test_a_way_of_login_that_is_not_known_is_told(folder, my):
    my.run("INSTALL SONAME 'auth_ed25519'", "CREATE USER modern@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret')", "GRANT SELECT ON shop.* TO modern@'%'")
    source = source_of(my, user='"modern"', password_env='"THE_PASSWORD"')
    with Reader(folder, source.config(), environment={"THE_PASSWORD": "secret"}) as server:
        assert "authentication method" in server.refused("SELECT * FROM my.shop.t")
        assert "cannot be reached" in server.refused("SELECT * FROM my.shop.t")


def test_credentials_are_never_shown(folder, my):
    path = folder / "my-password"
    path.write_text(PASSWORD + "\n")
    path.chmod(0o600)
    login = {"user": '"reader"'}
    config = "\n".join([
        source_of(my, "good", password_file=f'"{path}"', read_only="false", **login).config(), source_of(my, "env", password_env='"THE_PASSWORD"', **login).config(),
        source_of(my, "wrong", user='"somebody"', password_env='"THE_PASSWORD"').config(), source_of(my, "none", **login).config(),
        source_of(my, "down", uri='"mysql://127.0.0.1:1/shop"', password_env='"THE_PASSWORD"', **login).config(),
    ])
    with Way(my.port) as way:
        config += source_of(my, "seen", uri=f'"mysql://127.0.0.1:{way.port}/shop"', password_env='"THE_PASSWORD"', **login).config()
        with Reader(folder, config, environment={"THE_PASSWORD": PASSWORD, "RUST_LOG": "trace"},
                    arguments=["--set", "log=warn,bowshot=trace,bowshot_databases=trace,bowshot_engine=debug,bowshot_session=debug,mysql_async=trace"]) as server:
            for name in ("good", "env", "seen"):
                assert server.rows(f"SELECT count(*) FROM {name}.shop.t") == [(1000,)]
                assert PASSWORD not in server.explained(f"SELECT * FROM {name}.shop.t WHERE a = 1")
            for name in ("wrong", "none"):
                assert "refused the login" in server.refused(f'SELECT * FROM "{name}".shop.t')
            server.refused("SELECT * FROM down.shop.t")
            server.refused("SELECT nothing FROM good.shop.t")
            assert "Duplicate entry" in server.refused("INSERT INTO good.shop.t (a) VALUES (1)")
            for (table,) in server.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'"):
                assert PASSWORD not in str(server.rows(f"SELECT * FROM system.{table}")), table
            assert PASSWORD not in server.get("/metrics")[2]
            assert PASSWORD.encode() not in way.seen
