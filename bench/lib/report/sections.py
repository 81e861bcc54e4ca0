"""One section for each scenario: its curves, who was faster in every case, all figures, and where they are from."""

from . import curves, verdicts, words
from .lines import Line, is_ours

WORST = 5


def section(lines: list, judged: list) -> str:
    about = lines[0].scenario
    return (
        f'<section><h2 id="{about.name}">{words.escape(about.title)}</h2><p>{words.escape(about.question)}</p>'
        f"{left_out(lines)}{curves.draw_all(lines)}{compared(lines, judged)}"
        f"{''.join(suite(line) for line in lines if line.has_queries())}{figures(lines)}{origin(lines)}</section>"
    )


def left_out(lines: list) -> str:
    """Peers that could not run on the machine, and why."""
    reasons = {peer: reason for line in lines for peer, reason in line.raw.get("missing", {}).items()}
    items = "".join(f"<li>{words.escape(peer)}: {words.escape(reason)}</li>" for peer, reason in reasons.items())
    return f'<div class="notice"><p>Not run on this machine:</p><ul>{items}</ul></div>' if items else ""


def compared(lines: list, judged: list) -> str:
    """Every contender of every case by the metrics of the scenario, with the ratio of ours to each peer."""
    ratios = {(id(verdict.line), verdict.metric, verdict.peer): verdict for verdict in judged}
    metrics = list(dict.fromkeys(metric for line in lines for metric in line.metrics()))
    times = {id(line): processor_times(line) for line in lines}
    head = [words.escape(f"{metric.title}, {metric.unit}") for metric in metrics]
    if any(times.values()):
        head += ["server and client, processor s per GB", "server alone"]
    rows = []
    for line in lines:
        for label, found in line.contenders.items():
            cells = [cell(metric, found.get(metric.name), ratios.get((id(line), metric, label))) for metric in metrics]
            if any(times.values()):
                cells += map(words.number, times[id(line)].get(label, ("", "")))
            rows.append([words.escape(line.case), words.escape(label), *cells])
    caption = "<p>In brackets: how many times better Bowshot is, read by the same client, or else by its best.</p>"
    return caption + words.table(["case", "contender", *head], rows, 2)


def cell(metric, value, verdict) -> str:
    if value is None:
        return ""
    shown = words.figure("bytes", value) if metric.unit == "bytes" else words.number(value)
    return shown if verdict is None else f'{shown} (<span class="{verdict.outcome}">{words.ratio(verdict.ratio)}</span>)'


def processor_times(line: Line) -> dict:
    """By contender: seconds of server and client, and of the server alone, for each GB that our client has: others count theirs as
    texts or not at all."""
    size = next((found["bytes"] for label, found in line.contenders.items() if is_ours(label) and found.get("bytes")), 0)
    return {
        label: ((found["server_cpu_s"] + found["client_cpu_s"]) / (size / 1e9), found["server_cpu_s"] / (size / 1e9))
        for label, found in line.contenders.items() if size and "client_cpu_s" in found and "server_cpu_s" in found
    }


def suite(line: Line) -> str:
    """The worst queries against each peer, and who failed where."""
    worst = [
        [words.escape(peer), ", ".join(f"{query} {words.ratio(ratio)}" for query, ratio in list(queries.items())[:WORST])]
        for peer, queries in verdicts.compare_queries(line).items()
    ]
    troubles = [
        [words.escape(text) for text in (label, query, kind, text)]
        for label, found in line.contenders.items()
        for kind, queries in (("failed", found["failures"]), ("another answer", found["different"]))
        for query, text in queries.items()
    ]
    content = f"<h3>{words.escape(line.case)}: where Bowshot does worst</h3>" + words.table(["against", "queries"], worst)
    if troubles:
        table = words.table(["contender", "query", "what", "text"], troubles)
        content += words.details(f"Failed queries and answers that differ: {len(troubles)}", table)
    return content


def figures(lines: list) -> str:
    """All figures of all contenders."""
    names = list(dict.fromkeys(
        name for line in lines for found in line.contenders.values() for name, value in found.items()
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
    content = words.table(["case", "time", "commit", "machine", "command", "settings"], rows)
    versions = {name: version for line in lines for name, version in line.raw.get("versions", {}).items()}
    content += f"<p>Versions: {words.escape(', '.join(f'{name} {version}' for name, version in versions.items()))}</p>"
    raw = "".join(f"<p>{words.code(line.raw)}</p>" for line in lines)
    return words.details("Commits, commands, settings, versions", content) + words.details("Raw result lines, all runs", raw)
