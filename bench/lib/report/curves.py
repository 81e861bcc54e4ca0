"""What tables show badly: figures by the number that lines differ in, and memory over time. Vega-Altair draws, and its numbers
become SVG without a browser."""

import altair as alt
import vl_convert

from . import words

WIDTH, HEIGHT = 400, 230
AXES = ("rows", "clients", "streams")
OVER_TIME = {"rss_over_time": "the server", "client_rss_over_time": "the largest client"}


def draw_all(lines: list) -> str:
    """The curves of one scenario; each metric that is judged, by the number that lines of one group differ in."""
    found = []
    for group in dict.fromkeys(line.group() for line in lines):
        members = [line for line in lines if line.group() == group]
        axis = next((name for name in AXES if len({line.axes.get(name) for line in members} - {None}) > 1), None)
        members = [line for line in members if axis in line.axes]
        for metric in dict.fromkeys(metric for line in members for metric in line.judged()):
            points = [(label, line.axes[axis], value) for line in members for label, value in line.values(metric).items()]
            title = f"{metric.title.capitalize()} by {axis}{': ' if group else ''}{group}{mention_processors(members)}"
            found.append(draw(title, points, axis, metric.unit, "log"))
    for line in lines:
        for figure, whose in OVER_TIME.items():
            series = {label: figures.get(figure, []) for label, figures in line.contenders.items()}
            points = [(label, seconds, size / 1e6) for label, samples in series.items() for seconds, size in samples]
            if points:
                found.append(draw(f"Memory of {whose} over time: {line.case}", points, "seconds", "MB", "linear"))
    return f'<div class="curves">{"".join(found)}</div>' if found else ""


def mention_processors(lines: list) -> str:
    """Sizes that were measured at different times say little about one another."""
    found = dict.fromkeys(line.processor() for line in lines)
    return f"; not all were measured on the same processor ({', '.join(found)})" if len(found) > 1 else ""


def draw(title: str, points: list, axis: str, unit: str, kind: str) -> str:
    """`points` are (contender, x, y)."""
    data = alt.InlineData([{"contender": label, "x": x, "y": y} for label, x, y in points])
    scale = alt.Scale(type=kind, zero=False, nice=kind == "linear")
    marks = alt.Axis(format="~s" if unit in ("rows/s", "1/s") else ".3~r", tickCount=6)
    chart = alt.Chart(data, width=WIDTH, height=HEIGHT).mark_line(point=kind == "log").encode(
        x=alt.X("x:Q", title=axis, scale=scale, axis=alt.Axis(format="~s", tickCount=6)),
        y=alt.Y("y:Q", title=unit, scale=scale, axis=marks),
        color=alt.Color("contender:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=2, labelLimit=200)),
    )
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    return f"<figure><figcaption>{words.escape(title)}</figcaption>{svg}</figure>"
