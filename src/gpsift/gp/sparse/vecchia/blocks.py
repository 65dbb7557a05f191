"""Division of rows into blocks of neighbours by a k-d tree, and the rows that are nearest to each block.

A box with too many rows is cut in two across the feature along which they are spread widest, in units of the kernel's
length-scales, near the median. Rows with equal values stay together, unless all rows of a box are equal.

A posterior needs the rows that are nearest to each block, its own last (`nearest_rows`). Vecchia's evidence takes
blocks one after another and needs, for each, the nearest among the rows that came before (`vecchia_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpsift._utils.arrays import Array, namespace, take_rows
from gpsift._utils.linalg import row_products
from gpsift._utils.rows import map_chunks
from gpsift.kernels import Kernel

# Standardised features have equal standard deviations up to rounding: a relative difference below this is none.
SAME_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class Blocks:
    """Boxes by a tree of cuts, whose root is node 0."""

    feature: np.ndarray  # across which a node is cut, (n_nodes,); -1 for a block
    cut: np.ndarray  # larger values go to the second child, (n_nodes,)
    child: np.ndarray  # numbers of nodes, (n_nodes, 2); for a block its number, twice
    starts: np.ndarray  # first row of each block, and the end, when rows are in the order of blocks, (n_blocks + 1,)

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    @property
    def slices(self) -> list[slice]:
        """The rows of each block, when rows are in the order of blocks."""
        return [self.rows(number) for number in range(self.n)]

    def rows(self, number: int) -> slice:
        """Return the slice of one block, when rows are in the order of blocks."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def numbers(self, X: np.ndarray) -> np.ndarray:
        """Return the number of the block in which each row lies, (n,)."""
        node, rows = np.zeros(len(X), dtype=int), np.arange(len(X))
        while rows.size:
            at = node[rows]
            is_block = self.feature[at] < 0
            rows, at = rows[~is_block], at[~is_block]
            above = X[rows, self.feature[at]] > self.cut[at]
            node[rows] = self.child[at, above.astype(int)]
        return self.child[node, 0]


def cut_into_blocks(X: np.ndarray, kernel: Kernel, most: int) -> tuple[Blocks, np.ndarray]:
    """Cut rows into blocks of at most `most`; return also the numbers of the rows in the order of blocks."""
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
        # Depth-first order: adjacent blocks are near one another in the order of blocks, too.
        waiting += [(len(feature) + 1, rows[by_value[half:]]), (len(feature), rows[by_value[:half]])]
        feature += [-1, -1]
        cut += [np.inf, np.inf]
        child += [(0, 0), (0, 0)]
    return Blocks(np.array(feature), np.array(cut), np.array(child), np.array(starts)), np.concatenate(order)


def _cut(values: np.ndarray) -> tuple[int, float]:
    """Cut sorted values between different ones, near the median; return the number of smaller ones, and the cut."""
    half, n = len(values) // 2, len(values)
    below, above = np.searchsorted(values, values[half], side="left"), np.searchsorted(values, values[half], "right")
    places = [int(place) for place in (below, above) if 0 < place < n]
    if not places:
        return half, np.inf
    place = min(places, key=lambda at: abs(at - half))
    return place, float(0.5 * (values[place - 1] + values[place]))


def nearness(kernel: Kernel, p: int) -> np.ndarray:
    """Return the weight of each feature in distances: root of the sum of inverse squared length-scales of all terms."""
    squares = sum(np.broadcast_to(lengthscale, (p,)) ** -2.0 for lengthscale in kernel.lengthscales)
    return np.broadcast_to(np.sqrt(squares) if np.any(squares) else 1.0, (p,))


class VecchiaBlock(NamedTuple):
    """Row numbers of a block, and of the earlier rows on which its density is conditioned."""

    rows: np.ndarray
    conditioning: np.ndarray


def nearest_rows(X: np.ndarray, blocks: Blocks, kernel: Kernel, k: int, numbers: Sequence[int]) -> np.ndarray:
    """Find the k rows that are nearest to the centre of each of these blocks, its own last, (n_numbers, k).

    Rows are in the order of blocks. There are fewer than k where there are fewer rows.
    """
    from scipy.spatial import KDTree

    places, k = X * nearness(kernel, X.shape[1]), min(k, len(X))
    owned = [blocks.rows(number) for number in numbers]
    centres = np.stack([places[own].mean(axis=0) for own in owned])
    _, near = KDTree(places).query(centres, k=np.arange(1, k + 1), workers=-1)
    for place, own in enumerate(owned):
        others = near[place][(near[place] < own.start) | (near[place] >= own.stop)]
        near[place] = np.concatenate([others[: k - own.stop + own.start][::-1], np.arange(own.start, own.stop)])
    return near


def vecchia_blocks(
    X: np.ndarray, kernel: Kernel, most: int, near: int, far: int, *, seed: int, every: int = 1
) -> list[VecchiaBlock]:
    """Cut rows into blocks in random order; condition each on earlier rows, the `near` nearest and `far` random ones.

    Random rows have information on a smooth trend that neighbours lack. One block in `every` is returned, from all
    parts of the order.
    """
    blocks, order = cut_into_blocks(X, kernel, most)
    places, rng = X * nearness(kernel, X.shape[1]), np.random.default_rng(seed)
    in_turn = [order[blocks.rows(number)] for number in rng.permutation(blocks.n)]
    starts, all_in_turn = np.cumsum([0, *map(len, in_turn)]), np.concatenate(in_turn)
    places_in_turn = places[all_in_turn]
    found = []
    for turn in range((every - 1) // 2, len(in_turn), every):
        rows, given = in_turn[turn], all_in_turn[: starts[turn]]
        if len(given) > near + far:
            from_centre = places_in_turn[: len(given)] - places[rows].mean(axis=0)
            distance = row_products(from_centre, from_centre)
            by_distance = given[np.argpartition(distance, near - 1)]
            given = np.concatenate([by_distance[:near], rng.choice(by_distance[near:], far, replace=False)])
        found.append(VecchiaBlock(rows, given))
    return found


# A block's number, and those of the points in it.
PointsOfBlock = tuple[int, np.ndarray]


def group_by_block(numbers: np.ndarray) -> list[PointsOfBlock]:
    """Return each number that occurs, with its places."""
    order = np.argsort(numbers, kind="stable")
    occurring, starts = np.unique(numbers[order], return_index=True)
    return list(zip(occurring.tolist(), np.split(order, starts[1:]), strict=True))


def map_blocks(of: Callable[[int, np.ndarray], Iterable[Array]], groups: list[PointsOfBlock], X: Array) -> list[Array]:
    """Call `of` with each block and the numbers of its points; return the results in the order of the points."""
    found = map_chunks(lambda group: of(*group), groups, X)
    back = np.argsort(np.concatenate([rows for _, rows in groups]))
    return [take_rows(namespace(X).concat(pieces), back) for pieces in zip(*found, strict=True)]
