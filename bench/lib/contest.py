"""One comparison of readers: the same query, the same kind of result, in turn, and the same answer from everybody."""

import dataclasses
import sys

from . import digest, measure, readers
from .arena import Arena

# A client reads again until it has read for so long.
BUDGET_S = 2.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the results: `axes` are what the report plots by, such as rows and shape."""

    scenario: str
    name: str
    query: str
    axes: dict
    repeats: int = 1


def run(case: Case, contenders: list, arena: Arena) -> None:
    """Measures the contenders whose servers run, checks that their answers are equal, records the figures."""
    if not arena.options.has_case(case.name):
        print(f"left out by --case: {case.name}", file=sys.stderr)
        return
    asked = [one for one in contenders if arena.options.chosen(one.label) and arena.has_reader(one)]
    too_many = {
        one.label: f"not asked for more than {one.most_rows:,} rows, which it would keep in memory"
        for one in asked if one.most_rows and case.axes["rows"] > one.most_rows
    }
    chosen = arena.choose([one for one in asked if one.label not in too_many])
    digests, peaks = {}, [0]

    def once(server, contender):
        check = contender.label not in digests
        answer = measure.client(
            server, contender.reader, action="fetch", query=case.query, into=contender.into, repeats=case.repeats,
            budget_s=BUDGET_S, check=check, needed_bytes=max(peaks),
        )
        if check:
            digests[contender.label] = answer["digest"]
        peaks.append(answer.get("client_peak_rss", 0))
        return answer

    answers = measure.in_turn(chosen, arena.options, once)
    equal(case, digests)
    figures = {label: measure.transfer(answers[label]) for label in answers}
    arena.record(
        case.scenario, case.name, figures, axes=case.axes, query=case.query,
        answers="equal" if len(digests) > 1 else "not compared", missing=too_many,
        client_environment={it.reader: readers.LARGE_RESULTS[it.reader] for _, _, it in chosen if it.reader in readers.LARGE_RESULTS},
    )


def equal(case: Case, digests: dict) -> None:
    """Every answer says the same as the first one."""
    labels = list(digests)
    for label in labels[1:]:
        if wrong := digest.difference(digests[labels[0]], digests[label]):
            raise RuntimeError(f"{case.scenario}, {case.name}: {labels[0]} and {label} differ: {wrong}")
    if len(labels) > 1:
        print(f"{case.name}: {len(labels)} equal answers", file=sys.stderr)
