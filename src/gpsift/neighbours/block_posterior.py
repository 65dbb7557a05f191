r"""A posterior by neighbours: in each block of rows that of exact inference on the rows nearest to the block.

With these rows as support every block has a triple of its own (`gpsift.posterior`), and whatever is asked of a
posterior is asked of the one in whose block a point lies. That follows a rough function, whose value hangs on the rows
around a point and on few others, at a cost that grows with the rows alone (Gramacy and Apley 2015 take such
neighbourhoods point by point).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.chunks import DOUBLE, chunk_bytes_for, row_chunks
from gpsift.inference.exact import exact_posterior
from gpsift.kernels import Kernel
from gpsift.neighbours.blocks import Blocks
from gpsift.posterior import LatentAt, LatentInParts, PickledByFields, Posterior
from gpsift.rows import mapped

# Rows on which the joint covariance of points in several blocks rests, at most.
MOST_JOINT_ROWS = 4000
# Distances of one row that two blocks have in common differ by less than this share.
SAME_DISTANCE = 1e-9
# A block's number, and those of the points in it.
Visit = tuple[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class BlockPosterior(PickledByFields):
    """The posterior by neighbours; it answers as a `gpsift.posterior.Posterior` does."""

    kernel: Kernel
    blocks: Blocks
    X: Array  # rows in the order of blocks, (n, p)
    y: Array  # their targets, (n,)
    noise_var: Array  # and the variances of their noise, (n,)
    near: np.ndarray  # numbers of the rows nearest to each block, its own last, (n_blocks, k)
    weights: Array  # what these rows add to the mean in the block, (n_blocks, k)

    def at(self, X: Array) -> LatentInBlocks:
        """The posterior at the rows of X, anywhere."""
        return LatentInBlocks(self, X)

    def parts(self, n: int) -> list[slice]:
        """Of n points, all at once: they are taken block by block."""
        return [slice(0, n)]

    def covariance(self, X: Array) -> np.ndarray:
        """Latent covariance between the rows of X, (n, n), given the rows that are near any of them."""
        near = self.near[[number for number, _ in self.visited(X)]]
        rows = np.unique(near[:, -max(1, MOST_JOINT_ROWS // len(near)) :])
        return to_numpy(self._given(rows).covariance(X))

    def visited(self, X: Array) -> list[Visit]:
        """The blocks in which rows of X lie, each with the numbers of these rows."""
        return _grouped(self.blocks.numbers(to_numpy(X)))

    def triple(self, number: int) -> Posterior:
        """The posterior in one block."""
        return self._given(self.near[number])

    def mean_triple(self, number: int) -> Posterior:
        """The posterior in one block as far as its mean goes."""
        return Posterior(self.kernel, rows_of(self.X, self.near[number]), self.weights[number, :], ())

    def _given(self, rows: np.ndarray) -> Posterior:
        return exact_posterior(self.kernel, *(rows_of(a, rows) for a in (self.X, self.y, self.noise_var)))[0]

    def mean_of_moved(self, X: Array, own: np.ndarray) -> Array:
        """The mean at points that were moved out of these blocks, (n,).

        Of a point's own block and the one in which it lies now, the one with the nearer row has the say, the second
        where the nearest row is near both. Away from all rows that is its own: means jump where blocks meet, and a
        point should not see a jump that data do not show.
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

        mean, distance = in_blocks(of_block, _grouped(numbers), X)
        return to_numpy(mean), to_numpy(distance)


class LatentInBlocks(LatentInParts):
    """The same at points in several blocks; a step and slopes are those of the posterior in a point's own block."""

    posterior: BlockPosterior  # type: ignore[assignment]

    def __init__(self, posterior: BlockPosterior, X: Array):
        self.posterior, self.X, self.xp = posterior, X, namespace(X)
        self.visited = posterior.visited(X)

    @cached_property
    def mean(self) -> Array:
        (mean,) = self._by_block(self.posterior.mean_triple, lambda latent: (latent.mean,))
        return mean

    def section(self, j: int, base: Array, offset: Array) -> Array:
        n, p = self.X.shape
        n_nodes = offset.shape[0]
        order = np.concatenate([rows for _, rows in self.visited])
        own = np.repeat([number for number, _ in self.visited], [len(rows) for _, rows in self.visited])
        found = []
        # Rows in the order of their blocks, so that the nodes of a chunk lie in few of them.
        for chunk in row_chunks(n, n_nodes * p, DOUBLE * n_nodes * p + chunk_bytes_for(self.X)):
            rows = order[chunk]
            nodes = rows_of(self.X, np.repeat(rows, n_nodes))
            nodes[:, j] = self.xp.reshape(rows_of(base, rows)[:, None] + offset, (-1,))
            mean = self.posterior.mean_of_moved(nodes, np.repeat(own[chunk], n_nodes))
            found.append(self.xp.reshape(mean, (-1, n_nodes)))
        return rows_of(self.xp.concat(found), np.argsort(order))

    def _joined_of(self, of: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        return self._by_block(self.posterior.triple, of)

    def _by_block(self, triple: Callable[[int], Posterior], of: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        """What `of` finds in each block, for all points."""

        def of_block(number: int, rows: np.ndarray) -> Iterable[Array]:
            return of(triple(number).at(rows_of(self.X, rows)))

        return in_blocks(of_block, self.visited, self.X)


def in_blocks(of: Callable[[int, np.ndarray], Iterable[Array]], blocks: list[Visit], X: Array) -> list[Array]:
    """What `of` finds for the points of each block, given its number and theirs, in the order of the points X."""
    found = mapped(lambda block: of(*block), blocks, X)
    back = np.argsort(np.concatenate([rows for _, rows in blocks]))
    return [rows_of(namespace(X).concat(pieces), back) for pieces in zip(*found, strict=True)]


def _grouped(numbers: np.ndarray) -> list[Visit]:
    """Each number that occurs, with where it does."""
    order = np.argsort(numbers, kind="stable")
    occurring, starts = np.unique(numbers[order], return_index=True)
    return list(zip(occurring.tolist(), np.split(order, starts[1:]), strict=True))
