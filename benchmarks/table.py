"""Rows of numbers with the mark that each has to reach, and how they are printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Mark(ABC):
    """What a number has to be."""

    limit: float
    unit: str = "x"

    @abstractmethod
    def holds(self, value: float) -> bool: ...


class AtLeast(Mark):
    def holds(self, value: float) -> bool:
        return value >= self.limit

    def __str__(self) -> str:
        return f">= {self.limit:g}{self.unit}"


class Below(Mark):
    def holds(self, value: float) -> bool:
        return value < self.limit

    def __str__(self) -> str:
        return f"< {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Row:
    """One comparison. `value` is what the mark is about: mostly how many times longer the peer took."""

    case: str
    peer: str
    ours: str
    theirs: str
    value: float
    mark: Mark | None = None
    unit: str = "x"

    @property
    def cells(self) -> tuple[str, ...]:
        value = f"{self.value:.3g}" if abs(self.value) < 1000 else f"{self.value:.0f}"
        verdict = "" if self.mark is None else "holds" if self.mark.holds(self.value) else "DOES NOT HOLD"
        return (self.case, self.peer, self.ours, self.theirs, value + self.unit, str(self.mark or ""), verdict)


HEADER = ("case", "peer", "gpsift", "peer's", "ratio", "mark", "")
LEFT = (0, 1, 6)  # columns of words


def print_table(rows: Iterable[Row]) -> None:
    """All rows under one header, columns aligned."""
    cells = [HEADER, *(row.cells for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(HEADER))]
    for line in cells:
        padded = [cell.ljust(widths[k]) if k in LEFT else cell.rjust(widths[k]) for k, cell in enumerate(line)]
        print("  ".join(padded).rstrip())


def duration(seconds: float) -> str:
    """Seconds in readable units."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
