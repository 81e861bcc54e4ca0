"""The table of published claims beside what was measured here: same kind of work, each side on its own machine."""

import tomllib

from .. import places, registry
from . import words
from .lines import is_ours

FILE = places.BENCH / "claims.toml"


def table(lines: list) -> str:
    rows = [row(claim, lines) for claim in tomllib.loads(FILE.read_text(encoding="utf-8"))["claim"]]
    return words.table(["who", "what they published", "their figure", "ours, same work"], rows, 4, "stacked claims")


def row(claim: dict, lines: list) -> list:
    """One claim, and ours by client."""
    found = {}
    for line in lines:
        for ours, value in measured(claim, line) if fits(claim, line) else []:
            found.setdefault(ours, []).append(value)
    parts = [f"<strong>{shown(claim, values)}</strong> {words.escape(ours)}" for ours, values in found.items()]
    if parts and "peer" in claim:
        parts.append(f"against {words.escape(claim['peer'])}")
    ours = "<br>".join(parts) or "not measured yet"
    return [words.escape(claim["who"]), words.escape(claim["what"]), words.escape(claim["theirs"]), ours]


def fits(claim: dict, line) -> bool:
    return line.scenario.name == claim["scenario"] and all(
        line.axes.get(name) == value for name, value in claim.get("axes", {}).items()
    )


def measured(claim: dict, line) -> list:
    """How many times better each of our clients was than the peer, by the first metric of the scenario; without a peer, that
    metric itself.
    """
    metric, peer = line.scenario.metrics[0], claim.get("peer")
    values = {label: figures[metric.name] for label, figures in line.contenders.items() if figures.get(metric.name)}
    ours = [label for label in values if is_ours(label) and label == claim.get("ours", label)]
    if peer is None:
        return [(mine, values[mine]) for mine in ours]
    if peer not in values:
        return []
    return [(mine, values[peer] / values[mine] if metric.lower else values[mine] / values[peer]) for mine in ours]


def shown(claim: dict, values: list) -> str:
    least, most = min(values), max(values)
    if "peer" in claim:
        return words.span(least, most)
    unit = registry.SCENARIOS[claim["scenario"]].metrics[0].unit
    return f"{words.number(least)} to {words.number(most)} {unit}" if least < most else f"{words.number(most)} {unit}"
