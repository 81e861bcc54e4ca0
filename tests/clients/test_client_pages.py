"""The pages of docs/how-to/clients do what they say: their examples in Python and of the shell run, in order, and the versions that they
name are those under test. Examples in other languages are what the suites of those languages run."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from server import ROOT, Server, binaries, users_file

PAGES = sorted((ROOT / "docs" / "how-to" / "clients").glob("*.md"))
TLS = ROOT / "tests" / "data" / "tls"
INSTALLS = ("pip install", "apt install", "go get", "npm install")
DRIVERS = [pathlib.Path("/usr/lib/x86_64-linux-gnu/odbc") / name for name in ("psqlodbcw.so", "libmaodbc.so")]
PINNED = (
    "tests/requirements.txt",
    "tests/clients/requirements-flightsql-dbapi.txt",
    "tests/clients/java/pom.xml",
    "tests/clients/go/go.mod",
    "tests/clients/node/package.json",
    "tests/conformance/adbc_validation/go.mod",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "data").mkdir()
    (folder / "data" / "orders.csv").write_text("order_id,name,total\n1,ada,4.5\n2,bob,5.5\n")
    (folder / "data" / "sales.csv").write_text("day,amount\n2024-01-01,3\n2024-01-02,4\n")
    shutil.copy(TLS / "ca.pem", folder / "ca.pem")
    users_file(folder, {"ada": "secret"}, {"service": "a token of a service"})
    return folder


@pytest.fixture(scope="module")
def servers(folder):
    """The server of the examples, and the one behind `db.example.org`, with users and TLS."""
    both = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
    secured = ["--tls-certificate", TLS / "first.pem", "--tls-key", TLS / "first.key", "--users-file", folder / "users.toml"]
    with Server(folder / "data", arguments=both) as plain, Server(folder / "data", arguments=[*both, *secured]) as strict:
        yield plain, strict


def placed(text, servers):
    """Addresses of the examples become those of the servers: those behind a host stand in one paragraph, address or section."""
    parts = re.split(r"(\n\n|\n(?=\[)|\n(?=psql|PGPASSWORD|mysql|curl))", text)
    return "".join(put(part, servers[1] if "db.example.org" in part else servers[0]) for part in parts)


def put(text, server):
    http = int(server.http.rsplit(":", 1)[1])
    for port, ours in ((50051, server.port), (8080, http), (5432, server.pg_port), (3306, server.mysql_port)):
        text = re.sub(rf"\b{port}\b", str(ours), text)
    return text.replace("db.example.org", "localhost")


def blocks(page, servers):
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        yield language, placed(text, servers)


def shell(text, folder):
    kept = [line for line in text.splitlines() if not line.startswith(INSTALLS)]
    environment = {**os.environ, "PATH": f"{binaries()}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(kept).replace("curl ", "curl -sS --fail-with-body ")],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


def missing(page):
    """What the page takes for granted, and this machine does not have; continuous integration has all of it."""
    for program in ("psql", "mysql", "curl"):
        if re.search(rf"^{program} ", page.read_text(), re.MULTILINE) and not shutil.which(program):
            return program
    return "an ODBC driver" if page.stem == "odbc" and not all(driver.exists() for driver in DRIVERS) else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, servers, folder, monkeypatch):
    if missing(page):
        pytest.skip(f"{missing(page)} is not installed")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(ROOT / "clients" / "python" / "src")
    monkeypatch.setenv("ODBCINI", str(folder / "odbc.ini"))
    names = {"__name__": "example"}
    for language, text in blocks(page, servers):
        if language == "sh":
            shell(text, folder)
        elif language == "ini":
            (folder / "odbc.ini").write_text(text.replace("ca.pem", str(folder / "ca.pem")))
        elif language == "python" and "spark." not in text:
            exec(compile(text, page.name, "exec"), names)
    if not getattr(names.get("connection"), "closed", True):
        names["connection"].close()


def test_versions_are_those_under_test():
    pinned = "\n".join((ROOT / path).read_text() for path in PINNED)
    pinned = re.sub(r"</artifactId>\s*<version>", " ", pinned).replace('": "', " ").replace("==", " ")
    named = 0
    for page in [*PAGES, ROOT / "docs" / "how-to" / "clients.md"]:
        for name, version in re.findall(r"`([\w./@-]+)` (\d+\.\d[\w.]*\w)", page.read_text()):
            assert re.search(rf"{re.escape(name)} v?{re.escape(version)}\b", pinned), f"{page.name}: {name} {version}"
            named += 1
    assert named > 30
