"""Who was faster, and by how much: one of our clients against each peer, in every case."""

import dataclasses
import statistics

from .lines import Line, is_ours

LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`ratio` is how many times better ours was by `metric`; below 1 the peer was better."""

    line: Line
    metric: object
    ours: str
    peer: str
    ratio: float

    @property
    def outcome(self) -> str:
        return outcome(self.ratio)


@dataclasses.dataclass(frozen=True)
class Summary:
    """All cases of one scenario, group and peer."""

    scenario: object
    group: str
    peer: str
    metric: object
    verdicts: tuple

    @property
    def middle(self) -> float:
        return statistics.median(verdict.ratio for verdict in self.verdicts)

    @property
    def least(self) -> float:
        return min(verdict.ratio for verdict in self.verdicts)

    @property
    def most(self) -> float:
        return max(verdict.ratio for verdict in self.verdicts)


def outcome(ratio: float) -> str:
    if abs(ratio - 1) <= LEVEL:
        return "level"
    return "faster" if ratio > 1 else "slower"


def of_line(line: Line) -> list:
    """By the metrics of the scenario that are judged; ceilings are no peers. A peer is compared with the same client of ours
    where there is one, else with our best.
    """
    if any("queries" in figures for figures in line.contenders.values()):
        return of_queries(line)
    found = []
    for metric in line.judged():
        values = {label: figures[metric.name] for label, figures in line.contenders.items() if figures.get(metric.name)}
        ours = {label: value for label, value in values.items() if is_ours(label)}
        if not ours:
            continue
        best = (min if metric.lower else max)(ours, key=ours.get)
        for peer in values:
            if peer not in ours and peer not in line.ceilings:
                mine = next((label for label in ours if client(label) and client(label) == client(peer)), best)
                ratio = values[peer] / ours[mine] if metric.lower else ours[mine] / values[peer]
                found.append(Verdict(line, metric, mine, peer, ratio))
    return found


def client(label: str) -> str:
    """What stands in parentheses at the end of a label: `ADBC` of `PostgreSQL (ADBC)`."""
    return label.rsplit("(", 1)[1].rstrip(")") if label.endswith(")") else ""


def of_queries(line: Line) -> list:
    """The geometric mean of the ratios of the queries that both sides have completed."""
    times = {label: figures["queries"] for label, figures in line.contenders.items()}
    ours = [label for label in times if is_ours(label)]
    found = []
    for peer in times:
        ratios = by_query(times[ours[0]], times[peer]) if ours and peer not in ours else {}
        if ratios:
            mean = statistics.geometric_mean(ratios.values())
            found.append(Verdict(line, line.scenario.metrics[0], ours[0], peer, mean))
    return found


def by_query(ours: dict, theirs: dict) -> dict:
    """How many times as fast ours was, for each query that both have completed."""
    return {query: theirs[query] / ours[query] for query in ours if query in theirs}


def of_lines(lines: list) -> list:
    return [verdict for line in lines for verdict in of_line(line)]


def summaries(verdicts: list) -> list:
    parts = {}
    for verdict in verdicts:
        key = verdict.line.scenario.name, verdict.line.group(), verdict.peer, verdict.metric.name
        parts.setdefault(key, []).append(verdict)
    return [
        Summary(part[0].line.scenario, part[0].line.group(), part[0].peer, part[0].metric, tuple(part))
        for part in parts.values()
    ]
