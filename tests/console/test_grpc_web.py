"""A page of another origin that speaks gRPC-Web: what Chromium lets it do, and what the server does."""

import functools
import http.server
import pathlib
import threading

import pytest
from server import Server, hash_password

PASSWORD = "a password"
# What a page does: frames a message of Flight, sends it, and reads frames until the trailers.
SCRIPT = (pathlib.Path(__file__).parent / "grpc_web_page.js").read_text()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Two origins that are not the server's."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "index.html").write_text("<!doctype html><title>a page</title>")
    handler = functools.partial(Quiet, directory=str(folder))
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
    for one in servers:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    yield [f"http://127.0.0.1:{one.server_port}" for one in servers]
    for one in servers:
        one.shutdown()
        one.server_close()


@pytest.fixture(scope="module")
def served(pages, tmp_path_factory):
    users = pathlib.Path(tmp_path_factory.mktemp("users")) / "users.toml"
    users.write_text(f'[[users]]\nname = "ada"\npassword_hash = "{hash_password(PASSWORD)}"\n')
    with Server(arguments=["--users-file", users, "--set", f"http_origins={pages[0]}"]) as server:
        yield server.http


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def ask(page, origin, *arguments):
    page.goto(origin + "/index.html")
    return page.evaluate(SCRIPT, list(arguments))


ADA = {"authorization": "Basic YWRhOmEgcGFzc3dvcmQ=", "bowshot-time-zone": "+01:00"}


@pytest.mark.parametrize("form", ["application/grpc-web+proto", "application/grpc-web-text+proto"])
def test_a_listed_page_reads_rows(page, pages, served, form):
    sql = "SELECT value, value * 2 FROM generate_series(1, 100000) AS s(value)"
    status, code, session, messages, size = ask(page, pages[0], served, sql, form, ADA)
    assert (status, code, session) == (200, "0", True)
    assert messages >= 2 and size > 1_600_000
    status, code, told = ask(page, pages[0], served, "SELECT * FROM nowhere", form, ADA)
    assert (status, code) == (200, "5") and "nowhere" in told


def test_a_wrong_password_is_a_status_that_the_page_reads(page, pages, served):
    wrong = {"authorization": "Basic YWRhOndyb25n"}
    status, code, _ = ask(page, pages[0], served, "SELECT 1", "application/grpc-web+proto", wrong)
    assert (status, code) == (200, "16")


def test_a_page_that_is_not_listed_reads_nothing(page, pages, served):
    assert ask(page, pages[1], served, "SELECT 1", "application/grpc-web+proto", ADA) == ["TypeError: Failed to fetch"]
    # Without the headers that need a preflight it gets through to a refusal, which it may not read.
    assert ask(page, pages[1], served, "SELECT 1", "text/plain", {}) == ["TypeError: Failed to fetch"]


def test_headers_that_nobody_has_allowed_are_not_sent(page, pages, served):
    more = {**ADA, "x-strange": "1"}
    assert ask(page, pages[0], served, "SELECT 1", "application/grpc-web+proto", more) == ["TypeError: Failed to fetch"]
