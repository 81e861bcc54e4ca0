"""Plots, drawn by Vega-Altair and turned into SVG without a browser. Colours are names of CSS variables, so that the same
drawing serves light and dark pages and paper. Every plot comes with the numbers that it shows.
"""

import dataclasses
import math
import re

import altair as alt
import vl_convert

from . import words
from .lines import is_ours

WIDTH = 400
# Longer tables of numbers are not printed.
PAPER_ROWS = 24
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# Of more powers of ten than that on an axis, only they are marked.
MOST_DECADES = 2
LARGE_UNITS = {"1/s", "rows/s", "bytes"}
# Stand-ins for colours: Vega wants real ones, the page its variables.
INK, FAINT, GRID, PAPER = "#010101", "#010102", "#010103", "#010104"
OURS = [f"#0201{index:02x}" for index in range(1, 7)]
PEERS = [f"#0301{index:02x}" for index in range(1, 10)]
VARIABLES = {
    INK: "--ink", FAINT: "--faint", GRID: "--grid", PAPER: "--paper",
    **{colour: f"--ours-{index}" for index, colour in enumerate(OURS, 1)},
    **{colour: f"--peer-{index}" for index, colour in enumerate(PEERS, 1)},
}


@dataclasses.dataclass(frozen=True)
class Plot:
    """`svg` is markup, of two drawings where they belong together; `head` and `rows` are the numbers behind it, `numeric` the
    first column of numbers if it is not the last.
    """

    title: str
    caption: str
    svg: str
    head: list
    rows: list
    numeric: int | None = None

    def html(self) -> str:
        table = words.table(self.head, self.rows, len(self.head) - 1 if self.numeric is None else self.numeric)
        numbers = words.details("The numbers behind this plot", table, on_paper=len(self.rows) <= PAPER_ROWS)
        title = words.escape(self.title)
        wide = ' class="wide"' if self.svg.count("<svg") > 1 else ""
        return (
            f'<figure{wide}><figcaption><strong>{title}</strong><br>{words.escape(self.caption)}</figcaption>'
            f'<div class="plot" role="img" aria-label="{title}. {words.escape(self.caption)}">{self.svg}</div>'
            f"{numbers}</figure>"
        )


def palette(labels: list) -> dict:
    """A colour for each contender of a scenario: ours of one family, peers of others, in order of appearance."""
    ours = [label for label in labels if is_ours(label)]
    others = [label for label in labels if not is_ours(label)]
    return {
        **{label: OURS[index % len(OURS)] for index, label in enumerate(ours)},
        **{label: PEERS[index % len(PEERS)] for index, label in enumerate(others)},
    }


def colour(colours: dict, labels: list, legend: bool = True) -> alt.Color:
    scale = alt.Scale(domain=labels, range=[colours[label] for label in labels])
    box = alt.Legend(title=None, orient="top", columns=2, labelLimit=180, symbolStrokeWidth=2) if legend else None
    return alt.Color("contender:N", scale=scale, legend=box, sort=labels)


def axis_format(unit: str) -> str:
    """Thousands as k where numbers are large; no `m` for thousandths, which readers take for something else."""
    return "~s" if unit in LARGE_UNITS else ".3~r"


def draw(chart: alt.Chart) -> str:
    axis = {"domainColor": FAINT, "tickColor": FAINT, "gridColor": GRID, "labelColor": INK, "titleColor": INK,
            "titleFontWeight": "normal", "labelFontSize": 12, "titleFontSize": 12, "labelFont": FONT, "titleFont": FONT}
    chart = chart.configure(background="transparent", font=FONT).configure_view(stroke=None).configure_axis(**axis)
    chart = chart.configure_legend(labelColor=INK, titleColor=INK, labelFontSize=12, labelFont=FONT)
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    svg = re.sub(r"#0[0-3]01[0-9a-f]{2}", lambda match: f"var({VARIABLES[match[0]]})", svg)
    width = re.search(r'width="([\d.]+)"', svg)[1]
    return re.sub(r' width="[\d.]+" height="[\d.]+"', f' style="max-width:{width}px"', svg, count=1)


def bars(title: str, caption: str, values: dict, unit: str, colours: dict) -> Plot:
    """One bar for each contender, its value at its end."""
    labels = list(values)
    data = alt.InlineData([
        {"contender": label, "value": value, "text": words.number(value)} for label, value in values.items()
    ])
    room = alt.Scale(domainMax=1.18 * max(values.values()))  # for the longest bar's figure
    base = alt.Chart(data, width=WIDTH - 170, height=alt.Step(26)).encode(
        y=alt.Y("contender:N", sort=labels, title=None, axis=alt.Axis(labelLimit=200, ticks=False, domain=False)),
        x=alt.X("value:Q", title=unit, axis=alt.Axis(tickCount=4, format=axis_format(unit)), scale=room),
    )
    drawn = base.mark_bar(height=16).encode(color=colour(colours, labels, legend=False)) + base.mark_text(
        align="left", dx=4, color=INK, fontSize=12, font=FONT
    ).encode(text="text:N")
    rows = [[words.escape(label), words.number(value)] for label, value in values.items()]
    return Plot(title, caption, draw(drawn), ["contender", words.escape(unit)], rows)


def curves(title: str, caption: str, points: list, axis: str, unit: str, colours: dict, ordinal=None) -> Plot:
    """`points` are (contender, x, y); both axes logarithmic, or x in the order of `ordinal`."""
    shown = words.escape if ordinal else words.number
    rows = [[words.escape(label), shown(x), words.number(y)] for label, x, y in points]
    drawn = curve(points, axis, unit, colours, ordinal)
    return Plot(title, caption, drawn, ["contender", words.escape(axis), words.escape(unit)], rows)


def curve_pair(title: str, caption: str, points: list, axis: str, units: tuple, colours: dict) -> Plot:
    """`points` are (contender, x, y, another y), drawn side by side."""
    drawn = [curve([(label, x, both[at]) for label, x, *both in points], axis, units[at], colours) for at in (0, 1)]
    rows = [[words.escape(label), *map(words.number, numbers)] for label, *numbers in points]
    return Plot(title, caption, "".join(drawn), ["contender", *map(words.escape, (axis, *units))], rows, numeric=1)


def curve(points: list, axis: str, unit: str, colours: dict, ordinal=None) -> str:
    labels = list(dict.fromkeys(label for label, *_ in points))
    data = alt.InlineData([{"contender": label, "x": x, "y": y} for label, x, y in points])
    if ordinal:
        across = alt.X("x:O", sort=ordinal, title=axis, axis=alt.Axis(labelAngle=0))
    else:
        places = sorted({x for _, x, _ in points})
        scale = alt.Scale(type="log", nice=False, padding=12)
        across = alt.X("x:Q", title=axis, scale=scale, axis=alt.Axis(values=places, format="~s", grid=False))
    scale, marks = log_axis([y for *_, y in points], unit)
    drawn = alt.Chart(data, width=WIDTH - 60, height=220).encode(
        x=across, y=alt.Y("y:Q", title=unit, scale=scale, axis=marks), color=colour(colours, labels),
    )
    return draw(drawn.mark_line(strokeWidth=2) + drawn.mark_point(filled=True, size=55, opacity=1).encode(
        shape=alt.Shape("contender:N", scale=alt.Scale(domain=labels), legend=None)
    ))


def log_axis(values: list, unit: str) -> tuple:
    """A logarithmic scale around the values, with marks at powers of ten, or at 1, 2 and 5 where that would be too few."""
    least, most = min(values), max(values)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = (1,) if high - low > MOST_DECADES else (1, 2, 5)
    marks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    below, above = [mark for mark in marks if mark <= least], [mark for mark in marks if mark >= most]
    domain = [below[-1], above[0] if above[0] > below[-1] else marks[marks.index(below[-1]) + 1]]
    shown = [mark for mark in marks if domain[0] <= mark <= domain[1]]
    return alt.Scale(type="log", domain=domain, nice=False), alt.Axis(values=shown, format=axis_format(unit))


def dots(title: str, caption: str, parts: list, units: tuple, colours: dict) -> Plot:
    """`parts` are rows of (text, contender to (value, a part of it)): a dot for each value and a ring for each part, if it is
    there, logarithmic. `units` are those of both; without a second one there are no rings.
    """
    labels = list(dict.fromkeys(label for _, found in parts for label in found))
    texts = alt.InlineData([{"row": index, "text": text} for index, (text, _) in enumerate(parts)])
    row = alt.Y("row:O", axis=None)
    scale, axis = log_axis([value for _, found in parts for both in found.values() for value in both if value], units[0])

    def layer(which: int, filled: bool):
        points = alt.InlineData([
            {"row": index, "contender": label, "value": both[which]}
            for index, (_, found) in enumerate(parts) for label, both in found.items() if both[which]
        ])
        return alt.Chart(points).mark_point(filled=filled, size=55, opacity=1, strokeWidth=1.5).encode(
            x=alt.X("value:Q", scale=scale, title=units[0], axis=axis), y=row, color=colour(colours, labels)
        )

    base = alt.Chart(texts, width=WIDTH - 20, height=alt.Step(40)).encode(y=row)
    drawn = layer(1, filled=False) + layer(0, filled=True) + row_texts(base)
    rows = [
        [words.escape(text), words.escape(label), *(words.number(value) for value in both[: len(units)])]
        for text, found in parts for label, both in found.items()
    ]
    return Plot(title, caption, draw(drawn), ["case", "contender", *map(words.escape, units)], rows, numeric=2)


def ranked(title: str, caption: str, points: list, colours: dict) -> Plot:
    """`points` are (contender, rank, ratio, name): ratios in order, with 1 marked."""
    labels = list(dict.fromkeys(label for label, *_ in points))
    data = alt.InlineData([{"contender": label, "x": rank, "y": ratio} for label, rank, ratio, _ in points])
    one = alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="one:Q")
    across = alt.Axis(grid=False, tickMinStep=1)
    scale, marks = log_axis([1, *(ratio for _, _, ratio, _ in points)], "times")
    lines = alt.Chart(data, width=WIDTH - 60, height=240).mark_line(strokeWidth=2, point={"filled": True, "size": 14})
    drawn = one + lines.encode(
        x=alt.X("x:Q", title="queries, in order of the ratio", axis=across, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", title="times as fast", scale=scale, axis=marks),
        color=colour(colours, labels),
    )
    rows = [[words.escape(label), words.escape(name), words.ratio(ratio)] for label, _, ratio, name in points]
    return Plot(title, caption, draw(drawn), ["against", "query", "ratio"], rows)


def times(title: str, caption: str, points: list, unit: str, colours: dict) -> Plot:
    """Something over seconds, linear: (contender, seconds, value)."""
    labels = list(dict.fromkeys(label for label, *_ in points))
    data = alt.InlineData([{"contender": label, "x": x, "y": y} for label, x, y in points])
    drawn = alt.Chart(data, width=WIDTH - 60, height=200).mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=alt.X("x:Q", title="seconds", axis=alt.Axis(grid=False, tickCount=6)),
        y=alt.Y("y:Q", title=unit, axis=alt.Axis(tickCount=5)), color=colour(colours, labels),
    )
    rows = [[words.escape(label), words.number(x), words.number(y)] for label, x, y in points]
    return Plot(title, caption, draw(drawn), ["contender", "seconds", words.escape(unit)], rows)


# Where the ratios are so close to 1 that there would be hardly another.
CLOSE_TICKS = (0.8, 0.9, 1, 1.2, 1.5)
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def ratio_axis(low: float, high: float) -> tuple:
    """A logarithmic scale with 1 on it, and as many ticks as a narrow page has room for."""
    low, high = min(0.8, low) * 0.9, max(1.5, high) * 1.1
    ticks = [value for value in TICKS if low <= value <= high]
    if len(ticks) < 3:
        ticks = [value for value in CLOSE_TICKS if low <= value <= high]
    if len(ticks) > 9:
        ticks = [value for value in ticks if f"{value:g}".strip("0.") == "1"]
    return alt.Scale(type="log", domain=[low, high], nice=False), alt.Axis(values=ticks, format=".3~r")


def side_encodings() -> dict:
    """Colour and shape by who was better, so that colour alone says nothing."""
    sides = ["ours", "peer"]
    return {
        "color": alt.Color("side:N", scale=alt.Scale(domain=sides, range=[OURS[0], PEERS[0]]), legend=None),
        "shape": alt.Shape("side:N", scale=alt.Scale(domain=sides, range=["circle", "square"]), legend=None),
    }


def ratio_texts(base: alt.Chart):
    """The text above each row, on a ground that hides grid lines, and its figures at the right end."""
    figures = base.encode(x=alt.value(WIDTH), text="shown:N")
    right = {**ROW_TEXT, "align": "right", "fontWeight": "bold"}
    return row_texts(base) + figures.mark_text(**right, **GROUND) + figures.mark_text(**right, color=INK)


ROW_TEXT = {"align": "left", "dy": -17, "fontSize": 12, "font": FONT, "limit": 310}
GROUND = {"stroke": PAPER, "strokeWidth": 4}


def row_texts(base: alt.Chart):
    texts = base.encode(x=alt.value(0), text="text:N")
    return texts.mark_text(**ROW_TEXT, **GROUND) + texts.mark_text(**ROW_TEXT, color=INK)


def one_rule(scale: alt.Scale) -> alt.Chart:
    rule = alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=INK, strokeDash=[4, 3])
    return rule.encode(x=alt.X("one:Q", scale=scale))


RATIO_TITLE = "how many times better than the peer (logarithmic)"


def strip(title: str, caption: str, parts: list, bounds: tuple) -> Plot:
    """Rows of (text, ratios by name): a dot for each ratio, with 1 marked, between the least and the most of `bounds`."""
    rows = [
        {"row": index, "text": text, "shown": words.span(min(found.values()), max(found.values()))}
        for index, (text, found) in enumerate(parts)
    ]
    dots = [
        {"row": index, "ratio": ratio, "side": "ours" if ratio >= 1 else "peer"}
        for index, (_, found) in enumerate(parts) for ratio in found.values()
    ]
    scale, axis = ratio_axis(*bounds)
    base = alt.Chart(alt.InlineData(rows), width=WIDTH, height=alt.Step(40)).encode(y=alt.Y("row:O", axis=None))
    drawn = one_rule(scale) + alt.Chart(alt.InlineData(dots)).mark_point(filled=True, size=55, opacity=0.75).encode(
        x=alt.X("ratio:Q", scale=scale, title=RATIO_TITLE, axis=axis), y=alt.Y("row:O", axis=None), **side_encodings()
    ) + ratio_texts(base)
    numbers = [
        [words.escape(text), words.escape(name), words.ratio(ratio)] for text, found in parts for name, ratio in found.items()
    ]
    return Plot(title, caption, draw(drawn), ["scenario", "comparison", "ratio"], numbers)


def ratios(title: str, caption: str, parts: list) -> Plot:
    """Rows of (text, least, middle, most): a dot for the median and a line for the range, with 1 marked."""
    data = alt.InlineData([
        {"row": index, "text": text, "least": least, "middle": middle, "most": most, "shown": words.span(least, most),
         "side": "ours" if middle >= 1 else "peer"}
        for index, (text, least, middle, most) in enumerate(parts)
    ])
    scale, axis = ratio_axis(min(part[1] for part in parts), max(part[3] for part in parts))
    sides = side_encodings()
    base = alt.Chart(data, width=WIDTH, height=alt.Step(40)).encode(y=alt.Y("row:O", axis=None))
    drawn = (
        one_rule(scale)
        + base.mark_rule(strokeWidth=4).encode(
            x=alt.X("least:Q", scale=scale, title=RATIO_TITLE, axis=axis), x2="most:Q", color=sides["color"])
        + base.mark_point(filled=True, size=90, opacity=1).encode(x="middle:Q", **sides)
        + ratio_texts(base)
    )
    rows = [[words.escape(text), *(words.ratio(value) for value in values)] for text, *values in parts]
    return Plot(title, caption, draw(drawn), ["comparison", "least", "median", "most"], rows)
