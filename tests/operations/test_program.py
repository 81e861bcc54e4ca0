"""The program as users start it: exit codes (0 good, 1 failed, 2 wrong usage), what it says where, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from program import bowshot
from server import BUSY_FACTOR, Server, binaries, clean_environment, wait_until

SERVE = ["serve", "--flight", "127.0.0.1:0", "--http", "off"]
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000) AS a(x), generate_series(1, 100000000) AS b(y) WHERE a.x + b.y = 0"
FILES = {
    "orders.csv": "id,customer,amount\n1,ada,10.5\n2,bob,20.25\n3,ada,30.0\n4,,40.0\n",
    "people.json": '{"name": "ada", "age": 36}\n{"name": "bob", "age": 41}\n',
    "b.toml": "[limits]\nmax_sesions = 3\n",
    "none.toml": "",
    "shown.toml": "[[users]]\nname = 'ada'\npassword = 'lovelace'\n",
    "plain.toml": "[[users]]\nname = 'ada'\npassword_hash = 'lovelace'\n",
    "half.toml": "[[users]\n",
    "bad.parquet": "this is no Parquet file",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def query(server, sql):
    with flight.connect(server.grpc_tcp) as client:
        return client.do_get(flight.Ticket(sql.encode())).read_all().to_pylist()


# Arguments, exit code, and the whole of stderr or its beginning.
REFUSED = [
    (["serv"], 2, ""),
    (["serve", "--fligth", "x"], 2, ""),
    (["check", "--flight"], 2, ""),
    (["sql", "--format", "none", "SELECT 1"], 2, ""),
    ([], 2, ""),
    (["serve", "--flight", "0.0.0.0:0", "--http", "off"], 2,
     "error: `--flight 0.0.0.0:0` reaches beyond this machine, and no users are configured\n"
     "hint: configure users (`bowshot hash-password`), listen on 127.0.0.1, or use `--insecure`\n"),
    (["check", "--flight", "127.0.0.1:0", "--http", "[::]:0"], 2, "error: `--http [::]:0` reaches beyond this machine"),
    *(([*command, "missing.parquet"], 2, "error: `missing.parquet` does not exist\nhint: check the path; relative paths start at")
      for command in (["check"], SERVE)),
    (["serve", "--config", "b.toml"], 2,
     "error: unknown key `limits.max_sesions` in `b.toml`\nhint: did you mean `limits.max_sessions`?\n"),
    (["serve", "--config", "missing.toml"], 2,
     "error: cannot read the configuration file `missing.toml`: No such file or directory (os error 2)\n"
     "hint: check the path given by `--config` or `BOWSHOT_CONFIG`\n"),
    (["check", "--log", "bowshot=loud"], 2, "error: the log filter `bowshot=loud` cannot be used"),
    (["serve", "--set", "storage.exchange_folder=none"], 2,
     "error: the exchange folder `none` cannot be used: No such file or directory (os error 2)\n"
     "hint: make the folder, or correct `storage.exchange_folder`\n"),
    ([*SERVE, "--ports-file", "no/such/ports.json"], 1, "error: cannot write the ports file `no/such/ports.json`"),
    (["hash-password"], 2, "error: a password has 1 to 1024 bytes\nhint: choose a password of 1 to 1024 bytes without line breaks\n"),
    *(([*SERVE, "--users-file", f"{name}.toml"], 2, f"error: .*{words}")
      for name, words in [("none", "lists no users"), ("shown", "unknown field `password`"), ("half", "line 1"),
                          ("plain", "password hash of user `ada`"), ("gone", "cannot read the users file")]),
]  # fmt: skip


@pytest.mark.parametrize("arguments, code, said", REFUSED, ids=[" ".join(case[0]) or "nothing" for case in REFUSED])
def test_what_is_refused(folder, arguments, code, said):
    ended, out, err = bowshot(*arguments, folder=folder)
    assert (ended, out) == (code, "") and err
    if said.startswith("error: .*"):
        assert re.match(said, err, re.DOTALL) and "lovelace" not in err
    else:
        assert err == said if said.endswith("\n") else err.startswith(said)


def test_a_taken_port_is_a_failure_and_no_wrong_usage():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, _, err = bowshot("serve", "--flight", address, "--http", "off")
    assert code == 1 and err.startswith(f"error: cannot listen on `{address}` (`--flight`); another program may use the port"), err


def test_words_for_people_go_to_stdout(folder):
    code, out, _ = bowshot("--version")
    assert code == 0 and re.fullmatch(r"bowshot \d+\.\d+\.\d+\n", out)
    code, out, _ = bowshot("hash-password", words="lovelace\n")
    assert code == 0 and out.startswith("$argon2id$") and out.endswith("\n")
    _, help, _ = bowshot("serve", "--help")
    _, settings, _ = bowshot("docs", "settings")
    flags = re.findall(r"`(--[^ `]+)`", settings)
    assert flags and [flag for flag in flags if flag not in help] == []


CHECKED = """\
table   format  files  size  from
orders  csv         1  61 B  orders.csv
who     json        1  54 B  people.json

table `orders` is read as: delim=',', header=true (the first line has other types)

table `who` is read as: one object on each line

Flight SQL  127.0.0.1:50051
HTTP        127.0.0.1:8080
PostgreSQL  off
MySQL       off
users       none: every caller is anonymous
"""


def test_check_prints_what_would_be_served(folder):
    assert bowshot("check", "orders.csv", "who=people.json", folder=folder)[:2] == (0, CHECKED)
    code, out, err = bowshot("check", "orders.csv", "bad.parquet", folder=folder)
    assert (code, err) == (1, "error: one table cannot be read\n")
    assert "bad     broken               bad.parquet\n" in out
    assert "table `bad` cannot be read: `bad.parquet` cannot be read: Parquet error: Invalid Parquet file. Corrupt footer" in out


def test_sources_and_limits_come_from_the_file(folder):
    (folder / "c.toml").write_text("paths = ['orders.csv', 'who=people.json']\n[limits]\nmax_sessions = 1\n")
    with Server(arguments=["--config", folder / "c.toml"]) as server, flight.connect(server.grpc_tcp) as client:
        assert client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM who")).read_all().to_pylist() == [{"n": 2}]
        with pytest.raises((pa.ArrowException, flight.FlightError), match="sessions"):
            query(server, "SELECT 1")


def test_the_json_log_is_json_from_the_first_line(folder):
    with Server(folder / "orders.csv", arguments=["--log-format", "json"]) as server:
        # It is ready before it says so.
        wait_until(lambda: '"ready"' in server.log(), "the log says that it is ready")
        messages = [json.loads(line)["fields"]["message"] for line in server.log().splitlines()]
    assert {"table served", "ready"} <= set(messages)


def test_a_data_folder_is_made_only_when_named_and_has_one_user(folder):
    before = sorted(os.listdir(folder))
    with Server(folder / "orders.csv"):
        pass
    assert sorted(os.listdir(folder)) == before
    with Server(data=folder / "store"):
        assert (folder / "store").is_dir()
        code, _, err = bowshot(*SERVE, "--data", "store", folder=folder)
        assert (code, err) == (1, "error: another server uses the data folder `store`\n")


def test_the_ports_file_is_whole_and_goes_with_the_server(tmp_path):
    ports = tmp_path / "ports.json"
    ports.write_text('{"flight": "left by a server that was killed"')
    command = [binaries() / "bowshot", *SERVE, "--ports-file", ports]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=clean_environment()) as process:
        try:
            wait_until(lambda: "pid" in ports.read_text(), "the file is written")
            told = json.loads(ports.read_text())
        finally:
            process.terminate()
    assert told["pid"] == process.pid and told["flight"].startswith("grpc://127.0.0.1:") and "http" not in told
    assert process.returncode == 0 and not ports.exists()


def test_a_file_that_comes_under_the_name_of_a_table_is_hidden_by_it(folder):
    with Server(folder) as server:
        query(server, "CREATE TABLE late AS SELECT 7 AS mine")
        for name in ("late", "later"):
            (folder / "new").write_text("x\n1\n")
            (folder / "new").rename(folder / f"{name}.csv")

        def later():
            try:
                return query(server, "SELECT x FROM later") == [{"x": 1}]
            except pa.ArrowKeyError:
                return False

        wait_until(later, "the file that came last is a table")
        assert query(server, "SELECT mine FROM late") == [{"mine": 7}]
        assert query(server, "SELECT count(*) AS n FROM information_schema.tables WHERE table_name = 'late'") == [{"n": 1}]


def test_an_idle_server_ends_at_once():
    server = Server()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60 * BUSY_FACTOR) == 0
    assert "draining" in server.kill()


@pytest.mark.parametrize("timeout, signals, said", [("100ms", 1, "error: the drain timeout is over"), ("1h", 2, "second SIGTERM")])
def test_a_query_that_does_not_end_is_cut_off(timeout, signals, said):
    server = Server(arguments=["--set", f"limits.drain_timeout={timeout}"])
    told = []

    def ask():
        try:
            query(server, ENDLESS)
        except (pa.ArrowException, flight.FlightError) as error:
            told.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: server.metrics()["bowshot_running_queries"], "the query runs")
    for _ in range(signals):
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "draining" in server.log(), "it drains")
    assert server.process.wait(60 * BUSY_FACTOR) == 1
    asking.join()
    assert told and said in server.kill()
