"""A page of another origin that speaks gRPC-Web: what Chromium lets it do, and what the server does."""

import functools
import http.server
import pathlib
import threading

import pytest
from server import Server, hash_password

PASSWORD = "a password"
# What a page does: frames a message of Flight, sends it, and reads frames until the trailers.
SCRIPT = """async ([address, sql, form, headers]) => {
  const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(Math.floor(n / 128))]);
  const field = (number, bytes) => [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
  const text = (s) => [...new TextEncoder().encode(s)];
  const read = (bytes) => {
    let at = 0;
    const number = () => {
      for (let value = 0, factor = 1; ; factor *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * factor;
        if (byte < 128) return value;
      }
    };
    const found = {};
    while (at < bytes.length) {
      const key = number();
      if ((key & 7) === 0) { number(); continue; }
      if ((key & 7) !== 2) throw new Error("a field of another type");
      const length = number();
      (found[Math.floor(key / 8)] ??= []).push(bytes.slice(at, at + length));
      at += length;
    }
    return found;
  };
  const unpack = (body) => Uint8Array.from((body.match(/.{4}/gs) ?? []).map(atob).join(""), (c) => c.charCodeAt(0));
  async function call(method, message) {
    let body = new Uint8Array([0, 0, 0, 0, 0, ...message]);
    new DataView(body.buffer).setUint32(1, message.length);
    if (form.includes("text")) body = btoa(String.fromCharCode(...body));
    const response = await fetch(`${address}/arrow.flight.protocol.FlightService/${method}`, {
      method: "POST", body, headers: { "content-type": form, accept: form, "x-grpc-web": "1", ...headers },
    });
    const bytes = form.includes("text") ? unpack(await response.text()) : new Uint8Array(await response.arrayBuffer());
    const messages = [];
    let trailers = "";
    for (let at = 0; at < bytes.length; ) {
      const length = new DataView(bytes.buffer, at + 1, 4).getUint32(0);
      const frame = bytes.slice(at + 5, at + 5 + length);
      if (bytes[at] === 128) trailers = new TextDecoder().decode(frame); else messages.push(frame);
      at += 5 + length;
    }
    const code = /grpc-status: ?(\\d+)/.exec(trailers)?.[1] ?? response.headers.get("grpc-status");
    return { http: response.status, code, messages, told: response.headers.get("grpc-message") ?? trailers,
             session: response.headers.get("x-bowshot-session") };
  }
  try {
    const info = await call("GetFlightInfo", [8, 2, ...field(2, text(sql))]);
    if (info.code !== "0") return [info.http, info.code, info.told];
    const endpoint = read(read(info.messages[0])[3][0]);
    const rows = await call("DoGet", [...endpoint[1][0]]);
    const bytes = rows.messages.reduce((sum, message) => sum + message.length, 0);
    return [rows.http, rows.code, info.session !== null, rows.messages.length, bytes];
  } catch (error) {
    return [String(error)];
  }
}"""


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
