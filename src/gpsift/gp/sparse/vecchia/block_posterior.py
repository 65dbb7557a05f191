"""A posterior by blocks: in each block of rows it is that of exact inference on the rows nearest to the block.

With these rows as support every block has a triple of its own (`gpsift.reference.posterior`), and each point has the
posterior of the block in which it lies. That follows a rough function, whose value depends on the rows around a point
and on few others, at a cost that grows with the rows alone.

Where a feature of a point is set to other values, the nodes of a section, some of them lie in other blocks. A node that
stays in the point's own block has the mean of that block. Of one that leaves it, the mean is that of the point's own
block or of the block in which the node lies, whichever has the nearer row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from gpsift._utils.arrays import Array, indices_like, like, namespace, take_rows, to_numpy
from gpsift._utils.arrays import take_rows as rows_of
from gpsift._utils.rows import DOUBLE, Rows, chunk_bytes_for, map_chunks, row_chunks
from gpsift.gp.sparse.vecchia.blocks import Blocks, PointsOfBlock, group_by_block, map_blocks, nearness
from gpsift.kernels import Kernel
from gpsift.reference.posterior import LatentAt, PickledByFields, Posterior, exact_posterior

# Squared distances of one row that two blocks have in common differ by less than this share of their parts.
SAME_DISTANCE = 1e-12


class SectionPoints(NamedTuple):
    """Points of which a feature is set to base_i + offset_q, and the blocks that they come from."""

    X: Array
    own: np.ndarray
    feature: int
    base: Array
    offset: Array

    def nodes(self, which: np.ndarray) -> Array:
        """Where they are then, of n * q those with these numbers."""
        point, node = np.divmod(which, self.offset.shape[0])
        nodes = rows_of(self.X, point)
        nodes[:, self.feature] = rows_of(self.base, point) + rows_of(self.offset, node)
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


def section_mean(posterior: MeansByBlock, moved: SectionPoints) -> Array:
    """The mean at the nodes of some points, (n, q).

    Where a row that is near both blocks is the nearest, the block of the node has the say. Away from all rows that is
    the point's own: means jump where blocks meet, and a point should not see a jump that data do not show.
    """

    def by_own(number: int, rows: np.ndarray) -> Iterable[Array]:
        latent = posterior.mean_triple(number).at(rows_of(moved.X, rows))
        return (latent.section(moved.feature, rows_of(moved.base, rows), moved.offset),)

    (found,) = map_blocks(by_own, group_by_block(moved.own), moved.X)
    own, now = np.repeat(moved.own, moved.offset.shape[0]), moved.numbers_in(posterior.blocks).ravel()
    left = np.flatnonzero(now != own)
    if left.size:
        xp = namespace(moved.X)
        nearer, mean = _where_others_are_nearer(posterior, moved, left, own[left], now[left])
        flat = xp.reshape(found, (-1,))
        flat[indices_like(flat, left[nearer])] = rows_of(mean, nearer)
        found = xp.reshape(flat, found.shape)
    return found


def _where_others_are_nearer(
    posterior: MeansByBlock, moved: SectionPoints, left: np.ndarray, own: np.ndarray, now: np.ndarray
) -> tuple[np.ndarray, Array]:
    """Return which nodes take the mean of the block that they lie in, and the means there of all nodes."""
    nodes = moved.nodes(left)
    placed = posterior.placed(nodes)

    def by_new(number: int, which: np.ndarray) -> Iterable[Array]:
        distance = posterior.distance(number, rows_of(placed, which))
        return _mean_at_nodes(posterior, moved, number, left[which], rows_of(nodes, which)), distance

    def from_own(number: int, which: np.ndarray) -> Iterable[Array]:
        return (posterior.distance(number, rows_of(placed, which)),)

    mean, distance = map_blocks(by_new, group_by_block(now), nodes)
    (own_distance,) = map_blocks(from_own, group_by_block(own), nodes)
    rounding = SAME_DISTANCE * namespace(placed).sum(placed * placed, axis=1)
    return np.flatnonzero(to_numpy(distance - own_distance <= rounding)), mean


def _mean_at_nodes(
    posterior: MeansByBlock, moved: SectionPoints, number: int, numbers: np.ndarray, nodes: Array
) -> Array:
    """The mean by one block at nodes with these numbers: those of a point are parts of one section."""
    triple = posterior.mean_triple(number)
    if not posterior.kernel.shares_sections:
        return triple.at(nodes).mean
    point, node = np.divmod(numbers, moved.offset.shape[0])
    points, first, row = np.unique(point, return_index=True, return_inverse=True)
    used, column = np.unique(node, return_inverse=True)
    base, offset = rows_of(moved.base, points), rows_of(moved.offset, used)
    section = triple.at(rows_of(nodes, first)).section(moved.feature, base, offset)
    return rows_of(namespace(nodes).reshape(section, (-1,)), row * len(used) + column)


# Rows on which the joint covariance of points in several blocks rests, at most.
MOST_JOINT_ROWS = 4000
# Chunks that the nodes of a section take together, at most: the more there are, the fewer times a block is visited.
# With 16, VAR of 268,853 flights took 116 s for 121, and held four times as much in each thread.
SECTION_CHUNKS = 4


@dataclass(frozen=True, eq=False)
class BlockPosterior(PickledByFields):
    """Exact inference on the rows near each block, which answers as a `gpsift.reference.posterior.Posterior` does."""

    kernel: Kernel
    blocks: Blocks
    X: Array  # rows in the order of blocks, (n, p)
    y: Array  # their targets, (n,)
    noise_var: Array  # and the variances of their noise, (n,)
    near: np.ndarray  # numbers of the rows nearest to each block, its own last, (n_blocks, k)
    weights: Array  # what these add to the mean there, (n_blocks, k)

    def at(self, X: Array) -> LatentByBlock:
        """The posterior at the rows of X, anywhere."""
        return LatentByBlock(self, X)

    @property
    def Z(self) -> Array:
        """All rows: each supports the posterior somewhere."""
        return self.X

    @property
    def near_rows(self) -> int:
        """How many rows are near each block."""
        return self.near.shape[1]

    def parts(self, n: int) -> list[slice]:
        """Return one part for n points, which are divided by blocks anyway."""
        return [slice(0, n)]

    def covariance(self, X: Array) -> np.ndarray:
        """Latent covariance between the rows of X, (n, n), given the rows that are near any of them."""
        near = self.near[np.unique(self.blocks.numbers(to_numpy(X)))]
        rows = np.unique(near[:, -max(1, MOST_JOINT_ROWS // len(near)) :])
        return to_numpy(self.given(rows).covariance(X))

    def visited(self, X: Array) -> list[PointsOfBlock]:
        """The blocks in which rows of X lie, each with the numbers of these rows."""
        return group_by_block(self.blocks.numbers(to_numpy(X)))

    def given(self, rows: np.ndarray) -> Posterior:
        """That of exact inference on the rows with these numbers."""
        return exact_posterior(self.kernel, *(take_rows(a, rows) for a in (self.X, self.y, self.noise_var)))[0]

    def triple(self, number: int) -> Posterior:
        """The posterior in one block."""
        return self.given(self.near[number])

    def mean_triple(self, number: int) -> Posterior:
        """The posterior in one block as far as its mean goes."""
        return Posterior(self.kernel, take_rows(self.X, self.near[number]), self.weights[number, :], ())

    def places(self, number: int, rows: Rows) -> np.ndarray:
        """Which rows of a block these are, counted in the block; -1 for those that are none of it."""
        own = self.blocks.rows(number)
        known = {key: place for place, key in enumerate(_keys(self.X[own, :], self.y[own]))}
        return np.array([known.get(key, -1) for key in _keys(rows.X, rows.y)])

    def distance(self, number: int, x: Array) -> Array:
        """How far placed points are from the nearest of the rows near a block, squared, (n,)."""
        xp, Z = namespace(x), take_rows(self._places, self.near[number])
        # |z|^2 - 2 x^T z as one product: passes over a matrix of that size cost more than sums.
        factor = xp.concat([-2.0 * Z, xp.sum(Z * Z, axis=1, keepdims=True)], axis=1).T
        x_and_one = xp.concat([x, xp.ones_like(x[:, :1])], axis=1)
        parts = row_chunks(x.shape[0], Z.shape[0], chunk_bytes_for(x))
        found = [xp.min(x_and_one[part, :] @ factor, axis=1) for part in parts]
        return xp.concat(found) + xp.sum(x * x, axis=1)

    def placed(self, X: Array) -> Array:
        """Points in units of the length-scales, around the middle of the rows."""
        return (X - self._middle) * like(X, nearness(self.kernel, X.shape[1]))

    @cached_property
    def _middle(self) -> Array:
        return namespace(self.X).mean(self.X, axis=0)

    @cached_property
    def _places(self) -> Array:
        return self.placed(self.X)


class LatentByBlock(LatentAt):
    """A posterior by blocks at points; a step and slopes are those of the posterior in a point's own block."""

    posterior: BlockPosterior  # type: ignore[assignment]

    def __init__(self, posterior: BlockPosterior, X: Array):
        super().__init__(posterior, X, parts=posterior.parts(len(X)))  # type: ignore[arg-type]
        self.visited = posterior.visited(X)

    @cached_property
    def mean(self) -> Array:
        def of_block(number: int, rows: np.ndarray) -> Iterable[Array]:
            return (self.posterior.mean_triple(number).at(take_rows(self.X, rows)).mean,)

        (mean,) = map_blocks(of_block, self.visited, self.X)
        return mean

    def section(self, j: int, base: Array, offset: Array) -> Array:
        n, p = self.X.shape
        n_nodes = offset.shape[0]
        order = np.concatenate([rows for _, rows in self.visited])
        own = np.repeat([number for number, _ in self.visited], [len(rows) for _, rows in self.visited])

        def of_chunk(chunk: slice) -> Array:
            rows = order[chunk]
            moved = SectionPoints(take_rows(self.X, rows), own[chunk], j, take_rows(base, rows), offset)
            return section_mean(self.posterior, moved)

        # Rows in the order of their blocks, so that the nodes of a chunk lie in few of them.
        most = DOUBLE * n_nodes * p + SECTION_CHUNKS * chunk_bytes_for(self.X)
        found = map_chunks(of_chunk, row_chunks(n, n_nodes * p, most), self.X)
        return take_rows(self.xp.concat(found), np.argsort(order))

    def map_parts(self, function: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        def of_block(number: int, rows: np.ndarray) -> Iterable[Array]:
            return function(self.posterior.triple(number).at(rows_of(self.X, rows)))

        return map_blocks(of_block, self.visited, self.X)


def _keys(X: Array, y: Array) -> Iterator[bytes]:
    return (row.tobytes() for row in np.column_stack([to_numpy(X), to_numpy(y)]))
