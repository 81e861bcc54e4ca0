"""Runs Ibis's own suite for backends against a server of its own; arguments go to pytest."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SOURCES = str(HERE.parent / "src")
sys.path.insert(0, SOURCES)

import bowshot  # noqa: E402

if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))


def installed(folder):
    """What makes the backend known where the package is not installed but only on the path."""
    info = pathlib.Path(folder) / "bowshot_ibis-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bowshot-ibis\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[ibis.backends]\nbowshot = bowshot.ibis\n")


with bowshot.server() as server, tempfile.TemporaryDirectory() as folder:
    installed(folder)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SOURCES, str(HERE), folder]),
        "BOWSHOT_URI": server.uri,
    }
    chosen = sys.argv[1:] or ["--pyargs", "ibis.backends.tests"]
    command = [sys.executable, "-m", "pytest", "-p", "suite", "-p", "no:cacheprovider", "-p", "no:warnings", "-m", "bowshot"]
    run = subprocess.run([*command, *chosen], cwd=folder, env=environment, check=False, stdout=subprocess.PIPE, text=True)

print(run.stdout)
