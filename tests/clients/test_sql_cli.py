"""`bowshot sql` and the command line's manners: formats, exit codes, data on stdout and everything else on stderr."""

import csv
import io
import json
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import data
from server import Server, binaries, free_port

QUERY = "SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey"


def bowshot(*arguments, stdin=None):
    return subprocess.run([str(binaries() / "bowshot"), *map(str, arguments)], capture_output=True, timeout=60, input=stdin)


@pytest.fixture
def sql(server):
    def run(*arguments, stdin=None):
        return bowshot("sql", "--uri", server.flight, *arguments, stdin=stdin)

    return run


def good(run):
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout


def read_csv(text):
    names, *rows = csv.reader(io.StringIO(text.decode()))
    assert names == ["n_nationkey", "n_name"]
    return [(int(key), name) for key, name in rows]


# How others read what is written.
READERS = {
    "csv": read_csv,
    "json": lambda text: [tuple(json.loads(line).values()) for line in text.splitlines()],
    "arrow": lambda text: [tuple(row.values()) for row in pa.ipc.open_stream(text).read_all().to_pylist()],
}


def test_table(sql):
    text = good(sql(QUERY)).decode()
    assert "n_name" in text and "GERMANY" in text


@pytest.mark.parametrize("format, read", READERS.items())
def test_formats_hold_all_rows(sql, format, read):
    assert read(good(sql("--format", format, QUERY))) == list(enumerate(data.NATIONS))


def test_parquet(sql, tmp_path):
    out = tmp_path / "out.parquet"
    good(sql("--format", "parquet", "--output", out, "SELECT * FROM lineitem"))
    assert pq.read_table(out).num_rows == data.LINEITEM_ROWS


def test_the_ending_of_a_file_tells_its_format_or_is_refused(sql, tmp_path):
    good(sql("--output", tmp_path / "out.csv", QUERY))
    assert (tmp_path / "out.csv").read_text().startswith("n_nationkey,n_name\n")
    run = sql("--output", tmp_path / "out.xls", QUERY)
    assert run.returncode == 2 and b"cannot determine the format" in run.stderr and not (tmp_path / "out.xls").exists()
    good(sql("--format", "json", "--output", tmp_path / "out.xls", QUERY))


def test_an_address_needs_no_scheme(server):
    assert b"42" in good(bowshot("sql", "--uri", f"{server.host}:{server.port}", "SELECT 42"))


def test_a_server_that_starts_is_waited_for(data_folder):
    port = free_port()
    command = [str(binaries() / "bowshot"), "sql", "--uri", f"127.0.0.1:{port}", "--wait", "60", "SELECT 42"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        with Server(data_folder, flight=f"127.0.0.1:{port}"):
            out, err = waiting.communicate(timeout=120)
    assert waiting.returncode == 0 and b"42" in out, err


def test_a_file_of_sql(sql, tmp_path):
    script = tmp_path / "query.sql"
    script.write_text(QUERY)
    assert b"GERMANY" in good(sql("--format", "csv", "--file", script))


def test_errors_go_to_stderr_with_exit_code_1(sql):
    run = sql("SELECT * FROM lineitm")
    assert run.returncode == 1 and run.stdout == b""
    assert b"lineitm" in run.stderr


def test_no_server_is_exit_code_1():
    run = bowshot("sql", "--uri", "grpc://127.0.0.1:9", "SELECT 1")
    assert run.returncode == 1 and run.stdout == b"" and run.stderr


def test_check_prints_no_backtrace(tmp_path, monkeypatch):
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    log = tmp_path / "lake" / "_delta_log"
    log.mkdir(parents=True)
    # A schema that cannot be read.
    metadata = {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": "{", "partitionColumns": [], "configuration": {}}
    lines = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata})
    (log / "00000000000000000000.json").write_text("\n".join(map(json.dumps, lines)))
    run = bowshot("check", tmp_path / "lake")
    said = (run.stdout + run.stderr).decode()
    assert run.returncode == 1 and "table `lake` cannot be read: " in said
    assert "   0: " not in said and "with_backtrace" not in said, said
