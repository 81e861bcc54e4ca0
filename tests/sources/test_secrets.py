"""Credentials that an administrator gives in SQL: what they open, until when, and that nobody ever sees them. Who may make and see
them is in tests/access/test_secrets.py."""

import pytest

from durable import Database
from secrets_world import ADMIN, WRONG, Guarded, program, refuses_to_start, secret, values
from web import Handler, Web

SERVED = "s3://lake/data/orders.parquet"
OPENED = ("object_store.read=s3://lake/data", "object_store.exchange=s3://lake/exchange", "object_store.refresh=200ms",
          "object_store.max_retries=0")
SERVED_ROWS = "SELECT count(*) FROM orders"
NAMED_ROWS = "SELECT count(*) FROM 's3://lake/data/orders.parquet'"
KEY_ONE, KEY_TWO = "ab" * 32, "cd" * 32


def place(s3):
    """The environment says where the store is, and lets nobody in."""
    return s3.environment(secret=WRONG)


@pytest.fixture
def server(s3, tmp_path):
    with Guarded(SERVED, data=tmp_path / "data", settings=OPENED, environment=place(s3)) as server:
        yield server


def test_it_is_in_force_for_the_next_statement(s3, server):
    for sql in (SERVED_ROWS, NAMED_ROWS, "COPY (SELECT 1 AS a) TO 's3://lake/exchange/secret.csv'"):
        assert "rejected the credentials of this server (403)" in server.refused(sql)
    server.run(secret(SCOPE="s3://lake"))
    for _ in range(2):
        assert server.rows(SERVED_ROWS) == server.rows(NAMED_ROWS) == [(60_000,)]
    server.run("COPY (SELECT 1 AS a) TO 's3://lake/exchange/secret.csv' WITH (OVERWRITE true)")
    assert "lake/exchange/secret.csv" in s3.names("lake/exchange")
    # One that is wrong says whose fault it is, and what is on the disk of the server is no way round.
    server.run(secret(verb="CREATE OR REPLACE SECRET", SCOPE="s3://lake", lake_secret=WRONG))
    for sql in (SERVED_ROWS, NAMED_ROWS):
        text = server.refused(sql)
        assert "the secret `lake` (403)" in text and "CREATE OR REPLACE SECRET" in text, text
    server.run(secret(verb="CREATE OR REPLACE SECRET", SCOPE="s3://lake"))
    assert server.rows(SERVED_ROWS) == server.rows(NAMED_ROWS) == [(60_000,)]
    server.run("DROP SECRET lake")
    for sql in (SERVED_ROWS, NAMED_ROWS, "COPY (SELECT 1 AS a) TO 's3://lake/exchange/secret.csv' WITH (OVERWRITE true)"):
        assert "rejected the credentials of this server (403)" in server.refused(sql)


def test_create_and_drop_say_what_is_there(server):
    server.run(secret(), secret(verb="CREATE SECRET IF NOT EXISTS", lake_secret=WRONG))
    assert server.rows(SERVED_ROWS) == [(60_000,)]
    assert "already exists" in server.refused(secret())
    server.run("DROP SECRET lake", "DROP SECRET IF EXISTS lake")
    assert "not found" in server.refused("DROP SECRET lake")
    for sql in (secret(name=""), "CREATE SECRET x", secret(verb="CREATE TEMPORARY SECRET"), secret(nothing="x"),
                secret(SCOPE="gs://lake"), secret(ENDPOINT="http://127.0.0.1:1"), secret(REGION="x.example.org/#"),
                secret()[:-1], secret() + " AND MORE", secret(KEY_ID="a\nb"), f"EXPLAIN {secret()}"):
        server.refused(sql)
    assert server.rows("SELECT count(*) FROM system.secrets") == [(0,)]
    described = server.rows("SELECT column_name FROM information_schema.columns WHERE table_name = 'secrets' ORDER BY ordinal_position")
    assert [name for (name,) in described] == ["name", "type", "scope", "owner", "created", "state", "problem"]
    # As DuckDB's users write it.
    server.run(f"CREATE PERSISTENT SECRET Duck ({values(PROVIDER='config', URL_STYLE='path', SCOPE='s3://lake/data/')});")
    assert server.rows(NAMED_ROWS) == [(60_000,)]
    (row,) = server.rows("SELECT name, type, scope, owner, state, problem FROM system.secrets WHERE created IS NOT NULL")
    assert row == ("duck", "s3", "s3://lake/data/", "root", "ready", None)


def test_texts_are_kept_nowhere(server):
    server.run(secret(), "SELECT 1")
    texts = [text for (text,) in server.rows("SELECT statement FROM system.queries")]
    # All of the statement but the values.
    assert [text for text in texts if text.startswith("CREATE SECRET lake (") and "SECRET '…'" in text], texts
    assert "SELECT 1" in texts
    # Of several statements each is run by itself.
    status, text = server.by_http(f"SELECT 1; {secret(verb='CREATE OR REPLACE SECRET')}")
    assert status < 300, text
    server.refused(secret()[:-1])
    server.refused(secret(verb="CRATE SECRT"))
    server.refused(f"PREPARE p AS {secret(verb='CREATE OR REPLACE SECRET')}")
    for plan in (f"EXPLAIN {NAMED_ROWS}", f"EXPLAIN VERBOSE {NAMED_ROWS}", f"EXPLAIN ANALYZE {NAMED_ROWS}"):
        server.check(str(server.rows(plan)))
    status, text = server.by_http(secret(verb="CREATE OR REPLACE SECRET", SCOPE="s3://lake"))
    assert status < 300, text
    server.check(text)
    # The rest is looked for when the server stops: files, log, audit trail, system tables.


def test_nobody_without_a_name_is_an_administrator(s3):
    from conftest import Remote

    with Remote(SERVED, environment=s3.environment()) as server:
        assert "may not make or drop secrets" in server.refused(secret())
        assert "not found" in server.refused("SELECT * FROM system.secrets")
        assert server.rows(SERVED_ROWS) == [(60_000,)]


def test_transactions_keep_them_or_not(server):
    with Database(server, autocommit=False, token=ADMIN) as transaction:
        transaction.run(secret())
        assert transaction.rows("SELECT name FROM system.secrets") == [("lake",)]
        assert server.rows("SELECT name FROM system.secrets") == []
        server.refused(NAMED_ROWS)
        transaction.connection.rollback()
        assert server.rows("SELECT name FROM system.secrets") == []
        transaction.run(secret())
        transaction.connection.commit()
    assert server.rows(NAMED_ROWS) == [(60_000,)]


def test_the_configuration_counts_before_one_that_is_as_exact(s3, tmp_path):
    entry = (f'[[object_store.places]]\nurl = "s3://lake"\nendpoint = "{s3.endpoint}"\nregion = "us-east-1"\n'
             'access_key_id = "env:LAKE_KEY"\nsecret_access_key = "env:LAKE_SECRET"\n')
    whose = {"LAKE_KEY": s3.environment()["AWS_ACCESS_KEY_ID"], "LAKE_SECRET": s3.environment()["AWS_SECRET_ACCESS_KEY"]}
    with Guarded(data=tmp_path / "data", settings=OPENED, environment=whose, config=entry) as server:
        server.run(secret(SCOPE="s3://lake", lake_secret=WRONG), secret("all", lake_secret=WRONG))
        assert server.rows(NAMED_ROWS) == [(60_000,)]
        server.run(secret("deep", SCOPE="s3://lake/data", lake_secret=WRONG))
        assert "`deep`" in server.refused(NAMED_ROWS)
        # Where the store is, it may repeat and not change.
        server.run(secret("deep", "CREATE OR REPLACE SECRET", SCOPE="s3://lake/data", ENDPOINT=s3.endpoint + "/"))
        assert server.rows(NAMED_ROWS) == [(60_000,)]
        server.run(secret("deep", "CREATE OR REPLACE SECRET", SCOPE="s3://lake/data", REGION="eu-central-1"))
        assert "REGION" in server.refused(NAMED_ROWS)


def test_it_opens_no_place(s3, tmp_path):
    settings = (*OPENED, f"object_store.endpoints={s3.endpoint}")
    with Guarded(data=tmp_path / "data", settings=settings, environment={"AWS_REGION": "us-east-1"}) as server:
        for endpoint in ("http://127.0.0.1:1", "http://169.254.169.254", f"{s3.endpoint}/x", "https://example.org"):
            text = server.refused(secret(SCOPE="s3://lake", ENDPOINT=endpoint))
            assert "ENDPOINT of the secret is not allowed" in text and "object_store.endpoints" in text, text
        server.run(secret(SCOPE="s3://lake", ENDPOINT=s3.endpoint))
        assert server.rows(NAMED_ROWS) == [(60_000,)]
        for address in ("s3://lake/ready", "s3://lake/other.parquet", "s3://lake/exchange/secret.csv", "s3://other/x.csv"):
            assert "not in a location" in server.refused(f"SELECT * FROM read_csv('{address}')")
        assert "not in a location" in server.refused("COPY (SELECT 1 AS a) TO 's3://lake/data/secret.csv'")
    # What the operator names no more, a secret from before does not bring back.
    with Guarded(data=tmp_path / "data", settings=OPENED, environment={"AWS_REGION": "us-east-1"}) as server:
        assert "ENDPOINT" in server.refused(NAMED_ROWS)


def test_a_restart_keeps_it_and_another_key_does_not_open_it(s3, tmp_path):
    data, environment = tmp_path / "data", place(s3)

    def started(*settings, **more):
        return Guarded(SERVED, data=data, settings=(*OPENED, *settings), environment={**environment, **more}, words=(KEY_ONE, KEY_TWO))

    with started() as server:
        assert not (data / "secrets.key").exists()
        server.run(secret(SCOPE="s3://lake"))
        assert (data / "secrets.key").stat().st_mode & 0o777 == 0o600
    with started() as server:
        assert server.rows(SERVED_ROWS) == [(60_000,)]
    with started("secrets.key=env:THE_KEY", THE_KEY=KEY_ONE) as server:
        ((state, problem),) = server.rows("SELECT state, problem FROM system.secrets")
        assert state == "unreadable" and "encrypted with the key" in problem and "env:THE_KEY" in problem, problem
        text = server.refused(SERVED_ROWS)
        assert "`lake`" in text and "encrypted with the key" in text, text
        server.run(secret("other", SCOPE="s3://elsewhere"), "CREATE TABLE t (a INTEGER)")
        server.run(secret(verb="CREATE OR REPLACE SECRET", SCOPE="s3://lake"))
        assert server.rows(SERVED_ROWS) == [(60_000,)]
    with started("secrets.key=env:THE_KEY", THE_KEY=KEY_TWO) as server:
        assert server.rows("SELECT count(*) FROM system.secrets WHERE state = 'unreadable'") == [(2,)]
        server.run("DROP SECRET lake")
    with started("secrets.key=env:THE_KEY", THE_KEY=KEY_ONE) as server:
        assert server.rows("SELECT name, state FROM system.secrets") == [("other", "ready")]
    for key in ("env:NOT_THERE", "file:/not/there", KEY_ONE, "env:SHORT"):
        log = refuses_to_start("--data", data, "--set", f"secrets.key={key}", environment={"SHORT": "abcd"})
        assert "secrets.key" in log and KEY_ONE not in log and "abcd" not in log, log


def test_backups_have_no_key(s3, tmp_path):
    data, environment = tmp_path / "data", place(s3)
    with Guarded(data=data, settings=OPENED, environment=environment) as server:
        server.run(secret(SCOPE="s3://lake"), "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
        program("backup", tmp_path / "backup", "--data", data, "--json")
        server.check_files(tmp_path / "backup")
    assert not list((tmp_path / "backup").rglob("*.key"))
    assert program("verify", "--data", data, "--json")["faults"] == []
    assert program("verify", "--data", tmp_path / "backup", "--deep", "--json")["faults"] == []
    program("restore", tmp_path / "backup", "--data", tmp_path / "restored", "--json")
    with Guarded(data=tmp_path / "restored", settings=OPENED, environment=environment) as server:
        assert server.rows("SELECT a FROM t") == [(1,)]
        assert server.rows("SELECT name, state FROM system.secrets") == [("lake", "unreadable")]
        assert "has none" in server.refused(NAMED_ROWS)
    (tmp_path / "restored" / "secrets.key").write_bytes((data / "secrets.key").read_bytes())
    (tmp_path / "restored" / "secrets.key").chmod(0o600)
    with Guarded(data=tmp_path / "restored", settings=OPENED, environment=environment) as server:
        assert server.rows(NAMED_ROWS) == [(60_000,)]


def test_without_a_folder_it_ends_with_the_server(s3):
    with Guarded(SERVED, settings=OPENED, environment=place(s3)) as server:
        server.run(secret(SCOPE="s3://lake"))
        assert server.rows(SERVED_ROWS) == [(60_000,)]
    with Guarded(SERVED, settings=OPENED, environment=place(s3)) as server:
        assert server.rows("SELECT * FROM system.secrets") == []
        server.refused(SERVED_ROWS)


class TokenFiles(Web):
    """Files for who shows the token, and what each request has shown."""

    TOKEN = "b3arer-of-the-tests"

    def __init__(self):
        super().__init__(Files)
        self.shown = []


class Files(Handler):
    CONTENT = b"a,b\n1,2\n3,4\n"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        token = self.headers.get("Authorization")
        self.server.shown.append((self.path, token))
        allowed = token == f"Bearer {TokenFiles.TOKEN}" or self.path.startswith("/open")
        content, span = self.CONTENT if allowed else b"", self.headers.get("Range")
        headers = {"ETag": '"one"', "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if allowed and span:
            first, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
            content = content[first:last + 1]
            headers["Content_Range"] = f"bytes {first}-{first + len(content) - 1}/{len(self.CONTENT)}"
        self.answer((206 if span else 200) if allowed else 401, content, **headers)


def test_a_web_server_gets_its_token_and_no_other_does(tmp_path):
    web = TokenFiles()
    with Guarded(data=tmp_path / "data", settings=(f"object_store.read={web.endpoint}", "object_store.max_retries=0"), words=(TokenFiles.TOKEN,)) as server:
        closed, opened = (f"SELECT sum(a) FROM read_csv('{web.endpoint}/{name}.csv')" for name in ("closed/x", "open"))
        assert "401" in server.refused(closed)
        assert "SCOPE" in server.refused(f"CREATE SECRET web (TYPE http, BEARER_TOKEN '{TokenFiles.TOKEN}')")
        assert "over encrypted connections only" in server.refused(f"CREATE SECRET web (TYPE http, SCOPE 'http://example.org', BEARER_TOKEN '{TokenFiles.TOKEN}')")
        server.run(f"CREATE SECRET web (TYPE http, SCOPE '{web.endpoint}/closed', BEARER_TOKEN '{TokenFiles.TOKEN}')")
        assert server.rows(closed) == server.rows(opened) == [(4,)]
        assert {token for path, token in web.shown if path.startswith("/open")} == {None}
    web.close()
