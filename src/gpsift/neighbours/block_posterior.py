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

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.neighbours.choice import Near
from gpsift.neighbours.in_blocks import LatentInBlocks, PosteriorInBlocks, grouped, in_blocks
from gpsift.posterior import LatentAt, Posterior

# Distances of one row that two blocks have in common differ by less than this share.
SAME_DISTANCE = 1e-9


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

    def mean_of_moved(self, X: Array, own: np.ndarray) -> Array:
        """Of a point's own block and the one in which it lies now, the one with the nearer row has the say.

        The second where the nearest row is near both. Away from all rows that is its own: means jump where blocks meet,
        and a point should not see a jump that data do not show.
        """
        mean, distance = self._means_and_distances(X, own)
        now = self.blocks.numbers(to_numpy(X))
        left = np.flatnonzero(now != own)
        if left.size:
            mean_now, distance_now = self._means_and_distances(rows_of(X, left), now[left])
            mean = mean.copy()
            is_nearer = distance_now <= distance[left] + SAME_DISTANCE * np.abs(distance[left])
            mean[left] = np.where(is_nearer, mean_now, mean[left])
        return like(X, mean)

    def _means_and_distances(self, X: Array, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean by the triples of these blocks, and how near their rows are: k(z, z) - 2 k(x, z) of the nearest."""
        xp = namespace(X)

        def of_block(number: int, rows: np.ndarray) -> list[Array]:
            triple = self.mean_triple(number)
            own = self.kernel.diag(triple.Z)
            found = []
            for part in triple.parts(len(rows)):
                K = self.kernel.between(rows_of(X, rows[part]), triple.Z).K
                found.append((K @ triple.weights, xp.min(own - 2.0 * K, axis=1)))
            return [xp.concat(pieces) for pieces in zip(*found, strict=True)]

        mean, distance = in_blocks(of_block, grouped(numbers), X)
        return to_numpy(mean), to_numpy(distance)


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
