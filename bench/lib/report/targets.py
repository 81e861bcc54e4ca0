"""What we want, beside what was measured: `bench/targets.toml` against the newest lines, whoever measured them."""

import dataclasses
import fnmatch
import itertools
import tomllib

from .. import places, registry
from . import words

FILE = places.BENCH / "targets.toml"
TITLE = "What we want, and what it is"
EXPLAINED = (
    "Each is held against the newest line of its case. A ratio is how many times as fast Bowshot is, or, where at most so much "
    "is wanted, how many times as much it takes as the other. What is not reached comes first."
)
VERDICTS = {"no": "slower", "not measured": "unknown", "yes": "faster"}  # with their styles, in the order of the table


@dataclasses.dataclass(frozen=True)
class Checked:
    """A target, the lines that tell of it with their values, and the choices of axes for which there is none."""

    target: dict
    parts: tuple
    missing: tuple

    @property
    def verdict(self) -> str:
        if any(not holds(self.target, value) for _, value in self.parts):
            return "no"
        return "not measured" if self.missing else "yes"


def section(lines: list) -> str:
    """All targets: first those that are not reached, then those that nobody has measured."""
    found = [check(target, lines) for target in tomllib.loads(FILE.read_text(encoding="utf-8"))["target"]]
    count = {verdict: sum(one.verdict == verdict for one in found) for verdict in VERDICTS}
    found.sort(key=lambda one: list(VERDICTS).index(one.verdict))
    table = words.table(["what we want", "wanted", "measured", "reached", "from"], [row(one) for one in found])
    return (
        f'<section id="targets"><h2>{TITLE}</h2><p>Of {len(found)} goals <strong>{count["yes"]}</strong> are reached, '
        f'<strong>{count["no"]}</strong> are not, and <strong>{count["not measured"]}</strong> are not measured yet. '
        f"{EXPLAINED}</p>{table}</section>"
    )


def check(target: dict, lines: list) -> Checked:
    parts, missing = [], []
    wanted = target.get("axes", {})
    # A list among the axes stands for each of its values.
    for chosen in itertools.product(*(value if isinstance(value, list) else [value] for value in wanted.values())):
        axes = dict(zip(wanted, chosen, strict=True))
        fitting = [line for line in lines if line.fits(target["scenario"], axes)]
        values = [(line, value) for line in fitting if (value := measured(target, line)) is not None]
        parts += values
        if not values:
            missing.append(", ".join(f"{value} {name}" for name, value in axes.items() if isinstance(wanted[name], list)))
    return Checked(target, tuple(parts), tuple(missing))


def measured(target: dict, line) -> float | None:
    """What the line says of the target; None if it says nothing."""
    if "own" in target:
        return line.raw["ratios"].get(target["own"], {}).get("ratio")
    figure = target.get("figure", "seconds")
    ours = look_up(line, target["ours"], figure)
    if "peer" not in target:
        return ours / target.get("per", 1) if ours is not None and ours >= 0 else None  # a count below zero was not counted
    theirs = look_up(line, target["peer"], figure)
    if not ours or not theirs:
        return None
    return theirs / ours if "least" in target and registry.is_lower_better(figure) else ours / theirs


def look_up(line, label: str, figure: str) -> float | None:
    """The figure of a contender; `*` at the end of its label stands for anything."""
    return next((found.get(figure) for name, found in line.contenders.items() if fnmatch.fnmatchcase(name, label)), None)


def holds(target: dict, value: float) -> bool:
    return value >= target["least"] if "least" in target else value <= target["most"]


def row(one: Checked) -> list:
    target = one.target
    bound = "least" if "least" in target else "most"
    unit = target.get("unit", "×" if "peer" in target or "own" in target else "")
    origins = dict.fromkeys(f"{words.code(line.commit())} {words.escape(line.machine())}" for line, _ in one.parts)
    return [
        words.escape(target["what"]), words.escape(f"at {bound} {target[bound]:g}{unit}"), values(one, unit),
        f'<span class="{VERDICTS[one.verdict]}">{one.verdict}</span>', "<br>".join(origins),
    ]


def values(one: Checked, unit: str) -> str:
    """Each value with the case that it is of, where there are several."""
    several = len(one.parts) + len(one.missing) > 1
    texts = [
        f"<strong>{number(one.target, value)}{unit}</strong>{' ' + words.escape(line.case) if several else ''}"
        for line, value in one.parts
    ]
    return "<br>".join(texts + [f"{words.escape(text)} not measured".strip() for text in one.missing])


def number(target: dict, value: float) -> str:
    """Three digits, or as many as it takes to show on which side of what is wanted it is."""
    texts = [f"{value:.{digits}g}" for digits in range(3, 9)]
    return next((text for text in texts if holds(target, float(text)) == holds(target, value)), texts[-1])
