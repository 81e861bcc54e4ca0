"""What the command line asks of a scenario."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Options:
    """`rounds` are the turns after the warm-up; `small` is for trying out: little data, results kept apart."""

    rounds: int
    only: str | None
    small: bool
    gigabytes: float | None

    def chosen(self, label: str) -> bool:
        return not self.only or self.only in label

    def size(self, full, small):
        """The full size of something, or the small one."""
        return small if self.small else full

    @property
    def scale(self) -> str:
        return "small" if self.small else "full"
