"""Numbers and texts as readers see them."""

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
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def figure(name: str, value) -> str:
    if isinstance(value, int | float) and any(name.endswith(end) for end in BYTE_FIGURES):
        for size, unit in BYTES:
            if value >= size:
                return f"{value / size:.3g} {unit}"
    return number(value) if isinstance(value, int | float) else str(value)


def escape(text) -> str:
    return html.escape(str(text))


def code(text) -> str:
    return f"<code>{escape(text)}</code>"


def table(head: list, rows: list, numeric: int = 1, style: str = "") -> str:
    """An HTML table in a frame that scrolls; cells from column `numeric` on are numbers. Cells are HTML already. With the
    style `stacked` its cells stand one below the other where the page is narrow.
    """
    heads = "".join(f"<th{cell_class(index, numeric)}>{cell}</th>" for index, cell in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{cell_class(index, numeric)}>{cell}</td>" for index, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    inner = f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll" tabindex="0"><table class="{style}">{inner}</table></div>'


def cell_class(index: int, numeric: int) -> str:
    return ' class="n"' if index >= numeric else ""


def details(title: str, content: str, on_paper: bool = False) -> str:
    """Closed until asked for; what is `on_paper` is open there."""
    style = ' class="paper"' if on_paper else ""
    return f"<details{style}><summary>{escape(title)}</summary>{content}</details>"
