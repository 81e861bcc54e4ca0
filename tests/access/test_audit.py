"""The audit trail: who did what, in a chain that shows what was changed; and what a full disk does."""

import json
import subprocess
import time

import adbc_driver_flightsql.dbapi as adbc
import pytest

from test_rules import token, with_token
from server import Server, binaries, wait_until


def verify(file):
    return subprocess.run([str(binaries() / "bowshot"), "audit", "verify", str(file)], capture_output=True, text=True, timeout=60)


def serving(folder, **more):
    file = folder / "users.toml"
    file.write_text(token("ada") + token("root") + "admin = true\n")
    environment = {"BOWSHOT_AUDIT_FILE": str(folder / "audit.jsonl"), **more}
    return Server(data=folder / "data", arguments=["--users-file", str(file)], environment=environment)


def lines(folder):
    whole, _, _ = (folder / "audit.jsonl").read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def test_who_did_what(tmp_path):
    with serving(tmp_path) as server:
        with with_token(server, "root") as root, with_token(server, "ada") as ada:
            for sql in ("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1), (2), (3)", "GRANT SELECT ON t TO ada", "CREATE ROW POLICY p ON t USING (id > 1)", "CREATE USER eve PASSWORD 'hunter2'"):
                root.execute(sql)
            ada.execute("SELECT * FROM t")
            assert len(ada.fetchall()) == 2
            with pytest.raises(adbc.Error, match="may not"):
                ada.execute("DROP TABLE t")
            with pytest.raises(adbc.Error, match="not found"):
                ada.execute("SELECT * FROM elsewhere")
        asked = {"SELECT * FROM t", "DROP TABLE t", "SELECT * FROM elsewhere"}
        wait_until(lambda: asked <= {line["statement"] for line in lines(tmp_path)}, "all are told")
        read = [line for line in lines(tmp_path) if line["statement"] == "SELECT * FROM t"][0]
        assert (read["user"], read["decision"], read["outcome"], read["rows"]) == ("ada", "allowed", "finished", 2)
        assert (read["tables"], read["tables_in_part"]) == ([], ["t"]) and read["duration_us"] > 0
        denied = [line for line in lines(tmp_path) if line["statement"] == "DROP TABLE t"][0]
        assert (denied["user"], denied["decision"], denied["outcome"]) == ("ada", "denied", "failed")
        hidden = [line for line in lines(tmp_path) if line["statement"] == "SELECT * FROM elsewhere"][0]
        assert hidden["decision"] == "not_found"
        (added,) = [line for line in lines(tmp_path) if str(line["statement"]).startswith("INSERT")]
        assert added["tables"][0] == "bowshot.main.t"
    assert "hunter2" not in (tmp_path / "audit.jsonl").read_text()
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    found = verify(tmp_path / "audit.jsonl")
    assert found.returncode == 0 and "complete" in found.stdout, found
    with serving(tmp_path) as server, with_token(server, "root") as root:
        root.execute("SELECT 1")
        root.fetchall()
    assert verify(tmp_path / "audit.jsonl").returncode == 0, "it goes on over a restart"
    text = (tmp_path / "audit.jsonl").read_text()
    for broken in (text.replace('"user":"ada"', '"user":"bob"', 1), "".join(text.splitlines(True)[:1] + text.splitlines(True)[2:])):
        (tmp_path / "broken.jsonl").write_text(broken)
        found = verify(tmp_path / "broken.jsonl")
        assert found.returncode == 1 and "line" in found.stderr, found


@pytest.mark.parametrize("sql", [
    "INSERT INTO t VALUES (1) RETURNING (SELECT max(ssn) FROM pay)",
    "UPDATE t SET id = 2 RETURNING (SELECT max(ssn) FROM pay)",
    "DELETE FROM t RETURNING (SELECT max(ssn) FROM pay)",
    "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id) RETURNING (SELECT max(ssn) FROM pay)",
    "WITH d AS (DELETE FROM t RETURNING (SELECT max(ssn) FROM pay) AS m) SELECT m FROM d",
    "WITH d AS (DELETE FROM t RETURNING id) INSERT INTO other SELECT id FROM d RETURNING (SELECT max(ssn) FROM pay)",
    "EXECUTE returning",
])
def test_what_returning_reads(tmp_path, sql):
    with serving(tmp_path) as server, with_token(server, "root") as root:
        for table in ("t (id INTEGER)", "other (id INTEGER)", "pay (ssn VARCHAR)"):
            root.execute(f"CREATE TABLE {table}")
        root.execute("PREPARE returning AS INSERT INTO t VALUES (1) RETURNING (SELECT max(ssn) FROM pay)")
        root.execute(sql)
        root.fetchall()
        told = wait_until(lambda: [line for line in lines(tmp_path) if line["statement"] == sql], "the statement is told")
    tables = told[0]["tables"]
    assert "pay" in tables and "bowshot.main.t" in tables, tables
    assert not any("__bowshot" in table for table in tables), tables


@pytest.mark.parametrize("sql, affected", [
    ("SELECT id FROM t", None),
    ("DELETE FROM t WHERE id > 1", 2),
    ("WITH d AS (DELETE FROM t RETURNING id) SELECT id FROM d WHERE id = 1", 3),
    ("WITH d AS (DELETE FROM t RETURNING id) INSERT INTO other SELECT id FROM d WHERE id = 1", 4),
])
def test_how_many_rows_are_changed(tmp_path, sql, affected):
    with serving(tmp_path) as server, with_token(server, "root") as root:
        for text in ("CREATE TABLE t (id INTEGER)", "CREATE TABLE other (id INTEGER)", "INSERT INTO t VALUES (1), (2), (3)", sql):
            root.execute(text)
        root.fetchall()
        (told,) = wait_until(lambda: [line for line in lines(tmp_path) if line["statement"] == sql], "the statement is told")
    assert told["rows_affected"] == affected, told


def test_only_secrets_are_hidden(tmp_path):
    """A secret is found by its place: neither a comment nor the name of a column hides what a statement does."""
    whole = [
        "DELETE FROM pay WHERE id = 1 /* user set password */",
        "DELETE FROM pay WHERE note = 'create user x identified by' -- attach ://",
        "SELECT note AS password, 'x' AS secret, note AS \"user\" FROM pay WHERE note = 'create_user'",
        "INSERT INTO pay (id, note) VALUES (2, 'alter user password')",
    ]
    changed = {
        "CREATE USER eve PASSWORD 'hunter2' SET region = 'EU'": "CREATE USER eve PASSWORD '…' SET region = 'EU'",
        "ALTER USER eve /* password 'x' */ PASSWORD 'hunter2'": "ALTER USER eve /* password 'x' */ PASSWORD '…'",
        # A word in the place of the text, as a name in quotes too.
        "ALTER USER eve PASSWORD hunter2": "ALTER USER eve PASSWORD '…'",
        'ALTER USER eve IDENTIFIED BY "hunter2"': "ALTER USER eve IDENTIFIED BY '…'",
        "CREATE SECRET lake (TYPE s3, SCOPE 's3://b', KEY_ID 'hunter2', SECRET 'hunter2')":
            "CREATE SECRET lake (TYPE s3, SCOPE 's3://b', KEY_ID '…', SECRET '…')",
    }
    with serving(tmp_path) as server, with_token(server, "root") as root:
        root.execute("CREATE TABLE pay (id INTEGER, note VARCHAR)")
        for sql in [*whole, *changed]:
            root.execute(sql)
        expected = {*whole, *changed.values()}
        wait_until(lambda: expected <= {line["statement"] for line in lines(tmp_path)}, "all are told")
        for table in ("queries", "access_log"):
            root.execute(f"SELECT statement FROM system.{table}")
            assert expected <= {text for (text,) in root.fetchall()}, table
    assert "hunter2" not in (tmp_path / "audit.jsonl").read_text()


@pytest.mark.parametrize("required", [True, False])
def test_a_full_disk(tmp_path, required):
    # A device that is always full.
    with serving(tmp_path, BOWSHOT_AUDIT_FILE="/dev/full", BOWSHOT_AUDIT_REQUIRED=str(required).lower()) as server:
        with with_token(server, "root") as root:
            root.execute("SELECT 1")
            root.fetchall()
            if not required:
                for _ in range(3):
                    root.execute("SELECT 1")
                    assert root.fetchall() == [(1,)]
                return

            def is_refused():
                try:
                    root.execute("SELECT 1")
                    root.fetchall()
                    return False
                except adbc.Error as error:
                    return "audit trail" in str(error)

            wait_until(is_refused, "statements are refused")
            time.sleep(1.2)
            assert is_refused(), "it was tried again, and the disk is still full"
