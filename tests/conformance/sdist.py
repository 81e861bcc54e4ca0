"""Parts of the source distribution of a package, of the version that is installed, fetched once by the hash that a file pins."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile


def fetched(package, cache, parts, pins, environment=None):
    """The folder in the cache that has the parts, files or folders that end with `/`. Nothing else of it is unpacked, and nothing of
    it is in this repository."""
    version = importlib.metadata.version(package)
    pinned = [line for line in pins.read_text().splitlines() if line.startswith(f"{package}=={version} ")]
    if not pinned:
        sys.exit(f"{pins.name} does not pin {package} {version}, which is installed")
    folder = cache / f"{package.lower()}-sdist-{version}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            pin = pathlib.Path(scratch) / "pin.txt"
            pin.write_text(pinned[0] + "\n")
            command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "-d", scratch]
            command += ["--no-binary", package, "--require-hashes", "-r", str(pin)]
            subprocess.run(command, check=True, env={**os.environ, **(environment or {})})
            (archive,) = pathlib.Path(scratch).glob("*.tar.gz")
            root = archive.name.removesuffix(".tar.gz")
            with tarfile.open(archive) as opened:
                names = tuple(f"{root}/{part}" for part in parts)
                opened.extractall(scratch, [member for member in opened.getmembers() if member.name.startswith(names)], filter="data")
            (pathlib.Path(scratch) / root).rename(folder)
    return folder
