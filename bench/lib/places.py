"""Where things are: the repository, the cache folder, the built programs."""

import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from . import environments

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BENCH = REPOSITORY / "bench"
PEERS = BENCH / "peers"
RESULTS = BENCH / "results"
FIGURES = REPOSITORY / "docs" / "how-to" / "benchmarks.md"
PICTURE = REPOSITORY / "docs" / "figures.svg"
CACHE = environments.CACHE
TLS = REPOSITORY / "tests" / "data" / "tls"
TLS_AUTHORITY, TLS_CERTIFICATE, TLS_KEY = TLS / "ca.pem", TLS / "first.pem", TLS / "first.key"
SMALL_RESULTS = CACHE / "bench-results-small"
DISK = pathlib.Path(os.environ.get("BOWSHOT_BENCH_DISK", "/var/tmp"))
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", CACHE / "target"))
PROGRAMS = pathlib.Path(os.environ.get("BOWSHOT_BIN", TARGET / "release"))


def default_report(folder: pathlib.Path) -> pathlib.Path:
    """Beside the results, but outside of the repository for those that are committed."""
    return CACHE / "bench-report.html" if folder == RESULTS else folder / "report.html"


def program(name: str) -> str:
    """Path of a built program; builds it in the release profile when it is missing."""
    path = PROGRAMS / name
    if not path.exists():
        package = "bowshot" if name == "bowshot" else "bowshot-testkit"
        command = ["cargo", "build", "--release", "-p", package, "--bin", name]
        print(" ".join(command), file=sys.stderr)
        environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET))
        subprocess.run(command, check=True, cwd=REPOSITORY, env=environment)
    return str(path)


@contextlib.contextmanager
def disk_folder(needed_gb: float):
    """A folder for what servers keep, removed afterwards. It has to be on a disk, with room."""
    if file_system(DISK) in ("tmpfs", "ramfs"):
        raise SystemExit(f"{DISK} is in memory: name a folder on a disk in BOWSHOT_BENCH_DISK")
    free_gb = shutil.disk_usage(DISK).free / 1e9
    if free_gb < needed_gb:
        raise SystemExit(f"{DISK} has {free_gb:.1f} GB free, {needed_gb:.1f} are needed; BOWSHOT_BENCH_DISK names another")
    with tempfile.TemporaryDirectory(prefix="bowshot-bench-", dir=DISK) as folder:
        os.chmod(folder, 0o755)  # PostgreSQL may have to run as another user
        yield pathlib.Path(folder)


def disk(folder: pathlib.Path) -> dict:
    """What kind of disk it is: its file system, and how long a synced write takes."""
    return {"file_system": file_system(folder), "sync_median_ms": sync_median_ms(folder)}


def file_system(folder: pathlib.Path) -> str:
    done = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def sync_median_ms(folder: pathlib.Path) -> float:
    """How long an appended write of 4 KiB and its sync take."""
    path, times = folder / "sync-probe", []
    with open(path, "wb", buffering=0) as probe:
        for _ in range(200):
            started = time.perf_counter()
            probe.write(bytes(4096))
            os.fsync(probe.fileno())
            times.append(time.perf_counter() - started)
    path.unlink()
    return 1e3 * statistics.median(times)
