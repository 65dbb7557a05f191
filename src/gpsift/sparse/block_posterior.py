r"""A posterior with inducing points, and blocks of rows in which what these leave is followed exactly.

Inducing points carry the smooth part of a function over the whole space. The rest, a Gaussian process with covariance
R = K - Q (Q = K_xz K_zz^-1 K_zx), reaches a few length-scales at most and is taken to be independent between blocks:
the partially independent conditional (PIC) approximation (Snelson and Ghahramani 2007). With K_zz = L L^T the values at
the inducing points are L v, v ~ N(0, I); given all observations v ~ N(mu, P^-1) (`gpsift.sparse.block_inference`).
Given v, blocks do not see one another. With A = K_xz L^-T and T = R + diag(s) for the rows of a block, s being the
noise, a point x there has, with f = L^-1 k(Z, x), r = k(X_block, x) - A f and g = f - A^T T^-1 r,

.. math::
    \mathrm{mean}(x) = f^T \mu + r^T w, \quad w = T^{-1} (y - A \mu), \qquad
    \mathrm{var}(x) = k(x, x) - f^T f - r^T T^{-1} r + g^T P^{-1} g .

The mean is linear and the explained variance quadratic in k(Z, x) and k(X_block, x): each block has a triple of its own
(`gpsift.posterior`), with the inducing points and its rows as support.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, namespace, rows_of, to_numpy
from gpsift.chunks import DOUBLE, chunk_bytes_for, row_chunks
from gpsift.kernels import Kernel
from gpsift.linalg import add_diagonal, invert_lower, jittered_cholesky
from gpsift.posterior import DenseFactor, LatentAt, LatentInParts, PickledByFields, Posterior
from gpsift.sparse.blocks import Blocks
from gpsift.sparse.inducing import Inducing
from gpsift.sparse.rows import Rows, mapped

# A block's number, and those of the points in it.
Visit = tuple[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class BlockPosterior(PickledByFields):
    """The posterior with inducing points and blocks; it answers as a `gpsift.posterior.Posterior` does."""

    kernel: Kernel
    Z: Array  # inducing points, (m, p)
    L_P: Array  # Cholesky factor of P, (m, m)
    blocks: Blocks
    X: Array  # the sampled rows in the order of blocks, (n, p)
    noise_var: Array  # s, (n,)
    weights: Array  # w, what these rows add to the mean in their block, (n,)
    smooth_weights: Array  # what the inducing points add to it in each block, L^-T (mu - A^T w), (n_blocks, m)

    def at(self, X: Array) -> LatentInBlocks:
        """The posterior at the rows of X, anywhere."""
        return LatentInBlocks(self, X)

    def parts(self, n: int) -> list[slice]:
        """Of n points, all at once: they are taken block by block."""
        return [slice(0, n)]

    def covariance(self, X: Array) -> np.ndarray:
        """Latent covariance between the rows of X, (n, n): across blocks they share what is unknown of v."""
        n = X.shape[0]
        total, shared = np.zeros((n, n)), np.empty((n, self.Z.shape[0]))
        for number, rows in self.visited(X):
            here, triple = rows_of(X, rows), self.triple(number)
            explained, unknown = triple.factors
            K = self.kernel.between(here, triple.Z).K
            root = to_numpy(explained.root(K.T))
            shared[rows] = to_numpy(unknown.root(K.T)).T
            total[np.ix_(rows, rows)] = to_numpy(self.kernel.between(here, here).K) - root.T @ root
        return total + shared @ shared.T

    def visited(self, X: Array) -> list[Visit]:
        """The blocks in which rows of X lie, each with the numbers of these rows."""
        return _grouped(self.blocks.numbers(to_numpy(X)))

    def mean_of_moved(self, X: Array, own: np.ndarray) -> Array:
        """The mean at points that were moved out of these blocks, (n,).

        Of a point's own block and the one in which it lies now, the one with the nearer row has the say. Away from all
        rows that is its own: means jump where blocks meet, and a point should not see a jump that data do not show.
        """
        mean, distance = self._means_and_distances(X, own)
        now = self.blocks.numbers(to_numpy(X))
        left = np.flatnonzero(now != own)
        if left.size:
            mean_now, distance_now = self._means_and_distances(rows_of(X, left), now[left])
            mean = mean.copy()
            mean[left] = np.where(distance_now < distance[left], mean_now, mean[left])
        return like(X, mean)

    def _means_and_distances(self, X: Array, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean by the triples of these blocks, and how near their rows are: k(z, z) - 2 k(x, z) of the nearest."""
        xp, m = namespace(X), self.Z.shape[0]

        def of_block(number: int, rows: np.ndarray) -> list[Array]:
            triple = self.mean_triple(number)
            own = self.kernel.diag(triple.Z[m:, :])
            found = []
            for part in triple.parts(len(rows)):
                K = self.kernel.between(rows_of(X, rows[part]), triple.Z).K
                found.append((K @ triple.weights, xp.min(own - 2.0 * K[:, m:], axis=1)))
            return [xp.concat(pieces) for pieces in zip(*found, strict=True)]

        mean, distance = in_blocks(of_block, _grouped(numbers), X)
        return to_numpy(mean), to_numpy(distance)

    def mean_triple(self, number: int) -> Posterior:
        """The posterior in one block as far as its mean goes."""
        xp, which = namespace(self.Z), self.blocks.rows(number)
        weights = xp.concat([self.smooth_weights[number, :], self.weights[which]])
        return Posterior(self.kernel, xp.concat([self.Z, self.X[which, :]]), weights, ())

    def triple(self, number: int) -> Posterior:
        """The posterior in one block."""
        xp, L_inverse, which = namespace(self.Z), self.inducing.L_inverse, self.blocks.rows(number)
        block = BlockFactor.of(self.inducing, Rows(self.X[which, :], self.weights[which], self.noise_var[which]))
        # f and L_T^-1 r, whose squares are explained; L_P^-1 g, whose square is unknown after all.
        whitened = block.C @ L_inverse
        explained = xp.concat(
            [
                xp.concat([L_inverse, xp.zeros_like(whitened.T)], axis=1),
                xp.concat([-whitened, block.L_T_inverse], axis=1),
            ]
        )
        pull = self.L_P_inverse @ block.C.T
        unknown = xp.concat([self._L_LP_inverse + pull @ whitened, -(pull @ block.L_T_inverse)], axis=1)
        mean = self.mean_triple(number)
        return Posterior(mean.kernel, mean.Z, mean.weights, (DenseFactor(explained), DenseFactor(unknown, sign=-1.0)))

    @cached_property
    def inducing(self) -> Inducing:
        return Inducing.of(self.kernel, self.Z)

    @cached_property
    def L_P_inverse(self) -> Array:
        return invert_lower(self.L_P)

    @cached_property
    def _L_LP_inverse(self) -> Array:
        return self.L_P_inverse @ self.inducing.L_inverse

    def prepare(self) -> None:
        """Make what all blocks share once, not in every thread."""
        _ = self._L_LP_inverse


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
        self.posterior.prepare()
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


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """The rows of a block: A, and T = L_T L_T^T."""

    A: Array  # (rows, m)
    L_T_inverse: Array  # (rows, rows)

    @classmethod
    def of(cls, inducing: Inducing, rows: Rows) -> Self:
        kernel = inducing.kernel
        A = inducing.whitened(kernel.between(rows.X, inducing.Z))
        L_T, _ = jittered_cholesky(add_diagonal(kernel.between(rows.X, rows.X).K - A @ A.T, rows.noise_var))
        return cls(A, invert_lower(L_T))

    @cached_property
    def C(self) -> Array:
        """L_T^-1 A."""
        return self.L_T_inverse @ self.A
