"""Tables for people: as text and as HTML."""

from __future__ import annotations

import html as html_
import shutil
import unicodedata
from typing import Any

import pyarrow as pa

from bowshot import _values

_WIDEST = 48
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], "·") | {10: "↵", 9: " "}

escape = html_.escape


def terminal_width() -> int:
    return shutil.get_terminal_size((120, 40)).columns


def changed(rows: int) -> str:
    return "done" if rows < 0 else f"{rows:,} row{'' if rows == 1 else 's'} changed"


def text(table: pa.Table, total: int | None, width: int) -> str:
    """A table as lines, columns left out on the right where they do not fit."""
    names = [_cell(name) for name in table.column_names]
    types = [_cell(str(kind)) for kind in table.schema.types]
    columns = [[_cell(value) for value in column] for column in _columns(table)]
    right = [
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in table.schema.types
    ]
    widths = [max(map(_width, [name, kind, *column])) for name, kind, column in zip(names, types, columns, strict=True)]
    fitting = _fitting(widths, width)
    lines = []
    for row in [names, types, None, *zip(*columns, strict=True)]:
        if row is None:
            lines.append("─┼─".join("─" * widths[at] for at in range(fitting)))
            continue
        cells = [_pad(row[at], widths[at], right[at]) for at in range(fitting)]
        lines.append(" │ ".join(cells).rstrip())
    return "\n".join([*lines, _closing(table.num_rows, total, len(names), len(names) - fitting)])


def html(table: pa.Table, total: int | None) -> str:
    """A table as a notebook shows it."""
    head = "".join(f'<th title="{escape(str(column.type))}">{escape(_cell(column.name))}</th>' for column in table.schema)
    columns = [[escape(_cell(value)) for value in column] for column in _columns(table)]
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in zip(*columns, strict=True))
    closing = escape(_closing(table.num_rows, total, table.num_columns, 0))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{closing}</p>"


def _columns(table: pa.Table) -> list[list[Any]]:
    rows = [row for batch in table.to_batches() for row in _values.rows(batch)]
    return [[row[at] for row in rows] for at in range(table.num_columns)]


def _cell(value: Any) -> str:
    shown = "NULL" if value is None else str(value).translate(_CONTROLS)
    return shown if len(shown) <= _WIDEST else shown[: _WIDEST - 1] + "…"


def _width(shown: str) -> int:
    """Columns of a terminal: wide characters take two, combining ones none."""
    if shown.isascii():
        return len(shown)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in shown)
    return len(shown) + wide - sum(unicodedata.combining(character) > 0 for character in shown)


def _pad(shown: str, width: int, right: bool) -> str:
    gap = " " * (width - _width(shown))
    return gap + shown if right else shown + gap


def _fitting(widths: list[int], width: int) -> int:
    """How many columns fit; the first one in any case."""
    used = 0
    for at, column in enumerate(widths):
        used += column + (3 if at else 0)
        if used > width and at:
            return at
    return len(widths)


def _closing(shown: int, total: int | None, columns: int, hidden: int) -> str:
    count = f"{shown:,} row{'' if shown == 1 else 's'}" if shown == total else f"first {shown:,} rows"
    if total is not None and total != shown:
        count += f" of {total:,}"
    closing = f"({count}, {columns} column{'' if columns == 1 else 's'}"
    return closing + (f", {hidden} not shown)" if hidden else ")")
