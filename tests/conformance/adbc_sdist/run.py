"""Runs the tests that the source distribution of the Python ADBC driver carries: `run.py CACHE`.

They are fetched once into the cache folder, by the hash in `sdist.txt`, and stay there: none of them is in this
repository. The tests of errors and of incremental execution need a server of canned answers that is not in the
distribution; they test the driver alone and are left out.
"""

import os
import pathlib
import subprocess
import sys

import adbc_driver_flightsql

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import sdist  # noqa: E402

TESTS = ["tests/test_bulk_ingest.py", "tests/test_dbapi.py", "tests/test_lowlevel.py"]


def main(cache):
    # pip asks a distribution for its metadata, and this one gives none without the library that its wheel would hold. Of the driver's
    # sources nothing is unpacked: what is installed is what is tested.
    library = pathlib.Path(adbc_driver_flightsql.__file__).with_name("libadbc_driver_flightsql.so")
    parts, more = ["pyproject.toml", "tests/"], {"ADBC_FLIGHTSQL_LIBRARY": str(library)}
    folder = sdist.fetched("adbc-driver-flightsql", pathlib.Path(cache), parts, HERE / "sdist.txt", more)
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "bowshot_fixtures", *TESTS]
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "clients")])
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
