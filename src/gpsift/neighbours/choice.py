"""Which rows a posterior by neighbours goes by."""

from __future__ import annotations

from typing import NamedTuple

# Rows that are near a block, where nobody says, and where rows are many: their neighbours are nearer.
NEAR_ROWS = 1500
NEAR_OF_MANY = 1000
MANY_ROWS = 20_000


class Near(NamedTuple):
    """How many rows near each block of rows, or nearest to each point; 0 and 0 where nobody is near."""

    block: int = 0
    point: int = 0

    @property
    def anybody(self) -> bool:
        return bool(self.block or self.point)


NOBODY = Near()
# Rows that are nearest to a point, where nobody says.
NEAREST = (Near(point=50), Near(point=100))


def near_blocks(n_rows: int) -> Near:
    """How many rows are near a block, where nobody says."""
    return Near(block=NEAR_ROWS if n_rows < MANY_ROWS else NEAR_OF_MANY)


def nearest_to_points(n_rows: int) -> tuple[Near, ...]:
    """How many rows may be nearest to a point; none of many rows, at all of which VAR would take an hour."""
    return NEAREST if n_rows < MANY_ROWS else ()
