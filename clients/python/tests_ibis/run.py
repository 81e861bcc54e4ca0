"""Runs Ibis's own suite for backends against a server of its own; arguments go to pytest."""

import os
import pathlib
import re
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
    arguments = sys.argv[1:]
    if "--pyargs" not in arguments:
        arguments += ["--pyargs", "ibis.backends.tests"]
    # Tracebacks as Python writes them: some statements of the suite are too deep for pytest's.
    command = [sys.executable, "-m", "pytest", "-p", "suite", "-p", "no:cacheprovider", "--tb=native", "-m", "bowshot"]
    run = subprocess.run([*command, *arguments], cwd=folder, env=environment, check=False, stdout=subprocess.PIPE, text=True)

print(run.stdout)
counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed)", run.stdout[-500:])}
failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
if run.returncode and not failed:
    failed = 1
print(f"{counts.get('xfailed', 0)} of what is not supported, {counts.get('skipped', 0)} of other backends")
print(f"{counts.get('passed', 0)} passed, {failed} failed")
sys.exit(run.returncode)
