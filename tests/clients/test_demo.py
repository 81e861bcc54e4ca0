"""`bowshot demo`: data, queries, figures, and the server that stays."""

import re
import socket
import subprocess

import pyarrow.flight as flight

from server import Process, binaries, wait_until

ADDRESSES = ["--flight", "127.0.0.1:0", "--http", "off"]


def demo(folder, *arguments):
    addresses = [] if "--flight" in arguments else ADDRESSES
    command = [str(binaries() / "bowshot"), "demo", "--scale", "0.01", "--data-dir", str(folder), *addresses, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_figures_and_data_made_once(tmp_path):
    first = demo(tmp_path / "data", "--exit")
    assert first.returncode == 0, first.stderr
    assert re.search(r"^lineitem, all of it +1 +60,175 .* s +[\d,]+ +\d+\.\d\d$", first.stdout, re.MULTILINE)
    assert re.search(r"^orders join lineitem +1 +60,175 ", first.stdout, re.MULTILINE)
    assert re.search(r"^peak memory \d+ MB", first.stdout, re.MULTILINE)
    assert "making TPC-H data" in first.stderr
    second = demo(tmp_path / "data", "--exit")
    assert second.returncode == 0 and "making TPC-H data" not in second.stderr


def test_a_taken_port_is_told_before_data_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = demo(tmp_path / "data", "--exit", "--flight", f"127.0.0.1:{taken.getsockname()[1]}", "--http", "off")
    assert run.returncode == 1 and "another program may use the port" in run.stderr
    assert "making TPC-H data" not in run.stderr and not (tmp_path / "data").exists()


def test_the_server_stays_with_code_to_paste(tmp_path):
    arguments = ["demo", "--scale", "0.01", "--data-dir", tmp_path / "data", *ADDRESSES]
    with Process(binaries() / "bowshot", arguments) as running:
        with flight.connect(running.ports["flight"].replace("grpc://", "grpc+tcp://")) as client:
            table = client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM lineitem")).read_all()
        assert table.to_pydict() == {"n": [60175]}
        wait_until(lambda: "bowshot.connect(" in running.log(), "the code for the Python package")


def test_nodes_are_there_when_it_is_ready(tmp_path):
    arguments = ["demo", "--scale", "0.01", "--nodes", "3", "--data-dir", tmp_path / "data", *ADDRESSES]
    with Process(binaries() / "bowshot", arguments) as running:
        with flight.connect(running.ports["flight"].replace("grpc://", "grpc+tcp://")) as client:
            sql = b"SELECT count(*) AS n FROM system.nodes WHERE takes_work"
            assert client.do_get(flight.Ticket(sql)).read_all()["n"].to_pylist() == [3]
