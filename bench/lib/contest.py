"""One comparison of readers: the same query, the same kind of result, in turn, and the same answer from everybody."""

import dataclasses
import sys

from . import digest, measure, readers, results
from .arena import PEERS, Arena
from .environments import Unavailable


# A client reads again until it has read for so long.
BUDGET_S = 2.0


@dataclasses.dataclass(frozen=True)
class Contender:
    """`label` stands in the report; `peer` is the server, `reader` the kind of client (`readers.KINDS`). `most_rows` is set
    where a client keeps so much for each row that the machine's memory would not do for more.
    """

    label: str
    peer: str
    reader: str
    into: str
    most_rows: int | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the results: `axes` are what the report plots by, such as rows and shape."""

    scenario: str
    name: str
    query: str
    axes: dict
    repeats: int = 1


def run(case: Case, contenders: list, arena: Arena, judge=lambda figures: {}) -> None:
    """Measures the contenders whose servers run, checks that their answers are equal, records the figures. `judge` tells
    which ratios we want of them.
    """
    if not arena.options.has_case(case.name):
        print(f"left out by --case: {case.name}", file=sys.stderr)
        return
    chosen, too_many = [], {}
    for contender in contenders:
        if not arena.options.chosen(contender.label) or missing_reader(contender, arena):
            continue
        if contender.most_rows and case.axes["rows"] > contender.most_rows:
            too_many[contender.label] = f"not asked for more than {contender.most_rows:,} rows, which it would keep in memory"
            continue
        if server := arena.server(contender.peer):
            chosen.append((contender.label, server, contender))
    digests, peaks = {}, [0]

    def once(server, contender):
        check = contender.label not in digests
        answer = measure.client(
            server, contender.reader, action="fetch", query=case.query, into=contender.into,
            repeats=case.repeats, budget_s=BUDGET_S, check=check, needed_bytes=max(peaks),
        )
        if check:
            digests[contender.label] = answer["digest"]
        peaks.append(answer.get("client_peak_rss", 0))
        return answer

    answers = measure.in_turn(chosen, arena.options, once)
    equal(case, digests)
    figures = {label: measure.transfer(answers[label]) for label in answers}
    results.record(
        case.scenario, case.name, figures, judge(figures), arena.options, axes=case.axes, query=case.query,
        answers="equal" if len(digests) > 1 else "not compared", missing={**arena.missing, **too_many},
        peer_versions=arena.versions(),
        client_environment={
            it.reader: readers.LARGE_RESULTS[it.reader] for _, _, it in chosen if it.reader in readers.LARGE_RESULTS
        },
    )


def missing_reader(contender: Contender, arena: Arena) -> bool:
    """Whether the reader itself cannot run on this machine: then the arena knows why."""
    wanted = {contender.peer, readers.ENVIRONMENTS.get(contender.reader)} & set(PEERS)
    if not all(arena.options.has_peer(name) for name in wanted):
        return True
    if contender.label in arena.missing:
        return True
    try:
        measure.program(contender.reader)
    except Unavailable as reason:
        arena.leave_out(contender.label, str(reason))
    return contender.label in arena.missing


def equal(case: Case, digests: dict) -> None:
    """Every answer says the same as the first one."""
    labels = list(digests)
    for label in labels[1:]:
        if wrong := digest.difference(digests[labels[0]], digests[label]):
            raise RuntimeError(f"{case.scenario}, {case.name}: {labels[0]} and {label} differ: {wrong}")
    if len(labels) > 1:
        print(f"{case.name}: {len(labels)} equal answers", file=sys.stderr)
