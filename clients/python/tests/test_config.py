"""Addresses, profiles, users, TLS, the server of one's own, and the magic of notebooks."""

import pathlib
import subprocess
import sys

import pytest
from conftest import wait_for

import bowshot
from bowshot import _config


@pytest.mark.parametrize(
    ("uri", "location", "more"),
    [
        ("grpc://host:1", "grpc+tcp://host:1", {}),
        ("grpc+tcp://host", "grpc+tcp://host:50051", {}),
        ("host:1", "grpc+tcp://host:1", {}),
        ("host", "grpc+tcp://host:50051", {}),
        ("[::1]:7", "grpc+tcp://[::1]:7", {}),
        ("grpc+tls://host", "grpc+tls://host:50051", {}),
        ("bowshot://[::1]:7", "grpc+tcp://[::1]:7", {}),
        ("bowshot+tls://a%40b:p%2Fw@host/cat/sch", "grpc+tls://host:50051", {"user": "a@b", "password": "p/w"}),
        ("bowshot://host?tls=true&endpoints=4&autocommit=yes", "grpc+tls://host:50051", {"autocommit": True}),
        ("bowshot://host?token=abc&timeout=2.5", "grpc+tcp://host:50051", {"token": "abc", "timeout": 2.5}),
    ],
)
def test_addresses(uri, location, more):
    config = _config.configure(uri)
    assert config.location == location
    for name, value in more.items():
        assert getattr(config, name) == value


def test_options_of_an_address():
    config = _config.configure("bowshot://host/cat/sch?endpoints=4", options={"endpoints": "8", "time_zone": "+01:00"})
    assert config.options == {"catalog": "cat", "schema": "sch", "endpoints": "8", "time_zone": "+01:00"}


@pytest.mark.parametrize(
    "uri",
    ["http://host", "", "profil:x", "grpc://", "grpc://host:99999", "grpc://host/a/b/c", "grpc://host?tls=maybe", "profile:x"],
)
def test_addresses_that_are_none(uri, monkeypatch, tmp_path):
    monkeypatch.setenv("BOWSHOT_PROFILES", str(tmp_path / "none.toml"))
    with pytest.raises(bowshot.InterfaceError):
        _config.configure(uri)


def test_settings_that_contradict_each_other(tmp_path):
    for arguments in (
        {"user": "a", "token": "b"},
        {"tls_ca": b"x"},
        {"tls_ca": str(tmp_path / "none.pem"), "tls": True},
        {"nonsense": 1},
        {"host": "x"},
    ):
        with pytest.raises(bowshot.InterfaceError):
            _config.configure("grpc://host", **arguments)


def test_secrets_are_not_shown():
    text = repr(_config.configure("bowshot://u:geheim@host")) + repr(_config.configure("grpc://host", token="geheim"))
    assert "geheim" not in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no TOML in the library")
def test_profiles(shared, monkeypatch, tmp_path):
    path = tmp_path / "profiles.toml"
    path.write_text(
        f'[here]\nuri = "{shared.uri}"\nautocommit = true\n[here.options]\ntime_zone = "+02:00"\n'
        '[secret]\nuri = "grpc://h"\nuser = "u"\npassword = "p"\n'
        '[env]\nuri = "grpc://h"\ntoken_env = "A_TOKEN"\n[bare]\nuser = "x"\n'
    )
    monkeypatch.setenv("BOWSHOT_PROFILES", str(path))
    with bowshot.connect("profile:here") as connection:
        assert connection.autocommit
        assert connection.options["time_zone"] == "+02:00"
    with bowshot.connect("profile:here", options={"endpoints": "2"}, autocommit=False) as connection:
        assert not connection.autocommit
        assert (connection.options["time_zone"], connection.options["endpoints"]) == ("+02:00", "2")
    path.chmod(0o644)
    with pytest.raises(bowshot.InterfaceError, match="chmod 600"):
        _config.configure("profile:secret")
    path.chmod(0o600)
    assert _config.configure("profile:secret").password == "p"
    config = _config.configure("profile:secret", token="t")
    assert (config.user, config.token) == (None, "t")
    with pytest.raises(bowshot.InterfaceError, match="A_TOKEN"):
        _config.configure("profile:env")
    monkeypatch.setenv("A_TOKEN", "t")
    assert _config.configure("profile:env").token == "t"
    for name, words in (("bare", "no `uri`"), ("nope", "there are: bare")):
        with pytest.raises(bowshot.InterfaceError, match=words):
            _config.configure(f"profile:{name}")


def test_a_server_ends_with_its_process():
    code = "import bowshot, os; s = bowshot.server(); print(s.process.pid, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    wait_for(lambda: ended(pid))


def ended(pid):
    """Whether a process is gone, or waits for somebody to hear of its end."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return state.rsplit(")", 1)[1].split()[0] == "Z"


def test_a_server_that_cannot_start(tmp_path, monkeypatch):
    with pytest.raises(bowshot.OperationalError, match="nonsense"):
        bowshot.server(settings={"nonsense": 1})
    monkeypatch.setenv("BOWSHOT_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(bowshot.InterfaceError, match="BOWSHOT_PROGRAM"):
        bowshot.server()
    monkeypatch.delenv("BOWSHOT_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bowshot.InterfaceError, match="path"):
        bowshot.server()


def test_a_server_is_stopped_twice():
    server = bowshot.server()
    assert server.running
    server.stop()
    server.stop()
    assert not server.running
    assert "stopped" in repr(server)


def test_magic(shared, tmp_path):
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell()
    try:
        shell.run_line_magic("load_ext", "bowshot")
        shell.run_line_magic("sql", shared.uri)
        assert shell.run_line_magic("sql", "SELECT 1 AS a").arrow().to_pydict() == {"a": [1]}
        shell.user_ns["wanted"] = 3
        shell.run_cell_magic("sql", "found <<", "SELECT name FROM nation\nWHERE id = :wanted")
        assert list(shell.user_ns["found"]) == [("CANADA",)]
        assert "<td>CANADA</td>" in shell.run_cell_magic("sql", "", "SELECT name FROM nation WHERE id = 3")._repr_html_()
        assert shell.run_line_magic("sql", "CREATE TEMPORARY TABLE magic AS SELECT 1 AS a") in (1, 0, -1)
        with pytest.raises(bowshot.InterfaceError, match="nothing"):
            shell.run_line_magic("sql", "SELECT :nothing")
        shell.user_ns["other"] = shared.connect(autocommit=True)
        shell.run_line_magic("sql", "other")
        assert shell.run_line_magic("sql", "SELECT 2 AS a").arrow().to_pydict() == {"a": [2]}
        shell.user_ns["other"].close()
    finally:
        shell.history_manager.end_session() if getattr(shell, "history_manager", None) else None
