"""Blocks of rows that are near one another, in boxes that fill the space.

A box with too many rows is cut in two across the feature along which they are spread widest, in units of the kernel's
length-scales, near the median (a k-d tree). Rows with equal values stay together, unless all rows of a box are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.kernels import Kernel

# Standardised features are spread equally up to rounding: a difference of this share counts as none.
SAME_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class Blocks:
    """Boxes by a tree of cuts, whose root is node 0."""

    feature: np.ndarray  # across which a node is cut, (n_nodes,); -1 for a block
    cut: np.ndarray  # what is above goes to the second child, (n_nodes,)
    child: np.ndarray  # nodes, (n_nodes, 2); of a block, its number twice
    starts: np.ndarray  # of the rows of each block, when rows are in the order of blocks, (n_blocks + 1,)

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    @property
    def slices(self) -> list[slice]:
        """The rows of each block, when rows are in the order of blocks."""
        return [self.rows(number) for number in range(self.n)]

    def rows(self, number: int) -> slice:
        """Those of one block, when rows are in the order of blocks."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def numbers(self, X: np.ndarray) -> np.ndarray:
        """In which block each row lies, (n,)."""
        node, rows = np.zeros(len(X), dtype=int), np.arange(len(X))
        while rows.size:
            at = node[rows]
            is_block = self.feature[at] < 0
            rows, at = rows[~is_block], at[~is_block]
            above = X[rows, self.feature[at]] > self.cut[at]
            node[rows] = self.child[at, above.astype(int)]
        return self.child[node, 0]


def cut_into_blocks(X: np.ndarray, kernel: Kernel, most: int) -> tuple[Blocks, np.ndarray]:
    """Blocks of at most `most` rows, and the rows in the order of blocks."""
    worth = nearness(kernel, X.shape[1])
    feature, cut, child = [-1], [np.inf], [(0, 0)]
    order: list[np.ndarray] = []
    starts = [0]
    waiting = [(0, np.arange(len(X)))]
    while waiting:
        node, rows = waiting.pop()
        if len(rows) <= most:
            child[node] = (len(order), len(order))
            order.append(rows)
            starts.append(starts[-1] + len(rows))
            continue
        spread = np.std(X[rows], axis=0) * worth
        feature[node] = int(np.argmax(spread >= (1.0 - SAME_SPREAD) * spread.max()))  # the first of the widest
        values = X[rows, feature[node]]
        by_value = np.argsort(values, kind="stable")
        half, cut[node] = _cut(values[by_value])
        child[node] = (len(feature), len(feature) + 1)
        # Taken from the end: blocks that touch are near one another in the order of blocks too.
        waiting += [(len(feature) + 1, rows[by_value[half:]]), (len(feature), rows[by_value[:half]])]
        feature += [-1, -1]
        cut += [np.inf, np.inf]
        child += [(0, 0), (0, 0)]
    return Blocks(np.array(feature), np.array(cut), np.array(child), np.array(starts)), np.concatenate(order)


def _cut(values: np.ndarray) -> tuple[int, float]:
    """Where to cut sorted values: how many stay below, and the value; between different values, near the median."""
    half, n = len(values) // 2, len(values)
    below, above = np.searchsorted(values, values[half], side="left"), np.searchsorted(values, values[half], "right")
    places = [int(place) for place in (below, above) if 0 < place < n]
    if not places:
        return half, np.inf
    place = min(places, key=lambda at: abs(at - half))
    return place, float(0.5 * (values[place - 1] + values[place]))


def nearness(kernel: Kernel, p: int) -> np.ndarray:
    """What a unit of each feature is worth: the inverse length-scales of all terms, added in squares."""
    squares = sum(np.broadcast_to(lengthscale, (p,)) ** -2.0 for lengthscale in kernel.lengthscales)
    return np.broadcast_to(np.sqrt(squares) if np.any(squares) else 1.0, (p,))
