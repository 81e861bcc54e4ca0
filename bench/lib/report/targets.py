"""What we want, beside what was measured: `bench/targets.toml` against the newest lines, whoever measured them."""

import dataclasses
import itertools
import tomllib

from .. import places, registry
from . import words

FILE = places.BENCH / "targets.toml"
VERDICTS = {"no": "slower", "not measured": "unknown", "yes": "faster"}  # with their styles, in the order of the table


@dataclasses.dataclass(frozen=True)
class Part:
    """A target in one line of the results."""

    line: object
    value: float
    met: bool


@dataclasses.dataclass(frozen=True)
class Checked:
    """A target, the lines that tell of it, and the choices of axes for which there is none."""

    target: dict
    parts: tuple
    missing: tuple

    @property
    def verdict(self) -> str:
        if any(not part.met for part in self.parts):
            return "no"
        return "not measured" if self.missing else "yes"


def checked(lines: list) -> list:
    """All targets: first those that are not reached, then those that nobody has measured."""
    found = [check(target, lines) for target in tomllib.loads(FILE.read_text(encoding="utf-8"))["target"]]
    return sorted(found, key=lambda one: list(VERDICTS).index(one.verdict))


def check(target: dict, lines: list) -> Checked:
    parts, missing = [], []
    for axes in choices(target.get("axes", {})):
        fitting = [line for line in lines if line.scenario.name == target["scenario"] and fits(axes, line)]
        values = [(line, value) for line in fitting if (value := measured(target, line)) is not None]
        parts += [Part(line, value, holds(target, value)) for line, value in values]
        if not values:
            missing.append(", ".join(f"{value} {name}" for name, value in axes.items() if is_choice(target, name)))
    return Checked(target, tuple(parts), tuple(missing))


def choices(axes: dict) -> list:
    """A list among the axes stands for each of its values."""
    lists = [value if isinstance(value, list) else [value] for value in axes.values()]
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


def is_choice(target: dict, axis: str) -> bool:
    return isinstance(target["axes"][axis], list)


def fits(axes: dict, line) -> bool:
    return all(line.axes.get(name) == value for name, value in axes.items())


def measured(target: dict, line) -> float | None:
    """What the line says of the target; None if it says nothing."""
    if "own" in target:
        return line.raw["ratios"].get(target["own"], {}).get("ratio")
    ours = line.contenders.get(target["ours"], {}).get(target["figure"])
    if "peer" not in target:
        return ours if ours is not None and ours >= 0 else None  # a count below zero was not counted
    theirs = line.contenders.get(target["peer"], {}).get(target["figure"])
    if not ours or not theirs:
        return None
    times = ours / theirs
    return 1 / times if "least" in target and registry.is_lower_better(target["figure"]) else times


def holds(target: dict, value: float) -> bool:
    return value >= target["least"] if "least" in target else value <= target["most"]


def section(found: list) -> str:
    rows = [row(one) for one in found]
    table = words.table(["what we want", "wanted", "measured", "reached", "from"], rows, 5, "stacked wants")
    return f'<section id="targets"><h2>What we want, and what it is</h2><p>{summary(found)} {EXPLAINED}</p>{table}</section>'


EXPLAINED = (
    "Each is held against the newest line of its case. A ratio is how many times as fast Bowshot is, or, where at most so much "
    "is wanted, how many times as much it takes as the other. What is not reached comes first."
)


def summary(found: list) -> str:
    count = {verdict: sum(one.verdict == verdict for one in found) for verdict in VERDICTS}
    return (
        f"Of {len(found)} goals <strong>{count['yes']}</strong> are reached, <strong>{count['no']}</strong> are not, and "
        f"<strong>{count['not measured']}</strong> are not measured yet."
    )


def row(one: Checked) -> list:
    style = VERDICTS[one.verdict]
    return [
        words.escape(one.target["what"]), words.escape(wanted(one.target)), values(one),
        f'<span class="{style}">{one.verdict}</span>', origins(one),
    ]


def wanted(target: dict) -> str:
    bound = "least" if "least" in target else "most"
    return f"at {bound} {target[bound]:g}{unit(target)}"


def unit(target: dict) -> str:
    return target.get("unit", "×" if "peer" in target or "own" in target else "")


def values(one: Checked) -> str:
    """Each value with the case that it is of, where there are several."""
    several = len(one.parts) + len(one.missing) > 1
    texts = []
    for part in one.parts:
        style = "" if part.met else ' class="slower"'
        case = f" {words.escape(part.line.case)}" if several else ""
        texts.append(f"<strong{style}>{number(one.target, part)}{unit(one.target)}</strong>{case}")
    return "<br>".join(texts + [f"{words.escape(text)} not measured".strip() for text in one.missing])


def number(target: dict, part: Part) -> str:
    """Three digits, or as many as it takes to show on which side of what is wanted it is."""
    for digits in range(3, 9):
        text = f"{part.value:.{digits}g}"
        if holds(target, float(text)) == part.met:
            break
    return text


def origins(one: Checked) -> str:
    """Commit and machine of each run."""
    found = dict.fromkeys((part.line.commit(), part.line.machine()) for part in one.parts)
    return "<br>".join(f"{words.code(commit)} {words.escape(machine)}" for commit, machine in found)
