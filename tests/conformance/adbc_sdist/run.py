"""Runs the tests that the source distribution of the Python ADBC driver carries: `run.py CACHE`.

They are fetched once into the cache folder, by the hash in `sdist.txt`, and stay there: none of them is in this
repository. The tests of errors and of incremental execution need a server of canned answers that is not in the
distribution; they test the driver alone and are left out.
"""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import adbc_driver_flightsql

PACKAGE = "adbc-driver-flightsql"
HERE = pathlib.Path(__file__).resolve().parent
TESTS = ["tests/test_bulk_ingest.py", "tests/test_dbapi.py", "tests/test_lowlevel.py"]


def fetched(cache):
    """The unpacked tests of the version that is installed."""
    version = importlib.metadata.version(PACKAGE)
    pins = (HERE / "sdist.txt").read_text()
    if f"{PACKAGE}=={version} " not in pins:
        sys.exit(f"sdist.txt does not pin {PACKAGE} {version}, which is installed")
    folder = cache / f"adbc-sdist-{version}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            unpack(download(scratch), scratch).rename(folder)
    return folder


def download(scratch):
    # pip asks a distribution for its metadata, and this one gives none without the library that its wheel would hold.
    library = pathlib.Path(adbc_driver_flightsql.__file__).with_name("libadbc_driver_flightsql.so")
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "-d", scratch]
    command += ["--no-binary", PACKAGE, "--require-hashes", "-r", str(HERE / "sdist.txt")]
    subprocess.run(command, check=True, env={**os.environ, "ADBC_FLIGHTSQL_LIBRARY": str(library)})
    (archive,) = pathlib.Path(scratch).glob("*.tar.gz")
    return archive


def unpack(archive, scratch):
    """The tests and their settings, without the driver's sources: what is installed is what is tested."""
    root = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as opened:
        wanted = [
            member
            for member in opened.getmembers()
            if member.name == f"{root}/pyproject.toml" or member.name.startswith(f"{root}/tests/")
        ]
        opened.extractall(scratch, wanted, filter="data")
    return pathlib.Path(scratch) / root


def main(cache):
    folder = fetched(pathlib.Path(cache))
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "bowshot_fixtures", *TESTS]
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "clients")])
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
