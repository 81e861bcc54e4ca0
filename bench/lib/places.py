"""Where things are: the repository, the cache folder, the built programs."""

import os
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BENCH = REPOSITORY / "bench"
PEERS = BENCH / "peers"
RESULTS = BENCH / "results"
CACHE = pathlib.Path(os.environ.get("BOWSHOT_CACHE", pathlib.Path.home() / ".cache" / "bowshot"))
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", CACHE / "target"))


def program(name: str) -> str:
    """Path of a built program; builds it in the release profile when it is missing."""
    path = TARGET / "release" / name
    if not path.exists():
        package = "bowshot" if name == "bowshot" else "bowshot-testkit"
        command = ["cargo", "build", "--release", "-p", package, "--bin", name]
        print(" ".join(command), file=sys.stderr)
        environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET))
        subprocess.run(command, check=True, cwd=REPOSITORY, env=environment)
    return str(path)
