"""Tags of statements, the lines of slow ones, and the log as a file that is rotated."""

import hashlib
import json
import pathlib
import signal

import psycopg
import pytest

import http_sql
from server import Server, wait_until


def logging(folder, *settings, **options):
    file = folder / "bowshot.log"
    more = [word for setting in (f"log_file={file}", *settings) for word in ("--set", setting)]
    return Server(arguments=["--pg", "127.0.0.1:0", "--log-format", "json", *more], **options), file


def events(file):
    whole, _, _ = file.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def slow(file):
    return [event["fields"] for event in events(file) if event["fields"].get("message") == "slow statement"]


def over_http(server, sql, token=None, **options):
    headers = {"content_type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    answer = http_sql.ask(server, "POST", "/v1/sql", json.dumps({"sql": sql, "options": options}), **headers)
    assert answer.status == 200, answer.body
    return answer.body.decode()


def postgres(server):
    return psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=anonymous dbname=bowshot application_name=report", autocommit=True)


def test_tags_are_shown_where_statements_are(tmp_path):
    audit = tmp_path / "audit.jsonl"
    server, _ = logging(tmp_path, "metrics_query_tags=true", f"audit.file={audit}")
    with server, postgres(server) as client:
        client.execute("SET query_tag = 'finance/''nightly'")
        assert client.execute("SHOW query_tag").fetchone() == ("finance/'nightly",)
        assert client.execute("SHOW application_name").fetchone() == ("report",)
        client.execute("SELECT 41 AS tagged")
        client.execute("SELECT 42 AS tagged; SET query_tag = 'second'; SELECT 43 AS tagged")
        client.execute("RESET query_tag")
        client.execute("SELECT 44 AS tagged")
        over_http(server, "SELECT 45 AS tagged", query_tag="web")
        shown = "SELECT statement, query_tag FROM system.queries WHERE statement LIKE 'SELECT 4_ AS tagged'"
        assert wait_until(lambda: dict(client.execute(shown).fetchall()[4:] and client.execute(shown).fetchall()), "five statements") == {
            "SELECT 41 AS tagged": "finance/'nightly", "SELECT 42 AS tagged": "finance/'nightly", "SELECT 43 AS tagged": "second",
            "SELECT 44 AS tagged": None, "SELECT 45 AS tagged": "web",
        }
        # The same query is the same for the cache of results, whatever its tag.
        plan = client.execute("EXPLAIN SELECT 41").fetchall()
        client.execute("SET query_tag = 'other words'")
        assert client.execute("EXPLAIN SELECT 41").fetchall() == plan
        for wrong in ("x" * 257, "two\nlines"):
            with pytest.raises(psycopg.Error, match="query_tag"):
                client.execute(f"SET query_tag = '{wrong}'")
        counted = [line for line in server.get("/metrics")[2].splitlines() if line.startswith("bowshot_tagged_queries_total")]
        assert any('tag="web"' in line and 'outcome="finished"' in line for line in counted), counted
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {line["query_tag"] for line in lines if line.get("statement") == "SELECT 45 AS tagged"} == {"web"}


def test_slow_statements_have_a_line(tmp_path):
    server, file = logging(tmp_path, "log_slow_after=1ms")
    with server, postgres(server) as client:
        client.execute("SET query_tag = 'report'")
        client.execute("SELECT count(*) FROM generate_series(1, 3000000) AS t(value) WHERE value % 7 = 3")
        client.execute(f"SELECT count(*) FROM generate_series(1, 3000000) AS t(value) WHERE '{'x' * 5000}' <> 'y' AND value % 7 = 3")
        with pytest.raises(psycopg.Error):
            client.execute("SELECT sum(1 / (value - 2999999)) FROM generate_series(1, 3000000) AS t(value)")
        found = wait_until(lambda: [line for line in slow(file) if "generate_series" in line["statement"]][2:] and slow(file), "three lines")
    short, long, failed = [line for line in found if "generate_series" in line["statement"]][:3]
    assert (short["user"], short["query_tag"], short["outcome"], short["rows"]) == ("anonymous", "report", "finished", 1)
    assert short["duration_ms"] >= 1 and short["queued_ms"] >= 0 and short["bytes"] > 0 and short["query"] and short["session"]
    assert long["statement"].endswith("…") and len(long["statement"].encode()) <= 4096 + len("…".encode())
    assert failed["outcome"] == "failed"


def test_secrets_are_in_no_line_and_tags_in_the_access_log(tmp_path):
    users = tmp_path / "users.toml"
    users.write_text(f'[[tokens]]\nuser = "root"\nsha256 = "{hashlib.sha256(b"of root").hexdigest()}"\nadmin = true\n')
    server, file = logging(tmp_path, "log_slow_after=1ms", f"access.users_file={users}", data=tmp_path / "data")
    with server:
        over_http(server, "CREATE USER eve PASSWORD 'hunter2'", token="of root")
        wait_until(lambda: [line for line in slow(file) if "eve" in line["statement"]], "its line")
        over_http(server, "SELECT 45 AS tagged", token="of root", query_tag="web")
        tags = "SELECT query_tag FROM system.access_log WHERE statement = 'SELECT 45 AS tagged'"
        assert '"web"' in over_http(server, tags, token="of root")
    assert "hunter2" not in file.read_text()


def test_no_line_unless_it_is_asked_for(tmp_path):
    server, file = logging(tmp_path)
    with server, postgres(server) as client:
        client.execute("SELECT count(*) FROM generate_series(1, 3000000) AS t(value)")
    assert slow(file) == [] and events(file), "the log is there, without the statement"
    assert file.stat().st_mode & 0o777 == 0o600


def test_files_are_rotated_and_opened_again(tmp_path):
    server, file = logging(tmp_path, "log=warn,bowshot_session=debug", "log_max_bytes=4KiB", "log_keep=2")
    with server, postgres(server) as client:
        def work():
            client.execute("SELECT 1")
            return pathlib.Path(f"{file}.2").exists()

        wait_until(work, "two files that were set aside")
        for _ in range(50):
            work()
        names = sorted(path.name for path in tmp_path.glob("bowshot.log*"))
        assert names == ["bowshot.log", "bowshot.log.1", "bowshot.log.2"]
        for name in names:
            assert (tmp_path / name).stat().st_size <= 4096
            for line in (tmp_path / name).read_text().splitlines():
                json.loads(line)
        file.rename(tmp_path / "moved")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: file.exists(), "the file again")
        wait_until(lambda: work() is not None and events(file), "its lines")
        assert server.metrics()["bowshot_log_lines_dropped_total"] == 0


def test_a_full_disk_stops_nobody():
    with Server(arguments=["--set", "log_file=/dev/full", "--set", "log=warn,bowshot_session=debug"]) as server:
        assert "1" in over_http(server, "SELECT 1")
        assert server.metrics()["bowshot_log_lines_dropped_total"] > 0
