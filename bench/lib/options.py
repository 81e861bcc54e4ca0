"""What the command line asks of a scenario."""

import dataclasses
import pathlib

SCALES = ("small", "medium", "large")
# Servers of ours: they always run.
OURS = ("bowshot", "bowshot-streaming", "bowshot-socket", "bowshot-pg", "bowshot-mysql")
ROUNDS = {"small": 1, "medium": 3, "large": 5}


@dataclasses.dataclass(frozen=True)
class Options:
    """`rounds` are the turns after the warm-up; `peers` are the names of those to run (None for all that can)."""

    scale: str
    rounds: int
    only: str | None
    case: str | None
    peers: frozenset | None
    gigabytes: float | None
    rows: tuple | None
    folder: pathlib.Path
    command: str

    def chosen(self, label: str) -> bool:
        return not self.only or self.only in label

    def has_case(self, name: str) -> bool:
        return not self.case or any(text in name for text in self.case.split("|"))

    def has_peer(self, name: str) -> bool:
        return self.peers is None or name in OURS or name in self.peers

    def size(self, small, medium, large):
        """The size of something at the scale that was asked for."""
        return {"small": small, "medium": medium, "large": large}[self.scale]

    def row_counts(self, small: tuple, medium: tuple, large: tuple) -> tuple:
        """The numbers of rows that were asked for by themselves, else those of the scale."""
        return self.rows or self.size(small, medium, large)

    @property
    def small(self) -> bool:
        return self.scale == "small"
