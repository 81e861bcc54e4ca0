"""The first screen: how much faster, for whom, and where not. Every comparison counts once, for one kind of user."""

import dataclasses
import statistics
import tomllib

from .. import places
from . import plots, verdicts, words
from .lines import is_ours

FILE = places.BENCH / "users.toml"
OTHERS = {"who": "Others", "what": "", "scenarios": None}
# So many comparisons that a kind of user loses, and that make no difference, are named on the first screen.
NAMED, MOST_LEVEL = 4, 6
MEMORY = "peak_above_idle"


@dataclasses.dataclass(frozen=True)
class User:
    """A kind of user with the comparisons that are of interest to him."""

    who: str
    what: str
    verdicts: tuple

    def those(self, outcome: str) -> list:
        return [verdict for verdict in self.verdicts if verdict.outcome == outcome]


def users(judged: list) -> list:
    """In the order of the file; those of whom nothing was measured are left out."""
    kinds = [*tomllib.loads(FILE.read_text(encoding="utf-8"))["user"], OTHERS]
    found = [[] for _ in kinds]
    for verdict in judged:
        found[next(at for at, kind in enumerate(kinds) if has(kind, verdict))].append(verdict)
    return [User(kind["who"], kind["what"], tuple(part)) for kind, part in zip(kinds, found, strict=True) if part]


def has(kind: dict, verdict) -> bool:
    if kind["scenarios"] is None:
        return True
    peers = kind.get("peers", [""])
    return verdict.line.scenario.name in kind["scenarios"] and any(verdict.peer.startswith(peer) for peer in peers)


def lead(judged: list) -> str:
    """What is measured here, and the answer."""
    if not judged:
        return "There are no results beside those of other systems yet."
    count = {name: sum(verdict.outcome == name for verdict in judged) for name in ("faster", "level", "slower")}
    middle = statistics.median(verdict.ratio for verdict in judged)
    return (
        "Bowshot answers SQL queries and hands the rows to the program that asked, in the form that analytics tools compute on "
        "(Apache Arrow), without translating values one by one. How much faster is that? "
        f"In {len(judged)} comparisons with {len({verdict.peer for verdict in judged})} other ways of doing the same work "
        f"Bowshot was better in <strong>{count['faster']}</strong>, level in <strong>{count['level']}</strong> and worse in "
        f"<strong>{count['slower']}</strong>; the median is <strong>{words.ratio(middle)}</strong>. "
        "2× means twice as good, such as in half of the time; 0.5× half as good."
    )


def screen(judged: list, lines: list) -> str:
    found = users(judged)
    content = card("Where it is faster", [won(user) for user in found], "Nowhere yet.")
    worst_first = sorted(found, key=lambda user: min(verdict.ratio for verdict in user.verdicts))
    content += card("Where it is slower", [lost(user) for user in worst_first], "In none of these comparisons.")
    content += card("Where it makes no difference", [level(found)], "In none of these comparisons.")
    content += card("What the server's memory grows by", memory(lines), "That was not measured.")
    drawn = overview(found) if judged else []
    return f"""<div class="cards">{content}</div><div class="plots">{''.join(plot.html() for plot in drawn)}</div>"""


def card(head: str, items: list, nothing: str) -> str:
    items = [item for item in items if item]
    listed = f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else f"<p>{nothing}</p>"
    return f'<section class="card"><h2>{head}</h2>{listed}</section>'


def won(user: User) -> str:
    found = user.those("faster")
    return entry(user, "faster", found, words.escape(user.what)) if found else ""


def lost(user: User) -> str:
    found = user.those("slower")
    return entry(user, "slower", found, named(found)) if found else ""


def level(found: list) -> str:
    """All of them in one item: there is nothing to rank."""
    return named([verdict for user in found for verdict in user.those("level")], most=MOST_LEVEL)


def entry(user: User, style: str, found: list, text: str) -> str:
    ratios = [verdict.ratio for verdict in found]
    everything = len(found) == len(user.verdicts)
    many = f"all {len(found)}" if everything else f"{len(found)} of {len(user.verdicts)}"
    many = f"{many} comparisons" if len(user.verdicts) > 1 else "one comparison"
    return (
        f'<span class="{style}">{words.span(min(ratios), max(ratios))}</span> <strong>{words.escape(user.who)}</strong> '
        f"({many}){': ' if text else ''}{text}"
    )


def named(found: list, most: int = NAMED) -> str:
    """The comparisons by what they have in common, worst first, with links to their scenarios."""
    parts = sorted(verdicts.summaries(found), key=lambda part: part.least)
    texts = [
        f'<a href="#{part.scenario.name}">{words.escape(part.group or part.scenario.title)}</a>{by(part.metric)} against '
        f"{words.escape(part.peer)} {words.span(part.least, part.most)}"
        for part in parts[:most]
    ]
    return "; ".join(texts) + (f"; and {len(parts) - most} more" if len(parts) > most else "")


def by(metric) -> str:
    return "" if metric.name == "seconds" else f", {words.escape(metric.title)},"


def memory(lines: list) -> list:
    """The server's peak by scenario, ours and what stands beside it."""
    found = {}
    for line in lines:
        for label, figures in line.contenders.items():
            if figures.get(MEMORY):
                side = "Bowshot" if is_ours(label) else label
                found.setdefault(line.scenario, {}).setdefault(side, []).append(figures[MEMORY])
    return [
        f'<a href="#{scenario.name}">{words.escape(scenario.title)}</a>: '
        + ", ".join(grown(side, max(values)) for side, values in sides.items())
        for scenario, sides in found.items()
    ]


def grown(side: str, most: float) -> str:
    return f"{words.escape(side)} by at most <strong>{words.figure('bytes', most)}</strong>"


def overview(found: list) -> list:
    """All comparisons as dots, by kind of user, in two columns if they are many."""
    rows = [(user.who, {name(verdict): verdict.ratio for verdict in user.verdicts}) for user in found]
    caption = "A dot for each comparison. Right of the dashed line (round) Bowshot is better, left of it (square) the other."
    half = (len(rows) + 1) // 2 if len(rows) > 6 else len(rows)
    columns = [column for column in (rows[:half], rows[half:]) if column]
    titles = ["All comparisons"] if len(columns) == 1 else ["All comparisons, 1", "All comparisons, 2"]
    ratios = [ratio for _, part in rows for ratio in part.values()]
    bounds = min(ratios), max(ratios)
    return [plots.strip(title, caption, column, bounds) for title, column in zip(titles, columns, strict=True)]


def name(verdict) -> str:
    return f"{verdict.line.scenario.title}: {verdict.line.case} · {verdict.peer} · {verdict.metric.title}"
