"""What the program's command line knows, read from its own help: man page and completions are made of the same definitions."""

from __future__ import annotations

import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Option:
    """`-h, --help`, or `--http <ADDR>` with its name of a value."""

    long: str
    short: str | None
    value: str | None
    about: str
    choices: list[str]


@dataclasses.dataclass
class Command:
    name: str
    about: str
    usage: str
    arguments: list[tuple[str, str]]
    options: list[Option]
    after: str
    commands: list[Command]


def read(program: str) -> Command:
    """The whole command line of a program."""
    return _command(program, [], "bowshot")


def _command(program: str, path: list[str], name: str) -> Command:
    text = subprocess.run([program, *path, "--help"], capture_output=True, text=True, timeout=60, check=True, env={}).stdout
    about, usage, sections, after = _parts(text)
    below = [
        _command(program, [*path, name], name) for name, _ in _entries(sections.get("Commands", [])) if name != "help"
    ]
    options = [_option(head, about) for head, about in _entries(sections.get("Options", []))]
    return Command(name, about, usage, _entries(sections.get("Arguments", [])), options, after, below)


def _parts(text: str) -> tuple[str, str, dict[str, list[str]], str]:
    about: list[str] = []
    after: list[str] = []
    sections: dict[str, list[str]] = {}
    usage = ""
    here: list[str] | None = None
    for line in text.splitlines():
        heading = re.fullmatch(r"([A-Z]\w+):", line)
        if heading:
            here = sections.setdefault(heading[1], [])
        elif line.startswith("Usage: "):
            usage = line.removeprefix("Usage: ")
        elif here is None:
            about.append(line)
        elif line and not line.startswith(" "):
            here = after
            after.append(line)
        else:
            here.append(line)
    return " ".join(filter(None, about)), usage, sections, " ".join(line.strip() for line in after if line.strip())


def _entries(lines: list[str]) -> list[tuple[str, str]]:
    """Heads of entries with what is said about them, which may stand beside them or below."""
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        head, _, rest = line.strip().partition("  ")
        if indent <= 6 and not (indent == 6 and not head.startswith("--")):
            entries.append((head, [rest.strip()] if rest else []))
        elif entries:
            entries[-1][1].append(line.strip())
    return [(head, " ".join(about)) for head, about in entries]


def _option(head: str, about: str) -> Option:
    match = re.fullmatch(r"(?:(-\w), )?(--[\w-]+)(?: \[?<([^>]+)>\]?(?:\.\.\.)?)?", head)
    if match is None:
        raise ValueError(f"an option that is not understood: {head!r}")
    choices = re.search(r"\[possible values: ([^\]]+)\]", about)
    listed = re.findall(r"- ([\w-]+):", about.partition("Possible values:")[2])
    about = re.sub(r"\[env: (\w+)=\]", r"[env: \1]", about)
    return Option(match[2], match[1], match[3], about, choices[1].split(", ") if choices else listed)
