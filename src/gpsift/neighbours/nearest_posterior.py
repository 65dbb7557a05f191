r"""A posterior point by point: that of exact inference on the rows nearest to each point (Gramacy and Apley 2015).

With A_i the covariance of the observations at the k rows nearest to x_i, y_i their targets, and k_i the covariance of
f(x_i) and them,

.. math::
    \mathrm{mean}(x_i) = k_i^T A_i^{-1} y_i, \qquad \mathrm{var}(x_i) = k(x_i, x_i) - k_i^T A_i^{-1} k_i :

every point has a triple of its own (`gpsift.posterior`), which knows of the rows around it alone. So a function may
bend here and be nearly flat there, for which one set of length-scales for all rows is a compromise. All points of a
block are solved as one stack; their slopes take the solutions as rows of one matrix, 0 where a row is not among a
point's nearest. These are looked for among the rows near the point's block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.arrays import Array, numbers_like, rows_of, to_numpy
from gpsift.chunks import chunk_bytes_for, row_chunks
from gpsift.kernels import Kernel
from gpsift.linalg import add_diagonal, row_products
from gpsift.neighbours.blocks import nearness
from gpsift.neighbours.choice import Near
from gpsift.neighbours.in_blocks import LatentInBlocks, Moved, PosteriorInBlocks, Visit
from gpsift.posterior import LatentAt, Posterior
from gpsift.rows import Rows

# Added to the diagonal of A_i as a share of the prior variance, for noise that is next to nothing.
JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class NearestPosterior(PosteriorInBlocks):
    """The posterior by exact inference on the k rows nearest to each point."""

    k: int

    def at(self, X: Array) -> LatentByNearest:
        return LatentByNearest(self, X)

    @property
    def way(self) -> Near:
        return Near(point=self.k)

    def visited(self, X: Array) -> list[Visit]:
        """In pieces whose stack of matrices is no larger than a chunk."""
        return [
            (number, rows[piece])
            for number, rows in super().visited(X)
            for piece in row_chunks(len(rows), self.k**2, chunk_bytes_for(X))
        ]

    def given_nearest(self, number: int, X: Array, *, without: np.ndarray | None = None) -> LatentGivenNearest:
        """The posterior at points in one block, each without the row that has this number; -1 is none."""
        near = self.near[number]
        worth, k = nearness(self.kernel, X.shape[1]), min(self.k, len(near) - (without is not None))
        distance = squared_distances(to_numpy(X) * worth, to_numpy(rows_of(self.X, near)) * worth)
        if without is not None:
            distance[near == without[:, None]] = np.inf
        nearest = np.argpartition(distance, k - 1, axis=1)[:, :k]
        used, places = np.unique(nearest, return_inverse=True)
        rows = Rows(*(rows_of(a, near[used]) for a in (self.X, self.y, self.noise_var)))
        return LatentGivenNearest(self.kernel, rows, X, places.reshape(nearest.shape))


class LatentByNearest(LatentInBlocks):
    """The same at points anywhere."""

    posterior: NearestPosterior

    def in_block(self, number: int, X: Array) -> LatentAt:
        return self.posterior.given_nearest(number, X)

    def mean_of_moved(self, moved: Moved) -> Array:
        """By the rows that are nearest where they are then."""
        n, n_nodes = len(moved.own), moved.offset.shape[0]
        return self.xp.reshape(self.posterior.at(moved.nodes(np.arange(n * n_nodes))).mean, (n, n_nodes))


class LatentGivenNearest(LatentAt):
    """The posterior at points that are each given some of the same rows; `places` are theirs, (n, k)."""

    def __init__(self, kernel: Kernel, rows: Rows, X: Array, places: np.ndarray):
        super().__init__(Posterior(kernel, rows.X, None, ()), X, kernel.between(X, rows.X))
        self.rows, self.places = rows, places
        self._flat = np.arange(len(places))[:, None] * rows.n + places

    @cached_property
    def mean(self) -> Array:
        return row_products(self.k, self._solutions[:, :, 0])

    @cached_property
    def var(self) -> Array:
        explained = row_products(self.k, self._solutions[:, :, 1])
        return self.xp.clip(self.posterior.kernel.diag(self.X) - explained, 0.0, None)

    @cached_property
    def mean_gradient(self) -> Array:
        return self.pairs.input_gradient(self._weights)

    @cached_property
    def mean_hessian(self) -> Array:
        return self.pairs.input_hessian(self._weights)

    def step(self, j: int, delta: float) -> tuple[Array, Array]:
        dk = self.pairs.step(j, delta)
        own = self._given(dk)
        second = row_products(own, self.xp.linalg.solve(self.A, own[:, :, None])[:, :, 0])
        var_change = self.posterior.kernel.diag_step(self.X, j, delta) - 2.0 * self._explained_change(dk) - second
        return row_products(dk, self._weights), var_change

    @cached_property
    def k(self) -> Array:
        """The covariances of f at each point and at the rows that it is given, (n, k)."""
        return self._given(self.pairs.K)

    @cached_property
    def A(self) -> Array:
        """The covariances of the observations that each point is given, (n, k, k)."""
        kernel, n_rows, (n, k) = self.posterior.kernel, self.rows.n, self.places.shape
        jitter = JITTER * float(self.xp.mean(kernel.diag(self.rows.X)))
        A = add_diagonal(kernel.between(self.rows.X, self.rows.X).K, self.rows.noise_var + jitter)
        flat = self.places[:, :, None] * n_rows + self.places[:, None, :]
        return self.xp.reshape(rows_of(self.xp.reshape(A, (-1,)), flat.ravel()), (n, k, k))

    @cached_property
    def _solutions(self) -> Array:
        """A_i^-1 y_i and A_i^-1 k_i, (n, k, 2)."""
        y = self.xp.reshape(rows_of(self.rows.y, self.places.ravel()), self.places.shape)
        return self.xp.linalg.solve(self.A, self.xp.stack([y, self.k], axis=2))

    @cached_property
    def _weights(self) -> Array:
        """A_i^-1 y_i among all rows, (n, m)."""
        return self._among_all(self._solutions[:, :, 0])

    @cached_property
    def _solved(self) -> Array:
        return self._among_all(self._solutions[:, :, 1])

    def _root_products(self, start: int, stop: int) -> Array:
        jacobians = [self._given(self.pairs.input_jacobian(j))[start:stop] for j in range(self.X.shape[1])]
        J = self.xp.stack(jacobians, axis=2)
        return self.xp.matrix_transpose(J) @ self.xp.linalg.solve(self.A[start:stop, ...], J)

    def _given(self, among_all: Array) -> Array:
        """Of a matrix (n, m) what belongs to the rows that each point is given, (n, k)."""
        flat = rows_of(self.xp.reshape(among_all, (-1,)), self._flat.ravel())
        return self.xp.reshape(flat, self.places.shape)

    def _among_all(self, given: Array) -> Array:
        """The other way round, 0 elsewhere."""
        found = self.xp.zeros_like(self.xp.reshape(self.pairs.K, (-1,)))
        found[numbers_like(found, self._flat.ravel())] = self.xp.reshape(given, (-1,))
        return self.xp.reshape(found, self.pairs.K.shape)


def squared_distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """(n, m), feature by feature: equal ones are equal whatever else is computed with them."""
    total = np.zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        total += (x[:, None] - z) ** 2
    return total
