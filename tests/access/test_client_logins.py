"""People who log in at an identity provider with the package for Python: in a browser, by a code, from what was kept."""

import json
import pathlib
import pickle
import stat
import sys
import time

import pytest
from logins import CLIENT, Browser, Provider
from test_identity import serving

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python/src"))

import bowshot  # noqa: E402
from bowshot import _oidc  # noqa: E402


@pytest.fixture(scope="module")
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory, provider):
    with serving(tmp_path_factory.mktemp("logins"), provider, setup=["CREATE ROLE analyst", "CREATE ROLE europe", "CREATE USER ada PASSWORD 'x y z'"]) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path, provider):
    """A machine on which nobody has logged in, and a provider at which somebody may."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_oidc, "_logins", {})
    provider.person, provider.seconds, provider.pending = "ann", 600, 0
    provider.said.clear()
    provider.refreshes.clear()


@pytest.fixture
def browser(monkeypatch):
    browser = Browser()
    monkeypatch.setattr(_oidc.webbrowser, "open", browser.open)
    return browser


def connect(made, provider, flow, **more):
    uri = made.server.grpc_tcp
    return bowshot.connect(uri, oidc_issuer=provider.name, oidc_client_id=CLIENT, oidc_flow=flow, autocommit=True, **more)


def who(connection):
    return connection.execute("SELECT current_user").fetchone()[0]


def kept(tmp_path):
    return list((tmp_path / "bowshot" / "logins").glob("*"))


@pytest.mark.parametrize("token", ["access_token", "id_token"])
def test_in_a_browser(made, provider, browser, token):
    with connect(made, provider, "browser", oidc_token=token) as connection:
        assert who(connection) == "ann"
    assert len(browser.opened) == 1 and "code_challenge=" in browser.opened[0]
    assert [form["grant_type"] for form in provider.said] == ["authorization_code"]


def test_by_a_code(made, provider, capfd):
    provider.pending = 2
    with connect(made, provider, "device") as connection:
        assert who(connection) == "ann"
    assert "ABCD-EFGH" in capfd.readouterr().err
    assert len(provider.said) == 3


def test_a_login_is_kept_for_the_next_process(made, provider, browser, tmp_path, monkeypatch):
    connect(made, provider, "browser").close()
    (file,) = kept(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(_oidc, "_logins", {})
    with connect(made, provider, "cached") as connection:
        assert who(connection) == "ann"
    assert len(browser.opened) == 1 and len(provider.said) == 1
    # Others could have written it.
    file.chmod(0o644)
    monkeypatch.setattr(_oidc, "_logins", {})
    with pytest.raises(bowshot.UnauthenticatedError, match="nobody is logged in"):
        connect(made, provider, "cached")


def test_without_keeping(made, provider, browser, tmp_path):
    connect(made, provider, "browser", oidc_cache=False).close()
    assert kept(tmp_path) == []


def test_a_token_is_renewed_while_the_connection_is_open(made, provider, browser, monkeypatch):
    monkeypatch.setattr(_oidc, "_AHEAD_S", 5.0)
    provider.seconds = 6
    with connect(made, provider, "browser") as connection:
        for _ in range(4):
            assert who(connection) == "ann"
            time.sleep(1.1)
        assert connection.sql("SELECT 1 AS one").arrow().num_rows == 1
    assert len(browser.opened) == 1
    assert [form["grant_type"] for form in provider.said].count("refresh_token") >= 2


def test_what_was_taken_back_is_a_new_login(made, provider, browser, monkeypatch):
    monkeypatch.setattr(_oidc, "_AHEAD_S", 3600.0)
    connect(made, provider, "browser").close()
    opened = len(browser.opened)
    provider.refreshes.clear()
    with connect(made, provider, "browser") as connection:
        assert who(connection) == "ann"
    assert len(browser.opened) > opened


@pytest.mark.parametrize("flow", ["browser", "device"])
def test_who_does_not_agree_is_told_so(made, provider, browser, flow, tmp_path):
    provider.person = None
    with pytest.raises(bowshot.UnauthenticatedError, match="access_denied.*nobody agrees"):
        connect(made, provider, flow)
    assert kept(tmp_path) == []


def test_partitions_carry_a_token_and_no_login(made, provider, browser):
    with connect(made, provider, "browser") as connection:
        (part,) = connection.partitions("SELECT 7 AS seven", count=1)
        copied = pickle.loads(pickle.dumps(part))
    assert copied.config.oidc is None and copied.arrow().to_pylist() == [{"seven": 7}]
    assert copied.config.token not in repr(copied)


def test_what_is_wrong_is_said_before_anybody_is_asked(made, provider, monkeypatch):
    uri = made.server.grpc_tcp
    for arguments, words in [
        ({"oidc_issuer": "http://example.org", "oidc_client_id": "x"}, "https"),
        ({"oidc_issuer": provider.name}, "oidc_client_id"),
        ({"oidc_issuer": provider.name, "oidc_client_id": "x", "oidc_flow": "carrier pigeon"}, "oidc_flow"),
        ({"oidc_issuer": provider.name, "oidc_client_id": "x", "oidc_token": "refresh_token"}, "oidc_token"),
        ({"oidc_issuer": provider.name, "oidc_client_id": "x", "token": "y"}, "several"),
    ]:
        with pytest.raises(bowshot.InterfaceError, match=words):
            bowshot.connect(uri, **arguments)
    with pytest.raises(bowshot.UnauthenticatedError, match="nobody is logged in"):
        connect(made, provider, "cached")
    with pytest.raises(bowshot.UnauthenticatedError, match="otherwise than"):
        bowshot.connect(uri, oidc_issuer=provider.name.replace("127.0.0.1", "localhost"), oidc_client_id=CLIENT)
    provider.failing = True
    try:
        with pytest.raises(bowshot.Error) as caught:
            connect(made, provider, "device")
    finally:
        provider.failing = False
    assert "503" in str(caught.value)


@pytest.mark.parametrize("wrong", ["soon", [], {}, -1, None, "1e999", True])
def test_numbers_that_are_none_are_those_of_the_standard(made, provider, monkeypatch, wrong):
    """Also a token whose end nobody tells: it is opaque to the client, and the provider says nonsense."""
    pages, device, token = provider.pages, "/realm/device_authorization_endpoint", "/realm/token_endpoint"
    give, ask = pages[token], pages[device]
    # Nobody waits five seconds here.
    monkeypatch.setattr(_oidc.time, "sleep", lambda seconds: None)
    monkeypatch.setitem(pages, device, lambda *said: changed(ask(*said), interval=wrong, expires_in=wrong))
    monkeypatch.setitem(pages, token, lambda *said: changed(give(*said), expires_in=wrong, refresh_token=wrong, id_token=wrong))
    with connect(made, provider, "device") as connection:
        assert who(connection) == "ann"


def changed(answer, **values):
    status, headers, body = answer
    return status, headers, json.dumps({**json.loads(body), **values}).encode()


def test_a_provider_that_redirects_a_form_gets_nothing(made, provider, monkeypatch):
    path = "/realm/token_endpoint"
    page = provider.pages[path]
    monkeypatch.setitem(provider.pages, path, lambda *_: (302, {"location": "http://127.0.0.1:1/"}, b""))
    with pytest.raises(bowshot.UnauthenticatedError, match="302"):
        connect(made, provider, "device")
    assert page and provider.said == []
