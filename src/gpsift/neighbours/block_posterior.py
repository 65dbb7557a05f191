r"""A posterior by neighbours: in each block of rows that of exact inference on the rows nearest to the block.

With these rows as support every block has a triple of its own (`gpsift.posterior`), and whatever is asked of a
posterior is asked of the one in whose block a point lies. That follows a rough function, whose value hangs on the rows
around a point and on few others, at a cost that grows with the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.arrays import Array, like, namespace, numbers_like, rows_of, to_numpy
from gpsift.chunks import chunk_bytes_for, row_chunks
from gpsift.neighbours.blocks import nearness
from gpsift.neighbours.choice import Near
from gpsift.neighbours.in_blocks import LatentInBlocks, Moved, PosteriorInBlocks, grouped, in_blocks
from gpsift.posterior import LatentAt, Posterior

# Squared distances of one row that two blocks have in common differ by less than this share of their parts.
SAME_DISTANCE = 1e-12


@dataclass(frozen=True, eq=False)
class BlockPosterior(PosteriorInBlocks):
    """The posterior by exact inference on the rows near each block."""

    weights: Array  # what the rows near a block add to the mean there, (n_blocks, k)

    def at(self, X: Array) -> LatentByBlock:
        return LatentByBlock(self, X)

    @property
    def way(self) -> Near:
        return Near(block=self.near.shape[1])

    def triple(self, number: int) -> Posterior:
        """The posterior in one block."""
        return self.given(self.near[number])

    def mean_triple(self, number: int) -> Posterior:
        """The posterior in one block as far as its mean goes."""
        return Posterior(self.kernel, rows_of(self.X, self.near[number]), self.weights[number, :], ())

    def distance(self, number: int, x: Array) -> Array:
        """How far placed points are from the nearest of the rows near a block, squared, (n,)."""
        xp, Z = namespace(x), rows_of(self._places, self.near[number])
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


class LatentByBlock(LatentInBlocks):
    """The same at points in several blocks."""

    posterior: BlockPosterior

    def in_block(self, number: int, X: Array) -> LatentAt:
        return self.posterior.triple(number).at(X)

    @cached_property
    def mean(self) -> Array:
        def of_block(number: int, rows: np.ndarray) -> Iterable[Array]:
            return (self.posterior.mean_triple(number).at(rows_of(self.X, rows)).mean,)

        (mean,) = in_blocks(of_block, self.visited, self.X)
        return mean

    def mean_of_moved(self, moved: Moved) -> Array:
        """Of a point's own block and the one in which a node lies, the one with the nearer row has the say.

        The second where the nearest row is near both. Away from all rows that is its own: means jump where blocks meet,
        and a point should not see a jump that data do not show.
        """

        def by_own(number: int, rows: np.ndarray) -> Iterable[Array]:
            latent = self.posterior.mean_triple(number).at(rows_of(moved.X, rows))
            return (latent.section(moved.feature, rows_of(moved.base, rows), moved.offset),)

        (found,) = in_blocks(by_own, grouped(moved.own), moved.X)
        own, now = np.repeat(moved.own, moved.offset.shape[0]), moved.numbers_in(self.posterior.blocks).ravel()
        left = np.flatnonzero(now != own)
        if left.size:
            nearer, mean = self._where_others_are_nearer(moved, left, own[left], now[left])
            flat = self.xp.reshape(found, (-1,))
            flat[numbers_like(flat, left[nearer])] = rows_of(mean, nearer)
            found = self.xp.reshape(flat, found.shape)
        return found

    def _where_others_are_nearer(
        self, moved: Moved, left: np.ndarray, own: np.ndarray, now: np.ndarray
    ) -> tuple[np.ndarray, Array]:
        """Of nodes in other blocks than their points, which go by that block, and the means there of all."""
        posterior, nodes = self.posterior, moved.nodes(left)
        placed = posterior.placed(nodes)

        def by_new(number: int, which: np.ndarray) -> Iterable[Array]:
            distance = posterior.distance(number, rows_of(placed, which))
            return self._mean_at_nodes(moved, number, left[which], rows_of(nodes, which)), distance

        def from_own(number: int, which: np.ndarray) -> Iterable[Array]:
            return (posterior.distance(number, rows_of(placed, which)),)

        mean, distance = in_blocks(by_new, grouped(now), nodes)
        (own_distance,) = in_blocks(from_own, grouped(own), nodes)
        rounding = SAME_DISTANCE * self.xp.sum(placed * placed, axis=1)
        return np.flatnonzero(to_numpy(distance - own_distance <= rounding)), mean

    def _mean_at_nodes(self, moved: Moved, number: int, numbers: np.ndarray, nodes: Array) -> Array:
        """The mean by one block at nodes with these numbers: those of a point are parts of one section."""
        triple = self.posterior.mean_triple(number)
        if not self.posterior.kernel.shares_sections:
            return triple.at(nodes).mean
        point, node = np.divmod(numbers, moved.offset.shape[0])
        points, first, row = np.unique(point, return_index=True, return_inverse=True)
        used, column = np.unique(node, return_inverse=True)
        base, offset = rows_of(moved.base, points), rows_of(moved.offset, used)
        section = triple.at(rows_of(nodes, first)).section(moved.feature, base, offset)
        return rows_of(self.xp.reshape(section, (-1,)), row * len(used) + column)
