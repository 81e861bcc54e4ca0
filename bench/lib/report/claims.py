"""The table of published claims beside what was measured here: same kind of work, each side on its own machine."""

import tomllib

from .. import places, registry
from . import words
from .lines import is_ours

FILE = places.BENCH / "claims.toml"
TITLE = "Published claims, and the same work here"
EXPLAINED = (
    "Other systems have published how many times faster they are than what their users had before. Their figures are from "
    "their machines; what can be compared is the ratio. Both sides of ours were measured in one run on one machine."
)


def section(lines: list) -> str:
    rows = [row(claim, lines) for claim in tomllib.loads(FILE.read_text(encoding="utf-8"))["claim"]]
    table = words.table(["who", "what they published", "their figure", "ours, same work"], rows)
    return f'<section id="claims"><h2>{TITLE}</h2><p>{EXPLAINED}</p>{table}</section>'


def row(claim: dict, lines: list) -> list:
    """One claim, and ours by client."""
    found = {}
    for line in lines:
        for ours, value in measured(claim, line) if line.fits(claim["scenario"], claim.get("axes", {})) else []:
            found.setdefault(ours, []).append(value)
    parts = [f"<strong>{shown(claim, values)}</strong> {words.escape(ours)}" for ours, values in found.items()]
    if parts and "peer" in claim:
        parts.append(f"against {words.escape(claim['peer'])}")
    return [*(words.escape(claim[name]) for name in ("who", "what", "theirs")), "<br>".join(parts) or "not measured yet"]


def measured(claim: dict, line) -> list:
    """How many times better each of our clients was than the peer, by the first metric of the scenario; without a peer, that
    metric itself.
    """
    metric, peer = line.scenario.metrics[0], claim.get("peer")
    values = line.values(metric)
    ours = {label: value for label, value in values.items() if is_ours(label) and label == claim.get("ours", label)}
    if peer is None:
        return list(ours.items())
    return [(mine, metric.ratio(value, values[peer])) for mine, value in ours.items() if peer in values]


def shown(claim: dict, values: list) -> str:
    least, most = min(values), max(values)
    if "peer" in claim:
        return words.span(least, most)
    unit = registry.SCENARIOS[claim["scenario"]].metrics[0].unit
    return " to ".join(map(words.number, dict.fromkeys([least, most]))) + f" {unit}"
