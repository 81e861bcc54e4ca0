"""The licences of the crates that are linked into the program, with the texts that their authors ask to pass on."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tomllib

from common import ROOT

PREFIXES = ("licen", "copying", "copyright", "notice", "unlicense")
HEAD = """Bowshot is licensed under the Apache License 2.0 (LICENSE). The program contains the crates below, under the licences that stand behind
their names. The numbers are those of the texts that follow; crates without a number bring no text of their own, and their authors are named.
"""


def notices() -> bytes:
    """One document: a line for each crate, then each text once."""
    numbers: dict[str, int] = {}
    texts: list[str] = []
    lines: list[str] = []
    for name, version, licence in _linked():
        folder = _source(name, version)
        own: list[int] = []
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name.lower().startswith(PREFIXES):
                text = path.read_text(errors="replace").strip()
                key = " ".join(text.split())
                if key not in numbers:
                    texts.append(text)
                    numbers[key] = len(texts)
                own.append(numbers[key])
        told = ", ".join(map(str, own)) if own else f"by {_authors(folder)}"
        lines.append(f"{name} {version}: {licence} ({told})")
    texts.append((ROOT / "clients/console/dist/NOTICE").read_text().strip())
    lines.append(f"the web console (JavaScript): see {len(texts)}")
    rule = "-" * 80
    parts = [HEAD, "\n".join(lines), *(f"{rule}\n{number}\n{rule}\n\n{text}" for number, text in enumerate(texts, 1))]
    return "\n\n".join(parts).encode() + b"\n"


def _linked() -> list[tuple[str, str, str]]:
    """Name, version and licence of each crate of others that is in the program; build scripts and macros of others are not told apart."""
    command = ["cargo", "tree", "--package", "bowshot", "--edges", "normal", "--prefix", "none", "--locked", "--format", "{p}|{l}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = set()
    for line in told.splitlines():
        package, _, licence = line.removesuffix(" (*)").partition("|")
        words = package.split()
        # Those of ours have their folder behind the version.
        if len(words) > 1 and not package.endswith(")") or "(proc-macro)" in package:
            found.add((words[0], words[1].removeprefix("v"), licence.strip() or "licence in its files"))
    return sorted(found)


def _source(name: str, version: str) -> pathlib.Path:
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    folders = sorted((home / "registry/src").glob(f"*/{name}-{version}"))
    if not folders:
        raise SystemExit(f"the source of {name} {version} is not in {home}: build the program on this machine first")
    return folders[0]


def _authors(folder: pathlib.Path) -> str:
    package = tomllib.loads((folder / "Cargo.toml").read_text())["package"]
    authors = ", ".join(author.partition(" <")[0] for author in package.get("authors", ()))
    return authors or f"the authors of {package.get('repository', package['name'])}"
