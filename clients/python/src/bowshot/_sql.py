"""Reads as much of SQL as a client has to: where literals and comments are, which parameters a text has, how it begins.

Texts are only looked into, never understood: what is outside of literals, quoted names and comments is code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bowshot._errors import InterfaceError, ProgrammingError

Parameters = Sequence[Any] | Mapping[str, Any]

# What is no code: 'text', E'text', "name", `name`, $$text$$, -- and /* */ comments.
_OPAQUE = re.compile(r"--|/\*|\$([A-Za-z_]\w*)?\$|[eE]'|['\"`]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MARKER = re.compile(
    r"(?P<qmark>\?)"
    r"|\$(?P<dollar_number>\d+)"
    r"|\$(?P<dollar_name>[A-Za-z_]\w*)"
    r"|(?<![:\w\])\"]):(?P<numeric>\d+)(?!\w)"
    r"|(?<![:\w\])\"]):(?P<named>[A-Za-z_]\w*)"
    r"|%\((?P<pyformat>[^)]+)\)s"
    r"|(?P<percent>%%)"
    r"|(?P<format>%s)(?!\w)"
)
_BY_POSITION = ("qmark", "dollar_number", "numeric", "format")
_BY_NAME = ("dollar_name", "named", "pyformat")


def code_spans(sql: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that are neither literal nor quoted name nor comment."""
    begin = at = 0
    while at < len(sql):
        found = _OPAQUE.search(sql, at)
        if found is None:
            break
        opening = found.group()
        # The e of a name that ends there is no mark of a literal.
        if opening[0] in "eE" and found.start() > 0 and (sql[found.start() - 1].isalnum() or sql[found.start() - 1] == "_"):
            at = found.start() + 1
            continue
        if found.start() > begin:
            yield begin, found.start()
        begin = at = _end_of(sql, found)
    if begin < len(sql):
        yield begin, len(sql)


def _end_of(sql: str, found: re.Match[str]) -> int:
    opening, at = found.group(), found.end()
    if opening == "--":
        end = sql.find("\n", at)
        return len(sql) if end < 0 else end
    if opening == "/*":
        return _end_of_comment(sql, at)
    if opening[0] == "$":
        end = sql.find(opening, at)
        return len(sql) if end < 0 else end + len(opening)
    return _end_of_quoted(sql, at, opening[-1], opening[0] in "eE")


def _end_of_comment(sql: str, at: int) -> int:
    """Comments nest."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(sql, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(sql)


def _end_of_quoted(sql: str, at: int, quote: str, escapes: bool) -> int:
    """A doubled quote reads as two literals side by side, which ends in the same place."""
    while at < len(sql):
        if escapes and sql[at] == "\\":
            at += 2
        elif sql[at] == quote:
            return at + 1
        else:
            at += 1
    return len(sql)


@dataclass(frozen=True)
class Shape:
    """What a text looks like: its first word, how many statements it has, whether it says RETURNING."""

    first: str
    second: str
    statements: int
    returning: bool


def shape(sql: str) -> Shape:
    words: list[str] = []
    statements, filled, returning = 0, False, False
    last = 0
    for begin, end in code_spans(sql):
        # Between two spans there is a literal or name, which is part of a statement, or a comment.
        filled = filled or (begin > last and sql[last:begin].lstrip()[:2] not in ("--", "/*"))
        last = end
        for number, part in enumerate(sql[begin:end].split(";")):
            if number:
                statements, filled = statements + filled, False
            filled = filled or bool(part.strip())
            found = [word.upper() for word in _WORD.findall(part)]
            returning = returning or "RETURNING" in found
            if len(words) < 2:
                words += found[: 2 - len(words)]
    filled = filled or sql[last:].strip()[:2] not in ("", "--", "/*")
    words += ["", ""]
    return Shape(words[0], words[1], statements + filled, returning)


@dataclass
class Bound:
    """A text with `$1`, `$2`, … in the places of its parameters.

    `keys` are the places or names of the user's parameters in that order; `origin` maps places in `sql` to places in the
    user's text.
    """

    sql: str
    keys: list[int | str] = field(default_factory=list)
    origin: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def row(self, parameters: Parameters) -> list[Any]:
        """The values for one execution."""
        if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence | Mapping):
            raise InterfaceError("parameters are a sequence or a mapping", hint="one value: `[value]`")
        if isinstance(parameters, Mapping):
            return [self._named(parameters, key) for key in self.keys]
        used = max((key for key in self.keys if isinstance(key, int)), default=-1) + 1
        if len(parameters) != used:
            raise ProgrammingError(f"the statement has {used} parameters, but {len(parameters)} values were given")
        return [parameters[key] for key in self.keys if isinstance(key, int)]

    def _named(self, parameters: Mapping[str, Any], key: int | str) -> Any:
        try:
            return parameters[str(key)]
        except KeyError:
            raise ProgrammingError(f"the statement has a parameter `{key}`, but no value was given for it") from None


def bind(sql: str, named: bool) -> Bound:
    """Finds the parameters of a text in the style that it uses, and numbers them."""
    markers = list(_markers(sql))
    style = _style(markers, named)
    bound = Bound("", origin=[])
    numbers: dict[int | str, int] = {}
    parts: list[str] = []
    at = length = 0
    for marker in markers:
        kind = marker.lastgroup or ""
        # `%%` stands for one percent sign only where `%` begins a parameter.
        if kind != style and not (kind == "percent" and style in ("format", "pyformat")):
            continue
        if kind == "percent":
            text = "%"
        else:
            key = _key(marker, kind, len(bound.keys))
            if key not in numbers:
                numbers[key] = len(numbers) + 1
                bound.keys.append(key)
            text = f"${numbers[key]}"
        before = sql[at : marker.start()]
        bound.origin.append((length, at))
        parts += [before, text]
        length += len(before) + len(text)
        at = marker.end()
    bound.origin.append((length, at))
    bound.sql = "".join([*parts, sql[at:]])
    return bound


def _key(marker: re.Match[str], kind: str, found: int) -> int | str:
    if kind in ("qmark", "format"):
        return found
    text = marker.group(kind)
    if kind in _BY_NAME:
        return text
    if text.startswith("0"):
        raise ProgrammingError(f"`{marker.group()}` is no parameter", hint="parameters are numbered from 1 on")
    return int(text) - 1


def _markers(sql: str) -> Iterator[re.Match[str]]:
    for begin, end in code_spans(sql):
        for marker in _MARKER.finditer(sql, begin, end):
            if marker.lastgroup in ("numeric", "named") and _is_slice(sql, marker.start()):
                continue
            if marker.group()[0] == "$" and marker.start() > 0 and _is_name(sql[marker.start() - 1]):
                continue
            yield marker


def _is_name(character: str) -> bool:
    return character.isalnum() or character in "_$"


def _is_slice(sql: str, at: int) -> bool:
    """Whether the colon is that of `a[1 :2]` or of `{'x' :2}`: something that has a value stands before it."""
    before = sql[:at].rstrip()
    return bool(before) and len(before) < at and (before[-1].isdigit() or before[-1] in "'\"])}")


def _style(markers: list[re.Match[str]], named: bool) -> str:
    """The one style that a text uses. A text with two of them is refused, since either could be meant."""
    wanted = _BY_NAME if named else _BY_POSITION
    used = [kind for kind in wanted if any(marker.lastgroup == kind for marker in markers)]
    if len(used) > 1:
        raise ProgrammingError(
            f"the statement mixes parameters of the styles {' and '.join(map(_example, used))}",
            hint="use one style in a statement",
        )
    return used[0] if used else ""


def _example(kind: str) -> str:
    return {
        "qmark": "`?`",
        "dollar_number": "`$1`",
        "numeric": "`:1`",
        "format": "`%s`",
        "dollar_name": "`$name`",
        "named": "`:name`",
        "pyformat": "`%(name)s`",
    }[kind]


_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = r'("(?:[^"]|"")+"|\w+)'
_STEERING = [
    (re.compile(r"(?:BEGIN(?: WORK| TRANSACTION)?|START TRANSACTION)", re.IGNORECASE), "BEGIN"),
    (re.compile(r"(?:COMMIT|END)(?: WORK| TRANSACTION)?", re.IGNORECASE), "COMMIT"),
    (re.compile(r"(?:ROLLBACK|ABORT)(?: WORK| TRANSACTION)?", re.IGNORECASE), "ROLLBACK"),
    (re.compile(rf"SAVEPOINT {_NAME}", re.IGNORECASE), "SAVEPOINT"),
    (re.compile(rf"RELEASE(?: SAVEPOINT)? {_NAME}", re.IGNORECASE), "RELEASE"),
    (re.compile(rf"ROLLBACK(?: WORK| TRANSACTION)? TO(?: SAVEPOINT)? {_NAME}", re.IGNORECASE), "BACK"),
]


def steering(sql: str) -> tuple[str, str] | None:
    """What a statement does to the transaction, with the name of its savepoint; nothing for other statements."""
    if len(sql) > 1000:
        return None
    text = " ".join(_COMMENT.sub(" ", sql).rstrip("; \t\r\n").split())
    for pattern, verb in _STEERING:
        found = pattern.fullmatch(text)
        if found:
            name = found[1] if found.groups() else ""
            return verb, name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
    return None


def quote(name: str) -> str:
    """A name as it stands in SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".\s][^".]*?))\s*(?:\.|$)')


def parts(name: str) -> list[str]:
    """The parts of `catalog.schema.table`, each of which may be quoted."""
    found, at = [], 0
    while at < len(name):
        part = _PART.match(name, at)
        if part is None:
            raise ProgrammingError(f"`{name}` is not a valid table name", hint='quote parts with other characters: "a.b"')
        # As in SQL, a name that is not quoted has small letters.
        found.append(part[1].replace('""', '"') if part[1] is not None else part[2].lower())
        at = part.end()
    if not 1 <= len(found) <= 3 or name.rstrip().endswith("."):
        raise ProgrammingError(
            f"`{name}` is not a valid table name", hint="a name has at most a catalog and a schema before it"
        )
    return found
