"""Wheels: `bowshot-server`, the program on the path of the environment that it is installed in, and the packages of clients, which are pure Python."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import time
import tomllib
import zipfile

from common import ROOT, Release, glibc

MODULE = '''"""The program `bowshot` as a Python package: `python -m bowshot_server serve data/` is `bowshot serve data/`."""

from __future__ import annotations

import os
import sysconfig

__all__ = ["program"]


def program() -> str:
    """The path of the program that this package has installed."""
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), "bowshot")
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("the program of the package `bowshot-server` is gone: install it again")
'''
MAIN = '''import os
import sys

from bowshot_server import program

os.execv(program(), ["bowshot", *sys.argv[1:]])
'''
README = """The program of [Bowshot](https://github.com/bowshot/bowshot), an Arrow-native SQL server, as a package for Python:

```
bowshot serve data/
```

Beside the Python client it is what `bowshot.server("data/")` starts.
"""


def build(release: Release) -> pathlib.Path:
    major, minor = glibc(release.program)
    tag = f"py3-none-manylinux_{major}_{minor}_x86_64"
    stem = f"bowshot_server-{release.version}"
    info = f"{stem}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: bowshot-server\nVersion: {release.version}\n"
        "Summary: The program of Bowshot, an Arrow-native SQL server\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n"
        "License-File: THIRD-PARTY-NOTICES\n"
        "Requires-Python: >=3.10\nClassifier: Operating System :: POSIX :: Linux\n"
        "Description-Content-Type: text/markdown\n\n" + README
    )
    files: list[tuple[str, bytes, int]] = [
        ("bowshot_server/__init__.py", MODULE.encode(), 0o644),
        ("bowshot_server/__main__.py", MAIN.encode(), 0o644),
        ("bowshot_server/py.typed", b"", 0o644),
        (f"{stem}.data/scripts/bowshot", release.program.read_bytes(), 0o755),
        (f"{stem}.data/data/share/man/man1/bowshot.1", release.shared["man"], 0o644),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: bowshot\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        (f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        (f"{info}/licenses/THIRD-PARTY-NOTICES", release.shared["notices"], 0o644),
    ]
    return _written(release, f"{stem}-{tag}.whl", info, files)


def client(release: Release, folder: str) -> pathlib.Path:
    """The package of a folder below `clients`, as its `pyproject.toml` describes it."""
    root = ROOT / "clients" / folder
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{stem}.dist-info"
    fields = [
        "Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
        f"License-Expression: {project['license']}", "License-File: LICENSE", f"Requires-Python: {project['requires-python']}",
        f"Keywords: {','.join(project['keywords'])}", *(f"Classifier: {name}" for name in project.get("classifiers", ())),
        *(f"Requires-Dist: {need}" for need in project["dependencies"]),
    ]  # fmt: skip
    for extra, needs in project.get("optional-dependencies", {}).items():
        fields += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    fields += ["Description-Content-Type: text/markdown", "", (root / project["readme"]).read_text()]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in project.get("entry-points", {}).items()
    )
    sources = (path for path in sorted((root / "src").rglob("*")) if path.is_file() and path.suffix in (".py", ".typed", ".yml", ".sql"))
    files = [(str(path.relative_to(root / "src")), path.read_bytes(), 0o644) for path in sources]
    files += [
        (f"{info}/METADATA", "\n".join(fields).encode(), 0o644),
        (f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: bowshot\nRoot-Is-Purelib: true\nTag: py3-none-any\n", 0o644),
        (f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        *([(f"{info}/entry_points.txt", points.encode(), 0o644)] if points else []),
    ]
    return _written(release, f"{stem}-py3-none-any.whl", info, files)


def _written(release: Release, name: str, info: str, files: list[tuple[str, bytes, int]]) -> pathlib.Path:
    """The wheel, with the list of what is in it."""
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data, _ in files) + f"{info}/RECORD,,\n"
    path = release.out / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=release.level) as archive:
        for name, data, mode in [*files, (f"{info}/RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(name, time.gmtime(release.time)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=release.level)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
