"""Reads result lines and brings them into one form: the newest line of each case, with the figures that follow from others."""

import dataclasses
import json
import pathlib

from .. import registry

# Our own server without what is measured: the other side of a comparison of ours with ours.
BASELINES = ("bowshot, cache off", "bowshot, views off", "bowshot alone")
# Names of contenders that a reader knows by another one.
NAMES = {"arrow-cpp-flight": "Arrow C++ Flight", "stock-arrow-flight": "arrow-flight in Rust", "DuckDB": "DuckDB in process"}


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

    def group(self) -> str:
        """What lines have in common that differ in numbers alone, in words."""
        return ", ".join(str(value) for value in self.axes.values() if isinstance(value, str))

    def metrics(self) -> list:
        """Those of the scenario that any contender has."""
        return [metric for metric in self.scenario.metrics if any(metric.name in one for one in self.contenders.values())]

    def values(self, metric) -> dict:
        """By contender, of those that have the figure."""
        return {label: figures[metric.name] for label, figures in self.contenders.items() if figures.get(metric.name)}

    def has_queries(self) -> bool:
        return any("queries" in figures for figures in self.contenders.values())

    def fits(self, scenario: str, axes: dict) -> bool:
        return self.scenario.name == scenario and all(self.axes.get(name) == value for name, value in axes.items())

    def judged(self) -> list:
        """Those that comparisons are made of; where the scenario has two kinds of lines, the first that this one has."""
        wanted = self.scenario.metrics[: self.scenario.judged]
        return [metric for metric in self.metrics() if metric in wanted] or self.metrics()[:1]

    def commit(self) -> str:
        return self.raw["commit"] + (" with changes" if self.raw.get("modified") else "")

    def machine(self) -> str:
        return f"{self.processor()}, {self.raw['machine']['cores']} cores"

    def processor(self) -> str:
        """Its name without marks and the word that says what it is."""
        return self.raw["machine"]["processor"].replace("(R)", "").removesuffix(" Processor")


def read(folder: pathlib.Path) -> list:
    """The newest line of every case, in the order of the registry, and of their first appearance."""
    newest = {(item.scenario.name, item.case): item for item in every(folder)}  # keeps the place of the first
    return [item for item in newest.values() if item.contenders]


def every(folder: pathlib.Path) -> list:
    """All lines in the order of the registry, and of each scenario the oldest first."""
    paths = (folder / f"{name}.jsonl" for name in registry.SCENARIOS)
    return [line(json.loads(text)) for path in paths if path.exists() for text in path.read_text(encoding="utf-8").splitlines()]


def line(raw: dict) -> Line:
    return Line(
        scenario=registry.SCENARIOS[raw["scenario"]],
        case=raw["case"],
        time=raw["time"],
        axes=axes(raw),
        contenders={NAMES.get(label, label): derived(figures) for label, figures in raw["contenders"].items()},
        ceilings=tuple(raw.get("ceilings", ())),
        raw=raw,
    )


def axes(raw: dict) -> dict:
    """Older lines of joins have their rows among the settings alone."""
    found = raw.get("axes", {})
    if raw["scenario"] == "joins" and "rows" in raw["settings"]:
        return {**found, "rows": raw["settings"]["rows"]}
    return found


def derived(figures: dict) -> dict:
    """With the processor time per GB of the client and of both sides, where the client's and the bytes are known."""
    if not figures.get("bytes") or "client_cpu_s" not in figures:
        return figures
    client = figures["client_cpu_s"] / (figures["bytes"] / 1e9)
    both = client + figures.get("server_cpu_s_per_gb", 0)
    return {**figures, "client_cpu_s_per_gb": client, "both_cpu_s_per_gb": both}


def is_ours(label: str) -> bool:
    return label.startswith("bowshot") and label not in BASELINES
