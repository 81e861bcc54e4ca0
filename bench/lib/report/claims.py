"""The table of published claims beside what was measured here: same kind of work, each side on its own machine."""

import tomllib

from .. import places
from . import words
from .lines import is_ours

FILE = places.BENCH / "claims.toml"


def table(lines: list) -> str:
    rows = [row(claim, lines) for claim in tomllib.loads(FILE.read_text(encoding="utf-8"))["claim"]]
    return words.table(["who", "what they published", "their ratio", "ours, same work"], rows, 4, "stacked")


def row(claim: dict, lines: list) -> list:
    """One claim, and ours by client."""
    found = {}
    for line in lines:
        for ours, ratio in ratios(claim, line) if fits(claim, line) else []:
            found.setdefault(ours, []).append(ratio)
    parts = [f"<strong>{words.span(min(values), max(values))}</strong> {words.escape(ours)}" for ours, values in found.items()]
    measured = "<br>".join(parts) + f"<br>against {words.escape(claim['peer'])}" if parts else "not measured yet"
    return [words.escape(claim["who"]), words.escape(claim["what"]), words.escape(claim["theirs"]), measured]


def fits(claim: dict, line) -> bool:
    return line.scenario.name == claim["scenario"] and all(
        line.axes.get(name) == value for name, value in claim.get("axes", {}).items()
    )


def ratios(claim: dict, line) -> list:
    """How many times better each of our clients was than the peer, by the first metric of the scenario."""
    metric, peer = line.scenario.metrics[0], claim["peer"]
    values = {label: figures[metric.name] for label, figures in line.contenders.items() if figures.get(metric.name)}
    ours = [label for label in values if is_ours(label) and label == claim.get("ours", label)]
    if peer not in values:
        return []
    return [(mine, values[peer] / values[mine] if metric.lower else values[mine] / values[peer]) for mine in ours]
