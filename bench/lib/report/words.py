"""Numbers and texts as readers see them, and tables of HTML."""

import html

BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
# Figures whose unit is bytes, wherever they come from.
BYTE_FIGURES = ("bytes", "_rss", "above_idle", "peak_anonymous")


def ratio(value: float) -> str:
    """`12×`, `1.8×`, `0.42×`."""
    digits = 0 if value >= 20 else 1 if value >= 2 else 2
    return f"{value:.{digits}f}×"


def span(least: float, most: float) -> str:
    return ratio(most) if ratio(least) == ratio(most) else f"{ratio(least)} to {ratio(most)}"


def number(value) -> str:
    """Three significant digits; whole numbers with thin spaces."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def figure(name: str, value) -> str:
    if isinstance(value, int | float) and name.endswith(BYTE_FIGURES):
        for size, unit in BYTES:
            if value >= size:
                return f"{value / size:.3g} {unit}"
    return number(value)


def escape(text) -> str:
    return html.escape(str(text))


def code(text) -> str:
    return f"<code>{escape(text)}</code>"


def table(head: list, rows: list, numeric: int | None = None) -> str:
    """A table in a frame that scrolls; cells from column `numeric` on are numbers. Cells are HTML already."""

    def line(tag: str, cells: list) -> str:
        styles = (' class="n"' if numeric is not None and index >= numeric else "" for index in range(len(cells)))
        return "<tr>" + "".join(f"<{tag}{style}>{cell}</{tag}>" for style, cell in zip(styles, cells)) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead>{line("th", head)}</thead><tbody>{body}</tbody></table></div>'


def details(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"
