"""Python environments of the bench, one for each file in `bench/requirements`, in the cache folder.

`main` is that of the bench itself and of most clients. Others are made when a peer is first asked for, because their
packages do not go with those of `main` (two versions of DuckDB) or are large. Uses the standard library alone.
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from . import locks

BENCH = pathlib.Path(__file__).resolve().parents[1]
CACHE = locks.CACHE
REASON_CHARACTERS = 300


class Unavailable(Exception):
    """A peer cannot run on this machine; the text says why, and stands in the report."""


def find_program(name: str, packages: str) -> str:
    """Its path. Raises `Unavailable` where it is not installed; `packages` are those of Debian that have it."""
    if path := shutil.which(name):
        return path
    raise Unavailable(f"there is no `{name}`: `apt-get install {packages}`")


def requirements(name: str) -> pathlib.Path:
    return BENCH / "requirements" / f"{name}.txt"


def pinned(name: str) -> dict:
    """The packages of an environment and their versions."""
    lines = [line.split("==") for line in requirements(name).read_text().split()]
    return {package.split("[")[0]: version for package, version in lines}


@functools.cache
def python(name: str) -> pathlib.Path:
    """The interpreter of an environment; made at the first use. Raises `Unavailable` when a package does not install."""
    content = f"{sys.version_info[:2]}".encode() + requirements(name).read_bytes()
    home = CACHE / f"bench-{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not (home / "ready").exists():
        with locks.alone(str(home)):
            if not (home / "ready").exists():
                make(name, home)
    return home / "bin" / "python"


def enter() -> None:
    """Starts the program again in the environment `main`, unless it runs there."""
    wanted = python("main")
    if pathlib.Path(sys.prefix) != wanted.parents[1]:
        os.execv(wanted, [str(wanted), *sys.argv])


def make(name: str, home: pathlib.Path) -> None:
    print(f"making {home}", file=sys.stderr)
    subprocess.run([base_python(), "-m", "venv", "--clear", str(home)], check=True)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "-r", str(requirements(name))], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise Unavailable(f"the packages of requirements/{name}.txt do not install: {last_error(done.stderr)}")
    (home / "ready").touch()


def base_python() -> str:
    """The interpreter that environments are made from, also when this one runs in one of them."""
    return getattr(sys, "_base_executable", None) or sys.executable


def last_error(text: str) -> str:
    """The line that says what is wrong, of all that pip says about it."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for mark in ("ERROR:", "error:") for line in lines if mark in line]
    return re.sub(r"https?://\S+", "…", (found or ["pip failed"])[0])[:REASON_CHARACTERS]
