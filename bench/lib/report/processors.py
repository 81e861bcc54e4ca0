"""How much processor time a transfer takes: of server and client together, for each GB. All contenders of a line are divided by
the same GB, those of Arrow data at our client, since others count theirs as texts or not at all.
"""

from . import plots
from .lines import Line, is_ours

TITLE = "Processor time for each GB"
CAPTION = (
    "Filled: server and client together; ring: the server alone, where there is one. Left is better; logarithmic. All sides "
    "are divided by the same GB, those that Bowshot's client has, at the largest size that was measured of both."
)
UNITS = ("server and client, s per GB", "server, s per GB")


def plot(groups: dict, colours: dict):
    """One figure for a scenario, or None where nobody knows processor times."""
    rows = [row for lines in groups.values() for row in of_group(lines)]
    return plots.dots(TITLE, CAPTION, rows, UNITS, colours) if rows else None


def of_group(lines: list) -> list:
    """The line of the most rows that has a peer; where lines do not differ in rows, each of them."""
    found = [(line, times) for line in lines if (times := per_gb(line)) and has_both_sides(times)]
    if found and any("rows" in line.axes for line, _ in found):
        found = [max(found, key=lambda item: item[0].axes.get("rows", 0))]
    return [(line.case, times) for line, times in found]


def has_both_sides(times: dict) -> bool:
    return len({is_ours(label) for label in times}) == 2


def per_gb(line: Line) -> dict:
    """By contender: seconds of both sides, and of the server alone (0 where there is none)."""
    size = next((figures["bytes"] for label, figures in line.contenders.items() if is_ours(label) and figures.get("bytes")), 0)
    if not size:
        return {}
    return {
        label: ((figures["server_cpu_s"] + figures["client_cpu_s"]) / (size / 1e9), figures["server_cpu_s"] / (size / 1e9))
        for label, figures in line.contenders.items() if "client_cpu_s" in figures and "server_cpu_s" in figures
    }
