"""What all packages share: names, the time that they carry, and archives whose bytes depend on nothing else."""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import pathlib
import re
import subprocess
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Release:
    """What is packed, and how."""

    program: pathlib.Path
    version: str
    #: Seconds since 1970 that every file carries: those of the commit, so that the same commit gives the same bytes.
    time: int
    level: int
    out: pathlib.Path
    shared: dict[str, bytes]


#: What watches a server, by its name below `share/bowshot`.
WATCHING = {"bowshot.json": ROOT / "deploy/grafana/bowshot.json", "rules.yml": ROOT / "deploy/helm/bowshot/rules.yml"}


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def commit_time() -> int:
    named = os.environ.get("SOURCE_DATE_EPOCH")
    if named:
        return int(named)
    log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(log.stdout)


def stripped(program: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The program without symbols."""
    target = folder / "bowshot"
    subprocess.run(["strip", "--strip-all", "-o", str(target), str(program)], check=True)
    target.chmod(0o755)
    return target


def libraries(program: pathlib.Path) -> list[pathlib.Path]:
    """The shared libraries that the program loads, its loader included."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"(/\S+) \(0x", told)
    return [pathlib.Path(path) for path in paths]


def glibc(program: pathlib.Path) -> tuple[int, int]:
    """The least version of the C library that the program runs with."""
    told = subprocess.run(["objdump", "-T", str(program)], capture_output=True, text=True, check=True).stdout
    return max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", told))


def tar(files: dict[str, tuple[bytes | pathlib.Path, int]], time: int, links: dict[str, str] | None = None) -> bytes:
    """An archive of files with their modes, of folders (names that end with a slash) and links, all of root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for folder in sorted(_folders([*files, *(links or {})])):
            archive.addfile(_entry(folder, time, 0o755, tarfile.DIRTYPE))
        for name, (content, mode) in sorted(files.items()):
            if name.endswith("/"):
                archive.addfile(_entry(name.rstrip("/"), time, mode, tarfile.DIRTYPE))
                continue
            data = content if isinstance(content, bytes) else content.read_bytes()
            entry = _entry(name, time, mode, tarfile.REGTYPE)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name, target in sorted((links or {}).items()):
            entry = _entry(name, time, 0o777, tarfile.SYMTYPE)
            entry.linkname = target
            archive.addfile(entry)
    return buffer.getvalue()


def _folders(names: list[str]) -> set[str]:
    explicit = {name.rstrip("/") for name in names if name.endswith("/")}
    parents = {str(parent) for name in names for parent in pathlib.PurePosixPath(name).parents}
    return parents - {"."} - explicit


def _entry(name: str, time: int, mode: int, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode, entry.type = time, mode, kind
    return entry


def gzipped(data: bytes, level: int) -> bytes:
    return gzip.compress(data, level, mtime=0)
