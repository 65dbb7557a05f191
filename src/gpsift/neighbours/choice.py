"""Which rows a posterior by neighbours goes by."""

from __future__ import annotations

from typing import NamedTuple

# How many rows are near a block, where nobody says: the more rows there are, the nearer are a block's neighbours, and
# the more blocks there are to factorise. From these numbers of rows on:
NEAR_ROWS = {0: 1500, 20_000: 1000, 100_000: 600}
# From here on, nobody is nearest to a point.
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
    return Near(block=min(near for least, near in NEAR_ROWS.items() if n_rows >= least))


def nearest_to_points(n_rows: int) -> tuple[Near, ...]:
    """How many rows may be nearest to a point; none of many rows, at all of which VAR would take an hour."""
    return NEAREST if n_rows < MANY_ROWS else ()
