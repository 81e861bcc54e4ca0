"""Reads result lines and brings them into one form: the newest line of each case, with the figures that follow from others."""

import dataclasses
import json
import pathlib

from .. import registry


@dataclasses.dataclass(frozen=True)
class Line:
    """One comparison. `axes` are what it can be plotted by; contenders are labels with their figures."""

    scenario: registry.Scenario
    case: str
    time: str
    axes: dict
    contenders: dict
    ceilings: tuple
    raw: dict

    def numeric_axes(self) -> dict:
        return {name: value for name, value in self.axes.items() if isinstance(value, int | float)}

    def group(self) -> str:
        """What lines have in common that differ in numbers alone, in words."""
        return ", ".join(str(value) for value in self.axes.values() if isinstance(value, str))

    def metrics(self) -> list:
        """Those of the scenario that any contender has."""
        return [
            metric for metric in self.scenario.metrics
            if any(metric.name in figures for figures in self.contenders.values())
        ]


def read(folder: pathlib.Path) -> list:
    """The newest line of every case, in the order of the registry, and of their first appearance."""
    newest = {}
    for name in registry.SCENARIOS:
        path = folder / f"{name}.jsonl"
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            raw = json.loads(text)
            key = name, raw["case"]
            newest[key] = raw  # keeps the place of the first
    return [line(raw) for raw in newest.values() if raw["contenders"]]


def line(raw: dict) -> Line:
    return Line(
        scenario=registry.SCENARIOS[raw["scenario"]],
        case=raw["case"],
        time=raw["time"],
        axes=raw.get("axes", {}),
        contenders={label: derived(figures) for label, figures in raw["contenders"].items()},
        ceilings=tuple(raw.get("ceilings", ())),
        raw=raw,
    )


def derived(figures: dict) -> dict:
    """With the client's processor time per GB, where the client's and the bytes are known."""
    if figures.get("bytes") and "client_cpu_s" in figures:
        return {**figures, "client_cpu_s_per_gb": figures["client_cpu_s"] / (figures["bytes"] / 1e9)}
    return figures


def is_ours(label: str) -> bool:
    return label.startswith("bowshot")


def grouped(lines: list) -> dict:
    """Lines by scenario, then by what they have in common in words."""
    found = {}
    for item in lines:
        found.setdefault(item.scenario.name, {}).setdefault(item.group(), []).append(item)
    return found
