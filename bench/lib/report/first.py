"""The first screen: how much faster, for whom, and where not. Every comparison counts once, for one kind of user."""

import statistics
import tomllib

from .. import places
from . import words

FILE = places.BENCH / "users.toml"
OTHERS = {"who": "Others", "what": "", "scenarios": None}
OUTCOMES = ("faster", "level", "slower")
# So many comparisons that a kind of user loses are named, the worst first.
NAMED = 4


def lead(judged: list) -> str:
    """What is measured here, and the answer."""
    if not judged:
        return "There are no results beside those of other systems yet."
    count = counted(judged)
    return (
        "Bowshot answers SQL queries and hands the rows to the program that asked, in the form that analytics tools compute on "
        "(Apache Arrow), without translating values one by one. How much faster is that? "
        f"In {len(judged)} comparisons with {len({verdict.peer for verdict in judged})} other ways of doing the same work "
        f"Bowshot was better in <strong>{count['faster']}</strong>, level in <strong>{count['level']}</strong> and worse in "
        f"<strong>{count['slower']}</strong>; the median is "
        f"<strong>{words.ratio(statistics.median(verdict.ratio for verdict in judged))}</strong>. "
        "2× means twice as good, such as in half of the time; 0.5× half as good."
    )


def counted(judged: list) -> dict:
    return {name: sum(verdict.outcome == name for verdict in judged) for name in OUTCOMES}


def screen(judged: list) -> str:
    """A row for each kind of user in the order of the file; those of whom nothing was measured are left out."""
    kinds = [*tomllib.loads(FILE.read_text(encoding="utf-8"))["user"], OTHERS]
    found = [[] for _ in kinds]
    for verdict in judged:
        found[next(at for at, kind in enumerate(kinds) if has(kind, verdict))].append(verdict)
    rows = [row(kind, part) for kind, part in zip(kinds, found, strict=True) if part]
    return words.table(["for whom", "by how much", *OUTCOMES, "where it is slower, the worst first"], rows)


def has(kind: dict, verdict) -> bool:
    if kind["scenarios"] is None:
        return True
    return verdict.line.scenario.name in kind["scenarios"] and verdict.peer.startswith(tuple(kind.get("peers", [""])))


def row(kind: dict, found: list) -> list:
    ratios = [verdict.ratio for verdict in found]
    lost = sorted((verdict for verdict in found if verdict.outcome == "slower"), key=lambda verdict: verdict.ratio)
    named = [
        f'<a href="#{verdict.line.scenario.name}">{words.escape(verdict.line.case)}</a> against {words.escape(verdict.peer)} '
        f'<span class="slower">{words.ratio(verdict.ratio)}</span>'
        for verdict in lost[:NAMED]
    ]
    more = [f"and {len(lost) - NAMED} more"] if len(lost) > NAMED else []
    return [
        f"<strong>{words.escape(kind['who'])}</strong><br>{words.escape(kind['what'])}",
        f"{words.span(min(ratios), max(ratios))}, median {words.ratio(statistics.median(ratios))}",
        *(str(count) for count in counted(found).values()), "<br>".join(named + more),
    ]
