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
    peer: str
    ratio: float

    @property
    def outcome(self) -> str:
        if abs(self.ratio - 1) <= LEVEL:
            return "level"
        return "faster" if self.ratio > 1 else "slower"


def judge(line: Line) -> list:
    """By the metrics of the scenario that are judged; ceilings are no peers. A peer is compared with the same client of ours
    where there is one, else with our best.
    """
    if line.has_queries():
        return judge_queries(line)
    found = []
    for metric in line.judged():
        values = line.values(metric)
        ours = {label: value for label, value in values.items() if is_ours(label)}
        if not ours:
            continue
        best = (min if metric.lower else max)(ours, key=ours.get)
        for peer in values:
            if peer not in ours and peer not in line.ceilings:
                mine = next((label for label in ours if client(label) and client(label) == client(peer)), best)
                found.append(Verdict(line, metric, peer, metric.ratio(ours[mine], values[peer])))
    return found


def client(label: str) -> str:
    """What stands in parentheses at the end of a label: `ADBC` of `PostgreSQL (ADBC)`."""
    return label.rsplit("(", 1)[1].rstrip(")") if label.endswith(")") else ""


def judge_queries(line: Line) -> list:
    """The geometric mean of the ratios of the queries that both sides have completed."""
    return [
        Verdict(line, line.scenario.metrics[0], peer, statistics.geometric_mean(ratios.values()))
        for peer, ratios in compare_queries(line).items()
    ]


def compare_queries(line: Line) -> dict:
    """By peer: query to how many times as fast ours was, the slowest first."""
    times = {label: figures["queries"] for label, figures in line.contenders.items()}
    ours = next((queries for label, queries in times.items() if is_ours(label)), {})
    found = {
        peer: sorted(((query, theirs[query] / ours[query]) for query in ours if query in theirs), key=lambda item: item[1])
        for peer, theirs in times.items() if not is_ours(peer)
    }
    return {peer: dict(ratios) for peer, ratios in found.items() if ratios}
