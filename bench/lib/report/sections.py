"""The parts of the page: the first screen, claims, one section for each scenario, and where the numbers are from."""

import statistics

from . import plots, suites, words
from .lines import Line
from .verdicts import Summary

PERCENTILES = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9"}
AXES = {"rows": "rows", "clients": "clients", "streams": "streams"}
SHOWN_IN_CARD = 6


def lead(summaries: list, verdicts: list) -> str:
    """The answer in two sentences."""
    if not verdicts:
        return "There are no results beside those of other systems yet."
    count = {name: sum(verdict.outcome == name for verdict in verdicts) for name in ("faster", "level", "slower")}
    peers = len({verdict.peer for verdict in verdicts})
    middle = statistics.median(verdict.ratio for verdict in verdicts)
    return (
        f"How fast do results of an SQL query reach the program that asked for them? In {len(verdicts)} comparisons with "
        f"{peers} other ways of reading and writing, Bowshot was better in <strong>{count['faster']}</strong>, level in "
        f"<strong>{count['level']}</strong> and worse in <strong>{count['slower']}</strong>; the median "
        f"of all ratios is <strong>{words.ratio(middle)}</strong>. Above 1× Bowshot is better, below 1× the other."
    )


def first_screen(summaries: list) -> str:
    faster = sorted((part for part in summaries if part.always_faster), key=lambda part: -part.middle)
    slower = sorted((part for part in summaries if not part.always_faster), key=lambda part: part.least)
    cards = card("Where it is faster", faster, "Nowhere yet.") + card(
        "Where it is not, or not always", slower, "In none of these comparisons.", worst=True
    )
    content = f'<div class="cards">{cards}</div>'
    return content + framed(overview(summaries)) if summaries else content


def overview(summaries: list) -> list:
    """All comparisons as dots, by scenario, in two columns if they are many."""
    parts = {}
    for part in summaries:
        parts.setdefault(part.scenario.title, {})[title(part)] = part.middle
    rows = list(parts.items())
    caption = "A dot for each comparison. Right of the dashed line (round) Bowshot is better, left of it (square) the peer."
    half = (len(rows) + 1) // 2 if len(rows) > 6 else len(rows)
    columns = [column for column in (rows[:half], rows[half:]) if column]
    names = ["Against every peer"] if len(columns) == 1 else ["Against every peer, 1", "Against every peer, 2"]
    bounds = min(part.middle for part in summaries), max(part.middle for part in summaries)
    return [plots.strip(name, caption, column, bounds) for name, column in zip(names, columns, strict=True)]


def comparisons(summaries: list):
    """The comparisons of one scenario."""
    ordered = sorted(summaries, key=lambda part: -part.middle)
    parts = [(title(part), part.least, part.middle, part.most) for part in ordered]
    by = ordered[0].metric.title
    caption = (
        f"By {by}. Dot: median over sizes; line: range. Right of the dashed line Bowshot is better, read by the same "
        "client, or else by its best."
    )
    return plots.ratios("Against every peer", caption, parts)


def title(part: Summary) -> str:
    return f"{part.group or part.scenario.title} · {part.peer}"


def card(head: str, parts: list, nothing: str, worst: bool = False) -> str:
    items = []
    for part in parts[:SHOWN_IN_CARD]:
        value = words.span(part.least, part.most)
        place = part.group or part.scenario.title
        by = "" if part.metric.name == "seconds" else f", by {part.metric.title}"
        style = "slower" if worst else "faster"
        text = words.escape(f"{place[0].upper()}{place[1:]}, against {part.peer}{by}")
        items.append(f'<li><a href="#{part.scenario.name}"><span class="{style}">{value}</span></a> {text}</li>')
    more = f"<p>{len(parts) - SHOWN_IN_CARD} more are in the plot below.</p>" if len(parts) > SHOWN_IN_CARD else ""
    listed = f"<ul>{''.join(items)}</ul>" if items else f"<p>{nothing}</p>"
    return f'<section class="card"><h2>{head}</h2>{listed}{more}</section>'


def scenario(groups: dict, summaries: list) -> str:
    """One scenario: what it asks, plots, all figures, and how to run it again."""
    lines = [line for part in groups.values() for line in part]
    about = lines[0].scenario
    labels = list(dict.fromkeys(label for line in lines for label in line.contenders))
    colours = plots.palette(labels)
    drawn = [comparisons(summaries)] if summaries else []
    drawn += [plot for group, part in groups.items() for plot in group_plots(group, part, colours)]
    suite = "".join(suites.tables(line) for line in lines if suites.has_queries(line))
    head = f'<h2 id="{about.name}">{words.escape(about.title)}</h2><p>{words.escape(about.question)}</p>'
    return f"<section>{head}{left_out(lines)}{framed(drawn)}{suite}{figures(lines)}{origin(lines)}</section>"


def framed(drawn: list) -> str:
    return f"""<div class="plots">{''.join(plot.html() for plot in drawn)}</div>"""


def group_plots(group: str, lines: list, colours: dict) -> list:
    """By the numbers that the lines differ in where there are several; otherwise bars for each line."""
    found = []
    axis = next((name for name in AXES if len({line.axes.get(name) for line in lines} - {None}) > 1), None)
    if axis:
        for metric in lines[0].metrics():
            found.append(axis_plot(group, lines, axis, metric, colours))
    for line in lines:
        found.extend(line_plots(line, colours, bars=axis is None))
    return [plot for plot in found if plot]


def axis_plot(group: str, lines: list, axis: str, metric, colours: dict):
    points = [
        (label, line.axes[axis], figures[metric.name])
        for line in lines for label, figures in line.contenders.items() if figures.get(metric.name)
    ]
    better = "lower" if metric.lower else "higher"
    name = f"{metric.title.capitalize()} by {AXES[axis]}" + (f": {group}" if group else "")
    caption = f"{better.capitalize()} is better; both axes logarithmic."
    return plots.curves(name, caption, points, AXES[axis], metric.unit, colours)


def line_plots(line: Line, colours: dict, bars: bool) -> list:
    found = []
    for metric in line.metrics() if bars else []:
        values = {label: figures[metric.name] for label, figures in line.contenders.items() if figures.get(metric.name)}
        scaled, unit = in_unit(values, metric.unit)
        better = "Lower" if metric.lower else "Higher"
        found.append(plots.bars(f"{metric.title.capitalize()}: {line.case}", f"{better} is better.", scaled, unit, colours))
    if suites.has_queries(line):
        found.append(suites.plot(line, colours))
    percentiles = [
        (label, name, figures[figure])
        for label, figures in line.contenders.items() for figure, name in PERCENTILES.items() if figure in figures
    ]
    if len({name for _, name, _ in percentiles}) > 2:
        found.append(plots.curves(
            f"Time of a query, by percentile: {line.case}", "Lower is better; the vertical axis is logarithmic.", percentiles,
            "percentile", "ms", colours, ordinal=list(PERCENTILES.values()),
        ))
    memory = [
        (label, seconds, value / 1e6)
        for label, figures in line.contenders.items() for seconds, value in figures.get("rss_over_time", [])
    ]
    if memory:
        found.append(plots.times(f"Memory over time: {line.case}", "Resident set; lower is better.", memory, "MB", colours))
    return found


def in_unit(values: dict, unit: str) -> tuple:
    if unit != "bytes":
        return values, unit
    return {label: value / 1e6 for label, value in values.items()}, "MB"


def left_out(lines: list) -> str:
    """Peers that could not run on the machine, and why."""
    reasons = {peer: reason for line in lines for peer, reason in line.raw.get("missing", {}).items()}
    items = "".join(f"<li>{words.escape(peer)}: {words.escape(reason)}</li>" for peer, reason in reasons.items())
    return f'<div class="notice"><p>Not run on this machine:</p><ul>{items}</ul></div>' if items else ""


def figures(lines: list) -> str:
    """All figures of all contenders."""
    names = list(dict.fromkeys(
        name for line in lines for figures in line.contenders.values() for name, value in figures.items()
        if isinstance(value, int | float)
    ))
    rows = [
        [words.escape(line.case), words.escape(label), *(words.figure(name, found.get(name, "")) for name in names)]
        for line in lines for label, found in line.contenders.items()
    ]
    head = ["case", "contender", *(words.escape(name.replace("_", " ")) for name in names)]
    return words.details("All figures of this scenario", words.table(head, rows, 2))


def commit(line: Line) -> str:
    return line.raw["commit"] + (" with changes" if line.raw.get("modified") else "")


def origin(lines: list) -> str:
    """When, where and with what: the newest line speaks for its run, the table has them all."""
    rows = [
        [words.escape(line.case), words.escape(line.time), words.code(commit(line)), words.code(line.raw.get("command", "")),
         words.code(line.raw["settings"])]
        for line in lines
    ]
    content = words.table(["case", "time", "commit", "command", "settings"], rows, 5)
    versions = {name: version for line in lines for name, version in line.raw.get("versions", {}).items()}
    content += f"<p>Versions: {words.escape(', '.join(f'{name} {version}' for name, version in versions.items()))}</p>"
    raw = "".join(f"<p>{words.code(line.raw)}</p>" for line in lines)
    return words.details("Commits, commands, settings, versions", content) + words.details("Raw result lines, all runs", raw)
