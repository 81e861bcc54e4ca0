"""`bowshot doctor`: a line for each thing that is wrong with a set-up, and what to do."""

import json
import os
import pathlib
import socket
import time

import pytest

from certificates import key_pair
from program import bowshot
from server import Server, hash_password

ADDRESSES = ["--flight", "127.0.0.1:0", "--http", "127.0.0.1:0"]


def doctor(*arguments, code=0, environment=None):
    """The lines by what was looked at; where several are of one thing, the worst."""
    found, out, err = bowshot("doctor", "--json", *ADDRESSES, *arguments, environment=environment)
    assert found == code, f"exit code {found}\n{out}{err}"
    rank = {"ok": 0, "warn": 1, "fail": 2}
    checks = {}
    for line in json.loads(out)["checks"]:
        assert (line["remedy"] is None) == (line["state"] == "ok"), line
        if line["check"] not in checks or rank[line["state"]] > rank[checks[line["check"]]["state"]]:
            checks[line["check"]] = line
    return checks


def said(checks, name, state, words):
    line = checks[name]
    assert line["state"] == state and words in line["finding"], line
    return line


def tls(pair):
    return ["--tls-certificate", pair[0], "--tls-key", pair[1]]


def users(folder, *names, scram=True, admin=True):
    path = folder / "users.toml"
    text = ""
    for name in names:
        hashed = hash_password(name)
        hashed = hashed if scram else hashed.split(" ")[0]
        text += f'[[users]]\nname = "{name}"\npassword_hash = "{hashed}"\nadmin = {str(admin).lower()}\n'
    path.write_text(text)
    path.chmod(0o600)
    return ["--users-file", path]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def test_a_good_set_up_has_nothing_to_mend(tmp_path, data):
    authority = key_pair(tmp_path, "authority", is_authority=True)
    pair = key_pair(tmp_path, "server", issuer=authority)
    pair[0].write_bytes(pair[0].read_bytes() + authority[0].read_bytes())
    (tmp_path / "exchange").mkdir()
    checks = doctor(
        "--data", data, "--pg", "127.0.0.1:0", *tls(pair), *users(tmp_path, "ada"), "--set", f"storage.exchange_folder={tmp_path / 'exchange'}"
    )  # fmt: skip
    assert {name for name, line in checks.items() if line["state"] == "fail"} == set()
    for name in ("version", "configuration", "reach", "tls", "tls-chain", "users", "scram", "data", "catalog", "exchange", "clock"):
        assert checks[name]["state"] == "ok", checks[name]
    code, out, _ = bowshot("doctor", *ADDRESSES, "--data", data)
    assert code == 0 and "ok    data" in out and out.splitlines()[-1].endswith("failures"), out
    assert list(data.iterdir()) == [], "what it tried is gone"


def test_a_configuration_that_is_not_understood(tmp_path):
    (tmp_path / "bowshot.toml").write_text("[limits]\nmax_sesions = 3\n")
    checks = doctor("--config", tmp_path / "bowshot.toml", code=1)
    line = said(checks, "configuration", "fail", "unknown key `limits.max_sesions`")
    assert "limits.max_sessions" in line["remedy"]
    said(doctor("--config", tmp_path / "none.toml", code=1), "configuration", "fail", "cannot read")


def test_a_configuration_with_secrets_that_others_read(tmp_path):
    path = tmp_path / "bowshot.toml"
    path.write_text('[cluster]\nlisten = "127.0.0.1:0"\nsecret = "0123456789abcdef"\n')
    path.chmod(0o644)
    line = said(doctor("--data", "memory", "--config", path), "configuration", "warn", "other users")
    assert "chmod 640" in line["remedy"]
    path.chmod(0o600)
    checks = doctor("--data", "memory", "--config", path)
    assert checks["configuration"]["state"] == checks["cluster"]["state"] == "ok"


def test_a_port_that_is_taken(data):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = said(doctor("--data", data, "--pg", address, code=1), "port-pg", "fail", "cannot be used")
        assert "--pg" in line["remedy"]
    said(doctor("--data", data, "--mysql", "nowhere.invalid:1", code=1), "port-mysql", "fail", "nowhere.invalid")


def test_who_is_let_in(tmp_path, data):
    open_to_all = ["--data", data, "--pg", "0.0.0.0:0"]
    said(doctor(*open_to_all, code=1), "port-pg", "fail", "reaches beyond this machine")
    said(doctor(*open_to_all, "--insecure"), "reach", "warn", "everybody")
    said(doctor(*open_to_all, *users(tmp_path, "ada")), "reach", "warn", "without encryption")
    checks = doctor(*open_to_all, *users(tmp_path, "ada"), "--set", "pg_cleartext=true")
    said(checks, "cleartext", "warn", "`--pg` accepts unencrypted passwords")


def test_users_that_cannot_all_log_in(tmp_path, data):
    with_pg = ["--data", data, "--pg", "127.0.0.1:0"]
    line = said(doctor(*with_pg, *users(tmp_path, "ada", "bob", scram=False)), "scram", "warn", "`ada`, `bob`")
    assert "hash-password" in line["remedy"]
    said(doctor(*with_pg, *users(tmp_path, "ada", admin=False)), "users", "warn", "no user is an admin")
    arguments = users(tmp_path, "ada")
    arguments[1].chmod(0o644)
    said(doctor(*with_pg, *arguments), "users-file", "warn", "other users")
    arguments[1].write_text('[[users]]\nname = "ada"\npassword_hash = "none"\n')
    said(doctor(*with_pg, *arguments, code=1), "users", "fail", "ada")


def test_certificates(tmp_path, data):
    ok = ["--data", data]
    authority = key_pair(tmp_path, "authority", is_authority=True)
    for name, days, state, words in (("gone", -3, "fail", "has expired"), ("soon", 5, "warn", "expires in 4 days")):
        pair = key_pair(tmp_path, name, days=days, issuer=authority)
        pair[0].write_bytes(pair[0].read_bytes() + authority[0].read_bytes())
        line = said(doctor(*ok, *tls(pair), code=int(state == "fail")), "tls-chain", state, words)
        assert "replace it" in line["remedy"]
    early = key_pair(tmp_path, "early", issuer=authority, starts=3)
    said(doctor(*ok, *tls(early), code=1), "tls-chain", "fail", "not valid yet")
    one, other = key_pair(tmp_path, "one", issuer=authority), key_pair(tmp_path, "other")
    said(doctor(*ok, *tls((one[0], other[1])), code=1), "tls", "fail", "not the key of")
    said(doctor(*ok, *tls((tmp_path / "none", other[1])), code=1), "tls", "fail", "cannot be read")
    said(doctor(*ok, *tls(one)), "tls-chain", "warn", "only the server's certificate")
    one[0].write_bytes(one[0].read_bytes() + other[0].read_bytes())
    said(doctor(*ok, *tls(one), code=1), "tls-chain", "fail", "did not sign")
    said(doctor(*ok, *tls(authority)), "tls-chain", "warn", "a CA certificate")
    other[1].chmod(0o644)
    said(doctor(*ok, *tls(other)), "tls-key", "warn", "private key")


def test_the_data_folder(tmp_path, data):
    said(doctor(), "data", "warn", "no data folder is set")
    said(doctor("--data", "memory"), "data", "ok", "memory")
    (tmp_path / "file").write_text("")
    said(doctor("--data", tmp_path / "file", code=1), "data", "fail", "is not a folder")
    data.chmod(0o755)
    said(doctor("--data", data), "data-rights", "warn", "can read")
    data.chmod(0o700)
    memory = pathlib.Path("/dev/shm")
    said(doctor("--data", memory / "bowshot-doctor", code=1), "data-disk", "fail", "memory file system")
    (data / "tables" / "x").mkdir(parents=True)
    said(doctor("--data", data, code=1), "catalog", "fail", "no catalog")
    (data / "catalog.sqlite").write_bytes(b"x" * 5_000)
    said(doctor("--data", data, code=1), "catalog", "fail", "not a database")


def test_a_folder_that_cannot_be_written_to(tmp_path, data):
    """Not even by root: a file system without files of its own."""
    said(doctor("--data", "/proc/bowshot", code=1), "data", "fail", "cannot be written to")
    said(doctor("--data", data, "--set", "engine.spill_folder=/proc/bowshot", code=1), "spill", "fail", "cannot be written to")
    said(doctor("--data", data, "--set", "audit.file=/proc/bowshot/audit", code=1), "audit", "fail", "cannot be written")


def test_folders_for_other_things(tmp_path, data):
    exchange = lambda path: ["--data", data, "--set", f"storage.exchange_folder={path}"]
    said(doctor(*exchange(tmp_path / "none"), code=1), "exchange", "fail", "not a folder")
    said(doctor(*exchange(data / "tables"), code=1), "exchange", "fail", "lies in")
    said(doctor("--data", data, "--set", "engine.spill_folder=/dev/shm"), "spill", "warn", "memory file system")
    said(doctor("--data", data, "--set", "engine.spill_bytes=9000TiB"), "spill", "warn", "9216000.0 GiB")
    said(doctor("--data", data, tmp_path / "gone.parquet", code=1), "sources", "fail", "does not exist")


def test_a_server_that_runs_is_known(tmp_path, data):
    with Server(data=data) as server:
        checks = doctor("--data", data, "--pg", f"127.0.0.1:{server.port}")
        said(checks, "data", "ok", "a server is using")
        said(checks, "port-pg", "ok", "by the running server")


def test_the_machine(data):
    said(doctor("--data", data, "--set", "limits.max_connections=100000000"), "open-files", "warn", "add up to 1000")
    said(doctor("--data", data, "--set", "limits.memory_bytes=9000TiB", code=1), "memory", "fail", "`limits.memory_bytes`")
    said(doctor("--data", data, "--set", "limits.query_memory_bytes=9000TiB"), "memory", "warn", "may take more")
    said(doctor("--data", data, "--set", "engine.threads=9999"), "processors", "warn", "9999")


def test_a_clock_that_went_back(data):
    with Server(data=data):
        pass
    ahead = time.time() + 86_400
    os.utime(data / "catalog.sqlite", (ahead, ahead))
    said(doctor("--data", data, code=1), "clock", "fail", "in the future")


def test_nodes_and_collectors(tmp_path, data):
    node = ["--data", data, "--cluster", "127.0.0.1:0"]
    said(doctor(*node, code=1), "configuration", "fail", "neither certificates nor a shared secret")
    cluster = tmp_path / "cluster"
    code, _, err = bowshot("cluster", "init", "--folder", cluster, "--node", "one", "--address", "127.0.0.1")
    assert code == 0, err
    files = {path.name: path for path in cluster.rglob("*") if path.is_file()}
    (authority,) = [path for path in cluster.iterdir() if path.suffix == ".pem"]
    (pem,) = (cluster / "one").glob("*.pem") if len(list((cluster / "one").glob("*.pem"))) == 1 else [files["node.pem"]]
    (key,) = (cluster / "one").glob("*.key")
    proofs = ["--set", f"cluster.tls.authority={authority}", "--set", f"cluster.tls.certificate={pem}", "--set", f"cluster.tls.key={key}"]
    said(doctor(*node, *proofs), "cluster", "ok", "issued the node's certificate")
    key.write_text("none")
    said(doctor(*node, *proofs, code=1), "cluster", "fail", "")
    traced = lambda address: ["--data", data, "--set", f"traces.endpoint={address}"]
    with socket.create_server(("127.0.0.1", 0)) as collector:
        address = f"127.0.0.1:{collector.getsockname()[1]}"
        said(doctor(*traced(f"http://{address}")), "traces", "ok", "listens")
    said(doctor(*traced(f"http://{address}")), "traces", "warn", "refused")
    said(doctor(*traced("grpc://127.0.0.1:4317"), code=1), "configuration", "fail", "traces.endpoint")
