"""What is drawn of one scenario: by the number that its lines differ in, such as rows, or line by line."""

from . import plots, processors, suites
from .lines import Line

PERCENTILES = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9"}
AXES = {"rows": "rows", "clients": "clients", "streams": "streams"}
# More bar plots of one metric than that are drawn as one of dots.
MOST_BARS = 3
OVER_TIME = {"rss_over_time": "the server", "client_rss_over_time": "the largest client"}


def of_scenario(groups: dict, colours: dict) -> list:
    """All plots but that of ratios; `groups` are its lines by what they have in common in words."""
    alone = [line for lines in groups.values() if axis_of(lines) is None for line in lines]
    found = [processors.plot(groups, colours)]
    found += [plot for group, lines in groups.items() for plot in group_plots(group, lines, colours)]
    found += single_plots(alone, colours)
    found += [plot for lines in groups.values() for plot in percentile_plots(lines, colours)]
    found += [plot for lines in groups.values() for line in lines for plot in line_plots(line, colours)]
    return [plot for plot in found if plot]


def axis_of(lines: list) -> str | None:
    """The number that lines of one group differ in."""
    return next((name for name in AXES if len({line.axes.get(name) for line in lines} - {None}) > 1), None)


def group_plots(group: str, lines: list, colours: dict) -> list:
    """By the number that the lines differ in, if there is one; the first metric with the one that tells the same by size."""
    axis = axis_of(lines)
    metrics = list(dict.fromkeys(metric for line in lines for metric in line.metrics())) if axis else []
    beside = next((metric for metric in metrics if metric.by_size), None)
    found = [pair_plot(group, lines, axis, (metrics[0], beside), colours)] if beside else []
    return found + [axis_plot(group, lines, axis, metric, colours) for metric in metrics[len(found) * 2:]]


def single_plots(lines: list, colours: dict) -> list:
    """Lines that stand alone: bars for each; one plot of dots if they are many, one of bars if each has one contender."""
    found = []
    for metric in dict.fromkeys(metric for line in lines for metric in line.metrics() if not metric.by_size):
        cases = {line.case: values for line in lines if (values := values_of(line, metric))}
        if len(cases) > MOST_BARS:
            found.append(dots_plot(metric, cases, colours))
        elif len(cases) > 1 and all(len(values) == 1 for values in cases.values()):
            labels = {case: next(iter(values)) for case, values in cases.items()}
            together = {case: cases[case][label] for case, label in labels.items()}
            shades = {case: colours[label] for case, label in labels.items()}
            found.append(bars_plot(metric, ", ".join(dict.fromkeys(labels.values())), together, shades))
        else:
            found += [bars_plot(metric, case, values, colours) for case, values in cases.items()]
    return found


def values_of(line: Line, metric) -> dict:
    """By contender, in the unit that is shown."""
    scale = 1e-6 if metric.unit == "bytes" else 1
    return {
        label: figures[metric.name] * scale for label, figures in line.contenders.items() if figures.get(metric.name)
    }


def unit(metric) -> str:
    return "MB" if metric.unit == "bytes" else metric.unit


def bars_plot(metric, case: str, values: dict, colours: dict):
    return plots.bars(f"{metric.title.capitalize()}: {case}", f"{better(metric)} is better.", values, unit(metric), colours)


def dots_plot(metric, cases: dict, colours: dict):
    parts = [(case, {label: (value, None) for label, value in values.items()}) for case, values in cases.items()]
    caption = f"{better(metric)} is better; logarithmic."
    return plots.dots(metric.title.capitalize(), caption, parts, (f"{metric.title} in {unit(metric)}",), colours)


def axis_plot(group: str, lines: list, axis: str, metric, colours: dict):
    points = [
        (label, line.axes[axis], value)
        for line in lines if axis in line.axes for label, value in values_of(line, metric).items()
    ]
    name = f"{metric.title.capitalize()} by {AXES[axis]}" + (f": {group}" if group else "")
    caption = f"{better(metric)} is better; both axes logarithmic.{mixed(lines)}"
    return plots.curves(name, caption, points, AXES[axis], unit(metric), colours)


def pair_plot(group: str, lines: list, axis: str, metrics: tuple, colours: dict):
    points = [
        (label, line.axes[axis], value, line.contenders[label][metrics[1].name])
        for line in lines if axis in line.axes for label, value in values_of(line, metrics[0]).items()
        if line.contenders[label].get(metrics[1].name)
    ]
    name = f"{metrics[0].title.capitalize()} and {metrics[1].title} by {AXES[axis]}" + (f": {group}" if group else "")
    caption = f"{' is better on the left, '.join(better(metric).lower() for metric in metrics).capitalize()} on the right; "
    caption += f"all axes logarithmic.{mixed(lines)}"
    return plots.curve_pair(name, caption, points, AXES[axis], tuple(map(unit, metrics)), colours)


def better(metric) -> str:
    return "Lower" if metric.lower else "Higher"


def mixed(lines: list) -> str:
    """Sizes that were measured at different times say little about one another."""
    found = dict.fromkeys(line.processor() for line in lines)
    return f" Not all sizes were measured on the same processor ({', '.join(found)})." if len(found) > 1 else ""


def percentile_plots(lines: list, colours: dict) -> list:
    """Of lines that differ in a number, those of the least and of the most: what lies between looks like them."""
    axis = axis_of(lines)
    if axis:
        ordered = sorted((line for line in lines if axis in line.axes), key=lambda line: line.axes[axis])
        lines = [ordered[0], ordered[-1]]
    return [plot for line in lines if (plot := percentile_plot(line, colours))]


def percentile_plot(line: Line, colours: dict):
    points = [
        (label, name, figures[figure])
        for label, figures in line.contenders.items() for figure, name in PERCENTILES.items() if figure in figures
    ]
    if len({name for _, name, _ in points}) <= 2:
        return None
    title = f"Time of a query, by percentile: {line.case}"
    caption, names = "Lower is better; the vertical axis is logarithmic.", list(PERCENTILES.values())
    return plots.curves(title, caption, points, "percentile", "ms", colours, ordinal=names)


def line_plots(line: Line, colours: dict) -> list:
    """What only some lines have: ratios by query, memory over time."""
    found = [suites.plot(line, colours)] if suites.has_queries(line) else []
    for figure, whose in OVER_TIME.items():
        points = [
            (label, seconds, value / 1e6)
            for label, figures in line.contenders.items() for seconds, value in figures.get(figure, [])
        ]
        if points:
            title = f"Memory of {whose} over time: {line.case}"
            found.append(plots.times(title, "Resident set; lower is better.", points, "MB", colours))
    return found
