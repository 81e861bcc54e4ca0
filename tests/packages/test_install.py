"""The script that installs a package of a release, over small releases of its own: which one it takes, and what it refuses."""

import functools
import hashlib
import http.server
import io
import pathlib
import subprocess
import tarfile
import threading

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "packaging/install.sh"


def add(place, version, program=None):
    """A tarball whose program is a script."""
    stem = f"bowshot-{version}-x86_64-linux"
    path = place / f"{stem}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text, mode in (
            ("bin/bowshot", program or f"#!/bin/sh\necho bowshot {version}\n", 0o755),
            ("share/man/man1/bowshot.1", version, 0o644),
        ):
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mode = len(text), mode
            archive.addfile(entry, io.BytesIO(text.encode()))
    with (place / "SHA256SUMS").open("a") as sums:
        sums.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return path


@pytest.fixture
def release(tmp_path):
    place = tmp_path / "release"
    place.mkdir()
    for version in ("0.9.1", "0.10.2", "0.2.30"):
        add(place, version)
    return place


def installed(prefix):
    return subprocess.run([prefix / "bin/bowshot"], capture_output=True, text=True, check=True).stdout


def run(*arguments, environment=None):
    return subprocess.run(["sh", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, env=environment)


def refused(words, *arguments):
    done = run(*arguments)
    assert done.returncode != 0 and words in done.stderr, done.stderr


def test_the_newest_of_a_folder(release, tmp_path):
    prefix = tmp_path / "prefix"
    for version in ("0.10.2", "1.0.0"):
        done = run(release, "--prefix", prefix)
        assert done.returncode == 0 and f"Bowshot {version} is installed" in done.stdout, done.stderr
        assert installed(prefix) == f"bowshot {version}\n"
        assert (prefix / "share/man/man1/bowshot.1").read_text() == version
        add(release, "1.0.0")
    assert sorted(path.name for path in (prefix / "bin").iterdir()) == ["bowshot"]


def test_over_http(release, tmp_path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=release)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert run(f"{address}/", "tarball", "--prefix", tmp_path / "prefix").returncode == 0
        refused("`SHA256SUMS` cannot be had", f"{address}/elsewhere")
        server.shutdown()
    assert installed(tmp_path / "prefix") == "bowshot 0.10.2\n"


def test_a_file_that_is_another(release, tmp_path):
    with (release / "bowshot-0.10.2-x86_64-linux.tar.gz").open("ab") as file:
        file.write(b"x")
    refused("has not the checksum", release, "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists()


def test_names_that_lead_elsewhere(release, tmp_path):
    """Only names of packages count, whatever else stands in the list."""
    other = tmp_path / "bowshot-9.9.9-x86_64-linux.tar.gz"
    other.write_bytes(add(tmp_path, "9.9.9").read_bytes())
    with (release / "SHA256SUMS").open("a") as sums:
        for name in (f"../{other.name}", f"{other.name}; touch x", f"{other.name}.sig", "bowshot-$(id)-x86_64-linux.tar.gz"):
            sums.write(f"{hashlib.sha256(other.read_bytes()).hexdigest()}  {name}\n")
    assert "Bowshot 0.10.2" in run(release, "--prefix", tmp_path / "prefix").stdout


def test_a_program_that_does_not_run_here(release, tmp_path):
    add(release, "2.0.0", "#!/bin/sh\nexit 1\n")
    refused("does not run here", release, "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists()


def test_what_is_refused(release, tmp_path):
    refused("usage:")
    refused("no https:// address", "http://example.org/release")
    refused("`SHA256SUMS` cannot be had", tmp_path / "nowhere")
    refused("has no deb", release, "deb")
    refused("`rpm` is no kind", release, "rpm")
    refused("one argument too many", release, "tarball", "more")
    refused("`--force` is no option", release, "--force")
    refused("--prefix is for the tarball", release, "wheel", "--prefix", tmp_path)
