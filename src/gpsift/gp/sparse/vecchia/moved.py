"""Means where a feature of points is set to other values, which takes some of them into other blocks.

The values that a point's feature takes are its nodes. A node that stays in the point's own block is asked there. Of one
that leaves it, the point's own block or the one in which the node lies has the say, whichever has the nearer row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from gpsift._utils.arrays import Array, indices_like, namespace, take_rows, to_numpy
from gpsift.gp.sparse.vecchia.blocks import Blocks
from gpsift.gp.sparse.vecchia.visits import grouped, in_blocks
from gpsift.kernels import Kernel
from gpsift.reference.posterior import Posterior

# Squared distances of one row that two blocks have in common differ by less than this share of their parts.
SAME_DISTANCE = 1e-12


class Moved(NamedTuple):
    """Points of which a feature is set to base_i + offset_q, and the blocks that they come from."""

    X: Array
    own: np.ndarray
    feature: int
    base: Array
    offset: Array

    def nodes(self, which: np.ndarray) -> Array:
        """Where they are then, of n * q those with these numbers."""
        point, node = np.divmod(which, self.offset.shape[0])
        nodes = take_rows(self.X, point)
        nodes[:, self.feature] = take_rows(self.base, point) + take_rows(self.offset, node)
        return nodes

    def numbers_in(self, blocks: Blocks) -> np.ndarray:
        """In which block each is then, (n, q)."""
        X, base, offset = to_numpy(self.X).copy(), to_numpy(self.base), to_numpy(self.offset)
        found = np.empty((len(X), len(offset)), dtype=int)
        for node, by in enumerate(offset):
            X[:, self.feature] = base + by
            found[:, node] = blocks.numbers(X)
        return found


class MeansByBlock(Protocol):
    """A posterior with a triple for each block, and points in units of the length-scales."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def blocks(self) -> Blocks: ...

    def mean_triple(self, number: int) -> Posterior: ...

    def placed(self, X: Array) -> Array: ...

    def distance(self, number: int, x: Array) -> Array: ...


def mean_of_moved(posterior: MeansByBlock, moved: Moved) -> Array:
    """The mean at the nodes of some points, (n, q).

    Where a row that is near both blocks is the nearest, the block of the node has the say. Away from all rows that is
    the point's own: means jump where blocks meet, and a point should not see a jump that data do not show.
    """

    def by_own(number: int, rows: np.ndarray) -> Iterable[Array]:
        latent = posterior.mean_triple(number).at(take_rows(moved.X, rows))
        return (latent.section(moved.feature, take_rows(moved.base, rows), moved.offset),)

    (found,) = in_blocks(by_own, grouped(moved.own), moved.X)
    own, now = np.repeat(moved.own, moved.offset.shape[0]), moved.numbers_in(posterior.blocks).ravel()
    left = np.flatnonzero(now != own)
    if left.size:
        xp = namespace(moved.X)
        nearer, mean = _where_others_are_nearer(posterior, moved, left, own[left], now[left])
        flat = xp.reshape(found, (-1,))
        flat[indices_like(flat, left[nearer])] = take_rows(mean, nearer)
        found = xp.reshape(flat, found.shape)
    return found


def _where_others_are_nearer(
    posterior: MeansByBlock, moved: Moved, left: np.ndarray, own: np.ndarray, now: np.ndarray
) -> tuple[np.ndarray, Array]:
    """Of nodes in other blocks than their points, which go by that block, and the means there of all."""
    nodes = moved.nodes(left)
    placed = posterior.placed(nodes)

    def by_new(number: int, which: np.ndarray) -> Iterable[Array]:
        distance = posterior.distance(number, take_rows(placed, which))
        return _mean_at_nodes(posterior, moved, number, left[which], take_rows(nodes, which)), distance

    def from_own(number: int, which: np.ndarray) -> Iterable[Array]:
        return (posterior.distance(number, take_rows(placed, which)),)

    mean, distance = in_blocks(by_new, grouped(now), nodes)
    (own_distance,) = in_blocks(from_own, grouped(own), nodes)
    rounding = SAME_DISTANCE * namespace(placed).sum(placed * placed, axis=1)
    return np.flatnonzero(to_numpy(distance - own_distance <= rounding)), mean


def _mean_at_nodes(posterior: MeansByBlock, moved: Moved, number: int, numbers: np.ndarray, nodes: Array) -> Array:
    """The mean by one block at nodes with these numbers: those of a point are parts of one section."""
    triple = posterior.mean_triple(number)
    if not posterior.kernel.shares_sections:
        return triple.at(nodes).mean
    point, node = np.divmod(numbers, moved.offset.shape[0])
    points, first, row = np.unique(point, return_index=True, return_inverse=True)
    used, column = np.unique(node, return_inverse=True)
    base, offset = take_rows(moved.base, points), take_rows(moved.offset, used)
    section = triple.at(take_rows(nodes, first)).section(moved.feature, base, offset)
    return take_rows(namespace(nodes).reshape(section, (-1,)), row * len(used) + column)
