"""One section for each scenario: plots, all figures, and where the numbers are from."""

from . import drawings, plots, suites, words
from .lines import Line
from .verdicts import Summary

AHEAD = {
    "joins_ahead_seconds": "joins, s", "joins_ahead_bytes": "joins, memory", "results_ahead_seconds": "results, s",
    "results_ahead_bytes": "results, memory",
}


def comparisons(summaries: list):
    """The comparisons of one scenario."""
    ordered = sorted(summaries, key=lambda part: -part.middle)
    metrics = list(dict.fromkeys(part.metric.title for part in ordered))
    parts = [
        (title(part) + (f" · {part.metric.title}" if len(metrics) > 1 else ""), part.least, part.middle, part.most)
        for part in ordered
    ]
    by = " or ".join(metrics)
    caption = (
        f"By {by}. Dot: median over sizes; line: range. Right of the dashed line Bowshot is better, read by the same "
        "client, or else by its best."
    )
    return plots.ratios("Against every peer", caption, parts)


def title(part: Summary) -> str:
    return f"{part.group or part.scenario.title} · {part.peer}"


def scenario(groups: dict, summaries: list) -> str:
    """One scenario: what it asks, plots, all figures, and how to run it again."""
    lines = [line for part in groups.values() for line in part]
    about = lines[0].scenario
    labels = list(dict.fromkeys(label for line in lines for label in line.contenders))
    colours = plots.palette(labels)
    drawn = [comparisons(summaries)] if summaries else []
    drawn += drawings.of_scenario(groups, colours)
    suite = "".join(suites.tables(line) for line in lines if suites.has_queries(line))
    head = f'<h2 id="{about.name}">{words.escape(about.title)}</h2><p>{words.escape(about.question)}</p>'
    return f"<section>{head}{left_out(lines)}{framed(drawn)}{ahead(lines)}{suite}{figures(lines)}{origin(lines)}</section>"


def framed(drawn: list) -> str:
    return f"""<div class="plots">{''.join(plot.html() for plot in drawn)}</div>"""


def ahead(lines: list) -> str:
    """What the answers took before anybody asked for them."""
    rows = [
        [words.escape(line.case), *(words.figure(name, figures[name]) for name in AHEAD)]
        for line in lines for figures in line.contenders.values() if all(name in figures for name in AHEAD)
    ]
    return f"<h3>What was spent ahead</h3>{words.table(['for', *AHEAD.values()], rows)}" if rows else ""


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


def origin(lines: list) -> str:
    """When, where and with what: the newest line speaks for its run, the table has them all."""
    rows = [
        [words.escape(line.case), words.escape(line.time), words.code(line.commit()), words.escape(line.machine()),
         words.code(line.raw.get("command", "")), words.code(line.raw["settings"])]
        for line in lines
    ]
    content = words.table(["case", "time", "commit", "machine", "command", "settings"], rows, 6)
    versions = {name: version for line in lines for name, version in line.raw.get("versions", {}).items()}
    content += f"<p>Versions: {words.escape(', '.join(f'{name} {version}' for name, version in versions.items()))}</p>"
    raw = "".join(f"<p>{words.code(line.raw)}</p>" for line in lines)
    return words.details("Commits, commands, settings, versions", content) + words.details("Raw result lines, all runs", raw)
