"""Every package is installed on something bare, serves a query, and is removed again."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest

import roots
from roots import Served, folder, inside

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/clients"))

from server import binaries, free_port  # noqa: E402

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


@pytest.fixture(scope="module")
def place():
    """A folder for everything, which other users may enter."""
    path = folder("/var/tmp", "bowshot-packages")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def packages(place):
    out = place / "packages"
    command = [sys.executable, str(ROOT / "packaging/release.py"), "--program", str(binaries() / "bowshot")]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([*command, "--out", str(out), "--level", "1"], check=True, env=environment)
    return out


def test_checksums(packages):
    lines = (packages / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 8
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == digest, name
        print(f"{(packages / name).stat().st_size / 1e6:.1f} MB {name}")


def test_tarball(packages, place):
    stem = f"bowshot-{VERSION}-x86_64-linux"
    with tarfile.open(packages / f"{stem}.tar.gz") as archive:
        assert {entry.mtime for entry in archive} == {1790000000}
        archive.extractall(place / "tarball", filter="data")
    root = place / "tarball" / stem
    told = subprocess.run([root / "bin/bowshot", "--version"], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"bowshot {VERSION}\n"
    assert json.loads((root / "share/bowshot/bowshot.json").read_text())["title"] == "Bowshot"
    licences = (root / "THIRD-PARTY-NOTICES").read_text()
    assert "\ndatafusion 55." in licences and "\nrustls 0." in licences and "\napache-arrow 21." in licences
    manual = (root / "share/man/man1/bowshot.1").read_text()
    # Whatever the help names, the manual names, and the completions offer.
    for command in ("serve", "sql", "check", "demo"):
        text = subprocess.run([root / "bin/bowshot", command, "--help"], capture_output=True, text=True, check=True, env={}).stdout
        for word in {word.strip(",.`") for word in text.split() if word.startswith("--") and len(word) > 2}:
            assert word.replace("-", "\\-") in manual, (command, word)
    assert _complete(root, "bowshot", "se") == ["serve"]
    assert "--tls-certificate" in _complete(root, "bowshot", "serve", "--tls")
    assert "--uri" in _complete(root, "bowshot", "sql", "--u")
    assert "-a serve" in (root / "share/fish/vendor_completions.d/bowshot.fish").read_text()
    assert (root / "share/zsh/site-functions/_bowshot").read_text().startswith("#compdef bowshot")


def test_installed_by_the_script(packages, place):
    prefix = place / "prefix"
    subprocess.run(["sh", packages / "install.sh", packages, "--prefix", prefix], check=True)
    told = subprocess.run([prefix / "bin/bowshot", "--version"], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"bowshot {VERSION}\n" and (prefix / "share/man/man1/bowshot.1").exists()
    python = place / "python"
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    environment = {"PATH": f"{python}/bin:/usr/bin:/bin", "HOME": str(place)}
    # Of what the client needs nothing is fetched here.
    alone = {**environment, "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    subprocess.run(["sh", ROOT / "packaging/install.sh", packages, "python"], check=True, env=alone)
    code = "import importlib.metadata as m; print(m.version('bowshot'), m.version('bowshot-server'), 'bowshot' in m.entry_points(group='ibis.backends').names)"
    told = subprocess.run([python / "bin/python", "-c", code], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"{VERSION} {VERSION} True\n"
    told = subprocess.run([python / "bin/bowshot", "--version"], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"bowshot {VERSION}\n"


def _complete(root, *words):
    script = (
        f"source {root}/share/bash-completion/completions/bowshot; COMP_WORDS=({' '.join(words)}); "
        f'COMP_CWORD={len(words) - 1}; _bowshot 2>/dev/null; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_wheel(packages, place):
    environment = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    (wheel,) = packages.glob("bowshot_server-*.whl")
    pip = [str(environment / "bin/pip"), "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    told = subprocess.run([environment / "bin/bowshot", "--version"], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"bowshot {VERSION}\n"
    (notices,) = environment.glob("lib/python*/site-packages/bowshot_server-*.dist-info/licenses/THIRD-PARTY-NOTICES")
    assert "\ndatafusion 55." in notices.read_text()
    # In a notebook, where the programs of the environment are not on the path.
    (place / "people.csv").write_text("id\n1\n2\n")
    code = (
        "import bowshot, bowshot_server\n"
        f"server = bowshot.server({str(place / 'people.csv')!r})\n"
        "connection = bowshot.connect(server.uri, autocommit=True)\n"
        "print(connection.sql('SELECT sum(id) AS n FROM people').arrow().to_pylist(), bowshot_server.program())\n"
    )
    paths = [str(ROOT / "clients/python/src"), *(path for path in sys.path if path.endswith("site-packages"))]
    bare = {"PATH": "/nowhere", "PYTHONPATH": ":".join(paths), "HOME": str(place)}
    run = subprocess.run([environment / "bin/python", "-c", code], capture_output=True, text=True, env=bare, timeout=120)
    assert run.stdout == f"[{{'n': 3}}] {environment}/bin/bowshot\n", run.stderr
    run = subprocess.run([environment / "bin/python", "-m", "bowshot_server", "--version"], capture_output=True, text=True, env=bare)
    assert run.stdout == f"bowshot {VERSION}\n", run.stderr
    subprocess.run([*pip, "uninstall", "-y", "bowshot-server"], check=True)
    assert not (environment / "bin/bowshot").exists()


def test_debian_package(packages, place):
    root = folder(place, "debian")
    roots.debian(root)
    shutil.copy(packages / f"bowshot_{VERSION}_amd64.deb", root / "tmp/bowshot.deb")
    inside(root, "dpkg", "--force-unsafe-io", "-i", "/tmp/bowshot.deb")
    assert inside(root, "bowshot", "--version").stdout == f"bowshot {VERSION}\n"
    assert b"\ndatafusion 55." in gzip.decompress((root / "usr/share/doc/bowshot/third-party-notices.gz").read_bytes())
    configuration = root / "etc/bowshot/bowshot.toml"
    assert configuration.stat().st_mode & 0o777 == 0o640
    assert inside(root, "dpkg", "-V", "bowshot").stdout in ("", "??5?????? c /etc/bowshot/bowshot.toml\n")
    port = free_port()
    configuration.write_text(configuration.read_text() + f'flight = "127.0.0.1:0"\nhttp = "127.0.0.1:{port}"\n')
    inside(root, "bowshot", "check", "--config", "/etc/bowshot/bowshot.toml", user="bowshot")
    # As the service starts it.
    unit = (root / "lib/systemd/system/bowshot.service").read_text()
    (line,) = [line.removeprefix("ExecStart=") for line in unit.splitlines() if line.startswith("ExecStart=")]
    serve = ["/usr/sbin/chroot", "--userspec=bowshot:bowshot", str(root), *line.split()]
    with Served(serve, place / "deb.log", port) as server:
        print(f"ready after {1000 * server.seconds:.0f} ms")
        server.sql("CREATE TABLE kept AS SELECT 7 AS n")
    inside(root, "dpkg", "--force-unsafe-io", "-i", "/tmp/bowshot.deb")
    assert f"127.0.0.1:{port}" in configuration.read_text()
    with Served(serve, place / "deb.log", port) as server:
        assert server.sql("SELECT n FROM kept").split() == ["n", "7"]
    inside(root, "dpkg", "-r", "bowshot")
    assert not (root / "usr/bin/bowshot").exists() and configuration.exists()
    inside(root, "dpkg", "--purge", "bowshot")
    assert not configuration.exists()
    # The tables are left in any case.
    assert (root / "var/lib/bowshot/catalog.sqlite").exists()


def test_the_service_is_hardened(place):
    unit = place / "bowshot.service"
    text = (ROOT / "packaging/debian/bowshot.service").read_text()
    unit.write_text(text.replace("/usr/bin/bowshot ", "/bin/true ").replace("User=bowshot\nGroup=bowshot\n", "DynamicUser=yes\n"))
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert run.returncode == 0 and "bowshot.service" not in run.stderr, run.stderr
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", str(unit)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-600:]


def test_image(packages, place):
    root = folder(place, "image")
    with tarfile.open(packages / f"bowshot-{VERSION}-oci.tar") as archive:
        blobs = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}

    def blob(told):
        content = blobs["blobs/" + told["digest"].replace(":", "/")]
        assert len(content) == told["size"] and hashlib.sha256(content).hexdigest() == told["digest"].removeprefix("sha256:")
        return content

    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    manifest = json.loads(blob(json.loads(blobs["index.json"])["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    for layer, expected in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        content = gzip.decompress(blob(layer))
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == expected
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(root, filter="tar")
    assert config["config"]["User"] == "65532:65532" and (root / "usr/share/doc/bowshot/THIRD-PARTY-NOTICES").exists()
    environment = dict(entry.split("=", 1) for entry in config["config"]["Env"])
    command = [*config["config"]["Entrypoint"], *config["config"]["Cmd"]]
    # On a root that nobody can write to, as a user without rights.
    script = (
        "mount --bind $1 $1 && mount -o remount,bind,ro $1 && mount -t tmpfs -o mode=1777 none $1/data && "
        "mount -t tmpfs -o mode=1777 none $1/var/tmp && shift && exec /usr/sbin/chroot --userspec=65532:65532 \"$@\""
    )
    start = ["unshare", "--mount", "sh", "-ec", script, "sh", str(root), str(root), *command]
    port = free_port()
    environment |= {"BOWSHOT_FLIGHT": "127.0.0.1:0", "BOWSHOT_HTTP": f"0.0.0.0:{port}"}
    # Beyond the machine without users: refused.
    alone = subprocess.run(start, capture_output=True, text=True, env=environment, timeout=60)
    assert alone.returncode == 2 and "users" in alone.stderr, alone.stderr
    with Served([*start, "--insecure"], place / "image.log", port, environment) as server:
        print(f"ready after {1000 * server.seconds:.0f} ms")
        server.sql("CREATE TABLE t AS SELECT 1 AS n")
        assert server.sql("SELECT n FROM t").split() == ["n", "1"]


def test_bill_of_materials(packages):
    document = json.loads((packages / f"bowshot-{VERSION}.cdx.json").read_text())
    components = {component["name"]: component for component in document["components"]}
    assert {"datafusion", "arrow", "axum", "rustls"} <= components.keys()
    assert not any(name.startswith("bowshot") or name == "xtask" for name in components)
    assert all(component["hashes"] for component in components.values())
